"""The stories of the EKS example environment, by the real engines; and a story that must fail."""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from karpstack.karpenter import clock
from tests import stories
from tests.rehearsal import canaries
from tests.rehearsal.conftest import ROOT, RehearsedStack

USER_DATA = "#!/bin/sh\n# canary-user-data-Zr5uXe2oKtBq8WnJ\n"


@dataclass(frozen=True)
class Told:
    """What the published stories left."""

    folder: Path
    printed: str
    seen: canaries.CommandLines


@pytest.fixture(scope="module")
def told(eks: RehearsedStack, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """The published stories, told while nodes have secret user data."""
    folder = tmp_path_factory.mktemp("report")
    canaries.plant(eks, "karpstack:nodeClasses.default.userData", USER_DATA)
    with canaries.command_lines() as seen:
        printed = eks.succeed("run", "--report", str(folder))
    assert (folder / "junit.xml").is_file()
    return Told(folder, printed, seen)


@pytest.fixture(scope="module")
def report(told: Told) -> dict[str, Any]:
    return dict(json.loads((told.folder / "report.json").read_text()))


def test_no_secret_leaves_the_place_where_it_belongs(eks: RehearsedStack, told: Told, tmp_path: Path) -> None:
    node_class = eks.by_hand("kubectl", "get", "ec2nodeclass", "default", "-o", "jsonpath={.spec.userData}").stdout
    assert node_class == USER_DATA, "or nothing would be proven"
    with canaries.command_lines() as seen:
        printed = eks.succeed("review", "--output", str(tmp_path))
    seen.seen |= told.seen.seen
    secrets = {"user data": USER_DATA.split()[-1]}
    assert canaries.leaks(eks, secrets, seen, told.printed + printed, told.folder, tmp_path) == []


def test_cheapest_fit_is_one_m5_large(report: dict[str, Any]) -> None:
    stories.check_cheapest_fit(report)
    (claim,) = stories.story(report, "eks-cheapest-fit")["nodeclaims"]
    assert claim["price_per_hour"] == pytest.approx(0.096)  # what Karpenter's own table says for us-east-1


def test_spot_consolidation_ends_on_a_cheaper_smaller_spot_node(report: dict[str, Any]) -> None:
    stories.check_spot_consolidation(report)


def test_spot_default_comes_and_goes(report: dict[str, Any]) -> None:
    stories.check_spot_default(report)


def test_stories_run_faster_than_real_time_and_say_so(report: dict[str, Any]) -> None:
    assert report["clock"]["speed"] > 1.05  # on a busy machine it is not much
    assert report["clock"]["late"] < 10


def test_api_server_cloud_and_kubectl_keep_the_time_of_one_clock(eks: RehearsedStack) -> None:
    page = clock.Page(eks.folder.clock)
    ahead = page.time_ns() / 1e9 - time.time()
    assert ahead > 7, "the stories before were fast, or nothing would be proven"
    eks.by_hand("kubectl", "create", "configmap", "clock")
    shown = eks.by_hand("kubectl", "get", "configmap", "clock", "-o", "jsonpath={.metadata.creationTimestamp}").stdout
    assert abs(datetime.fromisoformat(shown).timestamp() - page.time_ns() / 1e9) < 5
    age = eks.by_hand("kubectl", "get", "configmap", "clock", "--no-headers").stdout.split()[-1]
    assert age.endswith("s"), age
    assert int(age.removesuffix("s")) < 10
    queue = eks.aws("sqs").create_queue(QueueName="clock")["QueueUrl"]
    stamp = eks.aws("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=["CreatedTimestamp"])["Attributes"]
    assert abs(float(stamp["CreatedTimestamp"]) - page.time_ns() / 1e9) < 5
    eks.aws("sqs").delete_queue(QueueUrl=queue)
    eks.by_hand("kubectl", "delete", "configmap", "clock")


def test_check_mode_looks_and_changes_nothing(eks: RehearsedStack, tmp_path: Path) -> None:
    def namespaces() -> set[str]:
        return {
            str(found.metadata.name) for found in client.CoreV1Api(eks.api()).list_namespace().items if found.metadata
        }

    before = namespaces()
    folder = tmp_path / "report"
    command = ("ansible-playbook", "playbooks/scale_test.yml", "--check", "-e", f"report_dir={folder}")
    result = eks.done(*command, "-e", "scenario_labels=walk-through,disruption")
    for name in ("eks-cheapest-fit", "eks-spot-default", "drift"):
        assert name in result
    assert "burst-1000" not in result
    assert namespaces() == before
    assert not folder.exists()
    refused = eks.by_hand(*command, "-e", "scenarios=drifft")
    assert refused.returncode != 0
    assert "did you mean drift?" in refused.stdout


def test_faults_are_survived_a_wrong_expectation_is_told_and_nothing_is_left(
    eks: RehearsedStack, tmp_path: Path
) -> None:
    """An interruption by the stack's own rules and queue, a shortage at the cloud's API, and a type that none gets."""
    survived = ["eks-interruption", "capacity-shortage"]
    scenarios = tmp_path / "scenarios"
    scenarios.mkdir()
    for name in (*survived, "eks-cheapest-fit"):
        shutil.copy(ROOT / "playbooks" / "scenarios" / f"{name}.yml", scenarios)
    wrong = scenarios / "eks-cheapest-fit.yml"
    original = wrong.read_text()
    wrong.write_text(original.replace("- m5.large", "- c5.large").replace("[m5.large]", "[c5.large]"))
    assert wrong.read_text() != original
    result = eks.by_hand(
        "ansible-playbook",
        "playbooks/scale_test.yml",
        "-e",
        f"scenario_dir={scenarios}",
        "-e",
        f"report_dir={tmp_path / 'report'}",
        "-e",
        "follow_launch_templates=false",
    )
    assert result.returncode != 0
    for words in ("expected", "c5.large", "m5.large"):
        assert words in result.stdout, result.stdout
    report = json.loads((tmp_path / "report" / "report.json").read_text())
    assert not stories.story(report, "eks-cheapest-fit")["passed"]
    for name in survived:
        assert stories.story(report, name)["passed"], stories.story(report, name)
    for story in report["stories"]:
        (cloud,) = [assertion for assertion in story["assertions"] if assertion["name"] == "clean-up, cloud"]
        assert cloud["seen"].startswith("nothing left, says the rehearsal"), cloud
    first, second = stories.story(report, "capacity-shortage")["nodeclaims"]
    assert first["instance_type"] != second["instance_type"]
