"""The look before `up` at an EKS cluster that is there, in the simulated account; what runs in it is said here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.components import settings
from karpstack.components.naming import EksNames
from karpstack.components.settings.workloads import Workloads
from karpstack.preflight.aws import documents, names, quotas, rights
from karpstack.preflight.aws.asking import Aws
from karpstack.preflight.aws.checks import EXISTING
from karpstack.preflight.aws.deployer import Scope
from karpstack.preflight.aws.subject import ExistingSubject, existing_subject
from karpstack.preflight.finding import blockers, run
from karpstack.preflight.stack import State
from tests.unit.command_line import karpstack
from tests.unit.example_stack import changed, raw, stack_file
from tests.unit.found import EKS_WORKLOADS as RUNS
from tests.unit.found import let_run
from tests.unit.preflight.test_preflight_rights import as_role
from tests.unit.programs import made as deployed
from tests.unit.rehearsal.provider_aws_world import World
from tests.unit.rehearsal.resource_world import Change
from tests.unit.rehearsal.test_aws_described import NAME
from tests.unit.rehearsal.test_aws_described import cluster as account

main = karpstack("preflight")

STACK = stack_file("eks-existing-cluster")
CLUSTER_AUTOSCALER = "kube-system/cluster-autoscaler"
ID = "123456789012"


def example(**changes: Any) -> settings.ExistingEksSettings:
    """The example with changes; None removes a key."""
    loaded = settings.load(raw(changed(yaml.safe_load(STACK.read_text())["config"], changes)))
    assert isinstance(loaded, settings.ExistingEksSettings)
    return loaded


def looked_at(
    world: World, *, client: Callable[[str], Any] | None = None, state: State | None = None, **changes: Any
) -> ExistingSubject:
    aws = world.account
    return existing_subject(Aws(aws.region, client or aws.client), example(**changes), {}, state or State())


@contextmanager
def looked(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Change = lambda file: None,
    runs: Workloads = RUNS,
) -> Iterator[World]:
    let_run(monkeypatch, runs)
    with account(folder, change) as world:
        yield world


def said(seen: ExistingSubject) -> dict[str, list[tuple[str, str]]]:
    return {
        one.name: [(finding.severity, finding.what) for finding in one.findings]
        for one in run(EXISTING, seen)
        if one.findings
    }


def test_nothing_is_in_the_way_of_the_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with looked(tmp_path, monkeypatch, runs=replace(RUNS, autoscalers=[CLUSTER_AUTOSCALER])) as world:
        seen = looked_at(world)
        checked = run(EXISTING, seen)
        assert blockers(checked) == []
        (doubt,) = (finding for one in checked for finding in one.findings if finding.severity == "warning")
        assert "also runs Cluster Autoscaler" in doubt.what
        assert doubt.told_by == "eks:DescribeCluster"
        assert seen.zones() == ["us-east-1a", "us-east-1b"]
        assert seen.version == "1.36"


def test_a_cluster_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with looked(tmp_path, monkeypatch) as world:
        told = said(looked_at(world, cluster__existing="Shop_2"))
        assert [severity for severity, _ in told["cluster"]] == ["error"]
        assert "does not exist in this account and region" in told["cluster"][0][1]
        # What depends on it says so, and what does not is judged.
        assert told["NodePool types"] == [("warning", "could not be checked: the cluster Shop_2 does not exist")]
        assert "role names" not in told


def test_a_node_pool_and_an_image_that_its_zones_and_version_have_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with looked(tmp_path, monkeypatch) as world:
        pool = example().node_pools["default"]
        zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1f"]}
        wanted = {**pool["template"]["spec"], "requirements": [*pool["template"]["spec"]["requirements"], zone]}
        seen = looked_at(
            world,
            nodePools={"default": {**pool, "template": {"spec": wanted}}},
            nodeClasses__default__amiSelectorTerms=[{"alias": "bottlerocket@v1.10.0"}],
        )
        told = said(seen)
        assert "excludes every zone of the stack (us-east-1a, us-east-1b)" in told["NodePool types"][0][1]
        assert "has no image for Kubernetes 1.36" in told["node class images"][0][1]


def test_names_that_somebody_else_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with looked(tmp_path, monkeypatch) as world:
        trust = '{"Version": "2012-10-17", "Statement": []}'
        for role in ("karpstack-shop-karpenter-nodes", "karpstack-shop-cluster"):
            world.account.client("iam").create_role(RoleName=role, AssumeRolePolicyDocument=trust)
        told = [finding.what for finding in names.roles(looked_at(world))]
        # Of the names that only a stack with a cluster of its own takes, nothing is said.
        assert told == ["the IAM role karpstack-shop-karpenter-nodes already exists"]


def test_what_the_node_groups_hold_is_in_use_and_what_karpenter_holds_is_the_stacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with looked(tmp_path, monkeypatch) as world:
        seen = looked_at(world, nodePools__default__limits={"cpu": 100_000})
        (finding,) = quotas.node_pools(seen)
        # Two m5.large, two m5.xlarge and two c5.2xlarge of the groups.
        used = sum(vcpus * 2 for vcpus in (2, 4, 8))
        every = sum(quotas._value(seen, quota) for quota in (quotas.ON_DEMAND, quotas.SPOT))
        assert f"has room for {every - used:g} (quota" in finding.what
        assert not seen.owns({"kubernetes.io/cluster/Shop_1", "eks:nodegroup-name"})
        assert seen.owns({"kubernetes.io/cluster/Shop_1", "karpenter.sh/nodepool"})


@pytest.mark.parametrize("identity", ["pod-identity", "irsa"])
def test_the_smaller_policy_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, identity: str) -> None:
    with looked(tmp_path, monkeypatch) as world:
        given = example(karpenter__identity=identity)
        found = documents.documents(given, "aws", ID)
        statements = [statement for each in found for statement in each["Statement"]]
        assert not any("CreateCluster" in action for one in statements for action in one["Action"])
        seen = looked_at(world, client=as_role(world.account, *statements), karpenter__identity=identity)
        checked = run(EXISTING, seen)
        assert blockers(checked) == []
        warned = [finding.what for one in checked for finding in one.findings if finding.severity == "warning"]
        assert [what for what in warned if "could not be checked" in what] == []


def test_a_right_that_is_missing_is_named_with_its_statement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with looked(tmp_path, monkeypatch) as world:
        (document,) = documents.documents(example(), "aws", ID)
        (entry,) = (one for one in document["Statement"] if one["Sid"] == "Cluster")
        entry["Action"].remove("eks:CreateAccessEntry")
        seen = looked_at(world, client=as_role(world.account, *document["Statement"]))
        (finding,) = rights.rights(seen)
        assert (
            f"has no permission for eks:CreateAccessEntry on arn:aws:eks:us-east-1:{ID}:cluster/{NAME}" in finding.what
        )


def test_what_the_stack_makes_is_what_the_policy_is_for() -> None:
    needed = {
        kind
        for identity in ("pod-identity", "irsa")
        for grant in rights.deploying(
            example(karpenter__identity=identity),
            Scope(partition="aws", region="us-east-1", account=ID, names=EksNames("karpstack-shop", existing=NAME)),
        )
        for kind in grant.needed_by
    }
    made = {one.type for one in deployed("eks-existing-cluster").resources.values() if one.type.startswith("aws:")}
    assert made <= needed
    assert needed - made == {"aws:iam/openIdConnectProvider:OpenIdConnectProvider"}


def test_one_policy_is_told_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rights", "shop", "--config-file", str(STACK), "--account", ID]) == 0
    assert capsys.readouterr().out.startswith("One policy for whoever deploys shop:")
