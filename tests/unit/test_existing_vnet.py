"""An existing network of Azure's, and ways out: what the program makes of them, and what it refuses before it does."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from ipaddress import IPv4Network
from typing import Any

import pulumi
import pytest

from components import aks as program
from components import settings
from components.aks import existing_network
from components.aks.update_guards import refuse_other_network
from components.problems import SettingsError
from components.settings.existing_vnet import FoundGateway, FoundNetwork, FoundSubnet, check, problems
from karpenter.findings import Finding
from tests.unit.example_stack import aks, example
from tests.unit.mock_engine import SUBSCRIPTION, Deployment, deploy

NAP, SELF_HOSTED = "aks-nap", "aks-self-hosted"
HUB = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/hub/providers/Microsoft.Network"
VNET = f"{HUB}/virtualNetworks/hub"
ONE, BATCH, API_SERVER = (f"{VNET}/subnets/{name}" for name in ("one", "batch", "api-server"))
ZONE = f"{HUB}/privateDnsZones/privatelink.westus2.azmk8s.io"
GATEWAY, TABLE = (f"{HUB}/{name}".lower() for name in ("natGateways/nat", "routeTables/routes"))
CLUSTER = "azure-native:containerservice:ManagedCluster"
ASSIGNMENT = "azure-native:authorization:RoleAssignment"
EXISTING: dict[str, Any] = {"network__subnetCidr": None, "network__subnetId": ONE}
CLUSTERS = {NAP: "principal-of-karpstack-aks-nap-cluster", SELF_HOSTED: "principal-of-karpstack-aks-cluster"}
CONTROLLERS = "principal-of-karpstack-aks-karpenter"
NETWORK_ROLE, ZONE_ROLE = "4d97b98b-1d4f-4787-a291-c67834d212e7", "b12aa53e-6015-4669-85d0-8515ebb3ae7f"

both = pytest.mark.parametrize("stack", [NAP, SELF_HOSTED])


@cache
def _deployed(stack: str, preview: bool, changes: tuple[tuple[str, Any], ...]) -> Deployment:
    return deploy(lambda: program.Environment("aks", aks(stack, **dict(changes))), preview)


def deployed(stack: str, *, preview: bool = False, **changes: Any) -> Deployment:
    return _deployed(stack, preview, tuple(changes.items()))


def cluster(deployment: Deployment) -> dict[str, Any]:
    (only,) = deployment.of(CLUSTER)
    return only.inputs


def given(deployment: Deployment, scope: str) -> set[tuple[str, str]]:
    """Who has which role on a scope."""
    return {
        (one.inputs["principalId"], one.inputs["roleDefinitionId"].rpartition("/")[2])
        for one in deployment.of(ASSIGNMENT)
        if one.inputs["scope"] == scope
    }


def of_network(deployment: Deployment) -> set[str]:
    return {each.type for each in deployment.resources.values() if each.type.startswith("azure-native:network:")}


@both
def test_a_network_of_its_own_gets_a_nat_gateway(stack: str) -> None:
    made = deployed(stack, network__outboundType="userAssignedNATGateway")
    gateway = made.one("aks-network-nat")
    assert gateway.inputs["publicIpAddresses"] == [{"id": "aks-network-nat-address-id"}]
    assert made.one("aks-network-nodes").inputs["natGateway"] == {"id": "aks-network-nat-id"}
    address = made.one("aks-network-nat-address").inputs
    assert (address["sku"], address["publicIPAllocationMethod"]) == ({"name": "Standard"}, "Static")
    assert cluster(made)["networkProfile"]["outboundType"] == "userAssignedNATGateway"
    # AKS looks for it when it makes the cluster.
    assert made.needs(made.of(CLUSTER)[0], gateway)


def test_without_a_gateway_none_is_made() -> None:
    assert of_network(deployed(NAP)) == {"azure-native:network:VirtualNetwork", "azure-native:network:Subnet"}
    assert "natGateway" not in deployed(NAP).one("aks-network-nodes").inputs


@pytest.mark.parametrize(("changes", "address"), [({}, "20.0.0.2/32"), (EXISTING, "20.0.0.1/32")])
def test_a_public_api_server_lets_nodes_in_by_the_gateways_address(changes: dict[str, Any], address: str) -> None:
    public: dict[str, Any] = {"cluster__publicAccessCidrs": ("1.1.1.0/24",)}
    made = deployed(NAP, network__outboundType="userAssignedNATGateway", **changes, **public)
    assert cluster(made)["apiServerAccessProfile"]["authorizedIPRanges"] == ["1.1.1.0/24", address]
    # Of its own balancer AKS knows the address itself; a gateway that a subnet has comes before it.
    balanced = cluster(deployed(NAP, **changes, **public))
    assert balanced["apiServerAccessProfile"]["authorizedIPRanges"] == ["1.1.1.0/24", *([address] if changes else [])]


@pytest.mark.parametrize("way", ["loadBalancer", "userAssignedNATGateway", "userDefinedRouting"])
def test_of_an_existing_network_nothing_is_made(way: str) -> None:
    made = deployed(NAP, **EXISTING, network__outboundType=way)
    assert not of_network(made)
    assert cluster(made)["networkProfile"]["outboundType"] == way


@both
def test_node_classes_have_subnets_of_their_own_and_identities_may_join_them(stack: str) -> None:
    name = "batch" if stack == NAP else "default"
    changes: dict[str, Any] = {f"nodeClasses__{name}__vnetSubnetID": BATCH}
    made = deployed(stack, **EXISTING, **changes)
    who = {CLUSTERS[stack], *([CONTROLLERS] if stack == SELF_HOSTED else [])}
    for subnet in (ONE, BATCH):
        assert given(made, subnet) == {(one, NETWORK_ROLE) for one in who}
    (node_class,) = (
        each
        for each in made.of("kubernetes:karpenter.azure.com/v1beta1:AKSNodeClass")
        if "vnetSubnetID" in each.inputs["spec"]
    )
    assert node_class.inputs["spec"]["vnetSubnetID"] == BATCH
    assert cluster(made)["agentPoolProfiles"][0]["vnetSubnetID"] == ONE


def test_a_subnet_of_several_node_classes_is_joined_once() -> None:
    named = {f"nodeClasses__{name}": {"vnetSubnetID": subnet} for name, subnet in (("a", BATCH), ("b", BATCH))}
    settings = aks(NAP, **EXISTING, **named, nodeClasses__c={"vnetSubnetID": ONE})
    assert settings.further_subnet_ids == [BATCH]
    assert settings.existing_subnet_ids == [ONE, BATCH]
    assert aks(NAP).existing_subnet_ids == []


def test_a_node_classes_subnet_is_taken_as_karpenter_compares_it() -> None:
    batch = BATCH.replace("resourceGroups", "resourcegroups")
    assert aks(NAP, **EXISTING, nodeClasses__batch__vnetSubnetID=batch).node_classes["batch"]["vnetSubnetID"] == batch
    with pytest.raises(SettingsError, match="tells upper from lower case"):
        aks(NAP, **EXISTING, nodeClasses__batch__vnetSubnetID=BATCH.replace("/hub/", "/Hub/"))


@both
def test_an_api_server_in_a_subnet(stack: str) -> None:
    made = deployed(stack, **EXISTING, cluster__apiServerSubnetId=API_SERVER)
    assert cluster(made)["apiServerAccessProfile"] == {
        "enablePrivateCluster": True,
        "enableVnetIntegration": True,
        "subnetId": API_SERVER,
    }
    assert given(made, API_SERVER) == {(CLUSTERS[stack], NETWORK_ROLE)}


@both
def test_a_private_dns_zone_of_ones_own(stack: str) -> None:
    made = deployed(stack, **EXISTING, cluster__privateDnsZone=ZONE)
    assert cluster(made)["apiServerAccessProfile"] == {"enablePrivateCluster": True, "privateDNSZone": ZONE}
    assert given(made, ZONE) == {(CLUSTERS[stack], ZONE_ROLE)}
    assert given(made, VNET) == {(CLUSTERS[stack], NETWORK_ROLE)}


@pytest.mark.parametrize(
    ("servers", "changes", "tied"),
    [
        (["10.0.0.4"], {}, True),
        ([], {}, False),
        (["10.0.0.4"], {"cluster__privateDnsZone": "none"}, False),
        (["10.0.0.4"], {"cluster__publicAccessCidrs": ["1.1.1.0/24"]}, False),
    ],
)
def test_a_zone_of_akss_own_beside_other_dns_servers(
    monkeypatch: pytest.MonkeyPatch, servers: list[str], changes: dict[str, Any], tied: bool
) -> None:
    """AKS ties it to the network in the name of the cluster's identity."""
    monkeypatch.setattr(existing_network, "find", lambda *_: replace(FOUND, dns_servers=servers))
    made = deploy(lambda: program.Environment("aks", aks(NAP, **EXISTING, **changes)))
    assert given(made, VNET) == ({(CLUSTERS[NAP], NETWORK_ROLE)} if tied else set())


def test_a_zone_of_another_subscription_is_given_by_that_ones_definition() -> None:
    other = ZONE.replace(SUBSCRIPTION, "22222222-2222-2222-2222-222222222222")
    made = deployed(NAP, **EXISTING, cluster__privateDnsZone=other)
    (assignment,) = (one for one in made.of(ASSIGNMENT) if one.inputs["scope"] == other)
    assert assignment.inputs["roleDefinitionId"].startswith("/subscriptions/22222222-2222-2222-2222-222222222222/")


def test_without_a_private_zone_machines_are_told_the_public_name() -> None:
    def endpoint(**changes: Any) -> str:
        values = deployed(SELF_HOSTED, **changes).one("aks-karpenter-charts-controller").inputs["values"]
        return str(values["settings"]["clusterEndpoint"])

    assert ".privatelink." in endpoint()
    assert ".hcp." in endpoint(cluster__privateDnsZone="none")


def test_all_of_it_is_known_at_the_first_preview() -> None:
    previewed = deployed(SELF_HOSTED, preview=True, **EXISTING)
    variables = previewed.one("aks-karpenter-charts-controller").inputs["values"]["controller"]["env"]
    assert {"name": "VNET_GUID", "value": "guid-of-hub"} in variables


# What is wrong with a network, found before anything is made.


def subnet(cidr: str = "10.224.1.0/24", **changes: Any) -> FoundSubnet:
    network = IPv4Network(cidr)
    found = FoundSubnet(prefixes=[network], delegations=[], taken=0, nat_gateway=GATEWAY, route_table=TABLE)
    return replace(found, **changes)


API_SERVERS = subnet("10.224.9.0/28", delegations=["Microsoft.ContainerService/managedClusters"])
FOUND = FoundNetwork(
    location="westus2",
    guid="guid",
    space=[IPv4Network("10.224.0.0/16")],
    peered={},
    subnets={"one": subnet(), "batch": subnet("10.224.2.0/24"), "api-server": API_SERVERS},
    gateways={GATEWAY: FoundGateway(addresses=["20.0.0.1"], prefixes=0)},
    routes={TABLE: {"0.0.0.0/0": "VirtualAppliance"}},
    has_zone=True,
    has_cluster=False,
)
UNROUTED = replace(FOUND, routes={})
NAT = {"network__outboundType": "userAssignedNATGateway"}
ROUTED = {"network__outboundType": "userDefinedRouting"}
IN_BATCH = {"nodeClasses__batch__vnetSubnetID": BATCH}
INTEGRATED = {"cluster__apiServerSubnetId": API_SERVER}
PUBLIC = {"cluster__publicAccessCidrs": ["1.1.1.0/24"]}


def said(found: FoundNetwork, **changes: Any) -> list[Finding]:
    return list(problems(aks(NAP, **EXISTING, **changes), found))


def test_what_fits_is_taken() -> None:
    for changes in ({}, NAT, ROUTED, IN_BATCH | NAT, INTEGRATED, {"cluster__privateDnsZone": ZONE}):
        assert not said(FOUND, **changes), changes
    assert not said(UNROUTED, **PUBLIC, **NAT)
    assert not said(FOUND, **PUBLIC, **INTEGRATED)


def test_machines_of_ones_own_karpenter_come_from_outside() -> None:
    warned: list[Finding] = []
    settings.load(example(SELF_HOSTED, **EXISTING, **PUBLIC, **INTEGRATED), warn=warned.append)
    assert [one.key for one in warned] == ["karpstack:cluster.apiServerSubnetId"]
    (problem,) = problems(aks(SELF_HOSTED, **EXISTING, **PUBLIC, **INTEGRATED), FOUND)
    assert problem.key == "karpstack:cluster.publicAccessCidrs"


def with_subnet(name: str, found: FoundSubnet) -> FoundNetwork:
    return replace(FOUND, subnets={**FOUND.subnets, name: found})


def without(name: str) -> FoundNetwork:
    return replace(FOUND, subnets={key: value for key, value in FOUND.subnets.items() if key != name})


#: What Azure says, what is changed, the key of what comes of it, a part of its consequence, and whether it warns.
FINDINGS: dict[str, tuple[FoundNetwork, dict[str, Any], str, str, bool]] = {
    "no network": (replace(FOUND, location=""), {}, "network.subnetId", "lies in no network that is there", False),
    "elsewhere": (replace(FOUND, location="eastus"), {}, "network.subnetId", "lies in eastus", False),
    "no subnet": (without("one"), {}, "network.subnetId", "is not there: there is no subnet one", False),
    "no subnet of a node class": (without("batch"), IN_BATCH, "nodeClasses.batch.vnetSubnetID", "is not there", False),
    "no subnet of an API server": (without("api-server"), INTEGRATED, "cluster.apiServerSubnetId", "not there", False),
    "a delegated one": (
        with_subnet("one", subnet(delegations=["Microsoft.Sql/managedInstances"])),
        {},
        "network.subnetId",
        "is delegated to Microsoft.Sql/managedInstances",
        False,
    ),
    "a full one": (with_subnet("one", subnet(taken=250)), {}, "network.subnetId", "InsufficientSubnetSize", False),
    "one that fits until it is upgraded": (
        with_subnet("one", subnet(taken=249)),
        {},
        "network.subnetId",
        "each upgrade of them fails",
        True,
    ),
    "a full one of a node class": (
        with_subnet("batch", subnet("10.224.2.0/24", taken=251)),
        IN_BATCH,
        "nodeClasses.batch.vnetSubnetID",
        "Karpenter could make no node there",
        False,
    ),
    "no gateway": (
        with_subnet("one", subnet(nat_gateway="")),
        NAT,
        "network.subnetId",
        "SubnetNotAssociatedWithNATGateway",
        False,
    ),
    "no gateway of a node class": (
        with_subnet("batch", subnet("10.224.2.0/24", nat_gateway="")),
        NAT | IN_BATCH,
        "nodeClasses.batch.vnetSubnetID",
        "machines there never join",
        False,
    ),
    "a gateway without an address": (
        replace(FOUND, gateways={GATEWAY: FoundGateway(addresses=[], prefixes=0)}),
        NAT,
        "network.subnetId",
        "NATGatewayNotAssociatedWithPublicIPOrIPPrefix",
        False,
    ),
    "no table": (
        with_subnet("one", subnet(route_table="")),
        ROUTED,
        "network.subnetId",
        "ExistingRouteTableNotAssociatedWithSubnet",
        False,
    ),
    "no default route": (
        replace(FOUND, routes={TABLE: {"10.0.0.0/8": "VirtualAppliance"}}),
        ROUTED,
        "network.subnetId",
        "RouteTableMissingDefaultRouteError",
        False,
    ),
    "a route to the internet": (
        replace(FOUND, routes={TABLE: {"0.0.0.0/0": "Internet"}}),
        ROUTED,
        "network.subnetId",
        "RouteTableInvalidNextHop",
        False,
    ),
    "a firewall's address": (FOUND, ROUTED | PUBLIC, "cluster.publicAccessCidrs", "behind the route", True),
    "a firewall's address before a load balancer's": (FOUND, PUBLIC, "cluster.publicAccessCidrs", "behind the", True),
    "prefixes of a gateway": (
        replace(UNROUTED, gateways={GATEWAY: FoundGateway(addresses=[], prefixes=1)}),
        NAT | PUBLIC,
        "cluster.publicAccessCidrs",
        "public IP prefixes",
        True,
    ),
    "an API server's that is not delegated": (
        with_subnet("api-server", replace(API_SERVERS, delegations=[])),
        INTEGRATED,
        "cluster.apiServerSubnetId",
        "is delegated to nobody",
        False,
    ),
    "an API server's that is too small": (
        with_subnet("api-server", replace(API_SERVERS, prefixes=[IPv4Network("10.224.9.0/29")])),
        INTEGRATED,
        "cluster.apiServerSubnetId",
        "is a /29",
        False,
    ),
    "an API server's that is full": (
        with_subnet("api-server", replace(API_SERVERS, taken=9)),
        INTEGRATED,
        "cluster.apiServerSubnetId",
        "has 2 free addresses",
        False,
    ),
    "an API server's in an encrypted network": (
        replace(FOUND, encrypted=True),
        INTEGRATED,
        "cluster.apiServerSubnetId",
        "Azure encrypts",
        True,
    ),
    "other DNS servers": (
        replace(FOUND, dns_servers=["10.0.0.4"]),
        {},
        "cluster.privateDnsZone",
        "the network asks 10.0.0.4",
        True,
    ),
    "no zone": (
        replace(FOUND, has_zone=False),
        {"cluster__privateDnsZone": ZONE},
        "cluster.privateDnsZone",
        "is not there",
        False,
    ),
    "pods among machines": (
        with_subnet("other", subnet("10.244.7.0/24")),
        {},
        "network.podCidr",
        "overlaps 10.244.7.0/24 of the network",
        False,
    ),
    "services among a peer's machines": (
        replace(FOUND, peered={"hub": [IPv4Network("10.0.0.0/8")]}),
        {"network__podCidr": "192.168.0.0/16"},
        "network.serviceCidr",
        "is peered (hub)",
        True,
    ),
    "another range": (replace(FOUND, space=[IPv4Network("10.224.0.0/15")]), {}, "network.vnetCidr", "none of", True),
}


@pytest.mark.parametrize("case", FINDINGS)
def test_what_does_not_fit_is_found(case: str) -> None:
    found, changes, key, consequence, warning = FINDINGS[case]
    (problem,) = said(found, **changes)
    assert (problem.key, problem.warning) == (f"karpstack:{key}", warning)
    assert consequence in problem.consequence
    assert problem.fix
    if warning:
        assert check(aks(NAP, **EXISTING, **changes), found) == [problem]
    else:
        with pytest.raises(SettingsError, match="nothing was created"):
            check(aks(NAP, **EXISTING, **changes), found)


def test_once_the_cluster_is_there_its_nodes_may_fill_a_subnet() -> None:
    full = replace(with_subnet("one", subnet(taken=251)), has_cluster=True)
    assert not said(full)


def test_the_program_stops_before_it_makes_anything() -> None:
    missing = aks(NAP, network__subnetCidr=None, network__subnetId=f"{ONE}s")
    made: list[Deployment] = []
    with pytest.raises(SettingsError, match="there is no subnet ones"):
        made.append(deploy(lambda: program.Environment("aks", missing)))
    assert not made


# What does not change of a cluster's network.


def update(section: str, old: dict[str, Any], new: dict[str, Any]) -> pulumi.ResourceHookArgs:
    inputs = {"old_inputs": {section: old}, "new_inputs": {section: new}}
    return pulumi.ResourceHookArgs("urn", "id", "cluster", CLUSTER, **inputs)


PRIVATE = {"enablePrivateCluster": True}
OPEN = {"enablePrivateCluster": False, "authorizedIPRanges": ["1.1.1.0/24"]}
IN_SUBNET = {"enableVnetIntegration": True, "subnetId": API_SERVER}


@pytest.mark.parametrize(
    ("section", "old", "new", "text"),
    [
        (
            "apiServerAccessProfile",
            {},
            {"subnetId": API_SERVER},
            f"karpstack:cluster.apiServerSubnetId (not set) -> {API_SERVER}",
        ),
        ("apiServerAccessProfile", {"subnetId": API_SERVER}, {}, "-> (not set)"),
        ("apiServerAccessProfile", {}, {"privateDNSZone": ZONE}, f"karpstack:cluster.privateDnsZone system -> {ZONE}"),
        ("apiServerAccessProfile", {"privateDNSZone": "none"}, {}, "none -> system"),
        ("apiServerAccessProfile", PRIVATE, OPEN, "publicAccessCidrs [] (a private cluster) -> a list (a public"),
        ("apiServerAccessProfile", OPEN, PRIVATE, "publicAccessCidrs a list (a public endpoint) -> [] (a private"),
        ("apiServerAccessProfile", OPEN, PRIVATE | IN_SUBNET, "publicAccessCidrs a list"),
    ],
)
def test_what_is_fixed_is_refused_in_an_update(
    section: str, old: dict[str, Any], new: dict[str, Any], text: str
) -> None:
    with pytest.raises(pulumi.RunError) as caught:
        refuse_other_network(update(section, old, new))
    assert text in str(caught.value)
    assert "make another stack" in str(caught.value)


def test_a_zone_may_be_given_up() -> None:
    refuse_other_network(update("apiServerAccessProfile", {"privateDNSZone": ZONE}, {"privateDNSZone": "none"}))
    refuse_other_network(update("apiServerAccessProfile", {}, {"authorizedIPRanges": ["1.1.1.0/24"]}))


def test_with_vnet_integration_a_private_cluster_may_become_public() -> None:
    refuse_other_network(update("apiServerAccessProfile", PRIVATE | IN_SUBNET, OPEN | IN_SUBNET))
