"""Types with JSON documents, of which moto does not check all: roles and policies of queues; and OIDC providers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from karpstack.rehearsal.attachment.resource import Failure, Properties
from karpstack.rehearsal.aws.resource import AwsRefusalError, AwsResource, in_order

NO_PRINCIPAL = "Missing required field Principal"
INVALID_POLICY = "Invalid value for the parameter Policy."


class Role(AwsResource):
    """A role. ID: its name. Policies that are attached keep it, unless `forceDetachPolicies` is set."""

    type = "aws:iam/role:Role"

    def check_documents(self, inputs: Properties) -> None:
        """A trust policy is JSON, and names principals."""
        try:
            statements = json.loads(inputs["assumeRolePolicy"]).get("Statement", [])
        except (ValueError, AttributeError) as error:
            raise AwsRefusalError("MalformedPolicyDocument", "This policy contains invalid Json") from error
        for statement in statements if isinstance(statements, list) else [statements]:
            if isinstance(statement, dict) and "Principal" not in statement:
                raise AwsRefusalError("MalformedPolicyDocument", NO_PRINCIPAL)
        super().check_documents(inputs)

    def examine(self, inputs: Properties) -> Iterator[Failure]:
        """A policy inside the role has a name and a document."""
        blocks = inputs.get("inlinePolicies")
        for block in blocks if isinstance(blocks, list) else ():
            if isinstance(block, dict) and not (block.get("name") and block.get("policy")):
                yield Failure("inlinePolicies", "each policy needs name and policy")

    def describe(self, id: str, state: Properties) -> Properties | None:
        """The role; its policies in the program's order, if it has them."""
        seen = super().describe(id, state)
        if seen is not None and self.describes_blocks("managedPolicyArns", state):
            found = self.client.list_attached_role_policies(RoleName=id)["AttachedPolicies"]
            arns = state.get("managedPolicyArns") or ()
            seen["managedPolicyArns"] = in_order((one["PolicyArn"] for one in found), arns)
        if seen is not None and self.describes_blocks("inlinePolicies", state):
            names = self.client.list_role_policies(RoleName=id)["PolicyNames"]
            documents = {
                name: self.client.get_role_policy(RoleName=id, PolicyName=name)["PolicyDocument"] for name in names
            }
            ordered = in_order(names, [block["name"] for block in state.get("inlinePolicies") or ()])
            seen["inlinePolicies"] = [{"name": name, "policy": json.dumps(documents[name])} for name in ordered]
        return seen


class RolePolicy(AwsResource):
    """A policy inside a role. ID: `<role>:<name>`."""

    type = "aws:iam/rolePolicy:RolePolicy"

    def check_documents(self, inputs: Properties) -> None:
        """Like the policies that are attached, with another sentence for one that is too long."""
        try:
            super().check_documents(inputs)
        except AwsRefusalError as error:
            limit = self.row.documents["policy"][1]
            text = f"Maximum policy size of {limit} bytes exceeded for role {inputs['role']}"
            raise AwsRefusalError("LimitExceeded", text) from error


class QueuePolicy(AwsResource):
    """The policy of a queue. ID: the queue's URL."""

    type = "aws:sqs/queuePolicy:QueuePolicy"

    def check_documents(self, inputs: Properties) -> None:
        """A policy is JSON, with complete statements."""
        try:
            needed = {"Effect", "Principal", "Action", "Resource"}
            complete = all(needed <= statement.keys() for statement in json.loads(inputs["policy"])["Statement"])
        except (ValueError, KeyError, TypeError, AttributeError):
            complete = False
        if not complete:
            raise AwsRefusalError("InvalidAttributeValue", INVALID_POLICY)


class OpenIdConnectProvider(AwsResource):
    """Trust in a cluster's issuer, for IRSA. ID: its ARN. `url` comes back without its scheme, as from IAM."""

    type = "aws:iam/openIdConnectProvider:OpenIdConnectProvider"

    def before(self, inputs: Properties, state: Properties, new: Properties) -> Properties:
        """The missing scheme is no change."""
        before = super().before(inputs, state, new)
        return {**before, "url": _with_scheme(str(before.get("url")))}

    def inputs_of(self, outputs: Properties, old: Mapping[str, Any]) -> Properties:
        """The missing scheme is no drift."""
        inputs = super().inputs_of(outputs, old)
        return {**inputs, "url": _with_scheme(inputs["url"])}


def _with_scheme(url: str) -> str:
    return f"https://{url.removeprefix('https://')}"
