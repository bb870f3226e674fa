"""IAM's policy simulator: what the policies of a role or user say to actions on resources.

Identity policies are evaluated with their resources and conditions. Conditions are met by the context that the question
gives and by nothing else.

Adds to moto: `SimulatePrincipalPolicy`, without permission boundaries, organizations and resource policies, of which
the account has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from karpstack.rehearsal.aws.errors import refused
from karpstack.rehearsal.aws.iam import policies
from karpstack.rehearsal.aws.iam.roles import Roles
from karpstack.rehearsal.aws.patching import Patches


def patch(patches: Patches, roles: Roles) -> None:
    """Let moto's IAM answer it."""
    from moto.core.responses import ActionResult
    from moto.iam.responses import IamResponse

    def simulate(response: Any) -> Any:
        arn = response._get_param("PolicySourceArn")
        principal = roles.principal(arn)
        if principal is None:
            raise refused("no principal", arn=arn)
        documents = roles.documents(principal)
        context = {
            entry["ContextKeyName"]: entry["ContextKeyValues"][0]
            for entry in response._get_param("ContextEntries", [])
            if entry.get("ContextKeyValues")
        }
        results = [
            result(documents, action, resource, context)
            for resource in response._get_param("ResourceArns", []) or ["*"]
            for action in response._get_param("ActionNames", [])
        ]
        return ActionResult({"EvaluationResults": results, "IsTruncated": False})

    patches.set(IamResponse, "simulate_principal_policy", simulate)


def result(
    documents: list[str | Mapping[str, Any]], action: str, resource: str, context: Mapping[str, str]
) -> dict[str, Any]:
    """What the simulator answers for one action on one resource."""
    return {
        "EvalActionName": action,
        "EvalResourceName": resource,
        "EvalDecision": policies.decision(documents, action, resource, context),
        "MatchedStatements": [],
        "MissingContextValues": sorted(
            set(_conditions(documents, action, resource)) - {key.lower() for key in context}
        ),
    }


def _conditions(documents: list[str | Mapping[str, Any]], action: str, resource: str) -> Iterator[str]:
    """Keys, in lower case, on which statements about the action and the resource depend."""
    for statement in policies.matching_statements(documents, action, resource):
        for keys in statement.get("Condition", {}).values():
            yield from (key.lower() for key in keys)
