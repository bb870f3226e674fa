"""IAM: roles, managed policies, their attachments, the OIDC provider of a cluster and service-linked roles.

moto checks policy documents; the quotas and what it does not check of trust policies are enforced here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar
from urllib.parse import unquote

from botocore.exceptions import ClientError

from rehearsal.attachment.resource import Failure, Properties
from rehearsal.aws.resource import AwsRefusalError, AwsResource, TagCalls, api, moment, properties
from rehearsal.aws.tags import pairs, unpaired

#: IAM's default quotas, in characters without white space, and in policies.
TRUST_POLICY_LIMIT = 2048
POLICY_LIMIT = 6144
POLICIES_PER_ROLE = 10

QUOTA = "Cannot exceed quota for {quota}: {limit}"
NO_PRINCIPAL = "Missing required field Principal"
POLICY_ATTACHED = "Cannot delete a policy attached to entities."
URL_TAKEN = "Provider with url {url} already exists."
NO_HTTPS = "Invalid Open ID Connect Provider URL"

_TAG_VALUE = (
    "1 validation error detected: Value '{value}' at 'tags.{index}.member.value' failed to satisfy constraint: Member "
    "must satisfy regular expression pattern: [\\p{{L}}\\p{{Z}}\\p{{N}}_.:/=+\\-@]*"
)
_WHITE = re.compile(r"\s")


def _tag_pairs(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """Return tags as IAM takes them; moto judges their keys and not their values."""
    for index, value in enumerate(tags.values(), 1):
        if not re.fullmatch(r"[\w\s.:/=+\-@]*", value):
            raise AwsRefusalError("ValidationError", _TAG_VALUE.format(value=value, index=index))
    return pairs(tags)


def _tag_calls(noun: str, key: str) -> TagCalls:
    return TagCalls(key, noun=noun, pair=("Key", "Value"))


class Role(AwsResource):
    """A role. ID: its name. Policies that are attached keep it, unless `forceDetachPolicies` is set."""

    token = "aws:iam/role:Role"
    title, service, tag_calls = "IAM Role", "iam", _tag_calls("role", "RoleName")
    at_creation = frozenset({"description", "maxSessionDuration", "path", "permissionsBoundary"})
    accepts = at_creation | {"name", "assumeRolePolicy", "forceDetachPolicies", "tags"}
    replace_on = frozenset({"name", "path"})
    required = frozenset({"assumeRolePolicy"})
    name_property, name_limit = "name", 64
    defaults: ClassVar[Mapping[str, Any]] = {"forceDetachPolicies": False, "maxSessionDuration": 3600, "path": "/"}
    unread: ClassVar[Mapping[str, Any]] = {"forceDetachPolicies": False}
    # Policies are attached by resources of their own; shown here, they would be changes of the role.
    unset: ClassVar[Mapping[str, Any]] = {
        "description": "",
        "inlinePolicies": [],
        "managedPolicyArns": [],
        "namePrefix": "",
        "permissionsBoundary": "",
    }

    def make(self, inputs: Properties) -> str:
        """create_role."""
        trust = _trust_policy(inputs["assumeRolePolicy"])
        self.client.create_role(
            RoleName=inputs["name"],
            AssumeRolePolicyDocument=trust,
            Tags=_tag_pairs(self.tags(inputs)),
            **api(inputs, self.at_creation),
        )
        return str(inputs["name"])

    def complete(self, id: str, inputs: Properties, timeout: float) -> None:
        """Set the trust policy once more: moto checks it on an update only."""
        self.client.update_assume_role_policy(RoleName=id, PolicyDocument=inputs["assumeRolePolicy"])

    def look(self, id: str, state: Properties) -> Properties | None:
        """get_role."""
        role = self.client.get_role(RoleName=id)["Role"]
        return {
            **properties(role, ("description", "maxSessionDuration", "path", "arn")),
            "name": role["RoleName"],
            "assumeRolePolicy": _document(role["AssumeRolePolicyDocument"]),
            "uniqueId": role["RoleId"],
            "createDate": moment(role["CreateDate"]),
            "permissionsBoundary": role.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn"),
            "tags": unpaired(role.get("Tags", [])),
        }

    def change(self, id: str, old: Properties, new: Properties, timeout: float) -> None:
        """Each property has its own call."""
        differs = self.differs(old, new)
        if "assumeRolePolicy" in differs:
            trust = _trust_policy(new["assumeRolePolicy"])
            self.client.update_assume_role_policy(RoleName=id, PolicyDocument=trust)
        if differs & {"description", "maxSessionDuration"}:
            self.client.update_role(
                RoleName=id, Description=new.get("description", ""), MaxSessionDuration=new["maxSessionDuration"]
            )
        if "permissionsBoundary" in differs:
            if new.get("permissionsBoundary"):
                self.client.put_role_permissions_boundary(RoleName=id, **api(new, ("permissionsBoundary",)))
            else:
                self.client.delete_role_permissions_boundary(RoleName=id)

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """Take it out of instance profiles, as the provider always does, and delete it."""
        for profile in self.client.list_instance_profiles_for_role(RoleName=id)["InstanceProfiles"]:
            self.client.remove_role_from_instance_profile(
                InstanceProfileName=profile["InstanceProfileName"], RoleName=id
            )
        if state.get("forceDetachPolicies"):
            for policy in _attached(self.client, id):
                self.client.detach_role_policy(RoleName=id, PolicyArn=policy)
            for name in self.client.list_role_policies(RoleName=id)["PolicyNames"]:
                self.client.delete_role_policy(RoleName=id, PolicyName=name)
        self.client.delete_role(RoleName=id)


class Policy(AwsResource):
    """A managed policy of the account. ID: its ARN."""

    token = "aws:iam/policy:Policy"
    title, service, tag_calls = "IAM Policy", "iam", _tag_calls("policy", "PolicyArn")
    accepts = frozenset({"name", "description", "path", "policy", "tags"})
    replace_on = frozenset({"name", "description", "path"})
    required = frozenset({"policy"})
    name_property, name_limit = "name", 128
    defaults: ClassVar[Mapping[str, Any]] = {"path": "/"}
    unset: ClassVar[Mapping[str, Any]] = {"description": "", "namePrefix": ""}

    def make(self, inputs: Properties) -> str:
        """create_policy."""
        created = self.client.create_policy(
            PolicyName=inputs["name"],
            PolicyDocument=_within(inputs["policy"], "PolicySize", POLICY_LIMIT),
            Tags=_tag_pairs(self.tags(inputs)),
            **api(inputs, ("description", "path")),
        )
        return str(created["Policy"]["Arn"])

    def look(self, id: str, state: Properties) -> Properties | None:
        """get_policy and the default version's document."""
        policy = self.client.get_policy(PolicyArn=id)["Policy"]
        version = self.client.get_policy_version(PolicyArn=id, VersionId=policy["DefaultVersionId"])["PolicyVersion"]
        return {
            **properties(policy, ("arn", "path", "policyId", "attachmentCount")),
            "name": policy["PolicyName"],
            "description": policy.get("Description") or None,
            "policy": _document(version["Document"]),
            "tags": unpaired(policy.get("Tags", [])),
        }

    def change(self, id: str, old: Properties, new: Properties, timeout: float) -> None:
        """A new default version; the oldest goes when there are five, as the provider does."""
        versions = self.client.list_policy_versions(PolicyArn=id)["Versions"]
        spare = [version["VersionId"] for version in versions if not version["IsDefaultVersion"]]
        if len(versions) >= 5:
            self.client.delete_policy_version(PolicyArn=id, VersionId=min(spare, key=lambda text: int(text[1:])))
        self.client.create_policy_version(
            PolicyArn=id, SetAsDefault=True, PolicyDocument=_within(new["policy"], "PolicySize", POLICY_LIMIT)
        )

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """Delete the other versions, then it, unless it is attached."""
        if self.client.get_policy(PolicyArn=id)["Policy"]["AttachmentCount"]:
            raise AwsRefusalError("DeleteConflict", POLICY_ATTACHED)
        for version in self.client.list_policy_versions(PolicyArn=id)["Versions"]:
            if not version["IsDefaultVersion"]:
                self.client.delete_policy_version(PolicyArn=id, VersionId=version["VersionId"])
        self.client.delete_policy(PolicyArn=id)


class RolePolicyAttachment(AwsResource):
    """A managed policy on a role. ID: `<role>/<policy's ARN>`."""

    token = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
    title, service = "IAM Role Policy Attachment", "iam"
    accepts = replace_on = required = frozenset({"role", "policyArn"})

    def make(self, inputs: Properties) -> str:
        """attach_role_policy, within the quota of the role."""
        attached = _attached(self.client, inputs["role"])
        if inputs["policyArn"] not in attached and len(attached) >= POLICIES_PER_ROLE:
            raise AwsRefusalError("LimitExceeded", QUOTA.format(quota="PoliciesPerRole", limit=POLICIES_PER_ROLE))
        self.client.attach_role_policy(RoleName=inputs["role"], PolicyArn=inputs["policyArn"])
        return f"{inputs['role']}/{inputs['policyArn']}"

    def look(self, id: str, state: Properties) -> Properties | None:
        """Find it among the attached policies."""
        role, _, policy = id.partition("/")
        return {"role": role, "policyArn": policy} if policy in _attached(self.client, role) else None

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """detach_role_policy."""
        role, _, policy = id.partition("/")
        self.client.detach_role_policy(RoleName=role, PolicyArn=policy)


class InstanceProfile(AwsResource):
    """An instance profile with one role. ID: its name."""

    token = "aws:iam/instanceProfile:InstanceProfile"
    title, service, tag_calls = "IAM Instance Profile", "iam", _tag_calls("instance_profile", "InstanceProfileName")
    accepts = frozenset({"name", "path", "role", "tags"})
    replace_on = frozenset({"name", "path"})
    name_property, name_limit = "name", 128
    defaults: ClassVar[Mapping[str, Any]] = {"path": "/"}
    unset: ClassVar[Mapping[str, Any]] = {"namePrefix": ""}

    def make(self, inputs: Properties) -> str:
        """create_instance_profile."""
        self.client.create_instance_profile(
            InstanceProfileName=inputs["name"], Path=inputs["path"], Tags=_tag_pairs(self.tags(inputs))
        )
        return str(inputs["name"])

    def complete(self, id: str, inputs: Properties, timeout: float) -> None:
        """Put the role into it."""
        if inputs.get("role"):
            self.client.add_role_to_instance_profile(InstanceProfileName=id, RoleName=inputs["role"])

    def look(self, id: str, state: Properties) -> Properties | None:
        """get_instance_profile."""
        profile = self.client.get_instance_profile(InstanceProfileName=id)["InstanceProfile"]
        return {
            **properties(profile, ("arn", "path")),
            "name": profile["InstanceProfileName"],
            "uniqueId": profile["InstanceProfileId"],
            "createDate": moment(profile["CreateDate"]),
            "role": next((role["RoleName"] for role in profile["Roles"]), None),
            "tags": unpaired(profile.get("Tags", [])),
        }

    def change(self, id: str, old: Properties, new: Properties, timeout: float) -> None:
        """Another role."""
        self._empty(id)
        self.complete(id, new, timeout)

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """Take the role out, and delete it."""
        self._empty(id)
        self.client.delete_instance_profile(InstanceProfileName=id)

    def _empty(self, id: str) -> None:
        for role in self.client.get_instance_profile(InstanceProfileName=id)["InstanceProfile"]["Roles"]:
            self.client.remove_role_from_instance_profile(InstanceProfileName=id, RoleName=role["RoleName"])


class OpenIdConnectProvider(AwsResource):
    """Trust in a cluster's issuer, for IRSA. ID: its ARN. `url` comes back without its scheme, as from IAM."""

    token = "aws:iam/openIdConnectProvider:OpenIdConnectProvider"
    title, service, tag_calls = (
        "IAM OIDC Provider",
        "iam",
        _tag_calls("open_id_connect_provider", "OpenIDConnectProviderArn"),
    )
    accepts = frozenset({"url", "clientIdLists", "thumbprintLists", "tags"})
    # IAM adds and removes single client IDs; moto cannot.
    replace_on = frozenset({"url", "clientIdLists"})
    delete_before_replace = True
    required = frozenset({"url", "clientIdLists"})
    computed = frozenset({"thumbprintLists"})

    def before(self, inputs: Properties, state: Properties, new: Properties) -> Properties:
        """The missing scheme is no change."""
        before = super().before(inputs, state, new)
        return {**before, "url": _with_scheme(str(before.get("url")))}

    def inputs_of(self, outputs: Properties, old: Mapping[str, Any]) -> Properties:
        """The missing scheme is no drift."""
        inputs = super().inputs_of(outputs, old)
        return {**inputs, "url": _with_scheme(inputs["url"])}

    def make(self, inputs: Properties) -> str:
        """create_open_id_connect_provider."""
        if not inputs["url"].startswith("https://"):
            raise AwsRefusalError("ValidationError", NO_HTTPS)
        try:
            created = self.client.create_open_id_connect_provider(
                Url=inputs["url"],
                ClientIDList=inputs["clientIdLists"],
                ThumbprintList=inputs.get("thumbprintLists", []),
                Tags=_tag_pairs(self.tags(inputs)),
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "EntityAlreadyExists":
                raise
            raise AwsRefusalError("EntityAlreadyExists", URL_TAKEN.format(url=inputs["url"])) from error
        return str(created["OpenIDConnectProviderArn"])

    def look(self, id: str, state: Properties) -> Properties | None:
        """get_open_id_connect_provider."""
        seen = self.client.get_open_id_connect_provider(OpenIDConnectProviderArn=id)
        return {
            "arn": id,
            "url": seen["Url"].removeprefix("https://"),
            "clientIdLists": seen["ClientIDList"],
            "thumbprintLists": seen["ThumbprintList"],
            "tags": unpaired(seen.get("Tags", [])),
        }

    def change(self, id: str, old: Properties, new: Properties, timeout: float) -> None:
        """The thumbprints."""
        if new.get("thumbprintLists"):
            self.client.update_open_id_connect_provider_thumbprint(
                OpenIDConnectProviderArn=id, ThumbprintList=new["thumbprintLists"]
            )

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """delete_open_id_connect_provider."""
        self.client.delete_open_id_connect_provider(OpenIDConnectProviderArn=id)


class ServiceLinkedRole(AwsResource):
    """The role of an AWS service, once an account. ID: its ARN."""

    token = "aws:iam/serviceLinkedRole:ServiceLinkedRole"
    title, service = "IAM Service Linked Role", "iam"
    tag_calls = TagCalls("RoleName", named_by="name", noun="role", pair=("Key", "Value"))
    accepts = frozenset({"awsServiceName", "description", "customSuffix", "tags"})
    replace_on = frozenset({"awsServiceName", "customSuffix"})
    required = frozenset({"awsServiceName"})

    def examine(self, inputs: Properties) -> Iterator[Failure]:
        """A service principal is named, not the service."""
        service = inputs["awsServiceName"]
        if isinstance(service, str) and not service.endswith(".amazonaws.com"):
            yield Failure("awsServiceName", f"{service!r} must be a valid AWS service URL, such as spot.amazonaws.com")

    def make(self, inputs: Properties) -> str:
        """create_service_linked_role."""
        created = self.client.create_service_linked_role(
            AWSServiceName=inputs["awsServiceName"], **api(inputs, ("description", "customSuffix"))
        )
        return str(created["Role"]["Arn"])

    def complete(self, id: str, inputs: Properties, timeout: float) -> None:
        """The tags."""
        if self.tags(inputs):
            self.retag(id, {"name": _last(id)}, self.tags(inputs), [])

    def look(self, id: str, state: Properties) -> Properties | None:
        """get_role."""
        role = self.client.get_role(RoleName=_last(id))["Role"]
        return {
            **properties(role, ("arn", "path", "description")),
            "name": role["RoleName"],
            "uniqueId": role["RoleId"],
            "createDate": moment(role["CreateDate"]),
            "awsServiceName": role["Path"].split("/")[2],
            "tags": unpaired(role.get("Tags", [])),
        }

    def change(self, id: str, old: Properties, new: Properties, timeout: float) -> None:
        """Only the description can change."""
        self.client.update_role_description(RoleName=_last(id), Description=new.get("description", ""))

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """delete_service_linked_role."""
        self.client.delete_service_linked_role(RoleName=_last(id))


def _with_scheme(url: str) -> str:
    return f"https://{url.removeprefix('https://')}"


def _attached(client: Any, role: str) -> list[str]:
    pages = client.get_paginator("list_attached_role_policies").paginate(RoleName=role)
    return [policy["PolicyArn"] for page in pages for policy in page["AttachedPolicies"]]


def _within(document: str, quota: str, limit: int) -> str:
    """The document, if it is not longer than IAM takes; white space does not count."""
    if len(_WHITE.sub("", document)) > limit:
        raise AwsRefusalError("LimitExceeded", QUOTA.format(quota=quota, limit=limit))
    return document


def _trust_policy(document: str) -> str:
    try:
        statements = json.loads(document).get("Statement", [])
    except (ValueError, AttributeError) as error:
        raise AwsRefusalError("MalformedPolicyDocument", "This policy contains invalid Json") from error
    for statement in statements if isinstance(statements, list) else [statements]:
        if isinstance(statement, dict) and "Principal" not in statement:
            raise AwsRefusalError("MalformedPolicyDocument", NO_PRINCIPAL)
    return _within(document, "ACLSizePerRole", TRUST_POLICY_LIMIT)


def _document(answer: Any) -> str:
    """boto3 decodes documents into dicts, or leaves them encoded for a URL."""
    return unquote(answer) if isinstance(answer, str) else json.dumps(answer)


def _last(arn: str) -> str:
    return arn.rpartition("/")[2]
