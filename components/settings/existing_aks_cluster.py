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

from karpenter.findings import Finding

from ..documents import manifests
from ..documents.provisioning import BROUGHT_BY_AKS
from ..naming import KARPENTER_NAMESPACE
from ..problems import SettingsError, doubts, finding, key_of, shown
from .aks import names_of_network, network_of
from .aks_checks import brought_by_aks, dataplane_label
from .aks_existing import ExistingAksSettings
from .node_pool_checks import node_class_reference
from .version_checks import existing_aks_version

#: What a cluster is doing while nothing of it should be built upon.
_BUSY: Final = ("Creating", "Updating", "Upgrading", "Deleting", "Stopping", "Starting", "Scaling")
#: Not while node auto provisioning is on.
_TO_CILIUM: Final = "update --network-dataplane cilium"


@dataclass(frozen=True, kw_only=True)
class Workloads:
    """What a cluster says of what runs in it.

    Attributes:
        refusal: Why it lets whoever deploys not do there what must be done; empty if it does, and then the rest counts.
        autoscalers: Deployments of Cluster Autoscaler that have replicas, with their namespaces: one of its own beside
            AKS's, which is no pod.
        controllers: Deployments of Karpenter that are not this stack's, with their namespaces.
        own_definitions: CRDs of Karpenter that Helm has made for a release `karpenter-crd`.
        foreign_definitions: Those that somebody else has made.
        places: How many ready nodes take Karpenter's controller: not Karpenter's own, and without taints that the
            controller does not tolerate.
    """

    refusal: str = ""
    autoscalers: Sequence[str] = ()
    controllers: Sequence[str] = ()
    own_definitions: Sequence[str] = ()
    foreign_definitions: Sequence[str] = ()
    places: int = 0


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
    return SettingsError(
        [
            _of(
                settings,
                "existing-aks-missing",
                resource_group=settings.cluster.resource_group,
                subscription_id=settings.subscription_id,
            )
        ]
    )


def enters(settings: ExistingAksSettings, found: FoundCluster) -> Iterator[Finding]:
    """What keeps the deployer from getting a kubeconfig; nobody asks the cluster while there is something."""
    key, value = key_of("cluster", "localAccounts"), shown(settings.cluster.local_accounts)
    if settings.cluster.local_accounts and not found.local_accounts:
        yield finding("no-local-accounts", key, value, cluster=settings.cluster.existing)
    if not settings.cluster.local_accounts and not found.entra:
        yield finding("no-entra", key, value, cluster=settings.cluster.existing)


def check(settings: ExistingAksSettings, found: FoundCluster) -> list[Finding]:
    """Refuse a cluster on which Karpenter cannot work.

    Args:
        settings: The stack's.
        found: What Azure and the cluster say.

    Returns:
        What may be in the way: warnings.

    Raises:
        SettingsError: Something is.
    """
    return doubts(problems(settings, found))


def problems(settings: ExistingAksSettings, found: FoundCluster) -> Iterator[Finding]:
    """What is, or may be, in the way; the arguments are those of `check`."""
    yield from _state(settings, found)
    if not found.answers:
        return
    if found.location != settings.region:
        yield finding(
            "location-of-existing-cluster",
            "azure-native:location",
            settings.region,
            cluster=settings.cluster.existing,
            location=found.location,
        )
    yield from _network(settings, found)
    if settings.mode == "nap":
        yield from _provisioning(settings, found)
    else:
        yield from _self_hosted(settings, found)
    yield from _specs(settings, found)
    yield from enters(settings, found)
    if found.workloads.refusal:
        yield _of(settings, "existing-aks-not-authorized", refusal=found.workloads.refusal)
        return
    yield from _others(settings, found)


def _of(settings: ExistingAksSettings, code: str, /, *, warning: bool | None = None, **words: object) -> Finding:
    return finding(code, ("cluster", "existing"), settings.cluster.existing, warning=warning, **words)


def _az(settings: ExistingAksSettings, command: str) -> str:
    """A command of the Azure CLI on the cluster."""
    cluster = settings.cluster
    named = "--cluster-name" if command.startswith("nodepool") else "--name"
    verb, _, rest = command.partition(" --")
    return f"az aks {verb} --resource-group {cluster.resource_group} {named} {cluster.existing}" + (
        f" --{rest}" if rest else ""
    )


def _state(settings: ExistingAksSettings, found: FoundCluster) -> Iterator[Finding]:
    if found.state in _BUSY:
        yield _of(settings, "existing-aks-busy", state=found.state, command=_az(settings, "wait --updated"))
    elif found.stopped:
        yield _of(settings, "existing-aks-stopped", command=_az(settings, "start"))
    elif found.state != "Succeeded":
        yield _of(settings, "existing-aks-failed", state=found.state, command=_az(settings, "update"))


def _network(settings: ExistingAksSettings, found: FoundCluster) -> Iterator[Finding]:
    """What no Karpenter on AKS makes nodes for, whoever runs it."""
    if found.plugin == "kubenet":
        yield _of(settings, "existing-aks-kubenet", moves=_moves(settings, _to_overlay(found)))
    elif found.policy == "calico":
        yield _of(settings, "existing-aks-calico", moves=_moves(settings, [_TO_CILIUM]))
    if found.ipv6:
        yield _of(settings, "existing-aks-ipv6")
    for pool in found.pools:
        if pool.pod_subnet:
            yield _of(settings, "existing-aks-pod-subnet", pool=pool.name)
    if settings.mode == "self-hosted" and (found.plugin, found.overlay, found.dataplane) != ("azure", True, "cilium"):
        moves = _moves(settings, [*_to_overlay(found), *([] if found.dataplane == "cilium" else [_TO_CILIUM])])
        yield finding(
            "existing-aks-not-cilium-overlay" if found.plugin in ("azure", "kubenet") else "existing-aks-other-network",
            "mode",
            settings.mode,
            cluster=settings.cluster.existing,
            plugin=found.plugin,
            overlay="overlay" if found.overlay else "no overlay",
            dataplane=found.dataplane or "azure",
            moves=moves,
        )


def _to_overlay(found: FoundCluster) -> Iterator[str]:
    """What moves a network to the overlay; AKS does not while Azure's or Calico's network policies are there."""
    if found.overlay:
        return
    if found.policy in ("azure", "calico"):
        yield "update --network-policy none"
    yield "update --network-plugin azure --network-plugin-mode overlay --pod-cidr <range>"


def _moves(settings: ExistingAksSettings, commands: Iterable[str]) -> str:
    return ", then ".join(_az(settings, command) for command in commands)


def _provisioning(settings: ExistingAksSettings, found: FoundCluster) -> Iterator[Finding]:
    """Node auto provisioning: that it is on, and what would keep AKS from switching it on."""
    if not found.managed_identity:
        yield _of(settings, "existing-aks-service-principal", command=_az(settings, "update --enable-managed-identity"))
    is_on = found.provisioning == "Auto"
    if not found.rbac and not is_on:
        yield _of(settings, "existing-aks-without-rbac")
    for pool in found.pools:
        if pool.windows:
            code = "existing-aks-windows-unserved" if is_on else "existing-aks-windows-pool"
            delete = _az(settings, f"nodepool delete --name {pool.name}")
            yield _of(settings, code, pool=pool.name, command=delete)
    for pool in found.pools:
        if pool.autoscaled:
            code = "existing-aks-two-autoscalers" if is_on else "existing-aks-autoscaled-pool"
            disable = _az(settings, f"nodepool update --name {pool.name} --disable-cluster-autoscaler")
            yield _of(settings, code, pool=pool.name, command=disable)
    if not is_on:
        yield _of(
            settings,
            "existing-aks-provisioning-off",
            command=_az(settings, "update --node-provisioning-mode Auto --node-provisioning-default-pools None"),
        )


def _self_hosted(settings: ExistingAksSettings, found: FoundCluster) -> Iterator[Finding]:
    karpenter = settings.karpenter
    if karpenter is None:  # the checks between sections see to it
        return
    if found.provisioning == "Auto":
        yield finding(
            "two-karpenters-on-aks",
            "mode",
            settings.mode,
            cluster=settings.cluster.existing,
            command=_az(settings, "update --node-provisioning-mode Manual"),
        )
    if not found.issuer or not found.workload_identity:
        yield _of(
            settings,
            "existing-aks-without-identity",
            command=_az(settings, "update --enable-oidc-issuer --enable-workload-identity"),
        )
    if found.group_locked:
        yield _of(
            settings,
            "existing-aks-group-locked",
            node_group=found.node_group,
            command=_az(settings, "update --nrg-lockdown-restriction-level Unrestricted"),
        )
    unless_off = "az aks show --query httpProxyConfig.enabled"
    for there, what in (
        (found.proxied == "yes", "an HTTP proxy"),
        (found.proxied == "unknown", f"an HTTP proxy (unless `{unless_off}` says false)"),
        (found.certified, "certificate authorities of its own"),
    ):
        if there:
            yield _of(settings, "existing-aks-proxied", what=what)
    if not subnet_of_nodes(settings, found.pools):
        yield finding("existing-aks-subnet-unknown", ("network", "subnetId"), None, node_group=found.node_group)
    for pool in found.pools:
        if pool.autoscaled:
            yield _of(
                settings,
                "existing-aks-autoscaler-self-hosted",
                pool=pool.name,
                command=_az(settings, f"nodepool update --name {pool.name} --disable-cluster-autoscaler"),
            )
    yield from existing_aks_version(found.version, karpenter=karpenter.chart_version)
    if found.workloads.refusal:
        return
    if found.workloads.foreign_definitions and not found.workloads.controllers:
        names = " ".join(found.workloads.foreign_definitions)
        yield _of(
            settings,
            "existing-aks-foreign-crds",
            foreign_definitions=found.workloads.foreign_definitions,
            names=names,
            namespace=KARPENTER_NAMESPACE,
        )
    if found.workloads.places < karpenter.replicas:
        yield finding(
            "existing-aks-too-few-places",
            ("karpenter", "replicas"),
            karpenter.replicas,
            cluster=settings.cluster.existing,
            places=found.workloads.places,
            namespace=KARPENTER_NAMESPACE,
        )


def _specs(settings: ExistingAksSettings, found: FoundCluster) -> Iterator[Finding]:
    """Node classes and NodePools in this cluster."""
    known = {*settings.node_classes, *found.brought}
    for name, spec in settings.node_classes.items():
        yield from brought_by_aks("nodeClasses", name, found.brought)
        if subnet := spec.get("vnetSubnetID"):
            yield from _subnet(name, str(subnet), settings, found)
    for name, spec in settings.node_pools.items():
        yield from brought_by_aks("nodePools", name, found.brought)
        yield from dataplane_label(name, spec, found.dataplane)
        if settings.mode == "nap":
            yield from node_class_reference(name, spec, manifests.AKS_NODE_CLASS, known)


def _subnet(name: str, subnet: str, settings: ExistingAksSettings, found: FoundCluster) -> Iterator[Finding]:
    key, value = key_of("nodeClasses", name, "vnetSubnetID"), shown(subnet)
    own = subnet_of_nodes(settings, found.pools)
    if not own:
        yield finding("node-class-subnet-beside-aks-network", key, value, cluster=settings.cluster.existing)
    elif names_of_network(subnet) != names_of_network(own):
        yield finding(
            "node-class-subnet-elsewhere", key, value, cluster=settings.cluster.existing, network=network_of(own)
        )
    elif found.subnets is not None and subnet.rpartition("/")[2].lower() not in found.subnets:
        yield finding("node-class-subnet-missing", key, value, subnets=", ".join(found.subnets) or "another network")
    elif settings.mode == "nap" and subnet.lower() != own.lower():
        yield finding(
            "node-class-subnet-other-than-system", key, value, cluster=settings.cluster.existing, subnet=subnet
        )


def _others(settings: ExistingAksSettings, found: FoundCluster) -> Iterator[Finding]:
    """Who else scales."""
    there = found.workloads
    for controller in there.controllers:
        code = "existing-aks-other-karpenter" if settings.mode == "nap" else "other-karpenter"
        yield _of(settings, code, controller=controller)
    if settings.mode == "nap" and there.own_definitions:
        yield _of(settings, "existing-aks-crds-of-release", own_definitions=there.own_definitions)
    for autoscaler in there.autoscalers:
        yield _of(settings, "existing-aks-cluster-autoscaler", autoscaler=autoscaler)
