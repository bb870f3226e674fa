"""What is wrong with an existing network for an AKS cluster: the settings, held against what Azure says of it.

Pure: whoever asks Azure (the program by invokes, the look before `up` by calls) brings a `FoundNetwork`. What AKS
demands of ways out is in its documentation of outbound types; it looks at the subnet of its own pools alone, and
Karpenter at none, so that machines in a subnet without a way out would be made, and never join.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, ip_network
from typing import Any, Final

from karpstack.karpenter.findings import Finding

from ..problems import Judge
from .aks import AZURE_ADDRESSES, AksSettings, network_of

#: To whom the API server's subnet must be delegated, how large it is at least, and what a cluster takes of it.
API_SERVER_DELEGATION: Final = "Microsoft.ContainerService/managedClusters"
_API_SERVER_PREFIX: Final = 28
_API_SERVER_ADDRESSES: Final = 9
_ANYWHERE: Final = "0.0.0.0/0"
#: A setting, by its steps.
Key = tuple[str, ...]
_NODES: Final = ("network", "subnetId")
_API_SERVER: Final = ("cluster", "apiServerSubnetId")
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


def named_subnets(settings: AksSettings) -> dict[Key, str]:
    """Resource IDs of all subnets that the settings name, by the keys of those; of nodes first."""
    named: dict[Key, Any] = {_NODES: settings.network.subnet_id}
    named |= {
        ("nodeClasses", name, "vnetSubnetID"): spec.get("vnetSubnetID") for name, spec in settings.node_classes.items()
    }
    named[_API_SERVER] = settings.cluster.api_server_subnet_id
    return {key: subnet for key, subnet in named.items() if subnet}


def problems(settings: AksSettings, found: FoundNetwork) -> Iterator[Finding]:
    """Find what is, or may be, in the way.

    Args:
        settings: With a `network.subnet_id`.
        found: What Azure says of its network.
    """
    say = Judge(settings, region=settings.region, location=found.location)
    named = named_subnets(settings)
    own_key, own = next(iter(named.items()))
    if not found.location:
        yield say("vnet-missing", own_key, network=network_of(own))
        return
    if found.location != settings.region:
        yield say("vnet-in-other-location", own_key)
    for key, subnet_id in named.items():
        subnet = found.subnet(subnet_id)
        if subnet is None:
            words = {"subnet": subnet_id.rpartition("/")[2], "network": network_of(subnet_id)}
            yield say("vnet-subnet-missing", key, subnets=sorted(found.subnets) or "another network", **words)
        elif key == _API_SERVER:
            yield from _api_server(say, subnet, settings, found)
        else:
            yield from _of_nodes(say, key, subnet, settings, found)
    yield from _public_addresses(say, settings, found)
    yield from _ranges(say, settings, found)
    if _own_zone_beside(settings, found.dns_servers):
        yield say("dns-servers-of-network", "cluster.privateDnsZone", dns_servers=found.dns_servers)
    if not found.has_zone:
        yield say("private-dns-zone-missing", "cluster.privateDnsZone")


def _of_nodes(
    say: Judge, key: Key, subnet: FoundSubnet, settings: AksSettings, found: FoundNetwork
) -> Iterator[Finding]:
    if subnet.delegations:
        yield say("subnet-delegated", key, delegations=subnet.delegations)
    nodes = settings.system_nodes.count if key == _NODES else 0
    if not found.has_cluster and subnet.free <= nodes:
        few = "subnet-too-small-for-system-nodes" if subnet.free < nodes else "subnet-too-small-for-upgrades"
        yield say(few if nodes else "subnet-without-address", key, free=subnet.free, nodes=nodes)
    match settings.network.outbound_type:
        case "userAssignedNATGateway":
            gateway = found.gateways.get(subnet.nat_gateway)
            if gateway is None or not (gateway.addresses or gateway.prefixes):
                yield say("nat-gateway-missing" if gateway is None else "nat-gateway-without-address", key)
        case "userDefinedRouting":
            routes = found.routes.get(subnet.route_table)
            hop = None if routes is None else routes.get(_ANYWHERE, "")
            if hop not in _NEXT_HOPS:
                code = {None: "route-table-not-attached", "": "default-route-missing"}.get(
                    hop, "default-route-elsewhere"
                )
                yield say(code, key, anywhere=_ANYWHERE, hop=hop)


def _api_server(say: Judge, subnet: FoundSubnet, settings: AksSettings, found: FoundNetwork) -> Iterator[Finding]:
    if found.encrypted and not found.has_cluster:
        yield say("api-server-subnet-encrypted", _API_SERVER, vm_size=settings.system_nodes.vm_size)
    if not any(one.lower() == API_SERVER_DELEGATION.lower() for one in subnet.delegations):
        yield say("api-server-subnet-not-delegated", _API_SERVER, service=subnet.delegations or "no service")
    longest = min((cidr.prefixlen for cidr in subnet.prefixes), default=32)
    if longest > _API_SERVER_PREFIX:
        yield say("api-server-subnet-too-small", _API_SERVER, longest=longest, least=_API_SERVER_PREFIX)
    elif not found.has_cluster and subnet.free < _API_SERVER_ADDRESSES:
        yield say("api-server-subnet-full", _API_SERVER, free=subnet.free, needed=_API_SERVER_ADDRESSES)


def _public_addresses(say: Judge, settings: AksSettings, found: FoundNetwork) -> Iterator[Finding]:
    """Ways out whose addresses AKS does not know, where the API server is public and lets in who is listed."""
    cluster, key = settings.cluster, "cluster.publicAccessCidrs"
    is_reached_inside = cluster.api_server_subnet_id is not None and settings.mode == "nap"
    if not cluster.public_access_cidrs or is_reached_inside:
        return
    subnets = [found.subnet(one) for key, one in named_subnets(settings).items() if key != _API_SERVER]
    # Azure goes by the route before the NAT gateway, and by that before the load balancer, whatever AKS is told.
    routed = [subnet for subnet in subnets if subnet and found.is_routed(subnet)]
    if routed:
        yield say("firewall-address-not-admitted", key)
    gateways = [found.gateways.get(subnet.nat_gateway) for subnet in subnets if subnet and subnet not in routed]
    if any(one.prefixes for one in gateways if one):
        yield say("gateway-prefixes-not-admitted", key)


def links_zone(settings: AksSettings, dns_servers: Sequence[str]) -> bool:
    """Return whether AKS ties a private DNS zone to the network in the name of the cluster's identity.

    So it does with a zone that it does not make, and with its own in a network that has other DNS servers than Azure's.
    """
    return settings.cluster.own_dns_zone is not None or _own_zone_beside(settings, dns_servers)


def _own_zone_beside(settings: AksSettings, dns_servers: Sequence[str]) -> bool:
    cluster = settings.cluster
    return not cluster.public_access_cidrs and cluster.private_dns_zone == "system" and bool(dns_servers)


def _ranges(say: Judge, settings: AksSettings, found: FoundNetwork) -> Iterator[Finding]:
    """Ranges of the cluster that are addresses of machines too, in the network or in one that it is peered with."""
    network = settings.network
    taken = [*found.space, *(cidr for subnet in found.subnets.values() for cidr in subnet.prefixes)]
    for field, own in (("podCidr", network.pod_cidr), ("serviceCidr", network.service_cidr)):
        if overlapping := next((cidr for cidr in taken if own.overlaps(cidr)), None):
            yield say("range-overlaps-vnet", f"network.{field}", overlapping=overlapping, field=field)
        for peering, cidrs in found.peered.items():
            for cidr in (one for one in cidrs if own.overlaps(one)):
                yield say("range-overlaps-peered-vnet", f"network.{field}", cidr=cidr, peering=peering, field=field)
    if network.vnet_cidr not in found.space:
        yield say("vnet-cidr-other", "network.vnetCidr", ranges=found.space or "none")
