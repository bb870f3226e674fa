"""All checks of an Azure subscription, by the names that the table has for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from ..finding import Finding
from . import addons, charts, cluster, locks, names, network, quotas, rights, sizes, subscription, versions
from .subject import ExistingSubject, Subject

CHECKS: Final[Mapping[str, Callable[[Subject], Iterable[Finding]]]] = {
    "subscription": subscription.subscription,
    "rights": rights.rights,
    "deny assignments": rights.deny_assignments,
    "locks": locks.locks,
    "resource providers": subscription.providers,
    "preview features": subscription.features,
    "location": subscription.region,
    "Kubernetes version": versions.kubernetes_version,
    "system node size": sizes.system_nodes,
    "NodePool sizes": sizes.node_pools,
    "quota of system nodes": quotas.system_nodes,
    "quota of NodePools": quotas.node_pools,
    "quota of networks": quotas.network,
    "resource group's name": names.resource_group,
    "node resource group's name": names.node_resource_group,
    "names in the group": names.check_group_leftovers,
    "deleted workspaces": names.deleted_workspace,
    "address ranges": network.ranges,
    "existing subnet": network.subnet,
    "charts": charts.charts,
    "registries": addons.registries,
    "vaults": addons.vaults,
    "workspaces": addons.workspaces,
}
#: Those of a stack that puts NodePools on a cluster that is there.
EXISTING: Final[Mapping[str, Callable[[ExistingSubject], Iterable[Finding]]]] = {
    "subscription": subscription.subscription,
    "rights": rights.rights,
    "deny assignments": rights.deny_assignments,
    "locks": locks.locks,
    "resource providers": subscription.providers,
    "preview features": subscription.features,
    "cluster": cluster.existing,
    "charts": charts.charts,
    "NodePool sizes": sizes.node_pools,
    "quota of NodePools": quotas.node_pools,
    "resource group's name": names.resource_group,
    "names in the group": names.check_group_leftovers,
}
