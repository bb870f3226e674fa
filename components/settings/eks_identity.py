"""What decides which cluster an EKS stack has: a change of it would delete what the stack has and make something else.

The rules compare the settings with the stack's last state. Each has its row in docs/how-to/eks/deploy.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from karpstack.karpenter.findings import Finding
from karpstack.karpenter.releases import number

from ..naming import EksNames
from ..problems import Shown, another_existing, finding, replacing, shown
from .eks import EksSettings, NetworkSettings
from .eks_existing import ExistingEksSettings


@dataclass(frozen=True, kw_only=True)
class EksBefore:
    """What an EKS stack has, by its last state; a text is empty where the state does not have it.

    Attributes:
        account, region: Where.
        node_role: Name of the role of Karpenter's nodes, which begins with karpstack:name.
        cluster: Name of the stack's own cluster.
        version: Its Kubernetes.
        protected: Whether EKS refuses to delete that.
        existing: Name of the existing cluster that the stack works on.
        vpc_id: VPC of the stack's own cluster.
        vpc_cidr: Range of the stack's own VPC.
        zones: Zones of the subnets of that VPC, in their order.
        service_cidr: Range of Services of the stack's own cluster.
        control_plane_subnet_ids: Its subnets.
        nat_gateways: karpstack:network.natGateways of the stack's own VPC.
        flow_log_days: Days that the flow logs of that VPC are kept; 0 without any.
        cilium: Whether the stack has installed Cilium.
        association: ID of the controller's pod identity association.
    """

    account: str = ""
    region: str = ""
    node_role: str = ""
    cluster: str = ""
    version: str = ""
    protected: bool = False
    existing: str = ""
    vpc_id: str = ""
    vpc_cidr: str = ""
    zones: Sequence[str] = ()
    service_cidr: str = ""
    control_plane_subnet_ids: Sequence[str] = ()
    nat_gateways: str = ""
    flow_log_days: int = 0
    cilium: bool = False
    association: str = ""

    @property
    def gone(self) -> str:
        """What would be lost with the cluster, as the beginning of a sentence."""
        if self.existing:
            return f"the stack would remove its NodePools, with their nodes, and Karpenter from {self.existing}"
        protection = "; EKS refuses that halfway, because of deletionProtection" if self.protected else ""
        return f"the EKS cluster {self.cluster} would be deleted, with everything that runs in it{protection}"


def destroying(settings: EksSettings | ExistingEksSettings, before: EksBefore, *, account: str) -> Iterator[Finding]:
    """Find the settings whose change destroys what the stack has.

    Args:
        settings: The stack's.
        before: What it has.
        account: ID of the AWS account in which the update would run; empty if nobody asked.
    """
    elsewhere = [*_elsewhere(settings, before, account)]
    other_cluster = elsewhere or [*_other_cluster(settings, before)]
    if other_cluster:
        yield from other_cluster
        return
    if isinstance(settings, EksSettings):
        yield from _other_network(settings, before)
    elif before.cilium and not settings.cilium.install:
        yield replacing("cilium-removed", ("cilium", "install"), True, False, cluster=before.existing)
    if before.association and settings.karpenter.identity == "irsa":
        # amazon-eks-pod-identity-webhook, pkg/handler: an association goes before the annotation of IRSA. The engine
        # deletes it last.
        names = {"cluster": before.cluster or before.existing, "association": before.association}
        yield replacing("identity-changed", ("karpenter", "identity"), "pod-identity", "irsa", **names)


def version_steps(settings: EksSettings, before: EksBefore) -> Iterator[Finding]:
    """Find a version that EKS does not take a cluster to: an older one, or one beyond the next."""
    wanted = settings.cluster.version
    if not before.version or number(before.version) <= number(wanted) <= _next(before.version):
        return
    major, minor = _next(before.version)
    yield finding(
        "version-step",
        ("cluster", "version"),
        Shown(f"{shown(wanted)}, was {shown(before.version)}"),
        before=before.version,
        major=major,
        minor=minor,
    )


def _next(version: str) -> tuple[int, ...]:
    major, minor = number(version)[:2]
    return major, minor + 1


def _elsewhere(settings: EksSettings | ExistingEksSettings, before: EksBefore, account: str) -> Iterator[Finding]:
    if before.account and account and before.account != account:
        yield replacing(
            "account-changed",
            "aws:profile",
            f"an identity in account {before.account}",
            f"an identity in account {account}",
            cluster=before.cluster or before.existing,
            account=before.account,
        )
    if before.region and before.region != settings.region:
        yield replacing("cluster-setting-changed", "aws:region", before.region, settings.region, gone=before.gone)


def _other_cluster(settings: EksSettings | ExistingEksSettings, before: EksBefore) -> Iterator[Finding]:
    existing = settings.cluster.existing if isinstance(settings, ExistingEksSettings) else ""
    if existing != before.existing and (before.cluster or before.existing):
        yield another_existing(before.existing, existing, before.gone)
        return
    names = EksNames(settings.name, existing=existing)
    was, wanted = (before.cluster, names.cluster) if before.cluster else (before.node_role, names.node_role)
    if was and was != wanted:
        # Roles and the queue are named after it too, and a role has no other name.
        stem = before.node_role.removesuffix(EksNames("").node_role)
        code = "cluster-setting-changed" if before.cluster else "name-beside-existing-eks-changed"
        yield replacing(code, "name", stem or was, settings.name, gone=before.gone)


def _other_network(settings: EksSettings, before: EksBefore) -> Iterator[Finding]:
    network = settings.network
    own = network.vpc_id is None
    was = None if before.vpc_cidr else before.vpc_id
    if before.vpc_id and was != network.vpc_id:
        yield replacing("vpc-changed", ("network", "vpcId"), was, network.vpc_id, gone=before.gone)
        return
    if own and before.vpc_cidr and before.vpc_cidr != str(network.vpc_cidr):
        yield replacing(
            "vpc-cidr-changed", ("network", "vpcCidr"), before.vpc_cidr, str(network.vpc_cidr), gone=before.gone
        )
    if before.service_cidr and before.service_cidr != str(network.service_cidr):
        wanted = str(network.service_cidr)
        yield replacing(
            "cluster-setting-changed", ("network", "serviceCidr"), before.service_cidr, wanted, gone=before.gone
        )
    if own:
        yield from _other_zones(network.zones, before.zones)
        yield from _other_way_out(network, before)
    if before.flow_log_days and not network.flow_log_retention_days:
        yield replacing("flow-logs-removed", ("network", "flowLogRetentionDays"), before.flow_log_days, 0)


def _other_way_out(network: NetworkSettings, before: EksBefore) -> Iterator[Finding]:
    """An EC2NodeClass has either a role or an instance profile, and its CRD refuses a change between the two."""
    if before.vpc_cidr and (before.nat_gateways == "none") != network.isolated:
        yield replacing("way-out-changed", ("network", "natGateways"), before.nat_gateways, network.nat_gateways)


def _other_zones(zones: int | Sequence[str], before: Sequence[str]) -> Iterator[Finding]:
    """Further zones are fine: nodes use them, and the control plane stays where it is."""
    names = [*before[:zones], *[""] * (zones - len(before))] if isinstance(zones, int) else list(zones)
    if names[: len(before)] != list(before):
        yield replacing("zones-changed", ("network", "zones"), list(before), zones, count=len(before))


def other_control_plane_zones(key: str, was: Sequence[str], before: set[str], wanted: set[str]) -> Iterator[Finding]:
    """Find out whether an existing VPC's subnets are in other zones than those of the control plane.

    Args:
        key: The setting that names the subnets.
        was: IDs of the control plane's subnets.
        before: Their zones.
        wanted: The zones of those that the settings name.
    """
    if before != wanted:
        yield replacing("control-plane-zones-changed", key, sorted(before), sorted(wanted), subnets=was)
