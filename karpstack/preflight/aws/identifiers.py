"""By which IDs the AWS provider imports what an account has of a stack's layout.

Names, ranges and services are the program's, as a preview tells them; what a preview can't know is found from the
cluster, its network and what belongs together. The form of each ID is what the provider's page of the type says under
"Import". What is not there has no ID.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from karpstack.components.naming import EksNames

from .asking import Aws
from .subject import Subject

#: Inputs of resources, as far as a preview knows them, by type and logical name.
Planned = Mapping[tuple[str, str], Mapping[str, Any]]

_VPC, _SUBNET = "aws:ec2/vpc:Vpc", "aws:ec2/subnet:Subnet"
_POLICY, _ALIAS = "aws:iam/policy:Policy", "aws:kms/alias:Alias"
_NO_ENTITY: Final = ("NoSuchEntity", "NoSuchEntityException")
_NOT_FOUND: Final = ("ResourceNotFoundException", "NotFoundException")
_NO_QUEUE: Final = ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist")
_ANYWHERE: Final = "0.0.0.0/0"


@dataclass(frozen=True)
class Account:
    """What an account has of a stack on EKS: who asks, and what the program wants."""

    subject: Subject
    planned: Planned

    @property
    def aws(self) -> Aws:
        """The account."""
        return self.subject.aws

    @property
    def names(self) -> EksNames:
        """Physical names of the stack."""
        return self.subject.names

    def identify(self, type_: str, name: str) -> str | None:
        """The ID by which a resource is imported; None where it is not there, or nothing tells which it is.

        Raises:
            NotAskedError: AWS does not say.
        """
        found = _FINDERS.get(type_)
        return found(self, name, self.planned.get((type_, name), {})) if found else None

    # The cluster and its network.

    @cached_property
    def cluster(self) -> Mapping[str, Any]:
        """The cluster of the stack's name, as EKS describes it; empty where there is none."""
        found = self.aws.find("eks", "DescribeCluster", _NOT_FOUND, name=self.names.cluster)
        cluster: Mapping[str, Any] = (found or {}).get("cluster") or {}
        return cluster

    @property
    def vpc(self) -> str | None:
        """The cluster's VPC."""
        found: str | None = self.cluster.get("resourcesVpcConfig", {}).get("vpcId")
        return found

    def _own_vpc(self, name: str, inputs: Mapping[str, Any]) -> str | None:
        return self.vpc

    def described(self, result: str, filters: Mapping[str, str | None]) -> list[dict[str, Any]]:
        """What EC2 describes under all filters, `RouteTables` for example; nothing where one of them is not known."""
        if not all(filters.values()):
            return []
        given = [{"Name": name, "Values": [value]} for name, value in filters.items()]
        return self.aws.all("ec2", f"Describe{result}", result, Filters=given)

    def only(self, result: str, key: str, filters: Mapping[str, str | None]) -> str | None:
        """The ID of what is described; None where that is none or several."""
        found = self.described(result, filters)
        return str(found[0][key]) if len(found) == 1 else None

    def in_vpc(self, result: str, key: str, filters: Mapping[str, str | None]) -> str | None:
        """The same, in the cluster's VPC."""
        return self.only(result, key, {"vpc-id": self.vpc, **filters})

    def _subnet(self, name: str, inputs: Mapping[str, Any]) -> str | None:
        return self.in_vpc("Subnets", "SubnetId", {"cidr-block": inputs.get("cidrBlock")})

    def _internet_gateway(self, name: str, inputs: Mapping[str, Any]) -> str | None:
        return self.only("InternetGateways", "InternetGatewayId", {"attachment.vpc-id": self.vpc})

    def _default_group(self, name: str, inputs: Mapping[str, Any]) -> str | None:
        return self.in_vpc("SecurityGroups", "GroupId", {"group-name": "default"})

    def _group(self, name: str, inputs: Mapping[str, Any]) -> str | None:
        return self.in_vpc("SecurityGroups", "GroupId", {"group-name": inputs.get("name")})

    def _endpoint(self, name: str, inputs: Mapping[str, Any]) -> str | None:
        return self.in_vpc("VpcEndpoints", "VpcEndpointId", {"service-name": inputs.get("serviceName")})

    def _flow_log(self, name: str, inputs: Mapping[str, Any]) -> str | None:
        logs = self.aws.all("ec2", "DescribeFlowLogs", "FlowLogs")
        found = [str(one["FlowLogId"]) for one in logs if one.get("ResourceId") == self.vpc]
        return found[0] if len(found) == 1 else None

    def table_of(self, subnet_name: str) -> Mapping[str, Any] | None:
        """The route table of a subnet of the program's."""
        tables = self.described("RouteTables", {"association.subnet-id": self.identify(_SUBNET, subnet_name)})
        return tables[0] if tables else None

    def table(self, name: str) -> Mapping[str, Any] | None:
        """A route table, which is known by the subnets that the program gives it."""
        private = re.fullmatch(r"(.*)-(\d+)-private", name)
        return self.table_of(f"{private[1]}-private-{private[2]}" if private else f"{name}-0")

    def _route_table(self, name: str, inputs: Mapping[str, Any]) -> str | None:
        return (self.table(name) or {}).get("RouteTableId")

    def _association(self, name: str, inputs: Mapping[str, Any]) -> str | None:
        table = self.table_of(name)
        return f"{self.identify(_SUBNET, name)}/{table['RouteTableId']}" if table else None

    def _route(self, name: str, inputs: Mapping[str, Any]) -> str | None:
        table, wanted = self.table(name.removesuffix("-default")), inputs.get("destinationCidrBlock")
        there = table and any(route.get("DestinationCidrBlock") == wanted for route in table["Routes"])
        return f"{table['RouteTableId']}_{wanted}" if table and there else None

    def _nat(self, name: str, inputs: Mapping[str, Any]) -> str | None:
        """The NAT gateway, by the way out of the private subnets that it is for."""
        routes = (self.table(f"{name.removesuffix('-nat')}-private") or {}).get("Routes", [])
        ways_out = (route for route in routes if route.get("DestinationCidrBlock") == _ANYWHERE)
        return next((route.get("NatGatewayId") for route in ways_out), None)

    def _address(self, name: str, inputs: Mapping[str, Any]) -> str | None:
        gateway = self._nat(name, inputs)
        if not gateway:
            return None
        found = self.aws.all("ec2", "DescribeNatGateways", "NatGateways", NatGatewayIds=[gateway])
        addresses = [address.get("AllocationId") for one in found for address in one.get("NatGatewayAddresses", [])]
        return addresses[0] if addresses else None

    def _tag(self, name: str, inputs: Mapping[str, Any]) -> str | None:
        resource = inputs.get("resourceId") or self.cluster.get("resourcesVpcConfig", {}).get("clusterSecurityGroupId")
        there = self.described("Tags", {"resource-id": resource, "key": inputs.get("key")})
        return f"{resource},{inputs['key']}" if there else None

    def _launch_template(self, name: str, inputs: Mapping[str, Any]) -> str | None:
        return self.only("LaunchTemplates", "LaunchTemplateId", {"launch-template-name": inputs.get("name")})

    # EKS.

    def _own_cluster(self, name: str, inputs: Mapping[str, Any]) -> str | None:
        return self.cluster.get("name")

    def of_cluster(self, operation: str, **wanted: str | None) -> bool:
        """Whether the cluster has what one of EKS's calls describes."""
        if not self.cluster or not all(wanted.values()):
            return False
        return self.aws.find("eks", operation, _NOT_FOUND, clusterName=self.names.cluster, **wanted) is not None

    def _node_group(self, name: str, inputs: Mapping[str, Any]) -> str | None:
        group = inputs.get("nodeGroupName")
        return f"{self.names.cluster}:{group}" if self.of_cluster("DescribeNodegroup", nodegroupName=group) else None

    def _addon(self, name: str, inputs: Mapping[str, Any]) -> str | None:
        addon = inputs.get("addonName")
        return f"{self.names.cluster}:{addon}" if self.of_cluster("DescribeAddon", addonName=addon) else None

    def _access_entry(self, name: str, inputs: Mapping[str, Any]) -> str | None:
        principal = inputs.get("principalArn") or self._iam_arn(f"role/{self.names.node_role}")
        there = self.of_cluster("DescribeAccessEntry", principalArn=principal)
        return f"{self.names.cluster}:{principal}" if there else None

    def _access_policy(self, name: str, inputs: Mapping[str, Any]) -> str | None:
        principal, policy = inputs.get("principalArn"), inputs.get("policyArn")
        if not self.of_cluster("DescribeAccessEntry", principalArn=principal):
            return None
        associated = self.aws.all(
            "eks",
            "ListAssociatedAccessPolicies",
            "associatedAccessPolicies",
            clusterName=self.names.cluster,
            principalArn=principal,
        )
        there = any(one["policyArn"] == policy for one in associated)
        return f"{self.names.cluster}#{principal}#{policy}" if there else None

    def _pod_identity(self, name: str, inputs: Mapping[str, Any]) -> str | None:
        if not self.cluster:
            return None
        found = self.aws.all(
            "eks",
            "ListPodIdentityAssociations",
            "associations",
            clusterName=self.names.cluster,
            namespace=inputs.get("namespace"),
            serviceAccount=inputs.get("serviceAccount"),
        )
        return f"{self.names.cluster},{found[0]['associationId']}" if found else None

    # IAM.

    def _iam_arn(self, rest: str) -> str:
        return self.subject.arn("iam", rest, region="")

    def _role(self, name: str, inputs: Mapping[str, Any]) -> str | None:
        role = inputs.get("name")
        return role if role and self.aws.find("iam", "GetRole", _NO_ENTITY, RoleName=role) else None

    def _instance_profile(self, name: str, inputs: Mapping[str, Any]) -> str | None:
        profile = inputs.get("name")
        there = profile and self.aws.find("iam", "GetInstanceProfile", _NO_ENTITY, InstanceProfileName=profile)
        return profile if there else None

    def _policy(self, name: str, inputs: Mapping[str, Any]) -> str | None:
        arn = self._iam_arn(f"policy{inputs.get('path') or '/'}{inputs.get('name')}")
        return arn if self.aws.find("iam", "GetPolicy", _NO_ENTITY, PolicyArn=arn) else None

    def _attachment(self, name: str, inputs: Mapping[str, Any]) -> str | None:
        """A policy of the stack's own is that of the same logical name."""
        role, policy = inputs.get("role"), inputs.get("policyArn") or self.identify(_POLICY, name)
        if not policy or not self._role(name, {"name": role}):
            return None
        attached = self.aws.all("iam", "ListAttachedRolePolicies", "AttachedPolicies", RoleName=role)
        return f"{role}/{policy}" if any(one["PolicyArn"] == policy for one in attached) else None

    def _oidc_provider(self, name: str, inputs: Mapping[str, Any]) -> str | None:
        issuer = str(self.cluster.get("identity", {}).get("oidc", {}).get("issuer", "")).removeprefix("https://")
        arn = self._iam_arn(f"oidc-provider/{issuer}")
        there = issuer and self.aws.find("iam", "GetOpenIDConnectProvider", _NO_ENTITY, OpenIDConnectProviderArn=arn)
        return arn if there else None

    # The rest.

    def _queue(self, name: str, inputs: Mapping[str, Any]) -> str | None:
        queue = inputs.get("name") or self.names.interruption_queue
        found = self.aws.find("sqs", "GetQueueUrl", _NO_QUEUE, QueueName=queue)
        return found["QueueUrl"] if found else None

    def _event_rule(self, name: str, inputs: Mapping[str, Any]) -> str | None:
        rule = inputs.get("name") or inputs.get("rule")
        return rule if rule and self.aws.find("events", "DescribeRule", _NOT_FOUND, Name=rule) else None

    def _event_target(self, name: str, inputs: Mapping[str, Any]) -> str | None:
        rule = self._event_rule(name, inputs)
        targets = self.aws.all("events", "ListTargetsByRule", "Targets", Rule=rule) if rule else []
        there = any(target["Id"] == inputs.get("targetId") for target in targets)
        return f"{rule}/{inputs['targetId']}" if there else None

    def _log_group(self, name: str, inputs: Mapping[str, Any]) -> str | None:
        group = inputs.get("name")
        found = self.aws.all("logs", "DescribeLogGroups", "logGroups", logGroupNamePrefix=group) if group else []
        return group if any(one["logGroupName"] == group for one in found) else None

    def _alias(self, name: str, inputs: Mapping[str, Any]) -> str | None:
        return self._of_alias(inputs.get("name"), "AliasName")

    def _key(self, name: str, inputs: Mapping[str, Any]) -> str | None:
        """The key to which the alias of the same logical name points."""
        return self._of_alias(self.planned.get((_ALIAS, name), {}).get("name"), "TargetKeyId")

    def _of_alias(self, alias: str | None, wanted: str) -> str | None:
        found = self.aws.all("kms", "ListAliases", "Aliases")
        return next((one.get(wanted) for one in found if one["AliasName"] == alias), None)


_Finder = Callable[[Account, str, Mapping[str, Any]], str | None]
_FINDERS: Final[Mapping[str, _Finder]] = {
    _VPC: Account._own_vpc,
    _SUBNET: Account._subnet,
    "aws:ec2/internetGateway:InternetGateway": Account._internet_gateway,
    "aws:ec2/eip:Eip": Account._address,
    "aws:ec2/natGateway:NatGateway": Account._nat,
    "aws:ec2/routeTable:RouteTable": Account._route_table,
    "aws:ec2/route:Route": Account._route,
    "aws:ec2/routeTableAssociation:RouteTableAssociation": Account._association,
    "aws:ec2/securityGroup:SecurityGroup": Account._group,
    "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup": Account._default_group,
    "aws:ec2/vpcEndpoint:VpcEndpoint": Account._endpoint,
    "aws:ec2/tag:Tag": Account._tag,
    "aws:ec2/flowLog:FlowLog": Account._flow_log,
    "aws:ec2/launchTemplate:LaunchTemplate": Account._launch_template,
    "aws:eks/cluster:Cluster": Account._own_cluster,
    "aws:eks/nodeGroup:NodeGroup": Account._node_group,
    "aws:eks/addon:Addon": Account._addon,
    "aws:eks/accessEntry:AccessEntry": Account._access_entry,
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": Account._access_policy,
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": Account._pod_identity,
    "aws:iam/role:Role": Account._role,
    "aws:iam/instanceProfile:InstanceProfile": Account._instance_profile,
    _POLICY: Account._policy,
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": Account._attachment,
    "aws:iam/openIdConnectProvider:OpenIdConnectProvider": Account._oidc_provider,
    "aws:sqs/queue:Queue": Account._queue,
    "aws:sqs/queuePolicy:QueuePolicy": Account._queue,
    "aws:cloudwatch/eventRule:EventRule": Account._event_rule,
    "aws:cloudwatch/eventTarget:EventTarget": Account._event_target,
    "aws:cloudwatch/logGroup:LogGroup": Account._log_group,
    _ALIAS: Account._alias,
    "aws:kms/key:Key": Account._key,
}
#: Types of which IDs are found.
FOUND: Final = frozenset(_FINDERS)
