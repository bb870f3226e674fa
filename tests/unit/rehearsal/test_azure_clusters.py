"""Managed clusters and agent pools: what ARM computes, what AKS makes, and what it refuses."""

from __future__ import annotations

import re
from typing import Any

import pytest

from karpenter import clock
from rehearsal.azure.arm.errors import ArmError
from rehearsal.azure.arm.operations import Durations
from rehearsal.azure.clusters.default_pools import default_manifests
from rehearsal.azure.identity import roles
from tests.unit.rehearsal.azure_world import AKS, CLUSTER, GROUP, GROUPS, NETWORK, SCOPE, World, machine_id

NODE_GROUP = f"{SCOPE}/resourceGroups/MC_demo_demo_westus2"
WINDOWS = {"name": "win", "mode": "User", "osType": "Windows", "vmSize": "Standard_D2s_v5"}
SYSTEM = {"name": "system", "mode": "System", "count": 2, "vmSize": "Standard_D2s_v5"}
SCALED = SYSTEM | {"enableAutoScaling": True, "minCount": 1, "maxCount": 3}


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


def test_a_private_cluster_has_a_name_in_its_own_zone() -> None:
    world = World()
    properties = world.cluster(world.cluster_body(apiServerAccessProfile={"enablePrivateCluster": True}))["properties"]
    prefix = properties["fqdn"].partition(".")[0]
    assert re.fullmatch(prefix + r"\.[0-9a-f-]{36}\.privatelink\.westus2\.azmk8s\.io", properties["privateFQDN"])
    assert "privateFQDN" not in World().cluster()["properties"]


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


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"dnsPrefix": "-x"}, "InvalidParameter"),
        ({"kubernetesVersion": "1.20"}, "K8sVersionNotSupported"),
        ({"agentPoolProfiles": []}, "NoSystemPool"),
        (
            {"agentPoolProfiles": [{"name": "Bad", "mode": "System", "count": 1, "vmSize": "Standard_D2s_v5"}]},
            "InvalidParameter",
        ),
        (
            {"agentPoolProfiles": [{"name": "a", "mode": "System", "count": 1, "vmSize": "Standard_Z1"}]},
            "BadRequest",
        ),
        (
            {"agentPoolProfiles": [{"name": "a", "mode": "System", "count": 0, "vmSize": "Standard_D2s_v5"}]},
            "InvalidParameter",
        ),
        (
            {
                "agentPoolProfiles": [
                    {"name": "a", "mode": "System", "count": 1, "vmSize": "Standard_D2s_v5", "maxPods": 9}
                ]
            },
            "InvalidParameter",
        ),
        (
            {
                "agentPoolProfiles": [
                    {"name": "a", "mode": "System", "count": 1, "vmSize": "Standard_D2s_v5", "osDiskSizeGB": 5}
                ]
            },
            "InvalidParameter",
        ),
        (
            {
                "agentPoolProfiles": [
                    {
                        "name": "a",
                        "mode": "System",
                        "count": 1,
                        "vmSize": "Standard_D2s_v5",
                        "vnetSubnetID": f"{GROUP}/providers/Microsoft.Network/virtualNetworks/no/subnets/no",
                    }
                ]
            },
            "SubnetNotFound",
        ),
        ({"agentPoolProfiles": [SYSTEM | {"osSKU": "Ubuntu2404"}]}, "InvalidOSSKU"),
        ({"networkProfile__networkPlugin": "kubenet"}, "InvalidParameter"),
        ({"networkProfile__networkPlugin": "none"}, "InvalidNetworkPluginMode"),
        ({"networkProfile__networkPolicy": "calico"}, "InvalidNetworkPolicy"),
        ({"networkProfile__networkDataplane": "azure"}, "InvalidNetworkPolicy"),
        ({"networkProfile__podCidr": "10.0.0.0/16"}, "ServiceCidrOverlapExistingSubnetsCidr"),
        ({"networkProfile__dnsServiceIP": "10.99.0.10"}, "ServiceCidrDnsServiceIPMismatch"),
        ({"oidcIssuerProfile__enabled": False}, "WorkloadIdentityRequiresOIDCIssuer"),
        ({"disableLocalAccounts": True}, "DisableLocalAccountsRequiresAADIntegration"),
        (
            {"identityProfile": {"kubeletidentity": {"resourceId": f"{GROUP}/providers/x/y/z"}}},
            "CustomKubeletIdentityOnlySupportedOnUserAssignedMSICluster",
        ),
    ],
)
def test_clusters_are_refused(changes: dict[str, Any], code: str) -> None:
    world = World()
    with pytest.raises(ArmError) as caught:
        world.cluster(world.cluster_body(**changes))
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {"networkProfile__networkDataplane": None, "networkProfile__networkPolicy": "calico"},
            ".properties.networkProfile.networkPolicy is set to one of [azure,cilium,none]",
        ),
        (
            {"networkProfile__ipFamilies": ["IPv4", "IPv6"]},
            "unless .properties.networkProfile.ipFamilies is set to one of [IPv4].",
        ),
        ({"agentPoolProfiles": [SCALED]}, "have property .properties.enableAutoScaling set to one of [false]."),
        ({"agentPoolProfiles": [SYSTEM | {"podSubnetID": "x"}]}, ".properties.podSubnetID"),
        ({"enableRBAC": False}, "unless .properties.enableRBAC is set to one of [true]."),
    ],
)
def test_node_auto_provisioning_is_refused(changes: dict[str, Any], text: str) -> None:
    world = World()
    world.cluster(world.cluster_body(**changes))
    world.arm.delete(CLUSTER, AKS)
    with pytest.raises(ArmError) as caught:
        world.cluster(world.cluster_body(nodeProvisioningProfile={"mode": "Auto"}, **changes))
    assert (caught.value.code, caught.value.status) == ("OperationNotAllowed", 400)
    assert caught.value.message.startswith(".properties.nodeProvisioningProfile.mode cannot be Auto ")
    assert text in caught.value.message


@pytest.mark.parametrize(
    "changes",
    [
        # As since 2026: flat Azure CNI, every way out, customers' keys; test_azure_http_proxy.py has proxies.
        {
            "networkProfile__networkPluginMode": None,
            "networkProfile__networkDataplane": None,
            "networkProfile__networkPolicy": None,
        },
        {"networkProfile__outboundType": "managedNATGateway"},
        {"diskEncryptionSetID": f"{GROUP}/providers/Microsoft.Compute/diskEncryptionSets/x"},
    ],
)
def test_node_auto_provisioning_is_taken(changes: dict[str, Any]) -> None:
    world = World()
    world.cluster(world.cluster_body(nodeProvisioningProfile={"mode": "Auto"}, **changes))


@pytest.mark.parametrize(
    ("tier", "plan", "taken"),
    [
        ("Premium", "AKSLongTermSupport", True),
        ("Premium", None, False),
        ("Premium", "KubernetesOfficial", False),
        ("Standard", "AKSLongTermSupport", False),
        ("Standard", "KubernetesOfficial", True),
        ("Free", None, True),
    ],
)
def test_premium_and_long_term_support_come_together(tier: str, plan: str | None, taken: bool) -> None:
    world = World()
    body = {**world.cluster_body(supportPlan=plan), "sku": {"name": "Base", "tier": tier}}
    if taken:
        world.cluster(body)
        return
    with pytest.raises(ArmError) as caught:
        world.cluster(body)
    assert (caught.value.code, caught.value.status) == ("BadRequest", 400)


@pytest.mark.parametrize(
    ("name", "value"),
    [("vmSize", "Standard_D4s_v5"), ("availabilityZones", ["1"]), ("osDiskSizeGB", 256), ("maxPods", 50)],
)
def test_what_does_not_change_of_a_pool(name: str, value: Any) -> None:
    world = World()
    world.cluster(world.cluster_body(agentPoolProfiles=[SYSTEM]))
    world.cluster(world.cluster_body(agentPoolProfiles=[SYSTEM | {"count": 3}]))
    with pytest.raises(ArmError) as caught:
        world.cluster(world.cluster_body(agentPoolProfiles=[SYSTEM | {name: value}]))
    assert (caught.value.code, caught.value.status) == ("PropertyChangeNotAllowed", 400)
    assert caught.value.message == f"Changing property 'agentPoolProfile.{name}' is not allowed."


def test_a_role_takes_effect_late(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(role_effective=60)
    subnet, identity = world.subnet(), world.identity("cluster")
    world.grant(subnet, identity["properties"]["principalId"], roles.NETWORK_CONTRIBUTOR)
    with pytest.raises(ArmError, match="LinkedAuthorizationFailed"):
        world.cluster(world.cluster_body(identity, subnet))
    later = clock.monotonic() + 61
    monkeypatch.setattr("karpenter.clock.monotonic", lambda: later)
    world.cluster(world.cluster_body(identity, subnet))


def test_node_auto_provisioning_needs_a_managed_identity() -> None:
    world = World()
    body = world.cluster_body(
        nodeProvisioningProfile={"mode": "Auto"}, servicePrincipalProfile={"clientId": "x", "secret": "y"}
    )
    with pytest.raises(ArmError, match="servicePrincipalProfile is specified"):
        world.cluster({**body, "identity": {"type": "None"}})


def test_node_auto_provisioning_once_it_runs() -> None:
    world = World()
    body = world.cluster_body(nodeProvisioningProfile={"mode": "Auto"})
    world.cluster(body)
    with pytest.raises(ArmError, match="cannot be stopped"):
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
    with pytest.raises(ArmError, match="Windows"):
        world.arm.put(f"{CLUSTER}/agentPools/win", AKS, {"properties": WINDOWS})


def test_quota_holds_for_agent_pools() -> None:
    world = World()
    world.azure.quotas["standardDSv5Family"] = 3
    with pytest.raises(ArmError, match="standardDSv5Family Cores quota"):
        world.cluster()


def test_the_default_pools_are_those_of_aks() -> None:
    manifests = default_manifests(cilium=True)
    pools = {one["metadata"]["name"]: one["spec"]["template"]["spec"] for one in manifests if one["kind"] == "NodePool"}
    assert set(pools) == {"default", "system-surge"}
    assert {pool["nodeClassRef"]["name"] for pool in pools.values()} == {"default"}
    assert {one["spec"]["imageFamily"] for one in manifests if one["kind"] == "AKSNodeClass"} == {"Ubuntu"}
    assert [taint["key"] for taint in pools["system-surge"]["taints"]] == ["CriticalAddonsOnly"]
    assert "startupTaints" not in default_manifests(cilium=False)[2]["spec"]["template"]["spec"]
