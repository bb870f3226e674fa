"""What is wrong with an AKS cluster that is there: the settings, held against what Azure and the cluster say of it.

Pure: whoever asks brings a `FoundCluster`. What node auto provisioning demands is in Microsoft's "Overview of node
auto-provisioning" and "Overview of networking configurations for node auto-provisioning"; how it is enabled and
disabled, and the feature that lets the cluster autoscaler stay beside it, in "Enable or disable node auto-provisioning"
and "Migrate from cluster autoscaler to node auto-provisioning"; how a network is moved, in "Update Azure CNI IPAM mode
and data plane technology" (learn.microsoft.com/azure/aks). That it demands Kubernetes RBAC, and takes each network but
kubenet and Calico, the release notes of Azure/AKS say. What becomes of the CRDs of a Karpenter of one's own, the second
of these pages and Azure/karpenter-provider-azure#1443 say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from karpstack.karpenter.findings import Finding

from ..documents import manifests
from ..documents.provisioning import BROUGHT_BY_AKS
from ..naming import KARPENTER_NAMESPACE
from ..problems import Judge, SettingsError
from .aks import names_of_network, network_of
from .aks_checks import check_names_of_aks, dataplane_label
from .aks_existing import ExistingAksSettings
from .node_pool_checks import node_class_reference
from .version_checks import existing_aks_version
from .workloads import Workloads

#: What a cluster is doing while nothing of it should be built upon.
_BUSY: Final = ("Creating", "Updating", "Upgrading", "Deleting", "Stopping", "Starting", "Scaling")
#: Not while node auto provisioning is on.
_TO_CILIUM: Final = "--network-dataplane cilium"
_CLUSTER: Final = "cluster.existing"


@dataclass(frozen=True, kw_only=True)
class FoundPool:
    """An agent pool as Azure has it.

    Attributes:
        name: Its name.
        mode: `System`, `User` or `Gateway`.
        windows: Whether its nodes are Windows.
        autoscaled: Whether AKS's cluster autoscaler scales it.
        subnet_id: Resource ID of its nodes' subnet; empty where AKS has made it.
        pod_subnet: Whether its pods have addresses of a subnet.
    """

    name: str
    mode: str
    windows: bool
    autoscaled: bool
    subnet_id: str
    pod_subnet: bool


@dataclass(frozen=True, kw_only=True)
class FoundCluster:
    """What Azure and the cluster say of a cluster that is there.

    Attributes:
        location: Its location.
        state: `Succeeded`, and others.
        stopped: Whether it is stopped.
        version: Its Kubernetes version, `1.36`.
        managed_identity: Whether it works as one; otherwise as a service principal.
        rbac: Whether Kubernetes asks roles.
        provisioning: Mode of node auto provisioning, `Auto` or `Manual`.
        default_pools: Whether AKS brings NodePools with it.
        plugin: `azure`, `kubenet` or `none`.
        overlay: Whether pods have addresses of an overlay.
        dataplane: `cilium`, `azure` or empty.
        policy: `cilium`, `calico`, `azure`, `none` or empty.
        ipv6: Whether nodes and pods have IPv6 addresses.
        entra: Whether people come in by Entra.
        local_accounts: Whether certificates open it.
        issuer: URL of its OIDC issuer; empty without one.
        workload_identity: Whether pods get Azure identities.
        node_group: Resource group of its nodes.
        group_locked: Whether AKS keeps others from changing what is in it.
        proxied: Whether AKS tells its nodes and pods of a proxy; unknown where it has one, and the API that was asked
            does not say whether that is switched off (`enabled` is there since 2026-01-01).
        certified: Whether its nodes trust certificates of its owner's.
        subnets: Names of the subnets of its network, in lower case; None where AKS has made it, or nobody could ask.
        pools: Its agent pools.
        workloads: What runs in it; of no matter while it cannot be asked.
    """

    location: str
    state: str
    stopped: bool
    version: str
    managed_identity: bool
    rbac: bool
    provisioning: str
    default_pools: bool
    plugin: str
    overlay: bool
    dataplane: str
    policy: str
    ipv6: bool
    entra: bool
    local_accounts: bool
    issuer: str
    workload_identity: bool
    node_group: str
    group_locked: bool
    proxied: Literal["yes", "no", "unknown"]
    certified: bool
    subnets: Sequence[str] | None
    pools: Sequence[FoundPool]
    workloads: Workloads = field(default_factory=Workloads)

    @property
    def answers(self) -> bool:
        """Whether its API server can be asked."""
        return not self.stopped and self.state not in ("Creating", "Deleting")

    @property
    def brought(self) -> Sequence[str]:
        """Names of the NodePools, and node classes, that AKS brings."""
        return BROUGHT_BY_AKS if self.provisioning == "Auto" and self.default_pools else ()


def subnet_of_nodes(settings: ExistingAksSettings, pools: Sequence[FoundPool]) -> str:
    """Resource ID of the subnet in which Karpenter's nodes live; empty where it is one that AKS has made."""
    of_system = next((pool.subnet_id for pool in pools if pool.mode == "System"), "")
    return settings.network.subnet_id or of_system


def missing(settings: ExistingAksSettings) -> SettingsError:
    """The refusal of a cluster that is not there."""
    words = {"resource_group": settings.cluster.resource_group, "subscription_id": settings.subscription_id}
    return SettingsError([Judge(settings, **words)("existing-aks-missing", _CLUSTER)])


def check_kubeconfig_access(settings: ExistingAksSettings, found: FoundCluster) -> Iterator[Finding]:
    """Find what keeps the deployer from getting a kubeconfig. If there is something, the cluster is not asked."""
    say, local = Judge(settings, cluster=settings.cluster.existing), settings.cluster.local_accounts
    if not (found.local_accounts if local else found.entra):
        yield say("no-local-accounts" if local else "no-entra", "cluster.localAccounts")


def problems(settings: ExistingAksSettings, found: FoundCluster) -> Iterator[Finding]:
    """Find what is, or may be, in the way.

    Args:
        settings: The stack's.
        found: What Azure and the cluster say.
    """
    say = Judge(
        settings,
        cluster=settings.cluster.existing,
        resource_group=settings.cluster.resource_group,
        state=found.state,
        location=found.location,
        node_group=found.node_group,
        namespace=KARPENTER_NAMESPACE,
    )
    if found.state in _BUSY:
        yield say("existing-aks-busy", _CLUSTER)
    elif found.stopped:
        yield say("existing-aks-stopped", _CLUSTER)
    elif found.state != "Succeeded":
        yield say("existing-aks-failed", _CLUSTER)
    if not found.answers:
        return
    if found.location != settings.region:
        yield say("location-of-existing-cluster", ["azure-native:location"])
    yield from _network(say, settings, found)
    yield from (_provisioning(say, found) if settings.mode == "nap" else _self_hosted(say, settings, found))
    yield from _specs(say, settings, found)
    yield from check_kubeconfig_access(settings, found)
    if found.workloads.refusal:
        yield say("existing-aks-not-authorized", _CLUSTER, refusal=found.workloads.refusal)
        return
    yield from _others(say, settings.mode, found.workloads)


def _network(say: Judge, settings: ExistingAksSettings, found: FoundCluster) -> Iterator[Finding]:
    """What no Karpenter on AKS makes nodes for, whoever runs it."""
    if found.plugin == "kubenet":
        yield say("existing-aks-kubenet", _CLUSTER, moves=_moves(settings, _to_overlay(found)))
    elif found.policy == "calico":
        yield say("existing-aks-calico", _CLUSTER)
    if found.ipv6:
        yield say("existing-aks-ipv6", _CLUSTER)
    for pool in found.pools:
        if pool.pod_subnet:
            yield say("existing-aks-pod-subnet", _CLUSTER, pool=pool.name)
    if settings.mode == "self-hosted" and (found.plugin, found.overlay, found.dataplane) != ("azure", True, "cilium"):
        yield say(
            "existing-aks-not-cilium-overlay" if found.plugin in ("azure", "kubenet") else "existing-aks-other-network",
            "mode",
            plugin=found.plugin,
            overlay="overlay" if found.overlay else "no overlay",
            dataplane=found.dataplane or "azure",
            moves=_moves(settings, [*_to_overlay(found), *([] if found.dataplane == "cilium" else [_TO_CILIUM])]),
        )


def _to_overlay(found: FoundCluster) -> Iterator[str]:
    """What moves a network to the overlay; AKS does not while Azure's or Calico's network policies are there."""
    if found.overlay:
        return
    if found.policy in ("azure", "calico"):
        yield "--network-policy none"
    yield "--network-plugin azure --network-plugin-mode overlay --pod-cidr <range>"


def _moves(settings: ExistingAksSettings, options: Iterable[str]) -> str:
    named = f"--resource-group {settings.cluster.resource_group} --name {settings.cluster.existing}"
    return ", then ".join(f"az aks update {named} {option}" for option in options)


def _provisioning(say: Judge, found: FoundCluster) -> Iterator[Finding]:
    """Node auto provisioning: that it is on, and what would keep AKS from switching it on."""
    is_on = found.provisioning == "Auto"
    if not found.managed_identity:
        yield say("existing-aks-service-principal", _CLUSTER)
    if not found.rbac and not is_on:
        yield say("existing-aks-without-rbac", _CLUSTER)
    windows = "existing-aks-windows-unserved" if is_on else "existing-aks-windows-pool"
    yield from (say(windows, _CLUSTER, pool=pool.name) for pool in found.pools if pool.windows)
    scaled = "existing-aks-two-autoscalers" if is_on else "existing-aks-autoscaled-pool"
    yield from (say(scaled, _CLUSTER, pool=pool.name) for pool in found.pools if pool.autoscaled)
    if not is_on:
        yield say("existing-aks-provisioning-off", _CLUSTER)


def _self_hosted(say: Judge, settings: ExistingAksSettings, found: FoundCluster) -> Iterator[Finding]:
    karpenter, there = settings.karpenter, found.workloads
    if karpenter is None:  # the checks between sections see to it
        return
    if found.provisioning == "Auto":
        yield say("two-karpenters-on-aks", "mode")
    if not found.issuer or not found.workload_identity:
        yield say("existing-aks-without-identity", _CLUSTER)
    if found.group_locked:
        yield say("existing-aks-group-locked", _CLUSTER)
    proxy = {
        "yes": "an HTTP proxy",
        "unknown": "an HTTP proxy (unless `az aks show --query httpProxyConfig.enabled` says false)",
    }.get(found.proxied)
    for what in filter(None, (proxy, "certificate authorities of its own" if found.certified else "")):
        yield say("existing-aks-proxied", _CLUSTER, what=what)
    if not subnet_of_nodes(settings, found.pools):
        yield say("existing-aks-subnet-unknown", "network.subnetId", None)
    for pool in found.pools:
        if pool.autoscaled:
            yield say("existing-aks-autoscaler-self-hosted", _CLUSTER, pool=pool.name)
    yield from existing_aks_version(found.version, karpenter=karpenter.chart_version)
    if there.refusal:
        return
    if (foreign := there.foreign_definitions) and not there.controllers:
        yield say("existing-aks-foreign-crds", _CLUSTER, foreign_definitions=foreign, names=" ".join(foreign))
    if there.places < karpenter.replicas:
        yield say("existing-aks-too-few-places", "karpenter.replicas", places=there.places)


def _specs(say: Judge, settings: ExistingAksSettings, found: FoundCluster) -> Iterator[Finding]:
    """Node classes and NodePools in this cluster."""
    known = {*settings.node_classes, *found.brought}
    for name, spec in settings.node_classes.items():
        yield from check_names_of_aks("nodeClasses", name, found.brought)
        if subnet := spec.get("vnetSubnetID"):
            yield from _subnet(say, name, str(subnet), settings, found)
    for name, spec in settings.node_pools.items():
        yield from check_names_of_aks("nodePools", name, found.brought)
        yield from dataplane_label(name, spec, found.dataplane)
        if settings.mode == "nap":
            yield from node_class_reference(name, spec, manifests.AKS_NODE_CLASS, known)


def _subnet(
    say: Judge, name: str, subnet: str, settings: ExistingAksSettings, found: FoundCluster
) -> Iterator[Finding]:
    key, own = ("nodeClasses", name, "vnetSubnetID"), subnet_of_nodes(settings, found.pools)
    if not own:
        yield say("node-class-subnet-beside-aks-network", key)
    elif names_of_network(subnet) != names_of_network(own):
        yield say("node-class-subnet-elsewhere", key, network=network_of(own))
    elif found.subnets is not None and subnet.rpartition("/")[2].lower() not in found.subnets:
        yield say("node-class-subnet-missing", key, subnets=found.subnets or "another network")
    elif settings.mode == "nap" and subnet.lower() != own.lower():
        yield say("node-class-subnet-other-than-system", key, subnet=subnet)


def _others(say: Judge, mode: str, there: Workloads) -> Iterator[Finding]:
    """Who else scales."""
    for controller in there.controllers:
        code = "existing-aks-other-karpenter" if mode == "nap" else "other-karpenter"
        yield say(code, _CLUSTER, controller=controller)
    if mode == "nap" and there.own_definitions:
        yield say("existing-aks-crds-of-release", _CLUSTER, own_definitions=there.own_definitions)
    for autoscaler in there.autoscalers:
        yield say("existing-aks-cluster-autoscaler", _CLUSTER, autoscaler=autoscaler)
