"""Whether the caller may do what deploying the stack takes, as IAM's own simulator judges it.

The simulator knows the caller's policies and permission boundary, and of an organization's policies whether they
allow. It does not know resource policies, nor the session policies of an assumed role.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from karpstack.components.settings import EksSettings
from karpstack.components.settings.eks import EksStackSettings

from ..finding import Finding, NotAskedError, Severity, finding
from . import deployer
from .deployer import (
    FLOW_LOG,
    INSTANCE_PROFILE,
    OF_AN_OWN_NETWORK,
    OF_ENDPOINTS,
    OF_PRIVATE_ACCESS,
    Grant,
    Scope,
)
from .subject import StackSubject

_CALL: Final = "iam:SimulatePrincipalPolicy"
_OF_THE_QUEUE: Final = frozenset(
    {
        "aws:cloudwatch/eventRule:EventRule",
        "aws:cloudwatch/eventTarget:EventTarget",
        "aws:sqs/queue:Queue",
        "aws:sqs/queuePolicy:QueuePolicy",
    }
)
_OF_IRSA: Final = frozenset({"aws:iam/openIdConnectProvider:OpenIdConnectProvider"})
_OF_POD_IDENTITY: Final = frozenset({"aws:eks/podIdentityAssociation:PodIdentityAssociation"})


def rights(subject: StackSubject) -> Iterator[Finding]:
    """Actions that are not allowed, a finding a statement of the deployer's policy."""
    principal = _principal(subject)
    if principal is None:
        yield finding("caller-not-simulated", _CALL, arn=subject.caller.arn)
        return
    scope = Scope(
        partition=subject.caller.partition,
        region=subject.aws.region,
        account=subject.caller.account,
        names=subject.names,
    )
    for grant in deploying(subject.settings, scope):
        if not _is_needed(subject, grant):
            continue
        refused: dict[tuple[Severity, str], set[str]] = defaultdict(set)
        for result in _simulate(subject, principal, grant):
            if reason := _why_not(result):
                refused[reason].add(result["EvalActionName"])
        for (severity, why), actions in refused.items():
            yield finding(
                "aws-right-missing",
                _CALL,
                severity=severity,
                principal=principal,
                actions=sorted(actions),
                resources=grant.resources,
                why=why,
                sid=grant.sid,
            )


def deploying(settings: EksStackSettings, scope: Scope) -> Iterator[Grant]:
    """What `pulumi up` and `pulumi destroy` of a stack do, in an account of which nothing is known."""
    return (grant for grant in deployer.deploying(scope) if _is_of(settings, grant))


def _is_of(settings: EksStackSettings, grant: Grant) -> bool:
    """Whether a stack of these settings needs a grant that others do."""
    needed_by, identity = set(grant.needed_by), settings.karpenter.identity
    if not settings.karpenter.interruption_queue and needed_by <= _OF_THE_QUEUE:
        return False
    if (identity != "irsa" and needed_by <= _OF_IRSA) or (identity == "irsa" and needed_by <= _OF_POD_IDENTITY):
        return False
    return not isinstance(settings, EksSettings) or _is_of_own_cluster(settings, grant)


def _is_of_own_cluster(settings: EksSettings, grant: Grant) -> bool:
    if not settings.network.flow_log_retention_days and set(grant.needed_by) == {FLOW_LOG}:
        return False
    if not settings.cluster.private_access_cidrs and set(grant.needed_by) == set(OF_PRIVATE_ACCESS):
        return False
    if not settings.endpoints and set(grant.needed_by) == set(OF_ENDPOINTS):
        return False
    # Whether something leads out of an existing network is not known here.
    leads_out = settings.network.vpc_id is None and not settings.network.isolated
    if leads_out and set(grant.needed_by) == {INSTANCE_PROFILE}:
        return False
    return settings.network.vpc_id is None or not set(grant.needed_by) <= set(OF_AN_OWN_NETWORK)


def _is_needed(subject: StackSubject, grant: Grant) -> bool:
    """Whether this stack, in this account, needs a grant that others do."""
    if service := grant.context.get("iam:AWSServiceName"):
        return not subject.aws.all("iam", "ListRoles", "Roles", PathPrefix=f"/aws-service-role/{service}/")
    return True


def _principal(subject: StackSubject) -> str | None:
    """ARN of what has the policies: a session's role with its path, which the session's ARN lacks."""
    caller = subject.caller
    if not caller.role:
        return caller.arn if ":user/" in caller.arn else None
    try:
        return str(subject.aws.ask("iam", "GetRole", RoleName=caller.role)["Role"]["Arn"])
    except NotAskedError as error:
        if not error.refused:
            raise
        return subject.arn("iam", f"role/{caller.role}", region="")  # as it is for most roles: without a path


def _simulate(subject: StackSubject, principal: str, grant: Grant) -> Iterator[dict[str, Any]]:
    """A result for each action and resource."""
    context = {"aws:RequestedRegion": subject.aws.region, **grant.context}
    # One resource at a time: an answer for several is one decision for all of them.
    for resource in grant.resources:
        yield from subject.aws.all(
            "iam",
            "SimulatePrincipalPolicy",
            "EvaluationResults",
            PolicySourceArn=principal,
            ActionNames=list(grant.actions),
            ResourceArns=[resource],
            ContextEntries=[
                {"ContextKeyName": key, "ContextKeyValues": [value], "ContextKeyType": "string"}
                for key, value in context.items()
            ],
        )


def _why_not(result: dict[str, Any]) -> tuple[Severity, str] | None:
    """Why an action is not allowed, and how certain that is; None where it is allowed."""
    if not result.get("OrganizationsDecisionDetail", {}).get("AllowedByOrganizations", True):
        return "error", "a policy of the organization forbids it"
    if not result.get("PermissionsBoundaryDecisionDetail", {}).get("AllowedByPermissionsBoundary", True):
        return "error", "the permissions boundary does not allow it"
    if result["EvalDecision"] == "allowed":
        return None
    if missing := result.get("MissingContextValues"):
        return "warning", f"that depends on conditions that were not given, {', '.join(missing)}"
    return "error", "a policy denies it" if result["EvalDecision"] == "explicitDeny" else "no policy allows it"
