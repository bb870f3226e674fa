"""A VPC out of which nothing leads: endpoints, an instance profile, mirrors of images, and what is refused."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import yaml

from components import aks, eks, settings
from components.documents.endpoints import endpoint_policy
from components.problems import SettingsError
from tests.conftest import Golden
from tests.unit import example_stack
from tests.unit.mock_engine import ACCOUNT, Deployment, deploy

ENDPOINT = "aws:ec2/vpcEndpoint:VpcEndpoint"
NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
NODE_CLASS = "kubernetes:karpenter.k8s.aws/v1:EC2NodeClass"
NEEDED = {"ec2", "ecr.api", "ecr.dkr", "eks", "eks-auth", "s3", "sqs", "ssm", "sts"}

REGISTRY = "123456789012.dkr.ecr.us-east-1.amazonaws.com"
MIRRORS = {"quay.io": f"{REGISTRY}/quay", "public.ecr.aws": f"{REGISTRY}/ecr-public"}


def deployed(**changes: Any) -> Deployment:
    return deploy(lambda: eks.Environment("eks", example_stack.eks(**changes)))


@cache
def private() -> Deployment:
    return deployed(network__natGateways="none", network__endpoints=True, images={"mirrors": MIRRORS})


def services(deployment: Deployment) -> set[str]:
    return {each.inputs["serviceName"].removeprefix("com.amazonaws.us-east-1.") for each in deployment.of(ENDPOINT)}


def test_nothing_leads_out() -> None:
    for kind in ("internetGateway:InternetGateway", "natGateway:NatGateway", "eip:Eip", "route:Route"):
        assert not private().of(f"aws:ec2/{kind}")
    assert {each.name for each in private().of("aws:ec2/subnet:Subnet")} == {
        f"eks-network-private-{zone}" for zone in range(3)
    }


def test_endpoints_are_those_that_the_choices_need() -> None:
    assert services(private()) == NEEDED
    other = deployed(
        network__endpoints=True,
        karpenter__identity="irsa",
        karpenter__interruptionQueue=False,
        nodePools={},
        addons={"loadBalancerController": True},
    )
    assert services(other) == NEEDED - {"sqs"} | {"elasticloadbalancing"}
    assert services(deployed(network__endpoints=["s3", "logs"])) == {"s3", "logs"}
    assert not services(deployed())


def test_endpoints_stand_in_each_subnet_and_admit_the_nodes_alone() -> None:
    subnets = [f"eks-network-private-{zone}-id" for zone in range(3)]
    (group,) = (one for one in private().of("aws:ec2/securityGroup:SecurityGroup") if "endpoints" in one.name)
    (rule,) = private().of("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule")
    assert rule.inputs["securityGroupId"] == f"{group.name}-id"
    assert rule.inputs["referencedSecurityGroupId"] == "sg-cluster"
    assert (rule.inputs["ipProtocol"], rule.inputs["fromPort"], rule.inputs["toPort"]) == ("tcp", 443, 443)
    for each in private().of(ENDPOINT):
        if each.name.endswith("-s3"):
            assert each.inputs["vpcEndpointType"] == "Gateway"
            assert each.inputs["routeTableIds"] == ["eks-network-0-private-id"]
            assert not {"subnetIds", "securityGroupIds", "privateDnsEnabled"} & each.inputs.keys()
        else:
            assert (each.inputs["subnetIds"], each.inputs["securityGroupIds"]) == (subnets, [f"{group.name}-id"])
            assert each.inputs["privateDnsEnabled"] is True
        assert each.inputs["tags"]["owner"] == "platform"


def test_they_are_there_from_the_first_to_the_last_node() -> None:
    (nodes,) = private().of(NODE_GROUP)
    (node_class,) = (one for one in private().of(NODE_CLASS) if one.name.endswith("-default"))
    for each in private().of(ENDPOINT):
        assert private().needs(nodes, each)
        assert private().needs(node_class, each)


def test_only_principals_of_the_account_use_what_they_sign() -> None:
    for each in private().of(ENDPOINT):
        if each.name.rpartition("-")[2] in ("ec2", "sqs", "ssm"):
            assert f'"aws:PrincipalAccount": "{ACCOUNT}"' in each.inputs["policy"]
    # Pods come to STS with the cluster's token; ECR signs the addresses of layers in S3.
    assert endpoint_policy("sts", ACCOUNT) is None
    assert endpoint_policy("s3", ACCOUNT) is None


def test_the_controller_asks_nothing_that_has_no_endpoint() -> None:
    (profile,) = private().of("aws:iam/instanceProfile:InstanceProfile")
    for each in private().of(NODE_CLASS):
        assert each.inputs["spec"]["instanceProfile"] == profile.inputs["name"] == "karpstack-eks-karpenter-nodes"
        assert "role" not in each.inputs["spec"]
        assert private().needs(each, profile)
    values = private().one("eks-karpenter-controller").inputs["values"]
    assert values["settings"]["isolatedVPC"] is True
    outside = deployed(network__endpoints=True)
    assert not outside.of("aws:iam/instanceProfile:InstanceProfile")
    assert "isolatedVPC" not in outside.one("eks-karpenter-controller").inputs["values"]["settings"]


def test_the_load_balancer_controller_does_not_ask_waf() -> None:
    def values(deployment: Deployment) -> Any:
        releases = (one.inputs for one in deployment.of("kubernetes:helm.sh/v3:Release"))
        return next(one["values"] for one in releases if one["name"] == "aws-load-balancer-controller")

    network = {"network__natGateways": "none", "network__endpoints": True, "images": {"mirrors": MIRRORS}}
    with_it = {"addons": {"loadBalancerController": True}}
    assert values(deployed(**network, **with_it))["enableWafv2"] is False
    assert "enableWafv2" not in values(deployed(**with_it))


def repositories(values: Any) -> set[str]:
    """Everything that is called a repository in a chart's values."""
    if not isinstance(values, dict):
        return set()
    own = {values["repository"]} if "repository" in values else set()
    return own.union(*map(repositories, values.values()))


def test_images_of_charts_come_from_mirrors() -> None:
    mirrors = {**MIRRORS, "registry.k8s.io": f"{REGISTRY}/k8s"}
    addons = {"metricsServer": True, "loadBalancerController": True}
    made = deployed(images={"mirrors": mirrors}, addons=addons, cilium={"hubble": True})
    values = {each.name: each.inputs.get("values") or {} for each in made.of("kubernetes:helm.sh/v3:Release")}
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
    one = deployed(images={"mirrors": {"quay.io": MIRRORS["quay.io"]}})
    assert not repositories(one.one("eks-karpenter-controller").inputs["values"])
    assert not repositories(deployed().one("eks-cilium-release").inputs["values"])


@pytest.mark.parametrize(
    ("changes", "key", "text"),
    [
        ({}, "network.endpoints", "lacks ec2, ecr.api, ecr.dkr, eks, s3, ssm, sts, sqs, eks-auth"),
        ({"network__endpoints": sorted(NEEDED - {"sqs"})}, "network.endpoints", "lacks sqs, and"),
        (
            {"network__endpoints": True, "images": {"mirrors": {"quay.io": REGISTRY}}},
            "images.mirrors",
            "has no mirror of public.ecr.aws, and",
        ),
        (
            {"network__endpoints": True, "images": {"mirrors": MIRRORS}, "addons": {"metricsServer": True}},
            "images.mirrors",
            "has no mirror of registry.k8s.io, and",
        ),
        ({"images": {"mirrors": {"docker.io": REGISTRY}}}, "images.mirrors", "names docker.io, from which no chart"),
        ({"images": {"mirrors": {"quay.io": f"https://{REGISTRY}"}}}, "images.mirrors", "is nothing that an image"),
        ({"images": {"mirrors": {"quay.io": f"{REGISTRY}/"}}}, "images.mirrors", "is nothing that an image"),
        ({"network__endpoints": ["iam"]}, "network.endpoints", "iam"),
        ({"network__endpoints": [*sorted(NEEDED), "s3"]}, "network.endpoints", "names s3 twice"),
        (
            {"network__endpoints": True, "karpenter__settings": {"isolatedVPC": False}},
            "karpenter.settings.isolatedVPC",
            "IAM and the price list, which have no endpoint",
        ),
    ],
)
def test_what_cannot_work_without_a_way_out_is_refused(changes: dict[str, Any], key: str, text: str) -> None:
    with pytest.raises(SettingsError) as refused:
        settings.load(example_stack.example(network__natGateways="none", **changes))
    assert key in str(refused.value)
    assert text in str(refused.value)


def test_endpoints_of_other_partitions_are_refused_by_region() -> None:
    changes: dict[str, Any] = {"network__endpoints": ["sts"], "network__zones": 2}
    with pytest.raises(SettingsError, match=r"com\.amazonaws\.cn-north-1\.sts or cn\.com\.amazonaws\.cn-north-1\.sts"):
        settings.load(example_stack.example(**{"aws:region": "cn-north-1"}, **changes))
    settings.load(example_stack.example(**{"aws:region": "us-gov-west-1"}, **changes))


def test_the_examples_documents(golden: Golden) -> None:
    config = yaml.safe_load((example_stack.ROOT / "examples" / "private" / "Pulumi.eks-private.yaml").read_text())
    loaded = settings.load(example_stack.raw(config["config"]))
    assert isinstance(loaded, settings.EksSettings)
    made = deploy(lambda: eks.Environment("eks", loaded))
    golden("private-endpoints", {each.name: each.inputs for each in made.of(ENDPOINT)})
    golden("private-node-class", made.of(NODE_CLASS)[0].inputs)
    golden("private-values-cilium", made.one("eks-cilium-release").inputs["values"])
    golden("private-values-karpenter", made.one("eks-karpenter-controller").inputs["values"])


def test_on_aks_karpenters_image_comes_from_a_mirror_and_naps_images_are_its_own() -> None:
    images = {"mirrors": {"mcr.microsoft.com": "registry.example.com/mcr"}}
    args = example_stack.aks("aks-self-hosted", images=images)
    made = deploy(lambda: aks.Environment("aks", args))
    (values,) = [
        each.inputs["values"]
        for each in made.of("kubernetes:helm.sh/v3:Release")
        if "controller" in (each.inputs.get("values") or {})
    ]
    assert repositories(values) == {"registry.example.com/mcr/aks/karpenter/controller"}
    with pytest.raises(SettingsError, match="in mode nap there is none"):
        example_stack.aks("aks-nap", images=images)
    with pytest.raises(SettingsError, match=r"names quay\.io, from which no chart"):
        example_stack.aks("aks-self-hosted", images={"mirrors": {"quay.io": "registry.example.com"}})
