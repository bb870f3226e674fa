"""components.settings for AKS: what it takes, and each refusal with key, value, consequence and fix."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Any

import pytest

from components import settings
from components.problems import SettingsError
from karpenter.findings import Finding
from tests.unit.example_stack import aks, example

NAP, SELF_HOSTED = "aks-nap", "aks-self-hosted"
SUBNET = "/subscriptions/{}/resourceGroups/hub/providers/Microsoft.Network/virtualNetworks/shared/subnets/aks"
SUBSCRIPTION = "12345678-1234-1234-1234-123456789012"
DROP = object()
API_SERVER = SUBNET.format(SUBSCRIPTION).replace("/aks", "/api-server")
ZONE = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/hub/providers/Microsoft.Network/privateDnsZones/{{}}"
#: A subnet that is there instead of one that the stack makes.
EXISTING: dict[str, Any] = {"network__subnetCidr": None, "network__subnetId": SUBNET.format(SUBSCRIPTION)}


def raw(stack: str, **changes: Any) -> dict[str, str]:
    """Like `example`; a change `location` or `subscription` is azure-native's."""
    azure = {
        key: changes.pop(name)
        for name, key in (("location", "azure-native:location"), ("subscription", "azure-native:subscriptionId"))
        if name in changes
    }
    return {key: value for key, value in {**example(stack, **changes), **azure}.items() if value is not DROP}


def problems(stack: str, **changes: Any) -> list[Finding]:
    with pytest.raises(SettingsError) as caught:
        settings.load(raw(stack, **changes))
    assert all(str(problem) in str(caught.value) for problem in caught.value.problems)
    return list(caught.value.problems)


def test_the_examples_are_taken() -> None:
    nap, self_hosted = aks(NAP), aks(SELF_HOSTED)
    assert (nap.mode, self_hosted.mode) == ("nap", "self-hosted")
    assert nap.karpenter is None
    assert self_hosted.karpenter is not None
    assert nap.network.pod_cidr == IPv4Network("10.244.0.0/16")
    assert self_hosted.node_classes["default"]["imageFamily"] == "Ubuntu"


def test_defaults_are_the_safe_ones() -> None:
    loaded = aks(NAP, cluster={"version": "1.36"}, systemNodes=None, tags=None, nodeProvisioning=None)
    assert loaded.cluster.public_access_cidrs == []
    assert loaded.cluster.local_accounts is False
    assert loaded.system_nodes.zones == [1, 2, 3]
    assert not loaded.node_provisioning.allow_stranded_nodes


def pool(**node: Any) -> dict[str, Any]:
    return {"template": {"spec": node}}


@pytest.mark.parametrize("mode", [NAP, SELF_HOSTED])
def test_several_errors_come_at_once(mode: str) -> None:
    found = problems(
        mode,
        name="Bad_Name",
        subscription=DROP,
        network__podCidr="10.224.0.0/17",
        cluster__httpProxyConfig={},
        systemNodes__enableAutoScaling=True,
        nodeClasses__odd={"maxPods": 500, "imageFamily": "Windows2022"},
        nodePools__odd=pool(nodeClassRef={"name": "gpu"}),
    )
    assert [problem.key for problem in found] == [
        "karpstack:name",
        "azure-native:subscriptionId",
        "karpstack:network.podCidr",
        "karpstack:cluster.httpProxyConfig",
        "karpstack:systemNodes.enableAutoScaling",
        "karpstack:nodeClasses.odd.maxPods",
        "karpstack:nodeClasses.odd.imageFamily",
        "karpstack:nodePools.odd.template.spec.nodeClassRef.name",
    ]


def test_node_pools_may_use_the_classes_that_aks_brings() -> None:
    aks(NAP, nodePools__mine=pool(), nodePools__more=pool(nodeClassRef={"name": "system-surge"}))


def test_without_its_default_pools_aks_brings_no_classes() -> None:
    changes = {"nodeProvisioning__defaultNodePools": "None", "nodePools__mine": pool()}
    (problem,) = problems(NAP, **changes)
    assert problem.key == "karpstack:nodePools.mine.template.spec.nodeClassRef.name"
    aks(NAP, nodeClasses__default={}, nodePools__default={}, **changes)


def test_an_existing_subnet_is_taken_whatever_its_spelling() -> None:
    for subnet in (SUBNET, SUBNET.replace("resourceGroups", "resourcegroups")):
        loaded = aks(NAP, network__subnetCidr=None, network__subnetId=subnet.format(SUBSCRIPTION.upper()))
        assert loaded.network.subnet_cidr is None


def test_linux_may_be_named_and_windows_excluded() -> None:
    for requirement in ({"operator": "In", "values": ["linux"]}, {"operator": "NotIn", "values": ["windows"]}):
        aks(SELF_HOSTED, nodePools__x=pool(requirements=[{"key": "kubernetes.io/os", **requirement}]))


@pytest.mark.parametrize(("cloud", "value"), [("gcp", '"gcp"'), (None, "(not set)")])
def test_another_cloud(cloud: str | None, value: str) -> None:
    (problem,) = problems(NAP, cloud=cloud)
    assert (problem.key, problem.value, problem.fix) == ("karpstack:cloud", value, "set it to aws or azure")


def test_a_stack_of_one_cloud_needs_nothing_of_the_other() -> None:
    assert {problem.key for problem in problems(NAP, cloud="aws")} >= {"aws:region", "karpstack:mode"}


def test_a_secret_key_is_not_shown() -> None:
    with pytest.raises(SettingsError) as caught:
        settings.load(example(SELF_HOSTED, karpenter__sshPublicKey="hush"), secret_keys={"karpstack:karpenter"})
    (problem,) = caught.value.problems
    assert problem.value == "(secret)"
    assert "hush" not in str(caught.value)
