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

from ..documents.endpoints import GATEWAYS
from ..documents.partitions import endpoint_services
from ..documents.subnets import ZONES_WITHOUT_EKS
from ..naming import DISCOVERY_TAG
from ..problems import Problem, doubts, key_of, shown
from .egress_checks import opened_before_it_is_trusted
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


def check(settings: EksSettings, found: FoundNetwork) -> list[Problem]:
    """Refuse a network in which the cluster cannot work.

    Args:
        settings: With a `network.vpc_id`.
        found: What the account says of that.

    Returns:
        What may be in the way: warnings.

    Raises:
        SettingsError: Something is.
    """
    return doubts(problems(settings, found))


def problems(settings: EksSettings, found: FoundNetwork) -> Iterator[Problem]:
    """What is, or may be, in the way; the arguments are those of `check`."""
    network = settings.network
    if not found.cidrs:
        yield Problem(
            key_of("network", "vpcId"),
            shown(network.vpc_id),
            "is not in this account and region: the cluster would be refused after its roles and keys were made",
            "name a VPC that `aws ec2 describe-vpcs` lists, or remove the key, and the stack makes one",
        )
        return
    yield from _ranges(network, found)
    yield from _dns(network, found)
    yield from _missing(network, found)
    yield from _zones(network, found)
    yield from _addresses(network, settings.system_nodes.desired_size, found)
    yield from _ways_out(settings, found)
    yield from opened_before_it_is_trusted(
        settings.proxy, settings.trusted_certificates, settings.region, found.endpoints
    )
    yield from _others(network, settings.name, found)
    yield from _groups(network, found)


def _ranges(network: NetworkSettings, found: FoundNetwork) -> Iterator[Problem]:
    ranges = ", ".join(found.cidrs)
    if str(network.vpc_cidr) not in found.cidrs:
        yield Problem(
            key_of("network", "vpcCidr"),
            shown(network.vpc_cidr),
            f"is no range of {network.vpc_id}, which has {ranges}: what pods and services must keep off would be "
            "judged by the wrong one",
            f"write {found.cidrs[0]}",
        )
    for field, cidr in (("podCidr", network.pod_cidr), ("serviceCidr", network.service_cidr)):
        taken = [one for one in found.cidrs if cidr.overlaps(IPv4Network(one)) and one != str(network.vpc_cidr)]
        if taken:
            yield Problem(
                key_of("network", field),
                shown(cidr),
                f"overlaps {', '.join(taken)}, a range of {network.vpc_id}: traffic for one would be sent to the "
                "other, and neither can be changed once the cluster exists",
                f"choose a range outside {ranges}",
            )


def _dns(network: NetworkSettings, found: FoundNetwork) -> Iterator[Problem]:
    for attribute, on in (("enableDnsSupport", found.dns_support), ("enableDnsHostnames", found.dns_hostnames)):
        if not on:
            option = "--" + re.sub(r"[A-Z]", lambda letter: f"-{letter[0].lower()}", attribute)
            yield Problem(
                key_of("network", "vpcId"),
                shown(network.vpc_id),
                f"has {attribute} off: the private endpoint is a name that nodes could not resolve, so none would join",
                f"have its owner run: aws ec2 modify-vpc-attribute --vpc-id {network.vpc_id} {option}",
            )


def _missing(network: NetworkSettings, found: FoundNetwork) -> Iterator[Problem]:
    for field, ids in (("subnetIds", network.subnet_ids), ("controlPlaneSubnetIds", network.control_plane_subnet_ids)):
        for index, one in enumerate(ids):
            subnet = found.subnets.get(one)
            if subnet is None or subnet.vpc_id != network.vpc_id:
                where = (
                    "is not in this account and region" if subnet is None else f"lies in another VPC, {subnet.vpc_id}"
                )
                yield Problem(
                    key_of("network", field, index),
                    shown(one),
                    f"{where}: EKS takes subnets of one VPC, {network.vpc_id}, and would refuse the cluster after its "
                    "roles and keys were made",
                    f"name subnets that `aws ec2 describe-subnets --filters Name=vpc-id,Values={network.vpc_id}` lists",
                )
    if not network.subnet_tags:
        return
    if not found.node_subnets(network):
        yield Problem(
            key_of("network", "subnetTags"),
            shown(network.subnet_tags),
            f"are carried by no subnet of {network.vpc_id}: there is none where a node could live",
            "write tags that its subnets have, or name the subnets in karpstack:network.subnetIds",
        )
    elsewhere = sorted(one for one in found.selected if found.subnets[one].vpc_id != network.vpc_id)
    if elsewhere:
        yield Problem(
            key_of("network", "subnetTags"),
            shown(network.subnet_tags),
            f"are carried by {', '.join(elsewhere)} too, of another VPC: Karpenter looks for tags in the whole region, "
            "would try to launch nodes there, and EC2 refuses them",
            "add a tag that only this VPC's subnets have, or name the subnets in karpstack:network.subnetIds",
        )


def _zones(network: NetworkSettings, found: FoundNetwork) -> Iterator[Problem]:
    subnets = found.control_plane_subnets(network)
    key, value = _where(network, network.control_plane_subnet_ids)
    without = {one.id: one.zone for one in subnets if one.zone_id in ZONES_WITHOUT_EKS or not _ZONE.fullmatch(one.zone)}
    for subnet, zone in without.items():
        yield Problem(
            key,
            value,
            f"has {subnet} in {zone}, where EKS places no control plane: it would refuse the cluster after its roles "
            "and keys were made",
            "name subnets of other zones for the control plane in karpstack:network.controlPlaneSubnetIds",
        )
    zones = sorted({one.zone for one in subnets})
    if subnets and len(zones) < 2:
        yield Problem(
            key,
            value,
            f"is in one zone, {zones[0]}, and EKS wants a control plane's subnets in two at least: it would refuse the "
            "cluster after its roles and keys were made",
            "name a subnet of another zone as well; nodes may stay in one zone if karpstack:network."
            "controlPlaneSubnetIds names subnets of two",
        )


def _addresses(network: NetworkSettings, nodes: int, found: FoundNetwork) -> Iterator[Problem]:
    if found.has_cluster:
        return
    key, value = _where(network, network.control_plane_subnet_ids)
    for subnet in found.control_plane_subnets(network):
        if subnet.free < RECOMMENDED_ADDRESSES:
            short = subnet.free < LEAST_ADDRESSES
            yield Problem(
                key,
                value,
                f"has {subnet.id} with {subnet.free} free addresses, and EKS "
                + (
                    f"demands {LEAST_ADDRESSES} for its interfaces: it would refuse the cluster, or its next version"
                    if short
                    else f"recommends {RECOMMENDED_ADDRESSES}: with nodes beside them, its next version may be refused"
                ),
                f"name subnets with {RECOMMENDED_ADDRESSES} free addresses and more, for the control plane alone in "
                "karpstack:network.controlPlaneSubnetIds",
                warning=not short,
            )
    subnets = found.node_subnets(network)
    free = sum(one.free for one in subnets)
    if subnets and free <= nodes:
        key, value = _where(network, [])
        yield Problem(
            key,
            value,
            f"have {free} free addresses in all, and the system nodes alone take {nodes}: Karpenter could launch no "
            "node",
            "name further subnets, or larger ones",
        )


def _ways_out(settings: EksSettings, found: FoundNetwork) -> Iterator[Problem]:
    network = settings.network
    key, value = _where(network, [])
    needed = needed_endpoints(settings.karpenter, settings.addons)
    missing = [service for service in needed if service not in found.endpoints]
    unreached = unreached_registries(settings.addons, settings.images, settings.proxy)
    for subnet in found.node_subnets(network):
        match subnet.way_out:
            case "private":
                continue
            case "public":
                yield Problem(
                    key,
                    value,
                    f"has {subnet.id}, a public subnet (its default route leads to an internet gateway): a node there "
                    "has no way out without a public address, and with one anybody can try it",
                    "name private subnets, whose default route leads to a NAT or transit gateway",
                )
            case _ if not found.endpoints:
                yield Problem(
                    key,
                    value,
                    f"has {subnet.without_way_out}: nodes there reach neither EC2 nor a registry, so none "
                    "would join, and `pulumi up` fails at the node group, a quarter of an hour later",
                    "name subnets with a route to a NAT or transit gateway, or have one added, or these endpoints: "
                    + ", ".join(missing),
                )
            case _ if missing:
                yield Problem(
                    key,
                    value,
                    f"has {subnet.without_way_out}, in a VPC without an endpoint of {', '.join(missing)}: nothing "
                    "there reaches these services, so nodes do not join, or Karpenter launches none",
                    "have its owner run: " + "; ".join(_endpoint_command(network, subnet, one) for one in missing),
                )
            case _ if unreached:
                yield Problem(
                    key,
                    value,
                    f"has {subnet.without_way_out}: nodes there reach only services with an endpoint in the VPC, and "
                    f"images of {', '.join(unreached)} only by a mirror or a proxy",
                    "name mirrors in karpstack:images.mirrors, or a proxy in karpstack:proxy.https, or subnets with a "
                    "route to a NAT or transit gateway",
                    warning=True,
                )


def _endpoint_command(network: NetworkSettings, subnet: FoundSubnet, service: str) -> str:
    names = " or ".join(endpoint_services(service, subnet.zone[:-1]))
    command = f"aws ec2 create-vpc-endpoint --vpc-id {network.vpc_id} --service-name {names}"
    if service in GATEWAYS:
        return f"{command} --vpc-endpoint-type Gateway --route-table-ids <those of its subnets>"
    return (
        f"{command} --vpc-endpoint-type Interface --private-dns-enabled --subnet-ids <one a zone> "
        "--security-group-ids <one that admits the nodes on 443>"
    )


def _others(network: NetworkSettings, cluster: str, found: FoundNetwork) -> Iterator[Problem]:
    """What says that a subnet is another cluster's."""
    used = {one.id: one for one in (*found.node_subnets(network), *found.control_plane_subnets(network))}
    for subnet in used.values():
        by_nodes = subnet in found.node_subnets(network)
        key, value = _where(network, [] if by_nodes else network.control_plane_subnet_ids)
        owners = [(known["name"], kind) for tag, kind in subnet.tags.items() if (known := _OWNED.fullmatch(tag))]
        for owner in sorted(name for name, kind in owners if kind == "owned" and name != cluster):
            yield Problem(
                key,
                value,
                f"has {subnet.id}, which the cluster {owner} owns (tag kubernetes.io/cluster/{owner} = owned): what "
                "removes that cluster removes its subnets, and this cluster's nodes stand in the way or go with them",
                "name subnets that no cluster owns; if it is there to stay, have the tag's value changed to shared",
            )
        holder = subnet.tags.get(DISCOVERY_TAG, cluster)
        if network.tag_subnets and by_nodes and holder != cluster:
            yield Problem(
                key_of("network", "tagSubnets"),
                shown(network.tag_subnets),
                f"would overwrite the tag {DISCOVERY_TAG} = {holder} of {subnet.id}: the Karpenter of {holder} would "
                "no longer find its subnet, and a tag has one value",
                "remove it: without it Karpenter takes the subnets by their IDs, and nothing is tagged",
            )


def _groups(network: NetworkSettings, found: FoundNetwork) -> Iterator[Problem]:
    for index, group in enumerate(network.node_security_group_ids):
        vpc = found.groups.get(group)
        if vpc != network.vpc_id:
            yield Problem(
                key_of("network", "nodeSecurityGroupIds", index),
                shown(group),
                ("is not in this account and region" if vpc is None else f"belongs to another VPC, {vpc}")
                + ": EC2 would launch no node with it, neither a system node nor one of Karpenter's",
                f"name a security group of {network.vpc_id}",
            )


def _where(network: NetworkSettings, control_plane: Sequence[str]) -> tuple[str, str]:
    """Key and value by which the settings say which subnets are meant."""
    if control_plane:
        return key_of("network", "controlPlaneSubnetIds"), shown(control_plane)
    if network.subnet_tags:
        return key_of("network", "subnetTags"), shown(network.subnet_tags)
    return key_of("network", "subnetIds"), shown(network.subnet_ids)
