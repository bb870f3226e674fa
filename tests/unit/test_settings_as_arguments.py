"""components.settings as arguments of the components: how a program that has no stack file makes an environment."""

from __future__ import annotations

from ipaddress import IPv4Network

import pytest
from pydantic import ValidationError

from karpstack.components import aks, eks, settings
from karpstack.components.problems import SettingsError
from karpstack.components.settings import aks as aks_sections
from karpstack.components.settings import eks as eks_sections
from tests.unit.example_stack import example
from tests.unit.mock_engine import SUBSCRIPTION, deploy

EKS = settings.EksSettings(
    name="mine",
    region="us-east-1",
    network=eks_sections.NetworkSettings(
        vpc_cidr=IPv4Network("10.0.0.0/16"),
        pod_cidr=IPv4Network("10.244.0.0/16"),
        service_cidr=IPv4Network("172.20.0.0/16"),
    ),
    cluster=eks_sections.ClusterSettings(version="1.36"),
    node_classes={"default": {"amiSelectorTerms": [{"alias": "al2023@latest"}]}},
    node_pools={"default": {}},
)
AKS = settings.AksSettings(
    name="mine",
    region="westus2",
    subscription_id=SUBSCRIPTION,
    mode="nap",
    network=aks_sections.NetworkSettings(
        vnet_cidr=IPv4Network("10.224.0.0/16"),
        subnet_cidr=IPv4Network("10.224.0.0/20"),
        pod_cidr=IPv4Network("10.244.0.0/16"),
        service_cidr=IPv4Network("10.0.0.0/16"),
    ),
    cluster=aks_sections.ClusterSettings(version="1.36"),
    system_nodes=aks_sections.SystemNodesSettings(os_sku="AzureLinux"),
    node_classes={},
    node_pools={},
)


def test_an_environment_without_a_stack_file() -> None:
    cluster = deploy(lambda: eks.Environment("library", EKS)).one("library-cluster-control-plane").inputs
    assert (cluster["name"], cluster["version"]) == ("mine", "1.36")
    cluster = deploy(lambda: aks.Environment("library", AKS)).one("library-cluster-control-plane").inputs
    assert (cluster["location"], cluster["agentPoolProfiles"][0]["osSKU"]) == ("westus2", "AzureLinux")


def test_a_section_is_checked_when_it_is_made() -> None:
    with pytest.raises(ValidationError, match="AWS creates no VPC larger than /16"):
        eks_sections.NetworkSettings(
            vpc_cidr=IPv4Network("10.0.0.0/8"),
            pod_cidr=IPv4Network("10.244.0.0/16"),
            service_cidr=IPv4Network("172.20.0.0/16"),
        )


def test_sections_that_contradict_each_other_make_no_environment() -> None:
    many = EKS.model_copy(update={"karpenter": eks_sections.KarpenterSettings(replicas=3)})
    with pytest.raises(SettingsError, match=r"karpstack:karpenter\.replicas = 3"):
        deploy(lambda: eks.Environment("library", many))
    nobody = AKS.model_copy(update={"mode": "self-hosted"})
    with pytest.raises(SettingsError, match="karpstack:karpenter"):
        deploy(lambda: aks.Environment("library", nobody))


@pytest.mark.parametrize(
    ("misspelt", "meant"), [("network__vpc_cidr", "vpcCidr"), ("system_nodes", "systemNodes"), ("region", "aws:region")]
)
def test_in_a_stack_file_the_names_of_fields_are_misspelt(misspelt: str, meant: str) -> None:
    with pytest.raises(SettingsError, match="is not a setting") as caught:
        settings.load(example(**{misspelt: "10.0.0.0/16"}))
    (fix,) = (problem.fix for problem in caught.value.problems if problem.key.endswith(misspelt.split("__")[-1]))
    assert meant in fix
