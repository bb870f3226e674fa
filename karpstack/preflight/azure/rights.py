"""Whether the caller may do what deploying the stack takes, by the permissions that Azure says it has.

Azure answers with the roles' actions, those of the caller's groups included. It does not say the conditions of role
assignments, nor what a policy (Azure Policy) would refuse.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from karpstack.components.settings import AksSettings, ExistingAksSettings
from karpstack.components.settings import existing_aks_cluster as judging
from karpstack.components.settings.aks import network_of
from karpstack.components.settings.existing_vnet import links_zone

from ..finding import Finding, finding
from .api_versions import AUTHORIZATION
from .deployer import (
    COLLECTION,
    ENDPOINT,
    FEDERATION,
    LOG_WORKSPACE,
    LOGS,
    METRIC_WORKSPACE,
    NETWORK,
    SUBNET,
    WAY_OUT,
    Grant,
    deploying,
    grant_for,
)
from .existing_cluster import pools
from .existing_network import dns_servers
from .scopes import within
from .subject import GROUP, ExistingSubject, StackSubject, Subject

#: What a stack with a controller of its own makes on a cluster that is there, beside roles.
_OF_A_CONTROLLER: Final = frozenset({GROUP, "azure-native:managedidentity:UserAssignedIdentity", FEDERATION})
_PERMISSIONS: Final = "Microsoft.Authorization/permissions/read"
_DENIES: Final = "Microsoft.Authorization/denyAssignments/read"
#: Of deny assignments: everyone.
_EVERYONE: Final = "00000000-0000-0000-0000-000000000000"


def rights(subject: StackSubject) -> Iterator[Finding]:
    """Actions that no role of the caller has, a finding a grant."""
    for scope, grants in _by_scope(subject):
        yield from _missing(subject, scope, grants)


def deny_assignments(subject: StackSubject) -> Iterator[Finding]:
    """Deny assignments that hold actions of the stack: they count whatever the roles say."""
    told: set[str] = set()
    for scope, grants in _by_scope(subject):
        actions = [action for grant in grants for action in grant.actions]
        # Of the whole subscription the group alone is meant: it may not be there yet, and cannot be asked about.
        place = subject.group if scope == subject.scope else scope
        # In the place where the stack works, and above; those below it are told too, and are of other things.
        path = f"{scope}/providers/Microsoft.Authorization/denyAssignments"
        for one in subject.azure.all(_DENIES, path, AUTHORIZATION):
            if one["id"] in told or not within(place, str(one["properties"].get("scope", ""))):
                continue
            deny = one["properties"]
            if denied := [action for action in actions if _allows(deny.get("permissions", ()), action)]:
                told.add(one["id"])
                yield _denied(deny, denied)


def _denied(deny: Mapping[str, Any], actions: Iterable[str]) -> Finding:
    everyone = any(who["id"] == _EVERYONE for who in deny.get("principals", ()))
    certain = everyone and not deny.get("excludePrincipals")
    return finding(
        "deny-assignment" if certain else "deny-assignment-perhaps",
        _DENIES,
        deny_assignment_name=deny.get("denyAssignmentName"),
        scope=deny.get("scope"),
        actions=sorted(actions),
    )


def _by_scope(subject: StackSubject) -> Iterator[tuple[str, list[Grant]]]:
    """Where this stack needs what: what somebody else made is asked about itself."""
    if isinstance(subject, ExistingSubject):
        yield from _on_a_cluster(subject)
    elif isinstance(subject, Subject):
        yield from _with_a_cluster(subject)


def _on_a_cluster(subject: ExistingSubject) -> Iterator[tuple[str, list[Grant]]]:
    """For a cluster that is there; without it, only what would be made of one's own."""
    settings, told = subject.settings, subject.cluster_response
    if settings.mode == "self-hosted":
        yield subject.scope, making(settings)
    if told is None:
        return
    yield subject.cluster_id, reading(settings)
    subnets = existing_subnets(subject)
    for network in dict.fromkeys(map(network_of, subnets)):
        yield network, [grant_for("seeing")]
    if settings.mode != "self-hosted":
        return
    # The controller's identity gets roles where machines are, and on what they use.
    kubelet = (told["properties"].get("identityProfile") or {}).get("kubeletidentity") or {}
    for scope in (subject.azure.group(subject.machines), kubelet.get("resourceId"), *subnets):
        if scope:
            yield scope, [grant_for("assigning")]


def existing_subnets(subject: ExistingSubject) -> list[str]:
    """Resource IDs of the subnets of the nodes of a cluster that is there, each once.

    Raises:
        NotAskedError: Azure does not tell.
    """
    told = subject.cluster_response
    own = judging.subnet_of_nodes(subject.settings, pools(told)) if told else ""
    named = (str(spec.get("vnetSubnetID") or "") for spec in subject.settings.node_classes.values())
    return list({one.lower(): one for one in (own, *named) if one}.values())


def _with_a_cluster(subject: Subject) -> Iterator[tuple[str, list[Grant]]]:
    settings = subject.settings
    yield subject.scope, needed(settings)
    for subnet in settings.existing_subnet_ids:
        yield subnet, [grant_for("joining"), grant_for("assigning")]
    if reads_routes(settings):
        yield subject.azure.scope, [grant_for("looking_out")]
    if zone := settings.cluster.own_dns_zone:
        yield zone, [grant_for("finding"), grant_for("assigning")]
    if (subnet_id := settings.network.subnet_id) and links_zone(settings, dns_servers(subject, subnet_id)):
        yield network_of(subnet_id), [grant_for("assigning")]
    for store in (*settings.addons.registry_ids, *settings.addons.vault_ids):
        yield store, [grant_for("assigning")]
    if workspace := settings.cluster.log_workspace_id:
        yield (
            workspace,
            [grant_for("logging"), *([grant_for("observing")] if settings.addons.container_insights else [])],
        )


def needed(settings: AksSettings) -> list[Grant]:
    """What a stack needs of what all do, where it works itself."""
    addons = settings.addons
    types = {
        *([LOGS] if settings.cluster.log_workspace_id is None and not addons.log_retention_days else []),
        *([LOG_WORKSPACE] if not addons.log_retention_days else []),
        *([METRIC_WORKSPACE] if not addons.prometheus or addons.metrics_workspace_id is not None else []),
        *([ENDPOINT] if not addons.prometheus else []),
        *(COLLECTION if not (addons.prometheus or addons.container_insights) else []),
        *([FEDERATION] if settings.karpenter is None else []),
        *([NETWORK, SUBNET] if settings.network.subnet_id is not None else []),
        *(WAY_OUT if not _makes_way_out(settings) else []),
    }
    without = [
        *([] if addons.log_retention_days else [grant_for("logging")]),
        *([] if addons.log_retention_days and addons.container_insights else [grant_for("observing")]),
        grant_for("looking_out"),
        grant_for("finding"),
        *([] if settings.cluster.local_accounts else [grant_for("administering")]),
        *([grant_for("joining")] if settings.network.subnet_id is not None else []),
    ]
    return [grant for grant in deploying() if not set(grant.needed_by) <= types and grant not in without]


def making(settings: ExistingAksSettings) -> list[Grant]:
    """What a stack on a cluster that is there makes in its own resource group; nothing with node auto provisioning."""
    return [
        grant for grant in deploying() if settings.mode == "self-hosted" and set(grant.needed_by) <= _OF_A_CONTROLLER
    ]


def reading(settings: ExistingAksSettings) -> list[Grant]:
    """What it needs of the cluster."""
    return [grant_for("entering"), *([grant_for("administering")] if settings.cluster.local_accounts else [])]


def reads_routes(settings: AksSettings) -> bool:
    """Whether the program reads the routes of existing subnets."""
    return settings.network.subnet_id is not None and settings.network.outbound_type != "loadBalancer"


def _makes_way_out(settings: AksSettings) -> bool:
    return settings.network.subnet_id is None and settings.network.outbound_type == "userAssignedNATGateway"


def _missing(subject: StackSubject, scope: str, grants: Iterable[Grant]) -> Iterator[Finding]:
    permissions = subject.azure.all(
        _PERMISSIONS, f"{scope}/providers/Microsoft.Authorization/permissions", AUTHORIZATION
    )
    for grant in grants:
        missing = [action for action in grant.actions if not _allows(permissions, action)]
        if missing:
            assigns = any("/roleAssignments/" in action for action in missing)
            yield finding(
                "azure-right-to-assign-missing" if assigns else "azure-right-missing",
                _PERMISSIONS,
                words=subject.azure.words,
                missing=missing,
                scope=scope,
                what=grant.what,
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
