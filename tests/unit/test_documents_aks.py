"""karpstack.components.documents for AKS: goldens, and the properties that a golden does not explain."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest
import yaml

from karpstack.components.documents import charts, kubeconfig, manifests, provisioning, roles
from tests.conftest import Golden
from tests.unit.example_stack import aks

NAP, SELF_HOSTED = "aks-nap", "aks-self-hosted"


@pytest.mark.parametrize(("stack", "name"), [(NAP, "batch"), (SELF_HOSTED, "default")])
def test_example_node_class(stack: str, name: str, golden: Golden) -> None:
    loaded = aks(stack)
    golden(f"aks-node-class-{name}", manifests.aks_node_class(name, loaded.node_classes[name], tags=loaded.tags))


def node_pool(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return manifests.node_pool(name, spec, node_class=manifests.AKS_NODE_CLASS, labels=manifests.AKS_DATAPLANE_LABEL)


@pytest.mark.parametrize(("stack", "name"), [(NAP, "batch"), (SELF_HOSTED, "general-purpose")])
def test_example_node_pool(stack: str, name: str, golden: Golden) -> None:
    golden(f"aks-node-pool-{name}", node_pool(name, aks(stack).node_pools[name]))


def test_a_node_pool_gets_reference_label_and_taint() -> None:
    empties: list[dict[str, Any]] = [{}, {"template": {}}, {"template": {"metadata": None, "spec": None}}]
    for empty in empties:
        template = node_pool("x", empty)["spec"]["template"]
        assert template["metadata"] == {"labels": {"kubernetes.azure.com/ebpf-dataplane": "cilium"}}
        assert template["spec"]["nodeClassRef"] == {
            "group": "karpenter.azure.com",
            "kind": "AKSNodeClass",
            "name": "default",
        }
        assert template["spec"]["startupTaints"] == [
            {"key": "node.cilium.io/agent-not-ready", "value": "true", "effect": "NoExecute"}
        ]


def test_a_node_pool_keeps_its_own_labels_and_is_not_changed_in_place() -> None:
    spec = {"template": {"metadata": {"labels": {"team": "x"}, "annotations": {"a": "b"}}}}
    made = node_pool("x", spec)["spec"]["template"]["metadata"]
    assert made == {"labels": {"kubernetes.azure.com/ebpf-dataplane": "cilium", "team": "x"}, "annotations": {"a": "b"}}
    assert spec == {"template": {"metadata": {"labels": {"team": "x"}, "annotations": {"a": "b"}}}}


def test_a_node_class_keeps_its_own_tags_and_gets_no_subnet() -> None:
    own: dict[str, Any] = {"tags": {"owner": "me"}, "maxPods": 30}
    made = manifests.aks_node_class("x", own, tags={"owner": "us", "environment": "test"})
    assert made["spec"] == {"tags": {"owner": "me", "environment": "test"}, "maxPods": 30}
    assert own == {"tags": {"owner": "me"}, "maxPods": 30}


def karpenter(**changes: Any) -> dict[str, Any]:
    plan = aks(SELF_HOSTED).karpenter
    assert plan is not None
    return charts.karpenter_azure(
        **{
            "cluster_name": "demo",
            "endpoint": "https://demo-abcdefgh.hcp.westus2.azmk8s.io:443",
            "subscription_id": "12345678-1234-1234-1234-123456789012",
            "location": "westus2",
            "resource_group": "demo",
            "node_resource_group": "demo-nodes",
            "subnet_id": "/subscriptions/x/subnets/nodes",
            "vnet_guid": "guid",
            "node_identity_ids": "/subscriptions/x/demo-agentpool",
            "kubelet_identity_client_id": "kubelet",
            "controller_client_id": "controller",
            "service_account": "karpenter-sa",
            "bootstrap_token_secret": "bootstrap-token-abcdef",
            "ssh_key_secret": "karpenter-ssh-0123",
            "replicas": plan.replicas,
            "feature_gates": plan.feature_gates.model_dump(by_alias=True),
            "settings": plan.settings,
            "resources": plan.resources.model_dump(),
            **changes,
        }
    )


def test_karpenter_values(golden: Golden) -> None:
    golden("aks-values-karpenter", karpenter())


#: What the controller stops without (pkg/operator/options/options_validation.go and pkg/auth/config.go), other than
#: CLUSTER_NAME and CLUSTER_ENDPOINT, which the chart makes of its settings.
VALIDATED = {
    "KUBELET_BOOTSTRAP_TOKEN",
    "SSH_PUBLIC_KEY",
    "VNET_SUBNET_ID",
    "AZURE_NODE_RESOURCE_GROUP",
    "ARM_SUBSCRIPTION_ID",
    "AZURE_SUBSCRIPTION_ID",
}


def test_nothing_is_missing_that_the_controller_validates() -> None:
    names = [each["name"] for each in karpenter()["controller"]["env"]]
    assert set(names) >= VALIDATED
    assert len(names) == len(set(names))
    # The kubelet puts a variable together from those before it.
    assert names.index("KUBELET_BOOTSTRAP_TOKEN") > names.index("BOOTSTRAP_TOKEN_SECRET") > names.index("LOCATION")
    assert all(each.get("value") or each.get("valueFrom") for each in karpenter()["controller"]["env"])


def test_no_setting_passed_through_can_replace_the_environments() -> None:
    assert karpenter(settings={"clusterName": "x"})["settings"]["clusterName"] == "demo"


USER_CREDENTIALS = """\
apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: Q0E=
    server: https://demo-abcdefgh.hcp.westus2.azmk8s.io:443
  name: demo
users:
- name: clusterUser_demo_demo
  user:
    exec:
      command: kubelogin
      args: [get-token, --login, devicecode]
"""


@pytest.mark.parametrize(
    "credentials",
    [
        USER_CREDENTIALS,
        json.dumps(
            {
                "clusters": [
                    {
                        "name": "demo",
                        "cluster": {
                            "server": "https://demo-abcdefgh.hcp.westus2.azmk8s.io:443",
                            "certificate-authority-data": "Q0E=",
                        },
                    }
                ]
            }
        ),
    ],
)
@pytest.mark.parametrize("login", ["azurecli", "workloadidentity", "spn"])
def test_kubeconfig_holds_no_credentials(credentials: str, login: kubeconfig.KubeloginMode) -> None:
    config = json.loads(kubeconfig.aks(cluster_name="demo", credentials=credentials, login=login, tenant_id="tenant"))
    assert config["clusters"] == [
        {
            "name": "demo",
            "cluster": {
                "server": "https://demo-abcdefgh.hcp.westus2.azmk8s.io:443",
                "certificate-authority-data": "Q0E=",
            },
        }
    ]
    assert config["contexts"][0]["name"] == config["current-context"] == "demo"
    user = config["users"][0]["user"]
    assert list(user) == ["exec"]
    assert [user["exec"]["command"], *user["exec"]["args"]] == [
        "kubelogin",
        "get-token",
        "--login",
        login,
        "--server-id",
        "6dae42f8-4368-4678-94ff-500e3e86be80",
        "--tenant-id",
        "tenant",
    ]


def test_of_an_administrators_kubeconfig_nothing_is_run_or_read() -> None:
    """It is an answer. Its plugin would be started here, and its tokenFile sent to the server that it names."""
    keys = {"client-certificate-data": "Q1JU", "client-key-data": "S0VZ"}
    there = {"server": "https://demo.example:443", "certificate-authority-data": "Q0E="}
    given = {
        "clusters": [{"cluster": there}],
        "users": [{"user": {**keys, "token": "t", "tokenFile": "/etc/passwd", "exec": {"command": "evil"}}}],
    }
    for text in (yaml.safe_dump(given), json.dumps(given)):
        config = json.loads(kubeconfig.aks_administrator(cluster_name="demo", credentials=text))
        assert config["users"] == [{"name": "demo", "user": keys}]
        assert config["clusters"][0]["cluster"] == there
    with pytest.raises(ValueError, match="name no client-key-data"):
        kubeconfig.aks_administrator(cluster_name="demo", credentials=text.replace("client-key-data", "other"))


def test_credentials_without_an_address_are_refused() -> None:
    with pytest.raises(ValueError, match="name no server"):
        kubeconfig.aks(cluster_name="demo", credentials="apiVersion: v1", login="azurecli", tenant_id="")


def test_names_of_assignments_differ_in_each_part_and_in_nothing_else() -> None:
    def name(**changes: Any) -> str:
        return roles.assignment_name(
            **{"scope": "/subscriptions/x", "principal_id": "abc", "role": roles.Role.NETWORK_CONTRIBUTOR, **changes}
        )

    names = {
        name(),
        name(scope="/subscriptions/y"),
        name(principal_id="abd"),
        name(role=roles.Role.MANAGED_IDENTITY_OPERATOR),
    }
    assert len({UUID(each) for each in names}) == 4
    assert name(scope="/SUBSCRIPTIONS/x", principal_id="ABC") == name()


AUTO, NO_POOLS, MANUAL = (
    {"mode": "Auto", "defaultNodePools": "Auto"},
    {"mode": "Auto", "defaultNodePools": "None"},
    {"mode": "Manual", "defaultNodePools": "Auto"},
)


@pytest.mark.parametrize(
    ("old", "new", "harm"),
    [
        (AUTO, MANUAL, "Auto -> Manual"),
        (NO_POOLS, MANUAL, "Auto -> Manual"),
        (AUTO, {}, "Auto -> Manual"),
        (AUTO, NO_POOLS, "defaultNodePools Auto -> None"),
        ({"mode": "Auto"}, NO_POOLS, "defaultNodePools Auto -> None"),
        (MANUAL, AUTO, "Manual -> Auto"),
        ({}, NO_POOLS, "Manual -> Auto"),
        (NO_POOLS, AUTO, ""),
        (AUTO, {"mode": "Auto"}, ""),
        (MANUAL, {}, ""),
        (MANUAL, {"mode": "Manual", "defaultNodePools": "None"}, ""),
    ],
)
def test_changes_that_strand_nodes(old: dict[str, str], new: dict[str, str], harm: str) -> None:
    found = provisioning.stranding(old, new)
    assert harm in found
    assert bool(found) == bool(harm)
