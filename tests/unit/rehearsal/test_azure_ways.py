"""Ways out of a cluster's subnets and to its API server: what Azure has of them, and what it refuses in its words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rehearsal.azure.arm.errors import ArmError
from rehearsal.azure.identity import roles
from tests.unit.rehearsal.azure_world import GROUP, NETWORK, REGION, Body, World

PROVIDER = f"{GROUP}/providers/Microsoft.Network"
NODES, API_SERVER = (f"{PROVIDER}/virtualNetworks/net/subnets/{name}" for name in ("nodes", "api-server"))
GATEWAY, ADDRESS, ROUTES = (
    f"{PROVIDER}/{kind}" for kind in ("natGateways/out", "publicIPAddresses/out", "routeTables/out")
)
ZONE = f"{PROVIDER}/privateDnsZones/{{}}"
ZONES = "2024-06-01"
DELEGATION = {"name": "aks", "properties": {"serviceName": "Microsoft.ContainerService/managedClusters"}}


def route(hop: str, prefix: str = "0.0.0.0/0") -> Body:
    return {"name": "default", "properties": {"addressPrefix": prefix, "nextHopType": hop}}


def gateway(world: World, *, addressed: bool = True) -> Body:
    """A NAT gateway, with a public address or without."""
    if addressed:
        world.arm.put(ADDRESS, NETWORK, {"location": REGION})
    addresses = [{"id": ADDRESS}] if addressed else []
    return world.arm.put(GATEWAY, NETWORK, {"location": REGION, "properties": {"publicIpAddresses": addresses}})


def subnet(world: World, identifier: str = NODES, cidr: str = "10.1.0.0/24", **properties: Any) -> Body:
    return world.arm.put(identifier, NETWORK, {"properties": {"addressPrefix": cidr, **properties}})


def world_with(*routes: Body, gateways: bool | None = None) -> World:
    """A network with a subnet of nodes: with a route table that has these routes, or a NAT gateway."""
    world = World()
    world.network()
    ways: dict[str, Any] = {}
    if routes:
        world.arm.put(ROUTES, NETWORK, {"location": REGION, "properties": {"routes": list(routes)}})
        ways["routeTable"] = {"id": ROUTES}
    if gateways is not None:
        gateway(world, addressed=gateways)
        ways["natGateway"] = {"id": GATEWAY}
    subnet(world, **ways)
    return world


def cluster(world: World, *granted: tuple[str, roles.Role], **changes: Any) -> Body:
    """A cluster in the subnet, whose identity may join it, and what else it is granted."""
    identity = world.identity("cluster")
    for scope, role in ((NODES, roles.NETWORK_CONTRIBUTOR), *granted):
        world.grant(scope, identity["properties"]["principalId"], role)
    return world.cluster(world.cluster_body(identity, NODES, **changes))


def refused(world: World, *granted: tuple[str, roles.Role], **changes: Any) -> ArmError:
    with pytest.raises(ArmError) as caught:
        cluster(world, *granted, **changes)
    return caught.value


@pytest.mark.parametrize(
    ("make", "way", "code", "text"),
    [
        (world_with, "managedNATGateway", "InvalidParameter", "agent pool 'system' is using custom VNet, which is not"),
        (world_with, "userAssignedNATGateway", "SubnetNotAssociatedWithNATGateway", "must have a NAT gateway"),
        (
            lambda: world_with(gateways=False),
            "userAssignedNATGateway",
            "NATGatewayNotAssociatedWithPublicIPOrIPPrefix",
            "must have a public IP",
        ),
        (world_with, "userDefinedRouting", "ExistingRouteTableNotAssociatedWithSubnet", "update the route table"),
        (
            lambda: world_with(route("VirtualAppliance", "10.0.0.0/8")),
            "userDefinedRouting",
            "RouteTableMissingDefaultRouteError",
            "Default route 0.0.0.0/0 missing from route table",
        ),
        (
            lambda: world_with(route("Internet")),
            "userDefinedRouting",
            "RouteTableInvalidNextHop",
            "has a next hop of Internet but only next hops of VirtualAppliance or VirtualNetworkGateway",
        ),
        (world_with, "none", "InvalidNetworkIsolatedClusterConfiguration", "artifactSource must be 'Cache'"),
        (world_with, "block", "InvalidNetworkIsolatedClusterConfiguration", "artifactSource must be 'Cache'"),
    ],
)
def test_ways_out_are_refused(make: Callable[[], World], way: str, code: str, text: str) -> None:
    error = refused(make(), networkProfile__outboundType=way)
    assert (error.code, error.status) == (code, 400)
    assert text in error.message


@pytest.mark.parametrize(
    ("make", "way"),
    [
        (lambda: world_with(gateways=True), "userAssignedNATGateway"),
        (lambda: world_with(route("VirtualAppliance")), "userDefinedRouting"),
        (lambda: world_with(route("VirtualNetworkGateway")), "userDefinedRouting"),
    ],
)
@pytest.mark.parametrize("mode", ["Auto", "Manual"])
def test_ways_out_are_taken(make: Callable[[], World], way: str, mode: str) -> None:
    world = make()
    cluster(world, networkProfile__outboundType=way, nodeProvisioningProfile={"mode": mode})
    group = f"{GROUP.rpartition('/')[0]}/MC_demo_demo_westus2"
    # AKS's balancer is its way out; another comes with the first Service that wants one.
    assert not world.arm.list(f"{group}/providers/Microsoft.Network/loadBalancers", NETWORK)


@pytest.mark.parametrize("way", ["userAssignedNATGateway", "userDefinedRouting"])
def test_the_network_that_aks_makes_has_no_way_of_ones_own(way: str) -> None:
    world = World()
    with pytest.raises(ArmError, match=f"Outbound type is {way} but agent pool 'system'"):
        world.cluster(world.cluster_body(networkProfile__outboundType=way))


def test_nodes_are_in_no_delegated_subnet() -> None:
    world = World()
    world.network()
    subnet(world, delegations=[DELEGATION])
    error = refused(world)
    assert error.code == "SubnetIsDelegated"
    assert f"AgentPoolProfile.VnetSubnetID {NODES} cannot be used as it's a delegated subnet" in error.message


def test_what_a_subnet_names_must_be_there_and_stays() -> None:
    world = World()
    world.network()
    for name, identifier in (("natGateway", GATEWAY), ("routeTable", ROUTES)):
        with pytest.raises(ArmError, match="InvalidResourceReference"):
            subnet(world, NODES, "10.1.0.0/24", **{name: {"id": identifier}})
    with pytest.raises(ArmError, match="InvalidResourceReference"):
        world.arm.put(GATEWAY, NETWORK, {"location": REGION, "properties": {"publicIpAddresses": [{"id": ADDRESS}]}})
    world = world_with(route("VirtualAppliance"), gateways=True)
    assert world.arm.get(GATEWAY, NETWORK)["properties"]["subnets"] == [{"id": NODES}]
    assert world.arm.get(ROUTES, NETWORK)["properties"]["subnets"] == [{"id": NODES}]
    for identifier, code in (
        (GATEWAY, "InUseNatGatewayCannotBeDeleted"),
        (ADDRESS, "PublicIPAddressCannotBeDeleted"),
        (ROUTES, "InUseRouteTableCannotBeDeleted"),
    ):
        with pytest.raises(ArmError, match=code):
            world.arm.delete(identifier, NETWORK)
    subnet(world)
    for identifier in (GATEWAY, ADDRESS, ROUTES):
        world.arm.delete(identifier, NETWORK)


def test_each_public_address_is_another_and_stays_what_it_is() -> None:
    world = World()
    first = world.arm.put(ADDRESS, NETWORK, {"location": REGION})["properties"]["ipAddress"]
    second = world.arm.put(f"{ADDRESS}2", NETWORK, {"location": REGION})["properties"]["ipAddress"]
    assert first != second
    assert world.arm.put(ADDRESS, NETWORK, {"location": REGION, "tags": {"a": "b"}})["properties"]["ipAddress"] == first


def integrated(subnet_id: str = API_SERVER, **changes: Any) -> dict[str, Any]:
    return {"apiServerAccessProfile": {"enableVnetIntegration": True, "subnetId": subnet_id, **changes}}


def api_server_world(cidr: str = "10.1.1.0/28", **properties: Any) -> World:
    world = world_with()
    subnet(world, API_SERVER, cidr, **({"delegations": [DELEGATION]} | properties))
    return world


JOINED = (API_SERVER, roles.NETWORK_CONTRIBUTOR)


def test_an_api_server_in_a_subnet() -> None:
    properties = cluster(api_server_world(), JOINED, **integrated(enablePrivateCluster=True))["properties"]
    assert ".private.westus2.azmk8s.io" in properties["privateFQDN"]
    assert "privateFQDN" not in cluster(api_server_world(), JOINED, **integrated())["properties"]


@pytest.mark.parametrize(
    ("make", "changes", "code", "text"),
    [
        (api_server_world, integrated(""), "InvalidParameter", "should not be empty when using custom vnet"),
        (api_server_world, integrated(f"{API_SERVER}x"), "SubnetNotFound", "does not exist"),
        (lambda: api_server_world(delegations=[]), integrated(), "InvalidParameter", "must be delegated to"),
        (lambda: api_server_world("10.1.1.0/29"), integrated(), "InsufficientSubnetSize", "minimum supported size"),
        (api_server_world, integrated(enableVnetIntegration=False), "InvalidParameter", "should be empty when"),
    ],
)
def test_api_servers_in_subnets_are_refused(
    make: Callable[[], World], changes: dict[str, Any], code: str, text: str
) -> None:
    error = refused(make(), JOINED, **changes)
    assert error.code == code
    assert text in error.message


def test_an_api_server_in_another_network() -> None:
    world = world_with()
    world.network("other")
    elsewhere = API_SERVER.replace("/net/", "/other/")
    subnet(world, elsewhere, "10.1.1.0/28", delegations=[DELEGATION])
    assert "must be in the same virtual network" in refused(world, **integrated(elsewhere)).message


def test_the_identity_must_be_able_to_join_the_api_servers_subnet() -> None:
    error = refused(api_server_world(), **integrated())
    assert (error.code, error.status) == ("LinkedAuthorizationFailed", 403)
    assert f"subnets/join/action' on the linked scope(s) '{API_SERVER}'" in error.message


def test_an_api_server_stays_where_it_is() -> None:
    world = api_server_world()
    cluster(world, JOINED, **integrated())
    body = world.cluster_body(world.identity("cluster"), NODES)
    with pytest.raises(ArmError, match="cannot be disabled once it is enabled"):
        world.cluster(body)
    subnet(world, f"{API_SERVER}2", "10.1.2.0/28", delegations=[DELEGATION])
    with pytest.raises(ArmError, match=r"apiServerAccessProfile\.subnetId' is not allowed"):
        world.cluster(world.cluster_body(world.identity("cluster"), NODES, **integrated(f"{API_SERVER}2")))


@pytest.mark.parametrize(("was", "is_now"), [(True, False), (False, True)])
def test_a_private_cluster_stays_private_and_a_public_one_public(was: bool, is_now: bool) -> None:
    world = world_with()
    cluster(world, apiServerAccessProfile={"enablePrivateCluster": was})
    with pytest.raises(ArmError, match="enablePrivateCluster' is not allowed without API Server VNet Integration"):
        world.cluster(
            world.cluster_body(
                world.identity("cluster"), NODES, apiServerAccessProfile={"enablePrivateCluster": is_now}
            )
        )


def test_with_vnet_integration_it_changes() -> None:
    world = api_server_world()
    cluster(world, JOINED, **integrated())
    body = world.cluster_body(world.identity("cluster"), NODES, **integrated())
    body["properties"]["apiServerAccessProfile"]["enablePrivateCluster"] = True
    assert world.cluster(body)["properties"]["apiServerAccessProfile"]["enablePrivateCluster"]


def private(zone: str) -> dict[str, Any]:
    return {"apiServerAccessProfile": {"enablePrivateCluster": True, "privateDNSZone": zone}}


def zone(world: World, name: str = "privatelink.westus2.azmk8s.io") -> str:
    return str(world.arm.put(ZONE.format(name), ZONES, {"location": "global"})["id"])


def rights(identifier: str) -> tuple[tuple[str, roles.Role], ...]:
    return (identifier, roles.PRIVATE_DNS_ZONE_CONTRIBUTOR), (NODES.rpartition("/sub")[0], roles.NETWORK_CONTRIBUTOR)


@pytest.mark.parametrize("name", ["privatelink.westus2.azmk8s.io", "team.privatelink.westus2.azmk8s.io"])
def test_a_zone_of_ones_own(name: str) -> None:
    world = world_with()
    identifier = zone(world, name)
    properties = cluster(world, *rights(identifier), **private(identifier))["properties"]
    assert properties["privateFQDN"] == f"{properties['fqdn'].partition('.')[0]}.{name}"


def test_a_zone_is_the_clusters_own_or_none() -> None:
    assert "privatelink" in cluster(world_with(), **private("system"))["properties"]["privateFQDN"]
    assert "privateFQDN" not in cluster(world_with(), **private("none"))["properties"]


VNET = NODES.rpartition("/sub")[0]


def world_with_dns_servers() -> World:
    world = world_with()
    network = world.arm.get(VNET, NETWORK)
    network["properties"]["dhcpOptions"] = {"dnsServers": ["10.1.0.4"]}
    world.arm.put(VNET, NETWORK, {key: network[key] for key in ("location", "properties")})
    return world


def test_a_zone_of_akss_own_is_tied_to_a_network_with_other_dns_servers_by_the_clusters_identity() -> None:
    error = refused(world_with_dns_servers(), **private("system"))
    assert (error.code, error.status) == ("LinkedAuthorizationFailed", 403)
    assert f"virtualNetworks/join/action' on the linked scope(s) '{VNET}'" in error.message
    assert cluster(world_with_dns_servers(), (VNET, roles.NETWORK_CONTRIBUTOR), **private("system"))


@pytest.mark.parametrize("changes", [private("none"), {}])
def test_no_zone_of_akss_own_no_link(changes: dict[str, Any]) -> None:
    assert cluster(world_with_dns_servers(), **changes)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("privatelink.eastus.azmk8s.io", "its name must be privatelink.westus2.azmk8s.io"),
        ("private.westus2.azmk8s.io", "its name must be privatelink.westus2.azmk8s.io"),
        (f"{'a' * 33}.privatelink.westus2.azmk8s.io", "its name must be"),
    ],
)
def test_zones_are_refused_by_their_names(name: str, text: str) -> None:
    world = world_with()
    identifier = zone(world, name)
    assert text in refused(world, *rights(identifier), **private(identifier)).message


def test_a_zone_must_be_there_and_of_a_private_cluster() -> None:
    missing = ZONE.format("privatelink.westus2.azmk8s.io")
    assert "was not found" in refused(world_with(), **private(missing)).message
    changes = {"apiServerAccessProfile": {"privateDNSZone": "none"}}
    assert "only supported on private clusters" in refused(world_with(), **changes).message


def test_the_identity_needs_two_rights_for_a_zone() -> None:
    world = world_with()
    identifier = zone(world)
    of_zone, of_network = rights(identifier)
    error = refused(world, of_network, **private(identifier))
    assert error.code == "CustomPrivateDNSZoneMissingPermissionError"
    assert "must be given permission to read and write to custom private dns zone" in error.message
    world = world_with()
    zone(world)
    error = refused(world, of_zone, **private(identifier))
    assert error.code == "LinkedAuthorizationFailed"
    assert "Microsoft.Network/virtualNetworks/join/action" in error.message


def test_a_zone_changes_to_none_alone() -> None:
    world = world_with()
    identifier = zone(world)
    cluster(world, *rights(identifier), **private(identifier))
    identity = world.identity("cluster")
    with pytest.raises(ArmError, match=r"privateDNSZone' from '.*' to 'system'"):
        world.cluster(world.cluster_body(identity, NODES, **private("system")))
    changed = world.cluster(world.cluster_body(identity, NODES, **private("none")))
    assert "privateFQDN" not in changed["properties"]
