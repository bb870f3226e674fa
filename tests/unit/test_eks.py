"""What is special about EKS under Pulumi's mocks; stacks/resources.yaml has what the engine is asked for."""

from __future__ import annotations

from functools import partial
from typing import Any

import pulumi
import pytest

from karpstack.components import eks
from karpstack.components.eks import environment
from karpstack.components.kubernetes import live
from karpstack.components.kubernetes.cilium import refuse_other_addresses
from karpstack.components.problems import SettingsError
from karpstack.components.settings.api_access_checks import check_api_access
from tests.unit.example_stack import eks as settings
from tests.unit.mock_engine import ZONES, Deployment, deploy, unknown
from tests.unit.programs import made, matching, only

RELEASE = "kubernetes:helm.sh/v3:Release"


@pytest.mark.parametrize(
    ("changes", "is_other"),
    [
        ({"systemNodes.instanceType": "m6i.large"}, True),
        ({"systemNodes.instanceType": "m6g.large", "systemNodes.amiType": "AL2023_ARM_64_STANDARD"}, True),
        ({"network.zones": 4}, True),
        ({"systemNodes.maxSize": 4, "systemNodes.diskSize": 60, "cluster.version": "1.35"}, False),
        ({"network.zones": ZONES[:3]}, False),
    ],
)
def test_system_nodes_of_another_type_come_before_the_old_ones_go(changes: dict[str, Any], is_other: bool) -> None:
    """Two groups have two names, and a change of what EKS changes in place keeps the name."""
    old, new = (only(one, "NodeGroup").inputs["nodeGroupName"] for one in (made("eks"), made("eks", changes)))
    assert (old != new) is is_other


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({}, ""),
        ({"clusterPoolIPv4MaskSize": "24"}, ""),
        ({"clusterPoolIPv4PodCIDRList": ["10.101.0.0/16"]}, "network.podCidr 10.100.0.0/16 -> 10.101.0.0/16"),
        ({"clusterPoolIPv4MaskSize": 25}, "network.podCidrMaskSize 24 -> 25"),
    ],
)
def test_a_change_of_pods_addresses_is_refused(change: dict[str, Any], text: str) -> None:
    pool = {"clusterPoolIPv4PodCIDRList": ["10.100.0.0/16"], "clusterPoolIPv4MaskSize": 24.0}
    old, new = ({"values": {"ipam": {"operator": each}}} for each in (pool, pool | change))
    update = pulumi.ResourceHookArgs("urn", "id", "eks-cilium-release", RELEASE, old_inputs=old, new_inputs=new)
    if not text:
        refuse_other_addresses(update)
        refuse_other_addresses(pulumi.ResourceHookArgs("urn", "id", "eks-cilium-release", RELEASE))
        return
    with pytest.raises(pulumi.RunError, match=text) as caught:
        refuse_other_addresses(update)
    assert "another stack" in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "variables", "is_refused"),
    [
        ({}, {}, True),
        ({}, {"AWS_ENDPOINT_URL": "https://vpce-1.eks.us-east-1.vpce.amazonaws.com"}, True),
        ({}, {"AWS_ENDPOINT_URL": "http://127.0.0.1:4566"}, False),
        ({}, {"AWS_ENDPOINT_URL": "http://localhost:4566"}, False),
        ({}, {"PULUMI_DEBUG_PROVIDERS": "kubernetes:1"}, True),
        ({}, {"PULUMI_DEBUG_PROVIDERS": "kubernetes:1,aws:2"}, False),
        ({"cluster__publicAccessCidrs": ["1.1.1.0/24"]}, {}, False),
    ],
)
def test_a_cluster_that_nobody_could_reach_is_refused(
    changes: dict[str, Any], variables: dict[str, str], is_refused: bool
) -> None:
    told = settings(**changes)
    found = list(check_api_access(told.network, told.cluster, variables))
    assert [problem.key for problem in found] == ["karpstack:cluster.publicAccessCidrs"] * is_refused


def test_it_is_refused_before_anything_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "check_api_access", partial(check_api_access, variables={}))
    with pytest.raises(SettingsError, match="without a public endpoint"):
        deploy(lambda: eks.Environment("eks", settings()))


def test_what_needs_the_cluster_waits_until_it_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of an after hook would only be a warning."""

    def program() -> None:
        monkeypatch.setattr(live.wait_until_served, "side_effect", pulumi.RunError("it did not answer"))
        eks.Environment("eks", settings())

    with pytest.raises(pulumi.RunError, match="it did not answer"):
        deploy(program)


def test_before_there_is_a_cluster_all_values_are_known_but_its_address() -> None:
    first = made("eks", preview=True)
    cilium, karpenter = (
        only(first, name).inputs["values"] for name in ("eks-cilium-release", f"eks-karpenter-controller {RELEASE}")
    )
    assert set(unknown(cilium)) == {"k8sServiceHost", "k8sServicePort"}
    assert set(unknown(karpenter)) == {"settings.clusterEndpoint"}


def test_a_change_of_cilium_is_awaited_once_there_are_nodes() -> None:
    def patches(deployment: Deployment) -> dict[str, Any]:
        return {
            each.inputs["metadata"]["name"]: each.inputs["metadata"]["annotations"]["karpstack.io/release"]
            for kind in ("DaemonSetPatch", "DeploymentPatch")
            for each in matching(deployment, kind)
        }

    before = patches(made("eks"))
    assert set(before) == {"cilium", "cilium-operator"}
    assert before == patches(made("eks", {"tags.owner": "others"}))
    assert not {*before.values()} & {*patches(made("eks", {"network.podCidrMaskSize": 25})).values()}


def test_user_data_is_a_secret() -> None:
    script = "#!/bin/sh\ncurl --header 'Authorization: ...' https://example.org\n"
    classes = matching(made("eks", {"nodeClasses.default.userData": script}), "EC2NodeClass")
    secret = {one.inputs["metadata"]["name"]: (one.secrets, one.inputs["spec"].get("userData")) for one in classes}
    assert secret == {"default": ({"spec"}, script), "bottlerocket": (frozenset(), None)}
