"""Whether the caller may do what deploying the stack takes, by the permissions that Azure says it has.

Azure answers with the roles' actions, those of the caller's groups included. It does not say the conditions of role
assignments, nor what a policy (Azure Policy) would refuse.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from ..finding import Finding
from .deployer import FEDERATION, LOGS, NETWORK, Grant, deploying, joining
from .subject import AUTHORIZATION, Subject

_PERMISSIONS: Final = "Microsoft.Authorization/permissions/read"
_DENIES: Final = "Microsoft.Authorization/denyAssignments/read"
POLICY_PAGE: Final = "docs/deployer-policy.md"
#: Of deny assignments: everyone.
_EVERYONE: Final = "00000000-0000-0000-0000-000000000000"


def rights(subject: Subject) -> Iterator[Finding]:
    """Actions that no role of the caller has, a finding a grant."""
    yield from _missing(subject, subject.scope, needed(subject))
    existing = subject.settings.network.subnet_id
    if existing is not None:
        roles = next(grant for grant in deploying() if "RoleAssignment" in grant.needed_by[0])
        yield from _missing(subject, existing, [joining(), roles])


def deny_assignments(subject: Subject) -> Iterator[Finding]:
    """Deny assignments that hold actions of the stack: they count whatever the roles say."""
    actions = [action for grant in needed(subject) for action in grant.actions]
    # In the place where the stack works, and above; those below it are told too, and are of other things.
    path = f"{subject.scope}/providers/Microsoft.Authorization/denyAssignments"
    for one in subject.azure.all(_DENIES, path, AUTHORIZATION):
        deny = one["properties"]
        if not subject.group.lower().startswith(str(deny.get("scope", "")).lower().rstrip("/")):
            continue
        denied = [action for action in actions if _allows(deny.get("permissions", ()), action)]
        if denied:
            everyone = any(who["id"] == _EVERYONE for who in deny.get("principals", ()))
            certain = everyone and not deny.get("excludePrincipals")
            yield Finding(
                "error" if certain else "warning",
                f"the deny assignment {deny.get('denyAssignmentName')} on {deny.get('scope')} forbids "
                f"{', '.join(sorted(denied))}"
                + ("" if certain else "; whether it is meant for whoever deploys was not judged"),
                "Azure refuses it whatever roles are given: DenyAssignmentAuthorizationFailed",
                "have it lifted by who owns what made it (a managed application, a deployment stack), or deploy "
                "elsewhere",
                _DENIES,
            )


def needed(subject: Subject) -> list[Grant]:
    """What this stack needs of what all do."""
    without = {
        *([LOGS] if subject.settings.cluster.log_workspace_id is None else []),
        *([FEDERATION] if subject.settings.karpenter is None else []),
    }
    made_elsewhere = {NETWORK} if subject.settings.network.subnet_id is not None else set()
    return [
        grant
        for grant in deploying()
        if not set(grant.needed_by) <= without
        and not made_elsewhere & set(grant.needed_by)
        # Somebody else's subnet is asked about itself.
        and not (made_elsewhere and grant == joining())
    ]


def _missing(subject: Subject, scope: str, grants: Iterable[Grant]) -> Iterator[Finding]:
    permissions = subject.azure.all(
        _PERMISSIONS, f"{scope}/providers/Microsoft.Authorization/permissions", AUTHORIZATION
    )
    for grant in grants:
        missing = [action for action in grant.actions if not _allows(permissions, action)]
        if missing:
            assigns = any("/roleAssignments/" in action for action in missing)
            yield Finding(
                "error",
                f"{subject.azure.words} may not {', '.join(missing)} on {scope}",
                f"pulumi up or pulumi destroy is refused at {grant.what}, in the middle of its work: "
                "AuthorizationFailed",
                ("give Role Based Access Control Administrator" if assigns else "give Contributor")
                + f" on {scope}, or the custom role of {POLICY_PAGE}",
                _PERMISSIONS,
            )


def _allows(permissions: Iterable[Mapping[str, Any]], action: str) -> bool:
    """Whether one of some permissions has an action, and does not take it away itself."""
    return any(
        _any(one.get("actions") or (), action) and not _any(one.get("notActions") or (), action) for one in permissions
    )


def _any(patterns: Iterable[str], action: str) -> bool:
    return any(_pattern(pattern).fullmatch(action) for pattern in patterns)


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text).replace(r"\*", ".*"), re.IGNORECASE)
