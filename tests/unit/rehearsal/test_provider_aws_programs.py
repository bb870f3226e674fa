"""What programs rely on that karpstack's own program does without: EKS's own add-ons, drawn IDs, a complete preview."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from karpstack.rehearsal.attachment.resource import AUTOMATIC, UNKNOWN
from karpstack.rehearsal.aws.invokes import invokes
from karpstack.rehearsal.aws.resource import ROWS
from tests.unit.rehearsal.aws_world import document
from tests.unit.rehearsal.provider_aws_world import CASES, World, open_world

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


def test_what_means_nothing_in_a_block_is_unknown_by_name(world: World) -> None:
    table = world.type("aws:ec2/routeTable:RouteTable")
    routes = [{"cidrBlock": "0.0.0.0/0", "gatewayId": "", "transitGatewayId": "tgw-1"}, {"ipv6CidrBlock": "::/0"}]
    assert table.unknown({"vpcId": "vpc-1", "routes": routes}) == ["routes.transitGatewayId", "routes.ipv6CidrBlock"]
    assert not table.unknown({"vpcId": "vpc-1", "routes": UNKNOWN})


@pytest.mark.parametrize(
    ("token", "given", "said"),
    [
        ("aws:ec2/routeTable:RouteTable", {"routes": [{"gatewayId": "igw-1"}]}, "only routes with a cidrBlock"),
        ("aws:ec2/routeTable:RouteTable", {"routes": [{"cidrBlock": "0.0.0.0/0"}] * 2}, "two routes to 0.0.0.0/0"),
        ("aws:ec2/securityGroup:SecurityGroup", {"name": "a", "ingress": [{"protocol": "tcp"}]}, "a rule needs"),
        (
            "aws:ec2/securityGroup:SecurityGroup",
            {"name": "a", "egress": [{"protocol": "all", "toPort": 65535, "cidrBlocks": ["0.0.0.0/0"]}]},
            "must both be 0",
        ),
        ("aws:iam/role:Role", {"name": "a", "assumeRolePolicy": "{}", "inlinePolicies": [{}]}, "needs name and policy"),
        (
            "aws:eks/addon:Addon",
            {"clusterName": "a", "addonName": "coredns", "serviceAccountRoleArn": "arn"},
            "take no role",
        ),
    ],
)
def test_blocks_that_aws_would_refuse_are_refused_before_a_call(
    world: World, token: str, given: dict[str, object], said: str
) -> None:
    _, failures = world.type(token).check({"vpcId": "vpc-1", **given}, name="mine")
    assert [failure for failure in failures if said in failure.reason]


PREFIXES = {token: f"{row.name}Prefix" for token, row in ROWS.items() if f"{row.name}Prefix" in row.accepts}


@pytest.mark.parametrize("token", PREFIXES)
def test_a_prefix_begins_a_name_that_stays(world: World, token: str) -> None:
    name, prefix = ROWS[token].name, PREFIXES[token]
    inputs = {key: value for key, value in CASES[token].inputs(world).items() if key != name}
    kind = world.type(token)
    drawn = kind.autoname({**inputs, prefix: "own-"}, {}, "logical-1234567")
    assert drawn[name] == "own-1234567"
    assert kind.autoname({**inputs, prefix: "own-"}, drawn, "logical-7654321")[name] == drawn[name]
    assert kind.autoname({**inputs, prefix: "new-"}, drawn, "logical-7654321")[name] == "new-7654321"
    assert kind.autoname({**inputs, prefix: UNKNOWN}, {}, "logical-1234567")[name] is UNKNOWN
    drawn.pop(AUTOMATIC)
    created = world.create(token, **drawn)
    assert (created.outputs[name], created.outputs[prefix]) == ("own-1234567", "own-")
    _, failures = kind.check({**inputs, name: "another", prefix: "own-"}, name="logical")
    assert [failure.property for failure in failures] == [prefix]


def test_a_cluster_takes_the_token_that_was_signed_before_it_was_made(world: World) -> None:
    token = invokes(world.account)["aws:eks/getClusterAuth:getClusterAuth"]({"name": "rehearsed"})["token"].value
    assert token.startswith("k8s-aws-v1.")
    world.cluster()
    assert world.clusters.started[0]["token"] == token


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
