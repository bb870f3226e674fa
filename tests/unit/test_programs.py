"""What holds of each program under Pulumi's mocks: parents, names, providers, tags, and what it refuses at once."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest

from karpstack.components import versions
from karpstack.components.problems import SettingsError
from tests.unit.programs import made, only

STACKS = {"eks": 60, "aks-nap": 10, "aks-self-hosted": 25, "eks-existing-vpc": 40, "eks-existing-cluster": 20}
NODE_CLASSES = ("EC2NodeClass", "AKSNodeClass")
every = pytest.mark.parametrize("stack", STACKS)


@every
def test_every_resource_lies_under_a_component_of_ours(stack: str) -> None:
    resources = made(stack).resources
    assert STACKS[stack] <= len(resources) < 100
    for each in resources.values():
        parent = resources.get(each.parent)
        if each.type.endswith(":Environment"):
            assert parent is None
        else:
            assert parent is not None, each.urn
            assert parent.type.startswith("karpstack:"), each.urn
            assert each.name.startswith(f"{parent.name}-"), each.urn
        if not each.request.custom:
            assert each.type.split(":")[1] in (stack.split("-")[0], "kubernetes"), each.urn
        assert not each.request.deletedWith


@every
def test_everything_in_the_cluster_uses_its_provider(stack: str) -> None:
    provider = only(made(stack), "pulumi:providers:kubernetes")
    for each in made(stack).resources.values():
        if each.type.startswith("kubernetes:"):
            assert each.request.provider == f"{provider.urn}::{provider.name}-id", each.urn


@pytest.mark.parametrize("stack", ["eks", "aks-nap", "aks-self-hosted"])
def test_every_taggable_resource_carries_the_environments_tags(stack: str) -> None:
    inputs = [each.inputs for each in made(stack).resources.values()]
    tagged = [one for each in inputs for one in (each, each.get("spec")) if isinstance(one, dict) and "tags" in one]
    assert len(tagged) >= (30 if stack == "eks" else 4)
    assert all(each["tags"].items() >= {"owner": "platform", "environment": "development"}.items() for each in tagged)


@pytest.mark.parametrize(
    ("stack", "what", "version"),
    [
        ("eks", "eks-karpenter-crd", versions.KARPENTER_AWS),
        ("eks", "eks-karpenter-controller Release", versions.KARPENTER_AWS),
        ("aks-self-hosted", "aks-karpenter-charts-crd", versions.KARPENTER_AZURE),
        ("aks-self-hosted", "aks-karpenter-charts-controller", versions.KARPENTER_AZURE),
    ],
)
def test_charts_are_the_pinned_ones(stack: str, what: str, version: str) -> None:
    assert only(made(stack), what).inputs["version"] == version


@pytest.mark.parametrize(
    ("stack", "changes", "given", "said"),
    [
        ("eks", {"network.zones": 5}, {}, "at least 5 zones, but this region offers EKS in 4"),
        # The mocks' account has four zones, and us-east-1e is where EKS has none.
        ("eks", {"network.zones": ["us-east-1a", "us-east-1e"]}, {}, "names us-east-1e, where this account"),
        ("aks-nap", {"network.subnetCidr": None, "network.subnetId": "<subnets>/ones"}, {}, "has no subnet ones"),
        ("eks-existing-vpc", {"network.vpcId": "vpc-00000002"}, {}, "is in another VPC, vpc-00000001"),
        ("eks-existing-cluster", {"cluster.existing": "Elsewhere"}, {}, "does not exist in this account and region"),
        ("aks-existing-cluster", {}, {"clusters": ()}, "does not exist in the resource group shop of"),
        (
            "aks-existing-cluster",
            {},
            {"told": {"nodeProvisioningProfile": {"mode": "Manual"}}},
            "nodeProvisioningProfile.mode is Manual",
        ),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_made(
    stack: str, changes: dict[str, Any], given: dict[str, Any], said: str
) -> None:
    with pytest.raises((SettingsError, pulumi.RunError), match=said):
        made(stack, changes, **given)
