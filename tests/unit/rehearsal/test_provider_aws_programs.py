"""What programs rely on that karpstack's own program does without: EKS's own add-ons, drawn IDs, a complete preview."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from karpstack.rehearsal.attachment.resource import UNKNOWN
from tests.unit.rehearsal.aws_world import document
from tests.unit.rehearsal.provider_aws_world import World, open_world

CLUSTER = "aws:eks/cluster:Cluster"
WORKLOADS = {"aws-node", "kube-proxy", "coredns"}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path) as opened:
        yield opened


@pytest.mark.parametrize("asked", [{"bootstrapSelfManagedAddons": True}, {}, {"bootstrapSelfManagedAddons": False}])
def test_eks_installs_its_add_ons_unless_a_program_says_no(world: World, asked: dict[str, bool]) -> None:
    inputs = {**world.cluster_inputs(world.network()[1]), "bootstrapSelfManagedAddons": None, **asked}
    world.create(CLUSTER, **{name: value for name, value in inputs.items() if value is not None})
    manifests = world.clusters.running["rehearsed"].manifests
    workloads = {name for kind, name in manifests if kind in ("DaemonSet", "Deployment")}
    assert workloads == (set() if asked.get("bootstrapSelfManagedAddons") is False else WORKLOADS)
    if workloads:
        assert manifests["Service", "kube-dns"]["spec"]["clusterIP"] == "172.20.0.10"


def test_a_preview_knows_what_eks_chose_only_when_it_has_chosen(world: World) -> None:
    inputs = world.check(CLUSTER, **world.cluster_inputs(world.network()[1]))
    kind = world.type(CLUSTER)
    before = kind.preview(inputs, id="", state={})["vpcConfig"]
    assert before == {**inputs["vpcConfig"], "clusterSecurityGroupId": UNKNOWN, "vpcId": UNKNOWN}
    made = kind.create(inputs, timeout=5.0)
    after = kind.preview({**inputs, "version": "1.37"}, id=made.id, state={})["vpcConfig"]
    chosen = {name: made.outputs["vpcConfig"][name] for name in ("clusterSecurityGroupId", "vpcId")}
    assert after == {**inputs["vpcConfig"], **chosen}


def test_a_target_without_an_id_gets_one(world: World) -> None:
    rule = world.create("aws:cloudwatch/eventRule:EventRule", eventPattern='{"source": ["aws.ec2"]}')
    arn = "arn:aws:sqs:us-east-1:123456789012:queue"
    made = world.create("aws:cloudwatch/eventTarget:EventTarget", rule=rule.id, arn=arn)
    assert made.outputs["targetId"] == world.proposed_name


def test_an_inline_policy_counts_and_has_its_own_limit(world: World) -> None:
    role = world.role("ec2.amazonaws.com", "nodes")
    policy = document(Action="ec2:RunInstances", Resource="*")
    kind = "aws:iam/rolePolicy:RolePolicy"
    made = world.create(kind, role=role.id, name="inline", policy=policy)
    assert world.account.roles.allows(world.account.roles.by_name("nodes"), "ec2:RunInstances")
    world.delete(kind, made)
    assert not world.account.roles.allows(world.account.roles.by_name("nodes"), "ec2:RunInstances")
    with pytest.raises(Exception, match="Maximum policy size of 10240 bytes exceeded for role nodes"):
        world.create(kind, role=role.id, name="long", policy=document(Action="x" * 10240, Resource="*"))
