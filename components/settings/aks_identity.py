"""What decides which cluster an AKS stack has: a change of it would delete what the stack has and make something else.

The rules compare the settings with the stack's last state. Each has its row in docs/how-to/aks/deploy.md. azure-native
deletes the old cluster first (its gen/replacement.go and provider.go).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from karpstack.karpenter.findings import Finding

from ..naming import AksNames
from ..problems import another_existing, replacing
from .aks import AksSettings, network_of
from .aks_existing import ExistingAksSettings


@dataclass(frozen=True, kw_only=True)
class AksBefore:
    """What an AKS stack has, by its last state; a text is empty where the state does not have it.

    Attributes:
        cluster_id: Resource ID of the cluster, the stack's own or an existing one.
        is_own: Whether the stack has made the cluster.
        resource_group: Name of the stack's own resource group.
        location: Of the stack's own cluster.
        pod_cidr, service_cidr, outbound_type: Network settings of the stack's own cluster.
        subnet_id: Resource ID of the subnet of its system nodes.
        subnet_cidr: Range of that subnet, if the stack has made it.
        self_hosted: Whether the stack has installed Karpenter.
        log_days: Days that its own Log Analytics workspace keeps logs; 0 without one.
        metrics: Whether it has an Azure Monitor workspace of its own.
    """

    cluster_id: str = ""
    is_own: bool = False
    resource_group: str = ""
    location: str = ""
    pod_cidr: str = ""
    service_cidr: str = ""
    outbound_type: str = ""
    subnet_id: str = ""
    subnet_cidr: str = ""
    self_hosted: bool = False
    log_days: int = 0
    metrics: bool = False

    @property
    def subscription(self) -> str:
        """Subscription of the cluster."""
        return _part(self.cluster_id, 2)

    @property
    def cluster(self) -> str:
        """Name of the cluster."""
        return _part(self.cluster_id, 8)

    @property
    def existing(self) -> str:
        """Resource group and name of the existing cluster that the stack works on."""
        return "" if self.is_own or not self.cluster_id else f"{_part(self.cluster_id, 4)}/{self.cluster}"

    @property
    def gone(self) -> str:
        """What would be lost with the cluster, as the beginning of a sentence."""
        if self.existing:
            return f"the stack would remove its NodePools, with their nodes, and Karpenter from {self.existing}"
        return (
            f"the AKS cluster {self.cluster} would be deleted, with everything that runs in it, and then created again"
        )


def destroying(settings: AksSettings | ExistingAksSettings, before: AksBefore) -> Iterator[Finding]:
    """Find the settings whose change destroys what the stack has."""
    if not before.cluster_id:
        return
    other_cluster = [*_elsewhere(settings, before)] or [*_other_cluster(settings, before)]
    if other_cluster:
        yield from other_cluster
    elif isinstance(settings, AksSettings):
        yield from _other_network(settings, before)
        yield from _workspaces(settings, before)
    elif before.self_hosted and settings.karpenter is None:
        yield replacing("karpenter-removed", "mode", "self-hosted", settings.mode, cluster=before.cluster)


def _elsewhere(settings: AksSettings | ExistingAksSettings, before: AksBefore) -> Iterator[Finding]:
    if before.subscription.lower() != settings.subscription_id.lower():
        yield replacing(
            "subscription-changed",
            "azure-native:subscriptionId",
            before.subscription,
            settings.subscription_id,
            cluster=before.cluster,
        )
    if before.location and before.location != settings.region:
        yield replacing("location-changed", "azure-native:location", before.location, settings.region, gone=before.gone)


def _other_cluster(settings: AksSettings | ExistingAksSettings, before: AksBefore) -> Iterator[Finding]:
    existing = (
        f"{settings.cluster.resource_group}/{settings.cluster.existing}"
        if isinstance(settings, ExistingAksSettings)
        else ""
    )
    if existing.lower() != before.existing.lower():
        yield another_existing(before.existing, existing, before.gone)
        return
    names = AksNames(settings.name)
    # A stack on an existing cluster whose Karpenter is AKS's has no resource group, and nothing is named after it.
    if before.resource_group and before.resource_group != names.resource_group:
        code = "cluster-setting-changed" if before.is_own else "name-beside-existing-aks-changed"
        yield replacing(code, "name", before.resource_group, settings.name, gone=before.gone)


def _other_network(settings: AksSettings, before: AksBefore) -> Iterator[Finding]:
    network = settings.network
    for field, was, wanted in (
        ("podCidr", before.pod_cidr, str(network.pod_cidr)),
        ("serviceCidr", before.service_cidr, str(network.service_cidr)),
        ("outboundType", before.outbound_type, network.outbound_type),
    ):
        if was and was != wanted:
            yield replacing("cluster-setting-changed", ("network", field), was, wanted, gone=before.gone)
    given = None if before.subnet_cidr else before.subnet_id or None
    if (given or "").lower() != (network.subnet_id or "").lower():
        code = "subnet-id-changed" if given else "subnet-id-added"
        yield replacing(code, ("network", "subnetId"), given, network.subnet_id, network=network_of(before.subnet_id))
    elif before.subnet_cidr and before.subnet_cidr != str(network.subnet_cidr):
        yield replacing("subnet-cidr-changed", ("network", "subnetCidr"), before.subnet_cidr, str(network.subnet_cidr))


def _workspaces(settings: AksSettings, before: AksBefore) -> Iterator[Finding]:
    addons = settings.addons
    if before.log_days and not addons.log_retention_days:
        yield replacing("log-workspace-removed", ("addons", "logRetentionDays"), before.log_days, 0)
    if before.metrics and not addons.prometheus:
        yield replacing("metrics-workspace-removed", ("addons", "prometheus"), True, False)
    elif before.metrics and addons.metrics_workspace_id is not None:
        wanted = addons.metrics_workspace_id
        yield replacing("metrics-workspace-removed", ("addons", "metricsWorkspaceId"), None, wanted)


def _part(resource_id: str, index: int) -> str:
    parts = resource_id.split("/")
    return parts[index] if len(parts) > index else ""
