"""What is wrong with an existing VPC for an EKS cluster: the settings, held against what the account says of it.

Pure: whoever asks the account (the program by invokes, the look before `up` by calls) brings a `FoundNetwork`. What
EKS demands is in its user guide, "VPC and subnet requirements"; what Karpenter does with tags of subnets, in its
documentation of `subnetSelectorTerms`: it looks in the whole region, not in one VPC.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Final, Literal, Protocol

from karpstack.karpenter.findings import Finding

from ..documents.endpoints import GATEWAYS
from ..documents.partitions import endpoint_services
from ..documents.subnets import ZONES_WITHOUT_EKS
from ..naming import DISCOVERY_TAG
from ..problems import Judge
from .egress_checks import early_call_warning
from .eks import EksSettings, NetworkSettings, needed_endpoints, unreached_registries

#: Free addresses that EKS demands in each subnet of a control plane, and those that it recommends.
LEAST_ADDRESSES: Final = 6
RECOMMENDED_ADDRESSES: Final = 16
#: Where a subnet's default route leads: a NAT or transit gateway and the like, an internet gateway, or nowhere: there
#: is none, or what it led to is gone (the state `blackhole` of `aws ec2 describe-route-tables`).
WayOut = Literal["private", "public", "none", "blackhole"]
_OWNED: Final = re.compile(r"kubernetes\.io/cluster/(?P<name>.+)")
_ZONE: Final = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]+[a-z]")
ANYWHERE: Final = "0.0.0.0/0"


class Selection(Protocol):
    """Which parts of a network are meant, as `NetworkSettings` says it of a VPC that is there.

    Attributes:
        vpc_id: The VPC.
        subnet_ids, subnet_tags: Subnets of nodes: their IDs, or tags that they have.
        control_plane_subnet_ids: Further subnets.
        node_security_group_ids: Security groups.
    """

    @property
    def vpc_id(self) -> str | None: ...  # noqa: D102
    @property
    def subnet_ids(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def subnet_tags(self) -> Mapping[str, str]: ...  # noqa: D102
    @property
    def control_plane_subnet_ids(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def node_security_group_ids(self) -> Sequence[str]: ...  # noqa: D102


@dataclass(frozen=True, kw_only=True)
class FoundSubnet:
    """A subnet as the account has it.

    Attributes:
        id: Its ID.
        vpc_id: Its VPC.
        zone, zone_id: Its zone's name and ID.
        free: Addresses that nothing has.
        way_out: Where its default route leads.
        tags: Its tags.
        gives_public_addresses: Whether a machine gets a public address there unless it says otherwise.
    """

    id: str
    vpc_id: str
    zone: str
    zone_id: str
    free: int
    way_out: WayOut
    tags: Mapping[str, str]
    gives_public_addresses: bool = False

    @property
    def leads_out(self) -> bool:
        """Whether its default route leads anywhere."""
        return self.way_out in ("private", "public")

    @property
    def without_way_out(self) -> str:
        """The subnet and why nothing leads out of it, in words."""
        if self.way_out == "blackhole":
            return f"{self.id}, whose default route is a blackhole (what it led to is gone)"
        return f"{self.id} without a default route"


@dataclass(frozen=True, kw_only=True)
class FoundNetwork:
    """What the account says of a network that is there.

    Attributes:
        cidrs: Ranges of the VPC; empty where there is no such VPC.
        dns_support, dns_hostnames: Its attributes.
        subnets: Those that the settings name or select, by ID, in whatever VPC; a missing one is not there.
        selected: IDs of those that the settings select by tags, in whatever VPC.
        groups: Security groups by ID, with the VPC of each; a missing one is not there.
        endpoints: Services of which the VPC has an endpoint, as `ecr.api`; asked where nodes have no way out.
        has_cluster: Whether the cluster is there already, whose own interfaces and nodes hold addresses.
    """

    cidrs: Sequence[str]
    dns_support: bool
    dns_hostnames: bool
    subnets: Mapping[str, FoundSubnet]
    selected: Sequence[str]
    groups: Mapping[str, str]
    endpoints: Collection[str]
    has_cluster: bool

    @property
    def has_endpoints(self) -> bool:
        """Whether nodes without a way out reach EC2 at least."""
        return "ec2" in self.endpoints

    def node_subnets(self, network: Selection) -> list[FoundSubnet]:
        """The subnets of the VPC in which nodes live, in the order of the settings, or of their IDs."""
        named = network.subnet_ids or sorted(self.selected)
        return [self.subnets[one] for one in named if one in self.subnets and self._within(network, one)]

    def control_plane_subnets(self, network: Selection) -> list[FoundSubnet]:
        """The same for the control plane's interfaces."""
        if not network.control_plane_subnet_ids:
            return self.node_subnets(network)
        named = network.control_plane_subnet_ids
        return [self.subnets[one] for one in named if one in self.subnets and self._within(network, one)]

    def _within(self, network: Selection, subnet: str) -> bool:
        return self.subnets[subnet].vpc_id == network.vpc_id


def way_out(routes: Mapping[str, str], gone: Collection[str] = ()) -> WayOut:
    """Where the default route of a route table leads.

    Args:
        routes: Destination to the ID of what it leads to: `{"0.0.0.0/0": "nat-..."}`.
        gone: Destinations of those that lead nowhere any more.
    """
    if ANYWHERE in gone:
        return "blackhole"
    target = routes.get(ANYWHERE, "")
    return "none" if not target else "public" if target.startswith("igw-") else "private"


def problems(settings: EksSettings, found: FoundNetwork) -> Iterator[Finding]:
    """Find what is, or may be, in the way.

    Args:
        settings: With a `network.vpc_id`.
        found: What the account says of that.
    """
    network = settings.network
    say = Judge(settings, vpc_id=network.vpc_id, ranges=found.cidrs, discovery_tag=DISCOVERY_TAG)
    if not found.cidrs:
        yield say("vpc-missing", "network.vpcId")
        return
    if str(network.vpc_cidr) not in found.cidrs:
        yield say("vpc-cidr-other", "network.vpcCidr", cidr=found.cidrs[0])
    for field, cidr in (("podCidr", network.pod_cidr), ("serviceCidr", network.service_cidr)):
        taken = [one for one in found.cidrs if cidr.overlaps(IPv4Network(one)) and one != str(network.vpc_cidr)]
        if taken:
            yield say("range-overlaps-vpc", f"network.{field}", taken=taken)
    for attribute, is_on in (("enableDnsSupport", found.dns_support), ("enableDnsHostnames", found.dns_hostnames)):
        if not is_on:
            option = "--" + re.sub(r"[A-Z]", lambda letter: f"-{letter[0].lower()}", attribute)
            yield say("vpc-dns-off", "network.vpcId", attribute=attribute, option=option)
    yield from _missing(say, network, found)
    yield from _control_plane(say, network, found)
    yield from _ways_out(say, settings, found)
    yield from early_call_warning(settings.proxy, settings.trusted_certificates, settings.region, found.endpoints)
    yield from _others(say, network, settings.name, found)
    yield from group_checks(say, network.node_security_group_ids, found, network.vpc_id)
    nodes, free = settings.system_nodes.desired_size, sum(one.free for one in found.node_subnets(network))
    if found.node_subnets(network) and free <= nodes and not found.has_cluster:
        yield say("system-subnets-full", _key(network, ()), free=free, nodes=nodes)


def group_checks(say: Judge, groups: Sequence[str], found: FoundNetwork, vpc_id: str | None) -> Iterator[Finding]:
    """Find security groups of nodes that are not in a VPC."""
    for index, group in enumerate(groups):
        vpc = found.groups.get(group)
        if vpc != vpc_id:
            code = "security-group-missing" if vpc is None else "security-group-of-other-vpc"
            yield say(code, ("network", "nodeSecurityGroupIds", index), vpc=vpc)


def subnets_of_other_vpcs(say: Judge, found: FoundNetwork, vpc_id: str | None) -> Iterator[Finding]:
    """Find subnets of other VPCs that have the tags: Karpenter looks in the whole region."""
    if elsewhere := sorted(one for one in found.selected if found.subnets[one].vpc_id != vpc_id):
        yield say("subnet-tags-in-other-vpc", "network.subnetTags", elsewhere=elsewhere)


def _missing(say: Judge, network: NetworkSettings, found: FoundNetwork) -> Iterator[Finding]:
    for field, ids in (("subnetIds", network.subnet_ids), ("controlPlaneSubnetIds", network.control_plane_subnet_ids)):
        for index, one in enumerate(ids):
            vpc = found.subnets[one].vpc_id if one in found.subnets else None
            if vpc != network.vpc_id:
                where = "is not in this account and region" if vpc is None else f"is in another VPC, {vpc}"
                yield say("subnets-of-one-vpc", ("network", field, index), where=where)
    if network.subnet_tags:
        if not found.node_subnets(network):
            yield say("subnet-tags-without-subnet", "network.subnetTags")
        yield from subnets_of_other_vpcs(say, found, network.vpc_id)


def _control_plane(say: Judge, network: NetworkSettings, found: FoundNetwork) -> Iterator[Finding]:
    subnets, key = found.control_plane_subnets(network), _key(network, network.control_plane_subnet_ids)
    for one in subnets:
        if one.zone_id in ZONES_WITHOUT_EKS or not _ZONE.fullmatch(one.zone):
            yield say("control-plane-zone-without-eks", key, subnet=one.id, zone=one.zone)
    zones = sorted({one.zone for one in subnets})
    if len(zones) == 1:
        yield say("control-plane-in-one-zone", key, zone=zones[0])
    words = {"least": LEAST_ADDRESSES, "recommended": RECOMMENDED_ADDRESSES}
    for one in subnets if not found.has_cluster else ():
        if one.free < RECOMMENDED_ADDRESSES:
            code = "control-plane-subnet-full" if one.free < LEAST_ADDRESSES else "control-plane-subnet-small"
            yield say(code, key, subnet=one.id, free=one.free, **words)


def _ways_out(say: Judge, settings: EksSettings, found: FoundNetwork) -> Iterator[Finding]:
    network = settings.network
    key = _key(network, ())
    needed = needed_endpoints(settings.karpenter, settings.addons)
    missing = [service for service in needed if service not in found.endpoints]
    unreached = unreached_registries(settings.addons, settings.images, settings.proxy)
    for subnet in found.node_subnets(network):
        words = {"subnet": subnet.id, "without_way_out": subnet.without_way_out, "missing": missing}
        match subnet.way_out:
            case "private":
                continue
            case "public":
                yield say("vpc-subnet-public", key, **words)
            case _ if not found.endpoints:
                yield say("vpc-subnet-without-endpoints", key, **words)
            case _ if missing:
                commands = "; ".join(_endpoint_command(network, subnet, one) for one in missing)
                yield say("vpc-endpoints-missing", key, commands=commands, **words)
            case _ if unreached:
                yield say("images-out-of-reach", key, unreached=unreached, **words)


def _endpoint_command(network: NetworkSettings, subnet: FoundSubnet, service: str) -> str:
    names = " or ".join(endpoint_services(service, subnet.zone[:-1]))
    command = f"aws ec2 create-vpc-endpoint --vpc-id {network.vpc_id} --service-name {names}"
    if service in GATEWAYS:
        return f"{command} --vpc-endpoint-type Gateway --route-table-ids <those of its subnets>"
    return (
        f"{command} --vpc-endpoint-type Interface --private-dns-enabled --subnet-ids <one a zone> "
        "--security-group-ids <one that admits the nodes on 443>"
    )


def _others(say: Judge, network: NetworkSettings, cluster: str, found: FoundNetwork) -> Iterator[Finding]:
    """What says that a subnet is another cluster's."""
    of_nodes = {one.id: one for one in found.node_subnets(network)}
    for subnet in {**of_nodes, **{one.id: one for one in found.control_plane_subnets(network)}}.values():
        key = _key(network, () if subnet.id in of_nodes else network.control_plane_subnet_ids)
        owners = [
            known["name"] for tag, kind in subnet.tags.items() if kind == "owned" and (known := _OWNED.fullmatch(tag))
        ]
        for owner in sorted(name for name in owners if name != cluster):
            yield say("subnet-of-other-cluster", key, subnet=subnet.id, owner=owner)
        holder = subnet.tags.get(DISCOVERY_TAG, cluster)
        if network.tag_subnets and subnet.id in of_nodes and holder != cluster:
            yield say("discovery-tag-of-other", "network.tagSubnets", holder=holder, subnet=subnet.id)


def _key(network: NetworkSettings, control_plane: Sequence[str]) -> str:
    """The key by which the settings say which subnets are meant."""
    own = "subnetTags" if network.subnet_tags else "subnetIds"
    return f"network.{'controlPlaneSubnetIds' if control_plane else own}"
