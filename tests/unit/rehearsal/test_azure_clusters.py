"""Managed clusters and agent pools: what ARM computes, what AKS makes, and what depends on rights and on the past."""

from __future__ import annotations

import re
from typing import Any

import pytest

from karpenter import clock
from rehearsal.azure.arm.errors import ArmError
from rehearsal.azure.arm.operations import Durations
from rehearsal.azure.clusters.provisioning import default_manifests
from rehearsal.azure.identity import roles
from tests.unit.rehearsal.azure_world import AKS, CLUSTER, GROUP, GROUPS, NETWORK, SCOPE, World, machine_id

NODE_GROUP = f"{SCOPE}/resourceGroups/MC_demo_demo_westus2"


def test_outputs_are_computed() -> None:
    cluster = World().cluster()
    properties = cluster["properties"]
    assert re.fullmatch(r"demo-[a-z0-9]{8}\.hcp\.westus2\.azmk8s\.io", properties["fqdn"])
    assert re.fullmatch(
        r"https://westus2\.oic\.prod-aks\.azure\.com/[-0-9a-f]{36}/[-0-9a-f]{36}/",
        properties["oidcIssuerProfile"]["issuerURL"],
    )
    assert properties["nodeResourceGroup"] == "MC_demo_demo_westus2"
    assert properties["currentKubernetesVersion"] == "1.36.3"
    assert cluster["identity"]["principalId"]
    kubelet = properties["identityProfile"]["kubeletidentity"]
    assert kubelet["resourceId"].startswith(NODE_GROUP)
    assert World().cluster()["properties"]["fqdn"] == properties["fqdn"]


def test_the_node_resource_group_is_made_and_goes() -> None:
    world = World()
    cluster = world.cluster()
    names = {
        kind: [one["name"] for one in world.arm.list(f"{NODE_GROUP}/providers/Microsoft.Network/{kind}", NETWORK)]
        for kind in ("virtualNetworks", "networkSecurityGroups", "loadBalancers")
    }
    assert names["loadBalancers"] == ["kubernetes"]
    assert re.fullmatch(r"aks-agentpool-\d{8}-nsg", names["networkSecurityGroups"][0])
    assert re.fullmatch(r"aks-vnet-\d{8}", names["virtualNetworks"][0])
    assert world.arm.access.allows(
        cluster["identity"]["principalId"], "Microsoft.Compute/virtualMachines/write", NODE_GROUP
    )
    with pytest.raises(ArmError, match="ResourceGroupManagedBy"):
        world.arm.delete(NODE_GROUP, GROUPS)
    world.arm.delete(CLUSTER, AKS)
    with pytest.raises(ArmError, match="ResourceGroupNotFound"):
        world.arm.get(NODE_GROUP, GROUPS)
    assert world.azure.directory.principal(cluster["identity"]["principalId"]) is None


def test_an_update_keeps_what_was_computed() -> None:
    world = World()
    first = world.cluster()
    second = world.cluster({**world.cluster_body(), "tags": {"a": "b"}})
    for name in ("fqdn", "oidcIssuerProfile", "identityProfile"):
        assert first["properties"][name] == second["properties"][name]
    assert first["identity"] == second["identity"]
    assert second["tags"] == {"a": "b"}


def test_versions_go_up_by_one() -> None:
    world = World()
    world.cluster(world.cluster_body(kubernetesVersion="1.34"))
    for given, said in (
        (
            "1.36",
            r"Upgrading Kubernetes version 1\.34\.6 to 1\.36\.3 is not allowed\. Available upgrades: \[1\.35\.4\]",
        ),
        ("1.33", "not supported in this region"),
    ):
        with pytest.raises(ArmError, match=said):
            world.arm.put(CLUSTER, AKS, world.cluster_body(kubernetesVersion=given))
    upgraded = world.arm.put(CLUSTER, AKS, world.cluster_body(kubernetesVersion="1.35"))
    assert upgraded["properties"]["currentKubernetesVersion"] == "1.35.4"
    with pytest.raises(ArmError, match=r"OperationNotAllowed.*Downgrading Kubernetes version 1\.35\.4 to 1\.34\.6"):
        world.arm.put(CLUSTER, AKS, world.cluster_body(kubernetesVersion="1.34"))


def test_creation_takes_its_time_and_is_exclusive() -> None:
    world = World(Durations(0.2, 0, 0, 0))
    accepted = world.arm.begin_put(CLUSTER, AKS, world.cluster_body())
    assert accepted.body["properties"]["provisioningState"] == "Creating"
    with pytest.raises(ArmError, match="another operation"):
        world.arm.put(CLUSTER, AKS, world.cluster_body())
    assert accepted.operation is not None
    world.azure._context.operations.wait(accepted.operation)
    assert world.arm.get(CLUSTER, AKS)["properties"]["provisioningState"] == "Succeeded"


def test_a_role_takes_effect_late(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(role_effective=60)
    subnet, identity = world.subnet(), world.identity("cluster")
    world.grant(subnet, identity["properties"]["principalId"], roles.NETWORK_CONTRIBUTOR)
    with pytest.raises(ArmError, match="LinkedAuthorizationFailed"):
        world.cluster(world.cluster_body(identity, subnet))
    later = clock.monotonic() + 61
    monkeypatch.setattr("karpenter.clock.monotonic", lambda: later)
    world.cluster(world.cluster_body(identity, subnet))


def test_node_auto_provisioning_once_it_runs() -> None:
    world = World()
    body = world.cluster_body(nodeProvisioningProfile={"mode": "Auto"})
    world.cluster(body)
    with pytest.raises(ArmError, match="The action 'stop' is not known"):
        world.arm.post(CLUSTER, "stop", AKS)
    way: dict[str, Any] = {"networkProfile__outboundType": "managedNATGateway"}
    with pytest.raises(ArmError, match="outboundType is changed"):
        world.cluster(world.cluster_body(nodeProvisioningProfile={"mode": "Auto"}, **way))
    nic = world.interface(world.subnet())
    world.arm.put(machine_id("node", NODE_GROUP), "2025-04-01", world.machine_body(nic["id"]))
    with pytest.raises(ArmError, match="NodeAutoProvisioningDisableNotAllowed"):
        world.cluster(world.cluster_body(nodeProvisioningProfile={"mode": "Manual"}))


def test_old_api_versions_do_not_have_it() -> None:
    world = World()
    with pytest.raises(ArmError, match="nodeProvisioningProfile"):
        world.arm.put(CLUSTER, "2024-09-01", world.cluster_body(nodeProvisioningProfile={"mode": "Auto"}))


def test_a_subnet_of_ones_own_needs_the_right_to_join_it() -> None:
    world = World()
    subnet, identity = world.subnet(), world.identity("cluster")
    with pytest.raises(ArmError) as caught:
        world.cluster(world.cluster_body(identity, subnet))
    assert caught.value.code == "LinkedAuthorizationFailed"
    assert subnet in caught.value.message
    with pytest.raises(ArmError, match="LinkedAuthorizationFailed"):
        world.cluster(world.cluster_body(None, subnet))
    world.grant(subnet, identity["properties"]["principalId"], roles.NETWORK_CONTRIBUTOR)
    world.cluster(world.cluster_body(identity, subnet))
    with pytest.raises(ArmError, match="InUseSubnetCannotBeDeleted"):
        world.arm.delete(subnet, NETWORK)
    world.arm.delete(GROUP, GROUPS)


def test_a_kubelet_identity_of_ones_own_must_be_assignable() -> None:
    world = World()
    identity, kubelet = world.identity("cluster"), world.identity("kubelet")
    body = world.cluster_body(identity, identityProfile={"kubeletidentity": {"resourceId": kubelet["id"]}})
    with pytest.raises(ArmError, match="CustomKubeletIdentityMissingPermissionError"):
        world.cluster(body)
    world.grant(kubelet["id"], identity["properties"]["principalId"], roles.MANAGED_IDENTITY_OPERATOR)
    profile = world.cluster(body)["properties"]["identityProfile"]["kubeletidentity"]
    assert profile["clientId"] == kubelet["properties"]["clientId"]


def test_agent_pools() -> None:
    world = World()
    world.cluster()
    pool = {"properties": {"mode": "User", "count": 3, "vmSize": "Standard_D4s_v5"}}
    world.arm.put(f"{CLUSTER}/agentPools/more", AKS, pool)
    assert [one["name"] for one in world.arm.get(CLUSTER, AKS)["properties"]["agentPoolProfiles"]] == ["system", "more"]
    world.cluster()
    assert len(world.arm.get(CLUSTER, AKS)["properties"]["agentPoolProfiles"]) == 2
    sets = world.arm.list(f"{NODE_GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets", "2025-04-01")
    assert [one["sku"]["capacity"] for one in sets] == [2, 3]
    world.arm.delete(f"{CLUSTER}/agentPools/more", AKS)
    with pytest.raises(ArmError, match="at least one system agent pool"):
        world.arm.delete(f"{CLUSTER}/agentPools/system", AKS)
    with pytest.raises(ArmError, match="osType"):
        world.arm.put(f"{CLUSTER}/agentPools/win", AKS, {"properties": {**pool["properties"], "osType": "Windows"}})


def test_quota_holds_for_agent_pools() -> None:
    world = World()
    world.azure.quotas["standardDSv5Family"] = 3
    with pytest.raises(ArmError, match="standardDSv5Family Cores quota"):
        world.cluster()


def test_the_default_pools_are_those_of_aks() -> None:
    manifests = default_manifests()
    pools = {one["metadata"]["name"]: one["spec"]["template"]["spec"] for one in manifests if one["kind"] == "NodePool"}
    assert set(pools) == {"default", "system-surge"}
    assert {pool["nodeClassRef"]["name"] for pool in pools.values()} == {"default"}
    assert {one["spec"]["imageFamily"] for one in manifests if one["kind"] == "AKSNodeClass"} == {"Ubuntu"}
    assert [taint["key"] for taint in pools["system-surge"]["taints"]] == ["CriticalAddonsOnly"]
