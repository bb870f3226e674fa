"""What the checks before `up` find in the simulated subscription, as preflight_azure.yaml lists it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.preflight.azure import quotas
from karpstack.preflight.azure.subject import CLUSTER
from karpstack.preflight.azure.subject import GROUP as GROUP_TYPE
from karpstack.preflight.finding import Finding, NotAskedError, run
from karpstack.rehearsal.azure.arm.identifiers import ResourceId
from karpstack.rehearsal.azure.arm.rows import latest
from tests.unit.preflight.preflight_azure_world import GROUP, NODES, deny, lock, looked_at, made
from tests.unit.rehearsal.azure_world import GROUP as OTHER_GROUP
from tests.unit.rehearsal.azure_world import NETWORK, REGION, SCOPE, Body, World
from tests.unit.rehearsal.recordings import resolved

TABLE = yaml.safe_load(Path(__file__).with_name("preflight_azure.yaml").read_text())
#: What the rows name as `<...>`.
NAMED = {
    "subscription": SCOPE,
    "group": GROUP,
    "nodes": NODES,
    "other group": OTHER_GROUP,
    "registry": f"{OTHER_GROUP}/providers/Microsoft.ContainerRegistry/registries/platform",
    "vault": f"{OTHER_GROUP}/providers/Microsoft.KeyVault/vaults/team-secrets",
    "logs": f"{OTHER_GROUP}/providers/Microsoft.OperationalInsights/workspaces/logs",
    "metrics": f"{OTHER_GROUP}/providers/Microsoft.Monitor/accounts/metrics",
}
_PEERING = {"name": "hub", "properties": {"remoteAddressSpace": {"addressPrefixes": ["10.244.128.0/17"]}}}
_SQL = {"name": "sql", "properties": {"serviceName": "Microsoft.Sql/managedInstances"}}


def _subnet(world: World, prefix: int = 24, network: Body | None = None, **properties: Any) -> str:
    subnet = str(world.network("net", ("nodes", f"10.1.0.0/{prefix}"))["properties"]["subnets"][0]["id"])
    if network:
        space = {"addressSpace": {"addressPrefixes": ["10.1.0.0/16"]}}
        body = {"location": REGION, "properties": {**space, **network}}
        world.arm.put(subnet.rpartition("/subnets/")[0], NETWORK, body)
    if properties:
        world.arm.put(subnet, NETWORK, {"properties": {"addressPrefix": f"10.1.0.0/{prefix}", **properties}})
    return subnet


_SUBNETS: dict[str, Callable[[World], str]] = {
    "subnet": _subnet,
    "network": lambda world: _subnet(world).rpartition("/subnets/")[0],
    "no subnet": lambda world: f"{_subnet(world)}x",
    "no network": lambda world: _subnet(world).replace("/net/", "/gone/"),
    "/29": lambda world: _subnet(world, 29),
    "/28": lambda world: _subnet(world, 28),
    "SQL's subnet": lambda world: _subnet(world, delegations=[_SQL]),
    "peered subnet": lambda world: _subnet(world, network={"virtualNetworkPeerings": [_PEERING]}),
}


def _pool(sizes: list[str], kinds: tuple[str, ...] = ("on-demand",), **changes: Any) -> Body:
    requirements = [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": sizes},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": list(kinds)},
    ]
    return {"nodePools": {"small": {"template": {"spec": {"requirements": requirements}}, **changes}}}


def _make(world: World, row: Body) -> None:
    """Make of the subscription what the row says."""
    azure = world.azure
    azure.quotas.update(row.get("quotas", {}))
    azure.network_limits.update(row.get("network_limits", {}))
    azure.unregistered.update(row.get("unregistered", ()))
    azure.features.update(row.get("features", ()))
    azure.restricted.update({size: tuple(map(str, zones)) for size, zones in row.get("restricted", {}).items()})
    properties = {"tenantId": azure.tenant_id, "enableRbacAuthorization": True, **row.get("properties", {})}
    for one in row.get("has", ()):
        if one == "cluster":
            world.cluster()
        elif one == "network":
            world.network()
        else:
            world.arm.put(one, latest(ResourceId.parse(one).type), {"location": REGION, "properties": properties})
    if "lock" in row:
        lock(world, *row["lock"])
    if "deny" in row:
        deny(world, *row["deny"], scope=row.get("deny_at", SCOPE), excluded=row.get("excluded", ""))


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row['check']}-{row.get('finds', 'nothing')}")
def test_a_check_finds_what_it_should(world: World, row: Body) -> None:
    row = resolved(row, lambda name: NAMED[name] if name in NAMED else _SUBNETS[name](world))
    _make(world, row)
    changes = {path.replace(".", "__"): value for path, value in row.get("changes", {}).items()}
    changes |= _pool(**row["pool"]) if "pool" in row else {}
    module, name = row["check"].split(".")
    up = made((GROUP_TYPE, GROUP.replace("resourceGroups", "resourcegroups")), (CLUSTER, f"{GROUP}/providers/{_AKS}"))
    seen = looked_at(world, row.get("stack", "aks-self-hosted"), state=up if row.get("up") else None, **changes)
    said = list(getattr(importlib.import_module(f"karpstack.preflight.azure.{module}"), name)(seen))
    expected = row.get("finds", {})
    assert [finding.code for finding in said] == [code.split()[0] for code in expected]
    assert all(text in finding.what for finding, text in zip(said, expected.values(), strict=True))
    if said:
        assert row.get("consequence", "") in said[0].consequence
        assert row.get("fix", "") in said[0].fix


def _answered(seen: Any, change: Callable[[list[Body]], list[Body]]) -> Any:
    """The same, to whom Azure lists other usages."""
    own = seen.azure.all

    def told(action: str, path: str, version: str, **query: str) -> list[Body]:
        found = own(action, path, version, **query)
        return change(found) if path.endswith("/usages") else found

    seen.azure.all = told
    return seen


def _capitals(usages: list[Body]) -> list[Body]:
    return [{**one, "name": {"value": one["name"]["value"].upper()}} for one in usages]


def test_a_familys_name_may_have_other_capitals(world: World) -> None:
    """Azure does not write each one alike in its two lists."""
    world.azure.quotas.update({"standardDSv5Family": 6})
    seen = _answered(looked_at(world, "aks-self-hosted"), _capitals)
    assert [one.code for one in quotas.system_nodes(seen)] == ["azure-quota-exceeded"]
    seen = _answered(looked_at(world, "aks-self-hosted", **_pool(["Standard_D2s_v5"], limits={"cpu": 100})), _capitals)
    assert [one.code for one in quotas.node_pools(seen)] == ["node-pool-limits-over-azure-quota"]


@pytest.mark.parametrize("check", [quotas.system_nodes, quotas.network])
def test_a_quota_that_is_not_listed_is_not_known(world: World, check: Callable[[Any], Iterable[Finding]]) -> None:
    """Without it, an empty list would be taken for enough."""
    with pytest.raises(NotAskedError, match="it lists no quota"):
        list(check(_answered(looked_at(world, "aks-self-hosted"), lambda _: [])))


@pytest.mark.parametrize("name", ["cores", "standardDSv5Family"])
def test_a_quota_that_is_listed_counts_without_the_other(world: World, name: str) -> None:
    world.azure.quotas.update({name: 1})
    seen = _answered(looked_at(world, "aks-self-hosted"), lambda all_: [one for one in all_ if _name(one) == name])
    (checked,) = run({"quotas": quotas.system_nodes}, seen)
    assert [one.code for one in checked.findings] == ["azure-quota-exceeded", "check-not-answered"]


def _name(usage: Body) -> str:
    return str(usage["name"]["value"])


_AKS = "Microsoft.ContainerService/managedClusters/karpstack-aks"
