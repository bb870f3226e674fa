"""What is left in the cloud: what counts as an orphan, who is asked, and how it fails a story."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from karpstack.scale_test.acting import resources
from karpstack.scale_test.acting.resources import (
    CloudResource,
    NotCheckedError,
    check_resources,
    cloud,
    from_aws,
    from_rehearsal,
    instances_of,
    orphans,
)
from karpstack.scale_test.judging.replay import Replay
from karpstack.scale_test.recording.timeline import Line, Reader
from karpstack.scale_test.reports import report
from karpstack.scale_test.scenarios.environments import Stack
from karpstack.scale_test.scenarios.scenario import Scenario
from tests.unit.preflight.fake_server import FakeServer

FIT, SPOT = "eks-cheapest-fit", "eks-spot-consolidation"
ANSWER: dict[str, list[Any]] = {
    "instances": [{"id": "i-1", "nodeclaim": "a"}, {"id": "i-2", "nodeclaim": ""}],
    "launchTemplates": ["lt-1"],
    "networkInterfaces": ["eni-1"],
}


def test_an_instance_without_a_node_claim_is_an_orphan() -> None:
    found = from_rehearsal(ANSWER)
    assert [one.id for one in orphans(found, {"a"})] == ["i-2"]
    # With no instance that lives, an interface belongs to nothing either. Launch templates may stay for a while.
    assert [one.id for one in orphans(found, {"b"})] == ["i-1", "i-2", "eni-1"]
    assert orphans([], set()) == []


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[list[CloudResource]]:
    """What the cloud says at one look after another; the last answer stays."""
    answers: list[list[CloudResource]] = []

    def ask(_: Sequence[str]) -> list[CloudResource]:
        return answers.pop(0) if len(answers) > 1 else answers[0]

    monkeypatch.setattr(resources, "cloud", lambda *_: ("the cloud", ask))
    monkeypatch.setattr("time.sleep", lambda _: None)
    return answers


def test_a_look_waits_until_what_is_going_is_gone(told: list[list[CloudResource]], tmp_path: Path) -> None:
    told += [from_rehearsal(ANSWER), []]
    path = tmp_path / "timeline.jsonl"
    assert check_resources(path, {}, "", "story", FIT, patience=60) == []
    (line,) = Reader(path).new_lines()
    assert (line["source"], line["scenario"], line["moment"], line["orphans"]) == ("the cloud", FIT, "story", [])


def test_a_look_says_what_stays(told: list[list[CloudResource]], tmp_path: Path) -> None:
    told.append(from_rehearsal(ANSWER))
    path = tmp_path / "timeline.jsonl"
    assert check_resources(path, {}, "", "story", FIT, patience=0) == [
        "instance i-1",
        "instance i-2",
        "network interface eni-1",
    ]
    (line,) = Reader(path).new_lines()
    assert [one["id"] for one in line["orphans"]] == ["i-1", "i-2", "eni-1"]


def test_after_all_stories_launch_templates_that_they_brought_are_waited_for(
    told: list[list[CloudResource]], tmp_path: Path
) -> None:
    old, new = (CloudResource(TEMPLATE["kind"], name) for name in ("old", "new"))
    told += [[old], [old, new], [old, new], [old]]
    path = tmp_path / "timeline.jsonl"
    check_resources(path, {}, "", "before", "", patience=60)
    assert check_resources(path, {}, "", "story", FIT, patience=60) == []
    assert check_resources(path, {}, "", "after", "", patience=60) == []
    assert len(told) == 1
    told[:] = [[old, new]]
    assert check_resources(path, {}, "", "after", "", patience=0) == ["launch template new"]


def test_where_nobody_can_be_asked_the_timeline_says_so(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    check_resources(path, {"cloud": "azure"}, "", "story", FIT, patience=60)
    (line,) = Reader(path).new_lines()
    assert line["source"] == ""
    assert "on a real subscription nobody is asked" in line["reason"]


def test_a_rehearsal_is_asked_at_its_own_endpoint(tmp_path: Path) -> None:
    assert cloud({"cloud": "azure"}, "http://127.0.0.1:9")[0] == "the rehearsal"
    path = tmp_path / "timeline.jsonl"
    check_resources(path, {"cloud": "azure"}, "http://127.0.0.1:9", "story", FIT, patience=60)
    (line,) = Reader(path).new_lines()
    assert "does not answer" in line["reason"]


@mock_aws
def test_aws_is_asked_for_what_has_the_clusters_tags(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    ec2 = boto3.client("ec2", region_name="us-east-1")

    def tags(kind: str, cluster: str, **more: str) -> list[Any]:
        found = {"eks:eks-cluster-name": cluster, **{key.replace("_", "/"): value for key, value in more.items()}}
        return [{"ResourceType": kind, "Tags": [{"Key": key, "Value": value} for key, value in found.items()]}]

    def instance(specification: Sequence[Any]) -> str:
        made = ec2.run_instances(ImageId="ami-12c6146b", MinCount=1, MaxCount=1, TagSpecifications=specification)
        return str(made["Instances"][0]["InstanceId"])

    ours = {"karpenter.sh_nodepool": "default", "karpenter.sh_nodeclaim": "default-1"}
    lives = instance(tags("instance", "ours", **ours))
    ended = instance(tags("instance", "ours", **ours))
    ec2.terminate_instances(InstanceIds=[ended])
    instance(tags("instance", "others", **ours))
    instance(tags("instance", "ours"))  # of a managed node group
    for cluster in ("ours", "others"):
        ec2.create_launch_template(
            LaunchTemplateName=f"of-{cluster}",
            LaunchTemplateData={"InstanceType": "m5.large"},
            TagSpecifications=tags("launch-template", cluster),
        )
    (tmp_path / "config").write_text("[profile ours]\n")
    for name, value in (("CONFIG_FILE", str(tmp_path / "config")), ("PROFILE", "ours"), ("DEFAULT_PROFILE", "another")):
        monkeypatch.setenv(f"AWS_{name}", value)
    assert from_aws("us-east-1", "ours") == [
        CloudResource("instance", lives, "default-1"),
        CloudResource("launch template", "of-ours"),
    ]

    assert from_aws("us-east-1", "ours", ["i-0123456789abcdef0", ended]) == from_aws("us-east-1", "ours")
    with pytest.raises(
        NotCheckedError, match=r"none of the cluster's nodes in us-east-1 .i-0123456789abcdef0.*another"
    ):
        from_aws("us-east-1", "ours", ["i-0123456789abcdef0"])


def test_the_nodes_of_a_timeline_say_whose_account_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of another account's login, nothing would be left, whatever there is."""
    replay = Replay()
    for name, provider in (
        ("a", "aws:///us-east-1a/i-1"),
        ("b", "aws:///us-east-1a/0f/fargate-ip-10-0-0-1"),
        ("c", ""),
    ):
        replay.nodes[name] = {"providerID": provider}
    assert instances_of(replay) == ["i-1"]
    _, ask = cloud({"cloud": "aws", "region": "us-east-1", "clusterName": "ours"}, "")
    with FakeServer() as server:
        server.otherwise = (503, "no")
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.port}")
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "test")
        with pytest.raises(NotCheckedError):
            ask(["i-1"])
        assert "Name=instance-id" in server.sent[0].replace("Filter.1.Name", "Name")


@pytest.mark.parametrize("answer", [(200, "<html>"), (200, "{}"), (503, "")])
def test_what_is_no_answer_of_awss_is_not_checked(answer: tuple[int, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with FakeServer() as server:
        server.otherwise = answer
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.port}")
        with pytest.raises(NotCheckedError, match="AWS did not tell"):
            from_aws("us-east-1", "ours")


def test_without_credentials_aws_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    with pytest.raises(NotCheckedError, match=r"needs ec2:DescribeInstances and ec2:DescribeLaunchTemplates"):
        from_aws("us-east-1", "ours")


def judged(
    timeline: list[Line], scenarios: dict[str, Scenario], outputs: dict[str, Any], *looks: dict[str, Any]
) -> list[str]:
    """The failures of the recorded run with such looks at the cloud; and that nothing else fails."""
    lines = [{**timeline[-1], "type": "RESOURCES", "source": "the cloud", "reason": "", **found} for found in looks]
    made = report.make(list(scenarios.values()), [*timeline, *json.loads(json.dumps(lines))], Stack("eks", outputs))
    shown = [one for story in made["stories"] for one in story["assertions"] if one["name"] == "clean-up, cloud"]
    assert len(shown) == len({found["scenario"] for found in looks if found["scenario"]})
    return [f"{one['expected']}: {one['seen']}" for one in shown if not one["passed"]] or [one["seen"] for one in shown]


INSTANCE = {"kind": "instance", "id": "i-1", "nodeClaim": ""}
TEMPLATE = {"kind": "launch template", "id": "lt-1", "nodeClaim": ""}


def seen(moment: str, scenario: str, *there: dict[str, Any], left: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    return {"moment": moment, "scenario": scenario, "resources": list(there), "orphans": list(left)}


@pytest.mark.parametrize(
    ("looks", "told"),
    [
        ([seen("story", FIT)], ["nothing left, says the cloud"]),
        ([seen("story", FIT, INSTANCE, left=[INSTANCE])], ["nothing left that belongs to no NodeClaim: instance i-1"]),
        (
            [seen("story", FIT, TEMPLATE)],
            ["nothing left, says the cloud; not checked: launch template lt-1, which Karpenter keeps for some minutes"],
        ),
        ([seen("story", FIT, TEMPLATE), seen("after", "")], ["nothing left, says the cloud"]),
        (
            [seen("story", FIT, TEMPLATE), seen("after", "", TEMPLATE, left=[TEMPLATE])],
            ["nothing left that belongs to no NodeClaim: launch template lt-1"],
        ),
        (  # it is the story's that brought it
            [
                seen("story", FIT, TEMPLATE),
                seen("story", SPOT, TEMPLATE),
                seen("after", "", TEMPLATE, left=[TEMPLATE]),
            ],
            ["nothing left that belongs to no NodeClaim: launch template lt-1"],
        ),
        (
            [seen("before", "", TEMPLATE), seen("story", FIT, TEMPLATE), seen("after", "", TEMPLATE)],
            ["nothing left, says the cloud"],
        ),
        (
            [seen("story", FIT) | {"source": "", "reason": "nobody knows"}],
            ["not checked: nobody knows"],
        ),
    ],
)
def test_what_is_left_in_the_cloud_fails_the_story_that_brought_it(
    timeline: list[Line],
    scenarios: dict[str, Scenario],
    outputs: dict[str, Any],
    looks: list[dict[str, Any]],
    told: list[str],
) -> None:
    assert judged(timeline, scenarios, outputs, *looks) == told
