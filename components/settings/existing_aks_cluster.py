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

from ..documents import manifests
from ..documents.provisioning import BROUGHT_BY_AKS
from ..naming import KARPENTER_NAMESPACE
from ..problems import Problem, SettingsError, doubts, key_of, shown
from .aks import names_of_network, network_of
from .aks_checks import brought_by_aks, dataplane_label
from .aks_existing import ExistingAksSettings
from .node_pool_checks import node_class_reference
from .version_checks import existing_aks_version

#: What a cluster is doing while nothing of it should be built upon.
_BUSY: Final = ("Creating", "Updating", "Upgrading", "Deleting", "Stopping", "Starting", "Scaling")
#: Not while node auto provisioning is on.
_TO_CILIUM: Final = "update --network-dataplane cilium"
_PAGE: Final = "docs/existing-aks-cluster.md"
_MOVE: Final = "docs/move-to-nap.md"


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
                f"is not in the resource group {settings.cluster.resource_group} of subscription "
                f"{settings.subscription_id}: there is nothing that NodePools could be put on",
                "write name and group as `az aks list --output table` prints them, or remove the key, and the stack "
                "makes a cluster",
            )
        ]
    )


def enters(settings: ExistingAksSettings, found: FoundCluster) -> Iterator[Problem]:
    """What keeps the deployer from getting a kubeconfig; nobody asks the cluster while there is something."""
    key, value = key_of("cluster", "localAccounts"), shown(settings.cluster.local_accounts)
    if settings.cluster.local_accounts and not found.local_accounts:
        yield Problem(
            key,
            value,
            f"asks for a certificate of the administrator, and {settings.cluster.existing} has no local accounts: AKS "
            "gives none",
            "remove it; whoever deploys comes in by Entra",
        )
    if not settings.cluster.local_accounts and not found.entra:
        yield Problem(
            key,
            value,
            f"means that whoever deploys comes in by Entra, of which {settings.cluster.existing} knows nothing",
            "set it to true, for the administrator's certificate",
        )


def check(settings: ExistingAksSettings, found: FoundCluster) -> list[Problem]:
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


def problems(settings: ExistingAksSettings, found: FoundCluster) -> Iterator[Problem]:
    """What is, or may be, in the way; the arguments are those of `check`."""
    yield from _state(settings, found)
    if not found.answers:
        return
    if found.location != settings.region:
        yield Problem(
            "azure-native:location",
            shown(settings.region),
            f"is not where {settings.cluster.existing} is, {found.location}: Karpenter's nodes must be there too",
            f"write {found.location}",
        )
    yield from _network(settings, found)
    if settings.mode == "nap":
        yield from _provisioning(settings, found)
    else:
        yield from _self_hosted(settings, found)
    yield from _specs(settings, found)
    yield from enters(settings, found)
    if found.workloads.refusal:
        yield _of(
            settings,
            f"does not let in whoever deploys, or not to do what must be done: {found.workloads.refusal}; neither a "
            "node class nor a NodePool would be made",
            "see that there is a way to its API server from here, and have an administrator of it give the role: az "
            'role assignment create --role "Azure Kubernetes Service RBAC Cluster Admin" --assignee <you> --scope '
            f"<its resource ID>; without Azure RBAC, a ClusterRoleBinding of cluster-admin ({_PAGE})",
        )
        return
    yield from _others(settings, found)


def _of(settings: ExistingAksSettings, consequence: str, fix: str, *, warning: bool = False) -> Problem:
    return Problem(key_of("cluster", "existing"), shown(settings.cluster.existing), consequence, fix, warning)


def _az(settings: ExistingAksSettings, command: str) -> str:
    """A command of the Azure CLI on the cluster."""
    cluster = settings.cluster
    named = "--cluster-name" if command.startswith("nodepool") else "--name"
    verb, _, rest = command.partition(" --")
    return f"az aks {verb} --resource-group {cluster.resource_group} {named} {cluster.existing}" + (
        f" --{rest}" if rest else ""
    )


def _state(settings: ExistingAksSettings, found: FoundCluster) -> Iterator[Problem]:
    if found.state in _BUSY:
        yield _of(
            settings,
            f"is {found.state}: what is looked at now may be otherwise in a moment",
            f"wait until it is done: {_az(settings, 'wait --updated')}",
        )
    elif found.stopped:
        yield _of(
            settings,
            "is stopped: nothing can be put into it",
            f"have it started: {_az(settings, 'start')}",
        )
    elif found.state != "Succeeded":
        yield _of(
            settings,
            f"is {found.state}: its last update did not come to its end, and parts of it may not be as it says",
            f"have it reconciled: {_az(settings, 'update')}",
            warning=True,
        )


def _network(settings: ExistingAksSettings, found: FoundCluster) -> Iterator[Problem]:
    """What no Karpenter on AKS makes nodes for, whoever runs it."""
    if found.plugin == "kubenet":
        yield _of(
            settings,
            "has the network plugin kubenet, for which Karpenter makes no nodes",
            "have it moved to the overlay, which makes all its nodes anew: " + _moves(settings, _to_overlay(found)),
        )
    elif found.policy == "calico":
        yield _of(
            settings,
            "has the network policies of Calico, which Karpenter does not support on AKS: it refuses node auto "
            "provisioning, and nodes of others would have no policies",
            "have the dataplane moved to Cilium, which takes their place and makes all nodes anew: "
            + _moves(settings, [_TO_CILIUM]),
        )
    if found.ipv6:
        yield _of(
            settings,
            "has IPv6, which Karpenter on AKS does not know: its nodes get no IPv6 address",
            "take a cluster with IPv4 alone; AKS takes IPv6 from none",
        )
    for pool in found.pools:
        if pool.pod_subnet:
            yield _of(
                settings,
                f"gives pods of the pool {pool.name} addresses of a subnet (podSubnetID), for which Karpenter makes no "
                "nodes",
                "have its pools replaced by some without --pod-subnet-id, or take another cluster",
            )
    if settings.mode == "self-hosted" and (found.plugin, found.overlay, found.dataplane) != ("azure", True, "cilium"):
        yield Problem(
            key_of("mode"),
            shown(settings.mode),
            f"is made here for Azure CNI overlay with Cilium, and {settings.cluster.existing} has plugin "
            f"{found.plugin}, {'overlay' if found.overlay else 'no overlay'}, dataplane {found.dataplane or 'azure'}: "
            "the controller would tell nodes of a network that is not there, and they would never be ready",
            "set it to nap"
            + (
                "; or have the cluster moved, as learn.microsoft.com/azure/aks/update-azure-cni says: "
                + _moves(settings, [*_to_overlay(found), *([] if found.dataplane == "cilium" else [_TO_CILIUM])])
                if found.plugin in ("azure", "kubenet")
                else ""
            ),
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


def _provisioning(settings: ExistingAksSettings, found: FoundCluster) -> Iterator[Problem]:
    """Node auto provisioning: that it is on, and what would keep AKS from switching it on."""
    if not found.managed_identity:
        yield _of(
            settings,
            "works as a service principal, with which AKS refuses node auto provisioning",
            f"have it given a managed identity: {_az(settings, 'update --enable-managed-identity')}",
        )
    is_on = found.provisioning == "Auto"
    if not found.rbac and not is_on:
        yield _of(
            settings,
            "has no Kubernetes RBAC (enableRBAC), without which AKS refuses node auto provisioning",
            "take another cluster; AKS switches it on in none that is there",
        )
    for pool in found.pools:
        if pool.windows:
            yield _of(
                settings,
                f"has the Windows pool {pool.name}, which node auto provisioning does not support"
                + (": nobody but its owner makes nodes for its pods" if is_on else ""),
                "have it deleted, after its pods have another cluster: "
                + _az(settings, f"nodepool delete --name {pool.name}"),
                warning=is_on,
            )
    for pool in found.pools:
        if pool.autoscaled:
            yield _of(
                settings,
                f"has the pool {pool.name}, which the cluster autoscaler scales: "
                + (
                    "for one pending pod both may make a node, and only taints keep the two apart"
                    if is_on
                    else "AKS refuses node auto provisioning beside it"
                ),
                "have it taken off the pool, whose nodes stay: "
                + _az(settings, f"nodepool update --name {pool.name} --disable-cluster-autoscaler")
                + f"; {_MOVE} says how to move over",
                warning=is_on,
            )
    if not is_on:
        yield _of(
            settings,
            "has node auto provisioning switched off (nodeProvisioningProfile.mode is Manual): it has no NodePools, "
            "and nothing would make nodes for them",
            "have it switched on, after what is said above: "
            + _az(settings, "update --node-provisioning-mode Auto --node-provisioning-default-pools None")
            + ", or --node-provisioning-default-pools Auto for AKS's own NodePools beside the stack's",
        )


def _self_hosted(settings: ExistingAksSettings, found: FoundCluster) -> Iterator[Problem]:
    karpenter = settings.karpenter
    if karpenter is None:  # the checks between sections see to it
        return
    if found.provisioning == "Auto":
        yield Problem(
            key_of("mode"),
            shown(settings.mode),
            f"would put a Karpenter beside the one that AKS runs for {settings.cluster.existing}: both act on the same "
            "NodePools, and launch and end each other's nodes",
            f"set it to nap; or have AKS's switched off, as the way back in {_MOVE} says: "
            + _az(settings, "update --node-provisioning-mode Manual"),
        )
    if not found.issuer or not found.workload_identity:
        yield _of(
            settings,
            "has no OIDC issuer, or no workload identity: the controller would get no Azure identity",
            "have both switched on: " + _az(settings, "update --enable-oidc-issuer --enable-workload-identity"),
        )
    if found.group_locked:
        yield _of(
            settings,
            f"has its node resource group {found.node_group} locked (ReadOnly): Azure refuses each machine of a "
            "Karpenter that is not AKS's",
            "have it opened: " + _az(settings, "update --nrg-lockdown-restriction-level Unrestricted"),
        )
    unless_off = "az aks show --query httpProxyConfig.enabled"
    for there, what in (
        (found.proxied == "yes", "an HTTP proxy"),
        (found.proxied == "unknown", f"an HTTP proxy (unless `{unless_off}` says false)"),
        (found.certified, "certificate authorities of its own"),
    ):
        if there:
            yield _of(
                settings,
                f"has {what}, of which AKS tells its pools' nodes alone: machines of a Karpenter that is not AKS's "
                "have it switched off, and where they cannot do without they never join",
                "set karpstack:mode to nap, with which AKS tells each node; or see that its nodes' subnet has another "
                "way out, and that pods there need nothing of it",
                warning=True,
            )
    if not subnet_of_nodes(settings, found.pools):
        yield Problem(
            key_of("network", "subnetId"),
            "(not set)",
            "leaves open where nodes live: the system pool is in a network of AKS's, which says nothing of its name",
            f"name its subnet: az network vnet list --resource-group {found.node_group} --query '[].subnets[].id'",
        )
    for pool in found.pools:
        if pool.autoscaled:
            yield _of(
                settings,
                f"has the pool {pool.name}, which the cluster autoscaler scales: for one pending pod both may make a "
                "node",
                "keep the two apart by a taint and a label on the NodePool; or have it taken off the pool: "
                + _az(settings, f"nodepool update --name {pool.name} --disable-cluster-autoscaler"),
                warning=True,
            )
    yield from existing_aks_version(found.version, karpenter=karpenter.chart_version)
    if found.workloads.refusal:
        return
    if found.workloads.foreign_definitions and not found.workloads.controllers:
        names = " ".join(found.workloads.foreign_definitions)
        yield _of(
            settings,
            f"has {', '.join(found.workloads.foreign_definitions)} already, which Helm has not made for the release "
            "karpenter-crd: it refuses to take them over, after roles were made",
            "where no Karpenter uses them any more, delete them with their objects; to keep the objects, hand them to "
            f"Helm: kubectl label crd {names} app.kubernetes.io/managed-by=Helm --overwrite, and kubectl annotate crd "
            f"{names} meta.helm.sh/release-name=karpenter-crd meta.helm.sh/release-namespace={KARPENTER_NAMESPACE} "
            "--overwrite",
        )
    if found.workloads.places < karpenter.replicas:
        yield Problem(
            key_of("karpenter", "replicas"),
            shown(karpenter.replicas),
            f"is more than {settings.cluster.existing} has places for, {found.workloads.places}: each controller needs "
            "a Linux node of its own that is ready, was not made by Karpenter, and has no taint but "
            f"CriticalAddonsOnly; pods in {KARPENTER_NAMESPACE} would stay pending, and `pulumi up` would time out",
            "add nodes to the system pool, or lower replicas",
        )


def _specs(settings: ExistingAksSettings, found: FoundCluster) -> Iterator[Problem]:
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


def _subnet(name: str, subnet: str, settings: ExistingAksSettings, found: FoundCluster) -> Iterator[Problem]:
    key, value = key_of("nodeClasses", name, "vnetSubnetID"), shown(subnet)
    own = subnet_of_nodes(settings, found.pools)
    if not own:
        yield Problem(
            key,
            value,
            f"is a subnet of one's own, and {settings.cluster.existing} is in a network that AKS has made, beside "
            "which it supports none: the node class never gets ready",
            "remove it",
        )
    elif names_of_network(subnet) != names_of_network(own):
        yield Problem(
            key,
            value,
            f"lies in another network than {settings.cluster.existing}, or spells it in another way; Karpenter tells "
            "upper from lower case: the node class never gets ready (SubnetIDInvalid)",
            f"name a subnet of {network_of(own)}",
        )
    elif found.subnets is not None and subnet.rpartition("/")[2].lower() not in found.subnets:
        yield Problem(
            key,
            value,
            "is not there: the node class never gets ready, and no node is made",
            f"name one of {', '.join(found.subnets) or 'another network'}",
        )
    elif settings.mode == "nap" and subnet.lower() != own.lower():
        yield Problem(
            key,
            value,
            f"is another subnet than that of the system pool: unless the identity of {settings.cluster.existing} may "
            "join it, Azure refuses each machine there",
            'see that it has the role: az role assignment create --role "Network Contributor" --assignee <its '
            f"principal> --scope {subnet}",
            warning=True,
        )


def _others(settings: ExistingAksSettings, found: FoundCluster) -> Iterator[Problem]:
    """Who else scales."""
    there = found.workloads
    for controller in there.controllers:
        yield _of(
            settings,
            f"has a Karpenter of its own, the Deployment {controller}: two of them act on the same NodePools, and "
            "launch and end each other's nodes",
            f"have that one removed before; {_MOVE} says how, and what becomes of its CRDs"
            if settings.mode == "nap"
            else "have that one removed, or its NodePools taken over there: a stack of this program brings its own",
        )
    if settings.mode == "nap" and there.own_definitions:
        yield _of(
            settings,
            f"has {', '.join(there.own_definitions)} of a Helm release karpenter-crd, which a Karpenter of one's own "
            "has left: whoever uninstalls that release deletes them, with all NodePools and their nodes, and AKS may "
            "not bring later ones",
            f"have Helm's label and annotations taken off them, as {_MOVE} says, before anybody uninstalls it",
            warning=True,
        )
    for autoscaler in there.autoscalers:
        yield _of(
            settings,
            f"has a Cluster Autoscaler of its own, the Deployment {autoscaler}: for one pending pod both may make a "
            "node, and it drains nodes of its pools while Karpenter fills them",
            f"keep the two apart, or move over and scale it to nothing, as {_MOVE} says",
            warning=True,
        )
