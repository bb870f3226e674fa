"""EC2's security groups, with one resource a rule.

Rules inside a group (`ingress`, `egress`) are not taken: the provider itself advises against them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from rehearsal.attachment.resource import Properties
from rehearsal.aws.ec2.resources import Ec2Resource
from rehearsal.aws.resource import AwsRefusalError, capital, properties
from rehearsal.aws.tags import unpaired

NO_DEFAULT_GROUP = "The VPC {vpc} has no default security group"


class SecurityGroup(Ec2Resource):
    """A group without rules: the provider takes away the one that EC2 gives to every new group."""

    token = "aws:ec2/securityGroup:SecurityGroup"
    title, noun, id_key = "EC2 Security Group", "SecurityGroup", "GroupId"
    reported = frozenset({"description", "vpcId"})
    accepts = frozenset({"name", "description", "vpcId", "revokeRulesOnDelete", "tags"})
    replace_on = frozenset({"name", "description", "vpcId"})
    required = computed = frozenset({"vpcId"})
    name_property = "name"
    defaults: ClassVar[Mapping[str, Any]] = {"description": "Managed by Pulumi", "revokeRulesOnDelete": False}
    # Its rules are resources of their own; shown here, they would be changes of the group.
    unset: ClassVar[Mapping[str, Any]] = {"egress": [], "ingress": [], "namePrefix": ""}

    def request(self, inputs: Properties) -> dict[str, Any]:
        """EC2 says GroupName."""
        return {"GroupName": inputs["name"], "Description": inputs["description"], "VpcId": inputs["vpcId"]}

    def complete(self, id: str, inputs: Properties, timeout: float) -> None:
        """Revoke the rule that lets everything out."""
        self._revoke(id, egress="IpPermissionsEgress")

    def change(self, id: str, old: Properties, new: Properties, timeout: float) -> None:
        """Only what happens at its deletion can change."""

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """Revoke its rules first, if it says so."""
        if state.get("revokeRulesOnDelete"):
            self._revoke(id, ingress="IpPermissions", egress="IpPermissionsEgress")
        super().remove(id, state, timeout)

    def _revoke(self, id: str, **directions: str) -> None:
        described = self.describe(id) or {}
        for direction, key in directions.items():
            if rules := described.get(key):
                getattr(self.client, f"revoke_security_group_{direction}")(GroupId=id, IpPermissions=rules)

    def outputs(self, id: str, described: dict[str, Any]) -> Properties:
        """The name."""
        return {**super().outputs(id, described), "name": described["GroupName"]}


class DefaultSecurityGroup(SecurityGroup):
    """The group that EC2 makes with a VPC, without rules. It is taken over, and only let go of again."""

    token = "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup"
    title = "EC2 Default Security Group"
    accepts = frozenset({"vpcId", "tags"})
    replace_on = frozenset({"vpcId"})
    name_property, defaults = "", {}

    def make(self, inputs: Properties) -> str:
        """Find it."""
        filters = [{"Name": "vpc-id", "Values": [inputs["vpcId"]]}, {"Name": "group-name", "Values": ["default"]}]
        found = self.client.describe_security_groups(Filters=filters)["SecurityGroups"]
        if not found:
            raise AwsRefusalError("InvalidGroup.NotFound", NO_DEFAULT_GROUP.format(vpc=inputs["vpcId"]))
        return str(found[0]["GroupId"])

    def complete(self, id: str, inputs: Properties, timeout: float) -> None:
        """Revoke all its rules, and tag it."""
        self._revoke(id, ingress="IpPermissions", egress="IpPermissionsEgress")
        self.retag(id, inputs, self.tags(inputs), [])

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """Nothing: it goes with its VPC, and stays as closed as it is."""


class SecurityGroupRule(Ec2Resource):
    """One rule of a group. ID: sgr-..."""

    noun = "SecurityGroupRule"
    direction: ClassVar[str]
    #: Who is on the other side: property, list in the request, and its key.
    peers: ClassVar[Mapping[str, tuple[str, str]]] = {
        "cidrIpv4": ("IpRanges", "CidrIp"),
        "cidrIpv6": ("Ipv6Ranges", "CidrIpv6"),
        "prefixListId": ("PrefixListIds", "PrefixListId"),
        "referencedSecurityGroupId": ("UserIdGroupPairs", "GroupId"),
    }
    written = frozenset({"ipProtocol", "fromPort", "toPort", "description"})
    accepts = frozenset(peers) | written | {"securityGroupId", "tags"}
    # The provider changes a rule in place; the stand-in makes a new one, whose ID differs.
    replace_on = accepts - {"tags"}
    required = frozenset({"securityGroupId", "ipProtocol"})
    delete_before_replace = True

    def make(self, inputs: Properties) -> str:
        """authorize_security_group_X with a single rule."""
        given = [name for name in self.peers if inputs.get(name)]
        if len(given) != 1:
            raise AwsRefusalError(
                "InvalidParameterCombination",
                f"exactly one of {', '.join(self.peers)} must be set, got {', '.join(given) or 'none'}",
            )
        into, key = self.peers[given[0]]
        peer = {key: inputs[given[0]], **({"Description": inputs["description"]} if inputs.get("description") else {})}
        ports = {capital(name): inputs[name] for name in ("fromPort", "toPort") if inputs.get(name) is not None}
        authorize = getattr(self.client, f"authorize_security_group_{self.direction}")
        answer = authorize(
            GroupId=inputs["securityGroupId"],
            **self.tagging(inputs),
            IpPermissions=[{"IpProtocol": inputs["ipProtocol"], **ports, into: [peer]}],
        )
        return str(answer["SecurityGroupRules"][0]["SecurityGroupRuleId"])

    def look(self, id: str, state: Properties) -> Properties | None:
        """describe_security_group_rules; moto does not filter by ID on every path."""
        for rule in self.client.describe_security_group_rules(SecurityGroupRuleIds=[id])["SecurityGroupRules"]:
            if rule["SecurityGroupRuleId"] == id:
                ports = {} if rule["IpProtocol"] == "-1" else properties(rule, ("fromPort", "toPort"))
                return {
                    **properties(rule, ("ipProtocol", "cidrIpv4", "cidrIpv6", "prefixListId")),
                    **ports,
                    "description": rule.get("Description") or None,
                    "securityGroupId": rule["GroupId"],
                    "referencedSecurityGroupId": rule.get("ReferencedGroupInfo", {}).get("GroupId"),
                    "securityGroupRuleId": id,
                    "arn": self.arn("ec2", f"security-group-rule/{id}"),
                    "tags": unpaired(rule.get("Tags", [])),
                }
        return None

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """revoke_security_group_X."""
        revoke = getattr(self.client, f"revoke_security_group_{self.direction}")
        revoke(GroupId=state["securityGroupId"], SecurityGroupRuleIds=[id])


class SecurityGroupIngressRule(SecurityGroupRule):
    """Lets traffic in."""

    token = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
    title, direction = "VPC Security Group Ingress Rule", "ingress"


class SecurityGroupEgressRule(SecurityGroupRule):
    """Lets traffic out."""

    token = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
    title, direction = "VPC Security Group Egress Rule", "egress"
