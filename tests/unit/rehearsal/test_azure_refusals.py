"""What the simulated Azure refuses of clusters, machines and other PUTs, as azure_refusals.yaml lists it."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.rehearsal.azure.arm.errors import ArmError
from karpstack.rehearsal.azure.arm.identifiers import ResourceId
from karpstack.rehearsal.azure.arm.rows import ROWS, latest
from karpstack.rehearsal.azure.identity import roles
from tests.unit.made_certificates import certificate
from tests.unit.rehearsal.azure_world import (
    AKS,
    ARM_IMAGE,
    CLUSTER,
    GROUP,
    IMAGE,
    NETWORK,
    POOL,
    REGION,
    SCOPE,
    ZONES,
    Body,
    World,
)
from tests.unit.rehearsal.recordings import resolved

TABLE = yaml.safe_load(Path(__file__).with_name("azure_refusals.yaml").read_text())
PROVIDER = f"{GROUP}/providers/Microsoft.Network"
VNET = f"{PROVIDER}/virtualNetworks/net"
NOWHERE = f"{PROVIDER}/virtualNetworks/net/subnets/nowhere"
SYSTEM = {**POOL, **ZONES}
_ROLES = f"{SCOPE}/providers/Microsoft.Authorization/roleDefinitions"


@cache
def _certificates(count: int) -> tuple[str, ...]:
    return tuple(certificate(f"Root {number}") for number in range(count))


def _encoded(*pem: str) -> str:
    return base64.b64encode("".join(pem).encode()).decode()


class Place:
    """A subscription, and what the rows name in it as `<...>`."""

    def __init__(self, row: Body) -> None:
        self.world = World()
        self._zone = row.get("in", {}).get("zone", "privatelink.westus2.azmk8s.io")
        self.subnet = ""
        if "in" in row:
            self._network(row["in"])

    def __call__(self, name: str) -> Any:
        known = {
            "nowhere": NOWHERE,
            "network": VNET,
            "api server": f"{VNET}/subnets/api-server",
            "other api server": f"{VNET}/subnets/other",
            "api server elsewhere": f"{PROVIDER}/virtualNetworks/elsewhere/subnets/api-server",
            "zone": f"{PROVIDER}/privateDnsZones/{self._zone}",
            "logs": f"{GROUP}/providers/Microsoft.OperationalInsights/workspaces/logs",
            "reader": f"{_ROLES}/{roles.READER.id}",
            "custom role": f"{_ROLES}/00000000-0000-0000-0000-000000000002",
            "Arm image": ARM_IMAGE,
            "unpublished image": IMAGE.rpartition("/")[0] + "/",
        }
        made: dict[str, Callable[[], Any]] = {
            "principal": lambda: self.world.identity()["properties"]["principalId"],
            "metrics": lambda: self.put(f"{GROUP}/providers/Microsoft.Monitor/accounts/metrics"),
            "plain": lambda: _certificates(1)[0],
            "2 certificates": lambda: _encoded(*_certificates(2)),
            "21 certificates": lambda: _encoded(*_certificates(1) * 21),
            "11 roots": lambda: [_encoded(one) for one in _certificates(11)],
        }
        return known[name] if name in known else made[name]()

    def put(self, identifier: str, **properties: Any) -> str:
        row = ROWS[ResourceId.parse(identifier).type]
        body = {"location": row.location or REGION, "properties": properties}
        return str(self.world.arm.put(identifier, latest(row.type), body)["id"])

    def cluster(self, change: Body, pool: Body | None = None) -> Body:
        """The request for a cluster with changes, of its pool too; in a subnet of its own where there is one."""
        changes = {path.replace(".", "__"): value for path, value in resolved(change, self).items()}
        own = {**SYSTEM, **({"vnetSubnetID": self.subnet} if self.subnet else {}), **resolved(pool or {}, self)}
        identity = self.world.identity("cluster") if self.subnet else None
        return self.world.cluster_body(identity, **{"agentPoolProfiles": [own], **changes})

    def grant(self, *scopes: str) -> None:
        """Let the cluster's identity use the subnet and more."""
        principal = self.world.identity("cluster")["properties"]["principalId"]
        for scope in filter(None, (self.subnet, *scopes)):
            role = roles.PRIVATE_DNS_ZONE_CONTRIBUTOR if "privateDnsZones" in scope else roles.NETWORK_CONTRIBUTOR
            self.world.grant(scope, principal, role)

    def _network(self, wanted: Body) -> None:
        """A network with a subnet for nodes and one for API servers, with what a row wants."""
        self.world.network()
        if "servers" in wanted:
            network = self.world.arm.get(VNET, NETWORK)["properties"]
            self.put(VNET, **{**network, "dhcpOptions": {"dnsServers": wanted["servers"]}})
        nodes: Body = {"addressPrefix": "10.1.0.0/24", "delegations": wanted.get("delegations", [])}
        if "route" in wanted:
            table = self.put(f"{PROVIDER}/routeTables/out", routes=[{"name": "one", "properties": wanted["route"]}])
            nodes["routeTable"] = {"id": table}
        if "gateway" in wanted:
            addresses = [{"id": self.put(f"{PROVIDER}/publicIPAddresses/{name}")} for name in wanted["gateway"]]
            nodes["natGateway"] = {"id": self.put(f"{PROVIDER}/natGateways/out", publicIpAddresses=addresses)}
        self.subnet = self.put(f"{VNET}/subnets/nodes", **nodes)
        if "zone" in wanted:
            self.put(f"{PROVIDER}/privateDnsZones/{wanted['zone']}")
        if "api_server" in wanted:
            self.world.network("elsewhere")
            for name, prefix in (("net", wanted["api_server"]["addressPrefix"]), ("elsewhere", "10.1.1.0/28")):
                properties = {**wanted["api_server"], "addressPrefix": prefix}
                self.put(f"{PROVIDER}/virtualNetworks/{name}/subnets/api-server", **properties)
            self.put(f"{VNET}/subnets/other", **{**wanted["api_server"], "addressPrefix": "10.1.2.0/28"})


def _named(row: Body) -> str:
    changed = {**row.get("change", {}), **row.get("pool", {}), **row.get("beside", {})}
    return "-".join([row.get("put", ""), *changed, str(row.get("code", "taken")), str(row.get("text", ""))])


def _refused(row: Body, error: ArmError) -> None:
    assert error.code == row["code"]
    assert row.get("text", "") in error.message
    assert error.status == row.get("status", error.status)


@pytest.mark.parametrize("row", TABLE["clusters"], ids=_named)
def test_a_cluster_is_refused_or_taken(row: Body) -> None:
    place = Place(row)
    place.grant(*resolved(row.get("granted", []), place))
    if "before" in row:
        place.world.cluster(place.cluster(row["before"]))
    body = {**place.cluster(row.get("change", {}), row.get("pool")), **row.get("beside", {})}
    if "code" in row:
        with pytest.raises(ArmError) as caught:
            place.world.cluster(body)
        _refused(row, caught.value)
        return
    made = place.world.cluster(body)["properties"]
    if "private" in row:
        name = made["fqdn"].partition(".")[0] + rf"\.{row['private']}"
        assert re.fullmatch(name, made["privateFQDN"]) if row["private"] else "privateFQDN" not in made
    networking = row.get("change", {}).get("networkProfile.advancedNetworking")
    assert made["networkProfile"].get("advancedNetworking") == networking


@pytest.mark.parametrize("row", TABLE["auto"], ids=_named)
def test_node_auto_provisioning_is_refused(row: Body) -> None:
    place = Place(row)
    change = row.get("change", {})
    place.world.cluster(place.cluster(change, row.get("pool")))
    place.world.arm.delete(CLUSTER, AKS)
    body = place.cluster({**change, "nodeProvisioningProfile": {"mode": "Auto"}}, row.get("pool"))
    with pytest.raises(ArmError) as caught:
        place.world.cluster(body)
    assert (caught.value.code, caught.value.status) == ("OperationNotAllowed", 400)
    assert caught.value.message.startswith(".properties.nodeProvisioningProfile.mode cannot be Auto ")
    assert row["text"] in caught.value.message


@pytest.mark.parametrize("way", ["gateway", "VirtualAppliance", "VirtualNetworkGateway"])
@pytest.mark.parametrize("mode", ["Auto", "Manual"])
def test_ways_out_are_taken(way: str, mode: str) -> None:
    route = {"addressPrefix": "0.0.0.0/0", "nextHopType": way}
    place = Place({"in": {"gateway": ["out"]} if way == "gateway" else {"route": route}})
    outbound = "userAssignedNATGateway" if way == "gateway" else "userDefinedRouting"
    place.grant()
    place.world.cluster(
        place.cluster({"networkProfile.outboundType": outbound, "nodeProvisioningProfile": {"mode": mode}})
    )
    group = f"{SCOPE}/resourceGroups/MC_demo_demo_westus2"
    # AKS's balancer is its way out; another comes with the first Service that wants one.
    assert not place.world.arm.list(f"{group}/providers/Microsoft.Network/loadBalancers", NETWORK)


@pytest.mark.parametrize("row", TABLE["machines"], ids=_named)
def test_a_machine_is_refused(row: Body) -> None:
    place = Place(row)
    world = place.world
    nic = world.interface(world.subnet())["id"]
    changes = resolved(row.get("change", {}), place)
    good = world.machine_body(nic, priority=changes.get("priority", "Regular"))
    body = {**world.machine_body(nic, row.get("size", "Standard_D2s_v5"), **changes), **row.get("beside", {})}
    world.azure.quotas.update(row.get("quotas", {}))
    with pytest.raises(ArmError) as caught:
        world.machine(body)
    _refused(row, caught.value)
    world.azure.quotas.clear()
    world.machine(good)


@pytest.mark.parametrize("row", TABLE["puts"], ids=_named)
def test_a_put_is_refused(row: Body) -> None:
    place = Place(row)
    place.world.network("own", ("nodes", "10.1.0.0/24"))
    place.world.identity("own")
    if row.get("of") == "cluster":
        place.world.cluster()
    scope = CLUSTER if "of" in row else f"{SCOPE}/resourceGroups/{row.get('group', 'demo')}"
    identifier = f"{scope}/providers/{row['put']}"
    version = row.get("version", ROWS[kind].versions[-1] if (kind := ResourceId.parse(identifier).type) in ROWS else "")
    if "subscription" in row:
        identifier = identifier.replace(SCOPE, f"/subscriptions/{row['subscription']}")
    space = {"addressSpace": {"addressPrefixes": ["10.1.0.0/16"]}, "addressPrefix": "10.1.0.0/24"}
    properties = resolved(row.get("properties", space if "virtualNetworks" in row["put"] else {}), place)
    with pytest.raises(ArmError) as caught:
        place.world.arm.put(identifier, version, {"location": row.get("location", REGION), "properties": properties})
    _refused(row, caught.value)
