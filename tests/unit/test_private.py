"""A VPC out of which nothing leads: its endpoints, and mirrors of images; the tables in stacks/ have the rest."""

from __future__ import annotations

from typing import Any

import pytest

from karpstack.components.documents.endpoints import endpoint_policy
from tests.conftest import Golden
from tests.unit.mock_engine import ACCOUNT
from tests.unit.programs import made, matching, only

NEEDED = {"ec2", "ecr.api", "ecr.dkr", "eks", "eks-auth", "s3", "sqs", "ssm", "sts"}
REGISTRY = "123456789012.dkr.ecr.us-east-1.amazonaws.com"
MIRRORS = {"quay.io": f"{REGISTRY}/quay", "public.ecr.aws": f"{REGISTRY}/ecr-public"}
OTHER_CHOICES: dict[str, Any] = {
    "network.endpoints": True,
    "karpenter.identity": "irsa",
    "karpenter.interruptionQueue": False,
    "nodePools": {},
    "addons": {"loadBalancerController": True},
}


@pytest.mark.parametrize(
    ("stack", "changes", "wanted"),
    [
        ("eks-private", {}, NEEDED),
        ("eks", OTHER_CHOICES, NEEDED - {"sqs"} | {"elasticloadbalancing"}),
        ("eks", {"network.endpoints": ["s3", "logs"]}, {"s3", "logs"}),
        ("eks", {}, set()),
    ],
)
def test_endpoints_are_those_that_the_choices_need(stack: str, changes: dict[str, Any], wanted: set[str]) -> None:
    names = {each.inputs["serviceName"] for each in matching(made(stack, changes), "VpcEndpoint")}
    assert {name.split(".", 3)[3] for name in names} == wanted


def test_endpoints_stand_in_each_subnet_and_only_principals_of_the_account_use_what_they_sign() -> None:
    for each in matching(made("eks-private"), "VpcEndpoint"):
        if each.name.endswith("-s3"):
            assert not {"subnetIds", "securityGroupIds", "privateDnsEnabled"} & each.inputs.keys()
        else:
            assert each.inputs["securityGroupIds"] == ["eks-endpoints-group-id"]
            assert each.inputs["privateDnsEnabled"] is True
        if each.name.rpartition("-")[2] in ("ec2", "sqs", "ssm"):
            assert f'"aws:PrincipalAccount": "{ACCOUNT}"' in each.inputs["policy"]
    # Pods come to STS with the cluster's token; ECR signs the addresses of layers in S3.
    assert endpoint_policy("sts", ACCOUNT) is None
    assert endpoint_policy("s3", ACCOUNT) is None


def repositories(values: Any) -> set[str]:
    """Everything that is called a repository in a chart's values."""
    if not isinstance(values, dict):
        return set()
    own = {values["repository"]} if "repository" in values else set()
    return own.union(*map(repositories, values.values()))


def test_images_of_charts_come_from_mirrors() -> None:
    mirrors = {**MIRRORS, "registry.k8s.io": f"{REGISTRY}/k8s"}
    addons = {"metricsServer": True, "loadBalancerController": True}
    there = made("eks", {"images.mirrors": mirrors, "addons": addons, "cilium.hubble": True})
    values = {each.name: each.inputs.get("values") or {} for each in matching(there, "Release")}
    cilium = values["eks-cilium-release"]
    assert repositories(cilium) == {
        f"{REGISTRY}/quay/cilium/{image}" for image in ("cilium", "cilium-envoy", "operator", "hubble-relay")
    }
    assert cilium["operator"]["replicas"] == 2
    # Digests are the chart's own.
    assert cilium["envoy"]["image"].keys() == {"repository"}
    assert repositories(values["eks-karpenter-controller"]) == {f"{REGISTRY}/ecr-public/karpenter/controller"}
    everything = set().union(*map(repositories, values.values()))
    assert f"{REGISTRY}/k8s/metrics-server/metrics-server" in everything
    assert f"{REGISTRY}/ecr-public/eks/aws-load-balancer-controller" in everything
    one = made("eks", {"images.mirrors": {"quay.io": MIRRORS["quay.io"]}})
    assert not repositories(only(one, "eks-karpenter-controller Release").inputs["values"])
    assert not repositories(only(made("eks"), "eks-cilium-release").inputs["values"])


def test_the_examples_documents(golden: Golden) -> None:
    there = made("eks-private")
    golden("private-endpoints", {each.name: each.inputs for each in matching(there, "VpcEndpoint")})
    golden("private-node-class", matching(there, "EC2NodeClass")[0].inputs)
    golden("private-values-cilium", only(there, "eks-cilium-release").inputs["values"])
    golden("private-values-karpenter", only(there, "eks-karpenter-controller Release").inputs["values"])


def test_on_aks_karpenters_image_comes_from_a_mirror() -> None:
    there = made("aks-self-hosted", {"images.mirrors": {"mcr.microsoft.com": "registry.example.com/mcr"}})
    values = only(there, "aks-karpenter-charts-controller").inputs["values"]
    assert repositories(values) == {"registry.example.com/mcr/aks/karpenter/controller"}
