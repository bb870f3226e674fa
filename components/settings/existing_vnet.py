"""What is wrong with an existing network for an AKS cluster: the settings, held against what Azure says of it.

Pure: whoever asks Azure (the program by invokes, the look before `up` by calls) brings a `FoundNetwork`. What AKS
demands of ways out is in its documentation of outbound types; it looks at the subnet of its own pools alone, and
Karpenter at none, so that machines in a subnet without a way out would be made, and never join.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, ip_network
from typing import Final

from ..problems import Problem, doubts, key_of, shown
from .aks import AZURE_ADDRESSES, AksSettings, network_of

#: To whom the API server's subnet must be delegated, how large it is at least, and what a cluster takes of it.
API_SERVER_DELEGATION: Final = "Microsoft.ContainerService/managedClusters"
_API_SERVER_PREFIX: Final = 28
_API_SERVER_ADDRESSES: Final = 9
_ANYWHERE: Final = "0.0.0.0/0"
#: Where AKS lets a default route lead.
_NEXT_HOPS: Final = ("VirtualAppliance", "VirtualNetworkGateway")


@dataclass(frozen=True, kw_only=True)
class FoundSubnet:
    """A subnet as Azure has it.

    Attributes:
        prefixes: Its ranges.
        delegations: Services that it is delegated to.
        taken: Addresses that something has.
        nat_gateway: Resource ID of its NAT gateway, in lower case; empty without one.
        route_table: The same of its route table.
    """

    prefixes: Sequence[IPv4Network]
    delegations: Sequence[str]
    taken: int
    nat_gateway: str
    route_table: str

    @property
    def free(self) -> int:
        """Addresses that nothing has."""
        return max(sum(cidr.num_addresses - AZURE_ADDRESSES for cidr in self.prefixes) - self.taken, 0)


@dataclass(frozen=True, kw_only=True)
class FoundGateway:
    """A NAT gateway: its public addresses, and how many ranges of them it has beside."""

    addresses: Sequence[str]
    prefixes: int


@dataclass(frozen=True, kw_only=True)
class FoundNetwork:
    """What Azure says of a network that is there.

    Attributes:
        location: Its location; empty where there is no such network.
        dns_servers: Addresses of the DNS servers that its machines ask; none where they ask Azure's.
        encrypted: Whether Azure encrypts what goes between its machines.
        guid: Azure's own name of it.
        space: Its ranges.
        peered: Ranges of the networks that it is peered with, by the peering's name.
        subnets: All of its subnets, by their names in lower case.
        gateways: The NAT gateways of the nodes' subnets by their IDs in lower case.
        routes: The same of their route tables: prefix -> type of the next hop.
        has_zone: Whether the private DNS zone that the settings name is there; true where nobody could ask.
        has_cluster: Whether the cluster is there already, whose nodes hold addresses.
    """

    location: str
    guid: str
    space: Sequence[IPv4Network]
    peered: Mapping[str, Sequence[IPv4Network]]
    subnets: Mapping[str, FoundSubnet]
    gateways: Mapping[str, FoundGateway]
    routes: Mapping[str, Mapping[str, str]]
    has_zone: bool
    has_cluster: bool
    dns_servers: Sequence[str] = ()
    encrypted: bool = False

    def subnet(self, subnet_id: str) -> FoundSubnet | None:
        """The subnet of an ID that lies in this network."""
        return self.subnets.get(subnet_id.rpartition("/")[2].lower())

    def is_routed(self, subnet: FoundSubnet) -> bool:
        """Whether a subnet's default route leads to an appliance or a gateway."""
        return self.routes.get(subnet.route_table, {}).get(_ANYWHERE) in _NEXT_HOPS

    def egress(self, subnet_ids: Sequence[str]) -> list[str]:
        """Public addresses of the NAT gateways of some subnets, each once."""
        gateways = [self.gateways.get(found.nat_gateway) for one in subnet_ids if (found := self.subnet(one))]
        return list(dict.fromkeys(address for gateway in gateways if gateway for address in gateway.addresses))


def cidrs(texts: Iterable[str | None] | None) -> list[IPv4Network]:
    """The IPv4 ranges among those that Azure tells."""
    parsed = [ip_network(text, strict=False) for text in texts or () if text]
    return [cidr for cidr in parsed if isinstance(cidr, IPv4Network)]


def named_subnets(settings: AksSettings) -> dict[str, str]:
    """Resource IDs of all subnets that the settings name, by the keys of those; of nodes first."""
    named = {key_of("network", "subnetId"): settings.network.subnet_id}
    named |= {
        key_of("nodeClasses", name, "vnetSubnetID"): spec.get("vnetSubnetID")
        for name, spec in settings.node_classes.items()
    }
    named[_API_SERVER] = settings.cluster.api_server_subnet_id
    return {key: subnet for key, subnet in named.items() if subnet}


def check(settings: AksSettings, found: FoundNetwork) -> list[Problem]:
    """Refuse a network in which the cluster cannot work.

    Args:
        settings: With a `network.subnet_id`.
        found: What Azure says of its network.

    Returns:
        What may be in the way: warnings.

    Raises:
        SettingsError: Something is.
    """
    return doubts(problems(settings, found))


def problems(settings: AksSettings, found: FoundNetwork) -> Iterator[Problem]:
    """What is, or may be, in the way; the arguments are those of `check`."""
    named = named_subnets(settings)
    own_key, own = next(iter(named.items()))
    if not found.location:
        yield Problem(
            own_key,
            shown(own),
            f"lies in no network that is there: there is no network {network_of(own)}, and `pulumi up` would stop at "
            "the roles of the cluster's identity",
            "name a subnet of this subscription by its resource ID",
        )
        return
    if found.location != settings.region:
        yield Problem(
            own_key,
            shown(own),
            f"lies in {found.location}, and the stack in {settings.region}: AKS refuses the cluster, for nodes and "
            "their network must be in one location",
            "choose a subnet there, or another azure-native:location",
        )
    for key, subnet_id in named.items():
        subnet = found.subnet(subnet_id)
        if subnet is None:
            yield Problem(
                key,
                shown(subnet_id),
                f"is not there: there is no subnet {subnet_id.rpartition('/')[2]} in {network_of(subnet_id)}, and "
                "`pulumi up` would stop at the roles of the cluster's identity",
                f"name one of {', '.join(sorted(found.subnets)) or 'another network'}",
            )
        elif key == _API_SERVER:
            yield from _api_server(subnet_id, subnet, settings, found)
        else:
            yield from _of_nodes(key, subnet_id, subnet, settings, found)
    yield from _public_addresses(settings, found)
    yield from _ranges(settings, found)
    yield from _names(settings, found)
    if not found.has_zone:
        yield Problem(
            key_of("cluster", "privateDnsZone"),
            shown(settings.cluster.private_dns_zone),
            "is not there: `pulumi up` would stop at the roles of the cluster's identity",
            "name a private DNS zone that is there, or write system",
        )


_API_SERVER: Final = key_of("cluster", "apiServerSubnetId")


def _of_nodes(
    key: str, subnet_id: str, subnet: FoundSubnet, settings: AksSettings, found: FoundNetwork
) -> Iterator[Problem]:
    if subnet.delegations:
        yield Problem(
            key,
            shown(subnet_id),
            f"is delegated to {', '.join(subnet.delegations)}: AKS refuses nodes there (SubnetIsDelegated), for only "
            "the service to which it is delegated may use it",
            "choose a subnet without delegations",
        )
    if not found.has_cluster:
        yield from _room(key, subnet_id, subnet, settings)
    match settings.network.outbound_type:
        case "userAssignedNATGateway":
            yield from _gateway(key, subnet_id, subnet, found)
        case "userDefinedRouting":
            yield from _route(key, subnet_id, subnet, found)


def _room(key: str, subnet_id: str, subnet: FoundSubnet, settings: AksSettings) -> Iterator[Problem]:
    nodes = settings.system_nodes.count if subnet_id == settings.network.subnet_id else 0
    if subnet.free > nodes:
        return
    short = not nodes or subnet.free < nodes
    yield Problem(
        key,
        shown(subnet_id),
        f"has {subnet.free} free addresses"
        + (
            f", and the {nodes} system nodes take one each, and one while they are upgraded: "
            + ("AKS refuses the cluster (InsufficientSubnetSize)" if short else "each upgrade of them fails")
            if nodes
            else ": Karpenter could make no node there"
        ),
        "choose a larger subnet: each node of Karpenter's takes an address of it too",
        warning=not short,
    )


def _gateway(key: str, subnet_id: str, subnet: FoundSubnet, found: FoundNetwork) -> Iterator[Problem]:
    gateway = found.gateways.get(subnet.nat_gateway)
    if gateway is not None and (gateway.addresses or gateway.prefixes):
        return
    what, code = (
        (
            "has no NAT gateway, and karpstack:network.outboundType says that nodes leave by it",
            "SubnetNotAssociatedWithNATGateway",
        )
        if gateway is None
        else (
            "has a NAT gateway without a public address, by which nothing leaves",
            "NATGatewayNotAssociatedWithPublicIPOrIPPrefix",
        )
    )
    yield Problem(
        key,
        shown(subnet_id),
        f"{what}: AKS refuses the cluster ({code}), or machines there never join",
        "have a NAT gateway with a public address attached to the subnet, or choose another outboundType",
    )


def _route(key: str, subnet_id: str, subnet: FoundSubnet, found: FoundNetwork) -> Iterator[Problem]:
    routes = found.routes.get(subnet.route_table)
    hop = None if routes is None else routes.get(_ANYWHERE, "")
    if hop in _NEXT_HOPS:
        return
    if hop is None:
        what, code = "has no route table", "ExistingRouteTableNotAssociatedWithSubnet"
    elif hop == "":
        what, code = f"has a route table without a route for {_ANYWHERE}", "RouteTableMissingDefaultRouteError"
    else:
        what, code = f"has a default route that leads to {hop}", "RouteTableInvalidNextHop"
    yield Problem(
        key,
        shown(subnet_id),
        f"{what}, and karpstack:network.outboundType says that nodes leave by it: AKS refuses the cluster ({code}), "
        "or machines there never join",
        f"have a route for {_ANYWHERE} to a virtual appliance (a firewall) or a virtual network gateway in the "
        "subnet's route table; one that a hub or a gateway propagates does not count",
    )


def _api_server(subnet_id: str, subnet: FoundSubnet, settings: AksSettings, found: FoundNetwork) -> Iterator[Problem]:
    if found.encrypted and not found.has_cluster:
        yield Problem(
            _API_SERVER,
            shown(subnet_id),
            "is in a network that Azure encrypts: AKS refuses the cluster where its VM sizes know that encryption, "
            f"which those of version 4 and later do, and systemNodes.vmSize is {settings.system_nodes.vm_size}",
            "remove it, or choose a network without encryption",
            warning=True,
        )
    if not any(one.lower() == API_SERVER_DELEGATION.lower() for one in subnet.delegations):
        yield Problem(
            _API_SERVER,
            shown(subnet_id),
            f"is delegated to {', '.join(subnet.delegations) or 'nobody'}, so that AKS could not put the API server "
            "there: it refuses the cluster",
            f"have the subnet delegated to {API_SERVER_DELEGATION}",
        )
    longest = min((cidr.prefixlen for cidr in subnet.prefixes), default=32)
    if longest > _API_SERVER_PREFIX:
        yield Problem(
            _API_SERVER,
            shown(subnet_id),
            f"is a /{longest}, and AKS demands a /{_API_SERVER_PREFIX} at least: it refuses the cluster",
            f"choose a subnet of a /{_API_SERVER_PREFIX} or larger",
        )
    elif not found.has_cluster and subnet.free < _API_SERVER_ADDRESSES:
        yield Problem(
            _API_SERVER,
            shown(subnet_id),
            f"has {subnet.free} free addresses, and a cluster takes {_API_SERVER_ADDRESSES}: API servers could not be "
            "added under load, or at all",
            "choose a larger subnet; several clusters may share one that has room",
        )


def _public_addresses(settings: AksSettings, found: FoundNetwork) -> Iterator[Problem]:
    """Ways out whose addresses AKS does not know, where the API server is public and lets in who is listed."""
    cluster = settings.cluster
    is_reached_inside = cluster.api_server_subnet_id is not None and settings.mode == "nap"
    if not cluster.public_access_cidrs or is_reached_inside:
        return
    key, value = key_of("cluster", "publicAccessCidrs"), shown([str(one) for one in cluster.public_access_cidrs])
    subnets = [found.subnet(one) for key, one in named_subnets(settings).items() if key != _API_SERVER]
    # Azure goes by the route before the NAT gateway, and by that before the load balancer, whatever AKS is told.
    routed = [subnet for subnet in subnets if subnet and found.is_routed(subnet)]
    if routed:
        yield Problem(
            key,
            value,
            "must hold the public address behind the route of the nodes' subnet, which nobody can ask for: nodes come "
            "to the API server by it, and without it none joins",
            "add the firewall's public address, with /32; or empty the list for a private cluster",
            warning=True,
        )
    gateways = [found.gateways.get(subnet.nat_gateway) for subnet in subnets if subnet and subnet not in routed]
    if any(one.prefixes for one in gateways if one):
        yield Problem(
            key,
            value,
            "must hold the public IP prefixes of the NAT gateway too: its single addresses are added, prefixes were "
            "not looked at, and nodes that leave by one that is missing do not join",
            "add them; or empty the list for a private cluster",
            warning=True,
        )


def links_zone(settings: AksSettings, dns_servers: Sequence[str]) -> bool:
    """Return whether AKS ties a private DNS zone to the network in the name of the cluster's identity.

    So it does with a zone that it does not make, and with its own in a network that has other DNS servers than Azure's.
    """
    return settings.cluster.own_dns_zone is not None or _own_zone_beside(settings, dns_servers)


def _own_zone_beside(settings: AksSettings, dns_servers: Sequence[str]) -> bool:
    cluster = settings.cluster
    return not cluster.public_access_cidrs and cluster.private_dns_zone == "system" and bool(dns_servers)


def _names(settings: AksSettings, found: FoundNetwork) -> Iterator[Problem]:
    """A zone of AKS's own in a network whose machines ask other DNS servers than Azure's."""
    cluster = settings.cluster
    if not _own_zone_beside(settings, found.dns_servers):
        return
    yield Problem(
        key_of("cluster", "privateDnsZone"),
        shown(cluster.private_dns_zone),
        f"is a zone of AKS's own, and the network asks {', '.join(found.dns_servers)} for names: unless these ask "
        "Azure (168.63.129.16), nodes and users there do not find the API server by its name, and no node joins",
        "name a zone of yours that these servers look into; or write none",
        warning=True,
    )


def _ranges(settings: AksSettings, found: FoundNetwork) -> Iterator[Problem]:
    """Ranges of the cluster that are addresses of machines too, in the network or in one that it is peered with."""
    network = settings.network
    taken = [*found.space, *(cidr for subnet in found.subnets.values() for cidr in subnet.prefixes)]
    for field, own in (("podCidr", network.pod_cidr), ("serviceCidr", network.service_cidr)):
        if overlapping := next((cidr for cidr in taken if own.overlaps(cidr)), None):
            yield Problem(
                key_of("network", field),
                shown(str(own)),
                f"overlaps {overlapping} of the network: AKS refuses the cluster, or pods reach each other's addresses "
                "where a machine is meant",
                f"choose another {field}; it cannot be changed later",
            )
        for peering, cidrs in found.peered.items():
            for cidr in (one for one in cidrs if own.overlaps(one)):
                yield Problem(
                    key_of("network", field),
                    shown(str(own)),
                    f"overlaps {cidr}, with which the network is peered ({peering}): pods do not reach the machines "
                    "there, for the addresses are the cluster's own",
                    f"choose another {field}; it cannot be changed later",
                    warning=True,
                )
    if network.vnet_cidr not in found.space:
        yield Problem(
            key_of("network", "vnetCidr"),
            shown(str(network.vnet_cidr)),
            f"is none of the network's ranges, which are {', '.join(map(str, found.space)) or 'none'}: other ranges "
            "were checked against the wrong one",
            "write what the network has",
            warning=True,
        )
