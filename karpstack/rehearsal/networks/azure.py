"""A virtual network, as `az resource show` would tell of it."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Any, Final

from karpstack.rehearsal.networks.network import Network, parts

#: By which way nodes leave it: AKS's outboundType, and the way in words.
WAYS_OUT: Final = {
    "nat": ("userAssignedNATGateway", "a NAT gateway"),
    "firewall": ("userDefinedRouting", "a route table to a firewall"),
    "load-balancer": ("loadBalancer", "AKS's load balancer"),
}
_DELEGATION: Final = "Microsoft.ContainerService/managedClusters"


def make(subscription: str, region: str, network: IPv4Network, way_out: str) -> Network:
    """A virtual network with a subnet for system nodes, one for other nodes, and one for the API server.

    Args:
        subscription: Its ID.
        region: Where it is.
        network: Its range.
        way_out: One of `WAYS_OUT`.

    Raises:
        ValueError: The range is too small.
    """
    outbound, words = WAYS_OUT[way_out]
    group = f"/subscriptions/{subscription}/resourceGroups/network/providers"

    def resource(kind: str, name: str, properties: dict[str, Any], **more: Any) -> dict[str, Any]:
        type_ = f"Microsoft.Network/{kind}"
        return {
            "id": f"{group}/{type_}/{name}",
            "name": name,
            "type": type_,
            "location": region,
            **more,
            "properties": {"provisioningState": "Succeeded", **properties},
        }

    blocks = parts(network)
    address = resource("publicIPAddresses", "out", {"publicIPAllocationMethod": "Static"}, sku={"name": "Standard"})
    gateway = resource("natGateways", "out", {"publicIpAddresses": [{"id": address["id"]}]}, sku={"name": "Standard"})
    # The firewall is in a hub, which is not described: nothing is routed in a rehearsal.
    to_firewall = {
        "name": "default",
        "properties": {
            "addressPrefix": "0.0.0.0/0",
            "nextHopType": "VirtualAppliance",
            "nextHopIpAddress": str(blocks[-2][4]),
        },
    }
    table = resource("routeTables", "to-firewall", {"routes": [to_firewall]})
    ways: dict[str, list[dict[str, Any]]] = {"nat": [address, gateway], "firewall": [table], "load-balancer": []}
    by_way = {"nat": {"natGateway": {"id": gateway["id"]}}, "firewall": {"routeTable": {"id": table["id"]}}}
    nodes = by_way.get(way_out, {})
    delegation = {"name": "aks", "properties": {"serviceName": _DELEGATION}}
    subnets = {
        "system": {"addressPrefix": str(blocks[0]), **nodes},
        "workloads": {"addressPrefix": str(blocks[1]), **nodes},
        "api-server": {"addressPrefix": str(next(blocks[-1].subnets(new_prefix=28))), "delegations": [delegation]},
    }
    spoke = resource(
        "virtualNetworks",
        "spoke",
        {
            "addressSpace": {"addressPrefixes": [str(network)]},
            "subnets": [{"name": name, "properties": properties} for name, properties in subnets.items()],
        },
    )
    settings = {
        "vnetCidr": str(network),
        "subnetId": f"{spoke['id']}/subnets/system",
        "outboundType": outbound,
    }
    cluster = {"apiServerSubnetId": f"{spoke['id']}/subnets/api-server"}
    words = f"a virtual network with subnets for nodes, which {words} leads out of, and one for the API server"
    return Network([*ways[way_out], spoke], settings, ("subnetCidr",), cluster, words)
