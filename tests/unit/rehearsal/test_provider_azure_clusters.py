"""What a managed cluster brings about: a control plane, AKS's workloads, nodes, and node auto provisioning."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rehearsal.attachment.resource import UNKNOWN, IncompleteError, RefusedError
from rehearsal.azure.clusters.resources import system_workloads
from tests.unit.rehearsal.provider_azure_world import OVERLAY, POOL, Provider

AUTO = {"nodeProvisioningProfile": {"mode": "Auto"}}


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Provider]:
    provider = Provider(tmp_path)
    provider.azure.start(tmp_path / "wire")
    yield provider
    provider.azure.stop()


def test_a_cluster_starts_its_control_plane_with_aks_own_issuer(provider: Provider) -> None:
    created = provider.cluster(networkProfile={**OVERLAY, "serviceCidr": "10.96.0.0/16", "dnsServiceIP": "10.96.0.10"})
    started = provider.clusters.started[0]
    assert (started["name"], started["version"], started["service_cidr"]) == ("rehearsed", "1.36", "10.96.0.0/16")
    assert started["issuer"] == created.outputs["oidcIssuerProfile"]["issuerURL"]
    assert started["cloud"].bound is provider.running
    assert provider.running.manifests["Service", "kube-dns"]["spec"]["clusterIP"] == "10.96.0.10"
    assert {("DaemonSet", "cilium"), ("Deployment", "cilium-operator"), ("Deployment", "coredns")} <= (
        provider.running.manifests.keys()
    )


def test_the_issuer_is_unknown_until_there_is_a_cluster(provider: Provider) -> None:
    """A program would otherwise take the preview's profile for a cluster without an issuer."""
    inputs = provider.cluster_inputs(oidcIssuerProfile={"enabled": True})
    foretold = provider.type("ManagedCluster").preview(inputs, id="", state={})
    assert foretold["oidcIssuerProfile"] == {"enabled": True, "issuerURL": UNKNOWN}
    foretold = provider.type("ManagedCluster").preview({**inputs, "oidcIssuerProfile": UNKNOWN}, id="", state={})
    assert foretold["oidcIssuerProfile"] is UNKNOWN


def test_ciliums_pods_reach_the_api_server_where_it_is() -> None:
    from rehearsal.cluster.cilium import unreachable

    endpoint = "https://127.0.0.1:4711"
    workloads = {
        item["metadata"]["name"]: item
        for item in system_workloads(endpoint, "10.0.0.10")
        if item["kind"] in ("DaemonSet", "Deployment")
    }
    for name in ("cilium", "cilium-operator"):
        assert unreachable(workloads[name]["spec"]["template"], endpoint, kube_proxy=False) == ""
        assert unreachable(workloads[name]["spec"]["template"], "https://127.0.0.1:1", kube_proxy=False)


def test_the_nodes_of_its_pools_join_with_their_taints(provider: Provider) -> None:
    provider.cluster()
    assert len(provider.running.nodes) == 2
    for node in provider.running.nodes.values():
        assert node["taints"] == [{"key": "CriticalAddonsOnly", "value": "true", "effect": "NoSchedule"}]
        assert node["labels"]["kubernetes.azure.com/ebpf-dataplane"] == "cilium"


def test_another_version_is_another_control_plane_on_the_same_nodes(provider: Provider) -> None:
    created = provider.cluster(kubernetesVersion="1.35")
    nodes = set(provider.running.nodes)
    assert provider.running.version == "1.35"
    provider.update("ManagedCluster", created, **provider.cluster_inputs(kubernetesVersion="1.36"))
    assert (provider.running.version, set(provider.running.nodes)) == ("1.36", nodes)
    assert len(provider.clusters.started) == 1


def test_another_count_brings_and_takes_nodes(provider: Provider) -> None:
    created = provider.cluster()
    before = set(provider.running.nodes)
    provider.update("ManagedCluster", created, **provider.cluster_inputs(agentPoolProfiles=[{**POOL, "count": 3}]))
    assert before < set(provider.running.nodes)
    assert len(provider.running.nodes) == 3
    provider.update("ManagedCluster", created, **provider.cluster_inputs(agentPoolProfiles=[{**POOL, "count": 1}]))
    assert len(provider.running.nodes) == 1
    assert len(provider.clusters.started) == 1


def test_nodes_that_do_not_get_ready_leave_an_incomplete_cluster(provider: Provider) -> None:
    provider.clusters.never_ready = True
    with pytest.raises(IncompleteError, match="did not become Ready") as raised:
        provider.cluster()
    assert raised.value.created.outputs["fqdn"]
    provider.delete("ManagedCluster", raised.value.created)
    assert not provider.clusters.running


def test_a_second_cluster_is_refused_with_the_reason(provider: Provider) -> None:
    provider.cluster()
    with pytest.raises(IncompleteError, match="one at a time"):
        provider.cluster(resourceName="second", dnsPrefix="second")


def test_a_cluster_of_the_same_name_elsewhere_is_another_one(provider: Provider) -> None:
    provider.cluster()
    provider.create("ResourceGroup", resourceGroupName="other")
    with pytest.raises(IncompleteError, match="another cluster named rehearsed") as raised:
        provider.cluster(resourceGroupName="other")
    provider.delete("ManagedCluster", raised.value.created)
    assert provider.running.nodes


def test_deleting_it_stops_the_control_plane(provider: Provider) -> None:
    created = provider.cluster()
    provider.delete("ManagedCluster", created)
    assert not provider.clusters.running
    assert provider.read("ManagedCluster", created) is None


def test_deleting_its_group_stops_the_control_plane(provider: Provider) -> None:
    provider.cluster()
    group = provider.type("ResourceGroup")
    group.delete(group.resource_id({"resourceGroupName": "demo"}), {}, timeout=5.0)
    assert not provider.clusters.running


def test_a_deletion_that_arm_refuses_leaves_the_control_plane(provider: Provider) -> None:
    provider.cluster()
    id = provider.type("ResourceGroup").resource_id({"resourceGroupName": "MC_demo_rehearsed_westus2"})
    with pytest.raises(RefusedError, match="ResourceGroupManagedByMismatch"):
        provider.type("ResourceGroup").delete(id, {}, timeout=5.0)
    assert provider.running.nodes


@pytest.mark.parametrize("dataplane", ["azure", None])
def test_nodes_without_cilium_are_refused_before_creation(provider: Provider, dataplane: str | None) -> None:
    profile = {**OVERLAY, "networkDataplane": dataplane}
    assert (
        "never be Ready"
        in provider.failures("ManagedCluster", **provider.cluster_inputs(networkProfile=profile))["networkProfile"]
    )


def test_a_dataplane_that_is_not_known_yet_passes_the_check(provider: Provider) -> None:
    for profile in (UNKNOWN, {**OVERLAY, "networkDataplane": UNKNOWN}):
        assert not provider.failures("ManagedCluster", **provider.cluster_inputs(networkProfile=profile))


def test_an_agent_pool_of_its_own(provider: Provider) -> None:
    provider.cluster()
    inputs: dict[str, Any] = {
        "resourceGroupName": "demo",
        "resourceName": "rehearsed",
        "agentPoolName": "more",
        "vmSize": "Standard_D2s_v5",
        "count": 2,
        "nodeTaints": ["a=b:NoExecute", "c:NoSchedule"],
    }
    created = provider.create("AgentPool", **inputs)
    nodes = [
        node for node in provider.running.nodes.values() if node["labels"]["kubernetes.azure.com/agentpool"] == "more"
    ]
    assert [node["taints"] for node in nodes] == 2 * [
        [{"key": "a", "value": "b", "effect": "NoExecute"}, {"key": "c", "value": "", "effect": "NoSchedule"}]
    ]
    provider.update("AgentPool", created, **{**inputs, "count": 1})
    assert len(provider.running.nodes) == 3
    provider.delete("AgentPool", created)
    assert len(provider.running.nodes) == 2


def test_credentials(provider: Provider) -> None:
    provider.cluster(aadProfile={"managed": True}, disableLocalAccounts=True)
    arguments = {"resourceGroupName": "demo", "resourceName": "rehearsed"}
    answer = provider.invokes["azure-native:containerservice:listManagedClusterUserCredentials"](
        {**arguments, "format": "exec", "serverFqdn": None}
    )
    assert answer["kubeconfigs"][0]["name"] == "clusterUser"
    assert yaml.safe_load(base64.b64decode(answer["kubeconfigs"][0]["value"]))["kind"] == "Config"
    with pytest.raises(RefusedError, match="disable local accounts"):
        provider.invokes["azure-native:containerservice:listManagedClusterAdminCredentials"](arguments)


# Node auto provisioning


def test_node_auto_provisioning_brings_pools_and_runs_karpenter(provider: Provider) -> None:
    created = provider.cluster(**AUTO)
    cluster = provider.running
    for kind in ("NodePool", "AKSNodeClass"):
        assert {name for found, name in cluster.manifests if found == kind} == {"default", "system-surge"}
    environment = cluster.controller.environment
    assert cluster.controller.hosted
    assert environment["CLUSTER_ENDPOINT"] == f"https://{created.outputs['fqdn']}:443"
    assert environment["IDENTITY_ENDPOINT"].startswith("http")
    assert environment["SSH_PUBLIC_KEY"].startswith("ssh-ed25519 ")
    token = environment["KUBELET_BOOTSTRAP_TOKEN"]
    secret = cluster.manifests["Secret", f"bootstrap-token-{token.split('.')[0]}"]
    assert secret["type"] == "bootstrap.kubernetes.io/token"
    assert secret["stringData"]["token-secret"] == token.split(".")[1]


def test_without_default_pools_the_program_brings_its_own(provider: Provider) -> None:
    provider.cluster(nodeProvisioningProfile={"mode": "Auto", "defaultNodePools": "None"})
    assert not any(kind == "NodePool" for kind, _ in provider.running.manifests)
    assert provider.running.controller.hosted


def test_switching_the_default_pools_off_deletes_them(provider: Provider) -> None:
    created = provider.cluster(**AUTO)
    provider.update(
        "ManagedCluster",
        created,
        **provider.cluster_inputs(nodeProvisioningProfile={"mode": "Auto", "defaultNodePools": "None"}),
    )
    assert not any(kind == "NodePool" for kind, _ in provider.running.manifests)
    assert provider.running.controller.starts == 1


def test_switching_it_on_and_off(provider: Provider) -> None:
    created = provider.cluster()
    assert not provider.running.controller.hosted
    provider.update("ManagedCluster", created, **provider.cluster_inputs(**AUTO))
    assert provider.running.controller.hosted
    provider.update("ManagedCluster", created, **provider.cluster_inputs(nodeProvisioningProfile={"mode": "Manual"}))
    assert not provider.running.controller.hosted


def test_a_controller_that_does_not_start_is_told(provider: Provider) -> None:
    created = provider.cluster()
    provider.running.controller.problem = "karpenter-azure exited with code 1"
    with pytest.raises(IncompleteError, match="node auto provisioning of the cluster rehearsed does not start: karp"):
        provider.update("ManagedCluster", created, **provider.cluster_inputs(**AUTO))
