"""Programs that do not use karpstack, by the real engine and the production Karpenter: up, a scenario, down."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from kubernetes import client

from karpstack.rehearsal.state.folder import StackFolder
from tests.rehearsal.conftest import ROOT, RehearsedStack

PROGRAMS = ROOT / "examples" / "programs"
#: The region's setting, a program, and what is listed of it.
UNSUPPORTED = [
    (
        {"aws:region": "us-east-1"},
        """
import pulumi
import pulumi_aws as aws

vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16", region="us-east-1")
aws.rds.Instance("db", instance_class="db.t4g.micro", opts=pulumi.ResourceOptions(depends_on=[vpc]))
aws.ec2.RouteTable("out", vpc_id=vpc.id, routes=[{"cidr_block": "0.0.0.0/0", "transit_gateway_id": "tgw-1"}])
aws.ec2.RouteTable("six", vpc_id=vpc.id, routes=[{"ipv6_cidr_block": "::/0", "gateway_id": "igw-1"}])
aws.eks.Addon("metrics", cluster_name="x", addon_name="metrics-server")
aws.eks.FargateProfile("karpenter", cluster_name="x", pod_execution_role_arn="y", selectors=[{"namespace": "x"}])
aws.dynamodb.get_table_output(name="x")
aws.sqs.Queue("jobs", opts=pulumi.ResourceOptions(version="6.83.0"))
""",
        [
            "aws:ec2/vpc:Vpc vpc: the property region",
            "aws:ec2/routeTable:RouteTable out: the property routes.transitGatewayId",
            "aws:ec2/routeTable:RouteTable six: the property routes",
            "aws:eks/addon:Addon metrics: the property addonName",
            "aws:eks/fargateProfile:FargateProfile karpenter",
            "aws:rds/instance:Instance db",
            "function aws:dynamodb/getTable:getTable",
            "version 6.83.0 of the package; the rehearsal plays 7.",
        ],
    ),
    (
        {"azure-native:location": "westus2"},
        """
import pulumi_azure_native as azure
from pulumi_azure_native import containerservice

group = azure.resources.ResourceGroup("shop")
azure.storage.StorageAccount("files", resource_group_name=group.name, kind="StorageV2", sku={"name": "Standard_LRS"})
cluster = containerservice.ManagedCluster(
    "shop",
    resource_group_name=group.name,
    dns_prefix="shop",
    identity={"type": "SystemAssigned"},
    agent_pool_profiles=[{"name": "system", "mode": "System", "count": 1, "vm_size": "Standard_D2s_v5"}],
    network_profile={"network_plugin": "azure", "network_plugin_mode": "overlay"},
    addon_profiles={"azurepolicy": {"enabled": True}},
    auto_scaler_profile={"scan_interval": "20s"},
)
azure.storage.list_storage_account_keys(resource_group_name="shop", account_name="files")
""",
        [
            "azure-native:storage:StorageAccount files",
            "azure-native:containerservice:ManagedCluster shop: the property autoScalerProfile",
            "azure-native:containerservice:ManagedCluster shop: the property addonProfiles: ",
            "azure-native:containerservice:ManagedCluster shop: the property networkProfile: ",
            "function azure-native:storage:listStorageAccountKeys",
        ],
    ),
]


@dataclass(frozen=True)
class Program:
    """A program, and what it makes.

    Attributes:
        folder: Its project.
        stack: Name of its stack.
        kind: What scenarios call its environment.
        pool: Name of its NodePool.
        cluster: Type of its cluster.
        namespace: Where its Karpenter is; empty where the cloud runs it.
    """

    folder: Path
    stack: str
    kind: str
    pool: str
    cluster: str
    namespace: str = ""


EKS, AKS = "aws:eks/cluster:Cluster", "azure-native:containerservice:ManagedCluster"
SELF_HOSTED = "aks-self-hosted"
EXAMPLES = {
    "flat": Program(PROGRAMS / "flat", "dev", "eks", "default", EKS, "karpenter"),
    "components": Program(PROGRAMS / "components", "staging", "eks", "general", EKS, "kube-system"),
    "aks": Program(PROGRAMS / "aks", "dev", "aks-nap", "general", AKS),
}


@dataclass
class OtherStack(RehearsedStack):
    """A stack of a program that does not use karpstack."""

    program: Path = PROGRAMS

    def words(self, name: str, *arguments: str) -> list[str]:
        return [*super().words(name, *arguments), "--program", str(self.program)]


def new(folder: Path, program: Path, stack: str) -> OtherStack:
    configuration = program / f"Pulumi.{stack}.yaml"
    return OtherStack(StackFolder(stack, folder / "state" / stack), configuration, program=program)


def self_hosted(folder: Path) -> Program:
    """AKS with Karpenter by its charts."""
    program = Path(__file__).with_name("aks_self_hosted_program.py").read_text()
    key = "AAAAC3NzaC1lZDI1NTE5AAAAIIs8dCJrhr+neBnyA/zBCFmRNhVDmh8+ODtYhg+1Sb2N"
    project(folder, program, {"azure-native:location": "westus2", "shop:sshPublicKey": f"ssh-ed25519 {key}"})
    return Program(folder, "dev", SELF_HOSTED, "general", AKS, "karpenter")


def project(folder: Path, program: str, config: dict[str, str]) -> None:
    """Write the project `shop` with the stack `dev`."""
    folder.mkdir(exist_ok=True)
    (folder / "Pulumi.yaml").write_text("name: shop\nruntime: python\n")
    (folder / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": config}))
    (folder / "__main__.py").write_text(program)


def scenario(folder: Path, program: Program) -> Path:
    """A scenario of the program's author: three pods on the program's own NodePool."""
    folder.mkdir()
    pool = program.pool
    written = {
        "name": "three-pods",
        "description": "Three pods get a node of the NodePool",
        "stacks": [program.kind],
        "existingNodePools": [pool],
        "workload": {
            "namespace": "shop",
            "deployment": {
                "name": "web",
                "requests": {"cpu": "500m"},
                "nodeSelector": {"karpenter.sh/nodepool": pool},
            },
        },
        "steps": [{"scale": 3, "expect": {"within": 180, "nodes": 1, "nodePool": pool}}],
    }
    (folder / "three-pods.yml").write_text(yaml.safe_dump(written))
    return folder


@pytest.mark.parametrize("name", [*EXAMPLES, SELF_HOSTED])
def test_a_program_comes_up_and_its_pods_get_a_node(name: str, tmp_path: Path) -> None:
    """Karpenter is ready, pods get a node, and nothing is left after `down`."""
    program = self_hosted(tmp_path / "program") if name == SELF_HOSTED else EXAMPLES[name]
    stack = new(tmp_path, program.folder, program.stack)
    try:
        stack.succeed("up")
        if program.namespace:
            controller = client.AppsV1Api(stack.api()).read_namespaced_deployment("karpenter", program.namespace)
            assert controller.status
            assert controller.spec
            assert controller.status.available_replicas == controller.spec.replicas
        report = tmp_path / "report"
        scenarios = scenario(tmp_path / "scenarios", program)
        stack.succeed("run", "--scenario-dir", str(scenarios), "--report", str(report))
        (story,) = json.loads((report / "report.json").read_text())["stories"]
        assert story["passed"]
        assert program.cluster in stack.made()
        stack.succeed("down")
        assert stack.made() == set()
    finally:
        stack.command("down", "--force")


@pytest.mark.parametrize(("region", "program", "listed"), UNSUPPORTED, ids=["aws", "azure"])
def test_all_that_is_unsupported_is_refused_by_type_and_name_before_anything_is_created(
    region: dict[str, str], program: str, listed: list[str], tmp_path: Path
) -> None:
    project(tmp_path, program, region)
    stack = new(tmp_path, tmp_path, "dev")
    refused = stack.command("up")
    assert refused.returncode == 2, refused.stdout
    for words in listed:
        assert words in refused.stdout
    assert "Updating" not in refused.stdout
    assert not stack.made()
    assert stack.command("status").returncode == 1  # it is down
