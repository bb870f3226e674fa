"""Programs that do not use karpstack, by the real engine and the production Karpenter: up, a scenario, down."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from kubernetes import client

from karpstack.rehearsal.state.folder import StackFolder
from tests.rehearsal.conftest import ROOT, RehearsedStack

PROGRAMS = ROOT / "examples" / "programs"
UNSUPPORTED = """
import pulumi
import pulumi_aws as aws

vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16", region="us-east-1")
aws.rds.Instance("db", instance_class="db.t4g.micro", opts=pulumi.ResourceOptions(depends_on=[vpc]))
aws.dynamodb.get_table_output(name="x")
aws.sqs.Queue("jobs", opts=pulumi.ResourceOptions(version="6.83.0"))
"""


@dataclass
class OtherStack(RehearsedStack):
    """A stack of a program that does not use karpstack."""

    program: Path = PROGRAMS

    def words(self, name: str, *arguments: str) -> list[str]:
        return [*super().words(name, *arguments), "--program", str(self.program)]


def new(folder: Path, program: Path, stack: str) -> OtherStack:
    configuration = program / f"Pulumi.{stack}.yaml"
    return OtherStack(StackFolder(stack, folder / "state" / stack), configuration, program=program)


@pytest.fixture
def flat(tmp_path: Path) -> Iterator[OtherStack]:
    stack = new(tmp_path, PROGRAMS / "flat", "dev")
    yield stack
    stack.command("down", "--force")


@pytest.fixture
def components(tmp_path: Path) -> Iterator[OtherStack]:
    stack = new(tmp_path, PROGRAMS / "components", "staging")
    yield stack
    stack.command("down", "--force")


def scenario(folder: Path, pool: str) -> Path:
    """A scenario of the program's author: three pods on the program's own NodePool."""
    folder.mkdir()
    written = {
        "name": "three-pods",
        "description": "Three pods get a node of the NodePool",
        "stacks": ["eks"],
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


def works(stack: OtherStack, folder: Path, pool: str, namespace: str) -> None:
    """Karpenter is ready, pods get a node, and nothing is left after `down`."""
    stack.succeed("up")
    controller = client.AppsV1Api(stack.api()).read_namespaced_deployment("karpenter", namespace)
    assert controller.status
    assert controller.spec
    assert controller.status.available_replicas == controller.spec.replicas
    report = folder / "report"
    stack.succeed("run", "--scenario-dir", str(scenario(folder / "scenarios", pool)), "--report", str(report))
    (story,) = json.loads((report / "report.json").read_text())["stories"]
    assert story["passed"]
    before = stack.made()
    assert "aws:eks/cluster:Cluster" in before
    stack.succeed("down")
    assert stack.made() == set()


def test_a_flat_program_comes_up_and_its_pods_get_a_node(flat: OtherStack, tmp_path: Path) -> None:
    works(flat, tmp_path, "default", "karpenter")


def test_a_program_of_components_comes_up_and_its_pods_get_a_node(components: OtherStack, tmp_path: Path) -> None:
    works(components, tmp_path, "general", "kube-system")


def test_all_that_is_unsupported_is_refused_by_type_and_name_before_anything_is_created(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: shop\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text("config: {'aws:region': us-east-1}\n")
    (tmp_path / "__main__.py").write_text(UNSUPPORTED)
    stack = new(tmp_path, tmp_path, "dev")
    refused = stack.command("up")
    assert refused.returncode == 2, refused.stdout
    for words in (
        "aws:ec2/vpc:Vpc vpc: the property region",
        "aws:rds/instance:Instance db",
        "function aws:dynamodb/getTable:getTable",
        "version 6.83.0 of the package; the rehearsal plays 7.",
    ):
        assert words in refused.stdout
    assert "Updating" not in refused.stdout
    assert not stack.made()
    assert stack.command("status").returncode == 1  # it is down
