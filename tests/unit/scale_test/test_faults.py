"""Faults: what is asked of whom, what is marked in the timeline, and what is said when it is not possible."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, cast

import boto3
import pytest
from kubernetes import client
from moto import mock_aws

from karpstack.scale_test.acting import faults
from karpstack.scale_test.acting.faults import (
    FaultError,
    Target,
    clear,
    inflict,
    notice,
    send_notice,
)
from karpstack.scale_test.judging.live import Live
from karpstack.scale_test.judging.steps import StepRun
from karpstack.scale_test.recording.timeline import Line, Reader, Writer, parse_time
from karpstack.scale_test.scenarios.scenario import Scenario, parse
from tests.serving import serving
from tests.unit.command_line import karpstack

main = karpstack("story")

STORY = "eks-cheapest-fit"


class Rehearsal:
    """A control endpoint that notes what it is asked, and answers what a test wants."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.shown: set[str | None] = set()
        self.answers: dict[str, tuple[int, Any]] = {
            "/interruptions": (200, {"deliveries": [{"queue": "q", "problem": ""}]}),
            "/faults": (200, {"faults": []}),
        }
        rehearsal = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                rehearsal.shown.add(self.headers["Authorization"])
                text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                rehearsal.asked.append((self.command, self.path, json.loads(text) if text else None))
                status, content = rehearsal.answers.get(self.path, (200, {}))
                body = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_DELETE = answer  # noqa: N815 - the names that http.server looks for

            def log_message(self, template: str, *args: Any) -> None:
                """Tests read `asked`."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def rehearsal() -> Iterator[Rehearsal]:
    made = Rehearsal()
    with serving(made.server):
        yield made


@pytest.fixture
def requested(timeline: list[Line]) -> datetime:
    """When the recorded story's only step was asked for."""
    return parse_time(next(line for line in timeline if line["type"] == "STEP")["requested"])


@pytest.fixture
def path(timeline: list[Line], tmp_path: Path) -> Path:
    """The recorded timeline up to the end of the first step: one m5.large is there."""
    end = next(index for index, line in enumerate(timeline) if line["type"] == "STEP")
    file = tmp_path / "timeline.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in timeline[: end + 1]))
    return file


def story(scenarios: dict[str, Scenario], **action: Any) -> Scenario:
    """The recorded story with another step behind."""
    data = scenarios[STORY].model_dump(by_alias=True, mode="json", exclude_none=True)
    data["steps"].append({**action, "expect": {"within": 60}})
    return parse(data, "changed")


def marks(path: Path) -> list[tuple[str, Any]]:
    found = [line for line in Reader(path).new_lines() if line["type"] == "FAULT"]
    assert all((line["scenario"], line["step"]) == (STORY, 1) for line in found)
    return [(line["kind"], line["detail"]) for line in found]


def node(timeline: list[Line]) -> tuple[str, str]:
    """Name of the recorded NodeClaim, and id of its instance."""
    claim = next(line["object"] for line in timeline if line.get("kind") == "NodeClaim")
    provider = next(
        line["object"]["providerID"]
        for line in timeline
        if line.get("kind") == "NodeClaim" and line["object"].get("providerID")
    )
    return claim["metadata"]["name"], provider.rpartition("/")[2]


@pytest.mark.parametrize(("action", "kind"), [("interrupt", "interruption"), ("rebalance", "rebalance")])
def test_a_notice_is_asked_of_the_rehearsal_for_the_storys_node(
    rehearsal: Rehearsal,
    path: Path,
    scenarios: dict[str, Scenario],
    timeline: list[Line],
    requested: datetime,
    action: str,
    kind: str,
) -> None:
    claim, instance = node(timeline)
    target = Target({}, rehearsal.url)
    done = inflict(target, Live(path), story(scenarios, **{action: {"nodes": 1}}), 1, requested)
    assert rehearsal.asked == [("POST", "/interruptions", {"kind": kind, "instance": instance})]
    assert marks(path) == [(kind, {"nodeClaim": claim, "instance": instance})]
    assert [(one["kind"], one["detail"]) for one in done] == marks(path)


def test_requests_show_the_token_of_the_rehearsal(rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KARPSTACK_REHEARSAL_TOKEN", "secret")
    clear(rehearsal.url)
    assert rehearsal.shown == {"Bearer secret"}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((200, {"deliveries": []}), "no rule of the account asks for it; look at the stack's event rules"),
        ((200, {"deliveries": [{"queue": "q", "problem": "forbidden by its policy"}]}), "q: forbidden by its policy"),
        ((400, {"error": "instance = i-1: it is no spot instance"}), "it is no spot instance"),
        ((500, "plain"), "plain"),
    ],
)
def test_a_notice_that_does_not_arrive_fails(
    rehearsal: Rehearsal,
    path: Path,
    scenarios: dict[str, Scenario],
    requested: datetime,
    answer: tuple[int, Any],
    message: str,
) -> None:
    rehearsal.answers["/interruptions"] = answer
    with pytest.raises(FaultError, match=message):
        inflict(Target({}, rehearsal.url), Live(path), story(scenarios, interrupt={}), 1, requested)
    assert marks(path) == []


def test_more_nodes_than_there_are_cannot_be_interrupted(
    rehearsal: Rehearsal, path: Path, scenarios: dict[str, Scenario], requested: datetime
) -> None:
    with pytest.raises(FaultError, match=r"interrupt 2 nodes: the story has 1 such nodes.*let an earlier step"):
        inflict(Target({}, rehearsal.url), Live(path), story(scenarios, interrupt={"nodes": 2}), 1, requested)
    assert rehearsal.asked == []


@pytest.mark.parametrize(
    ("wanted", "asked"),
    [
        ({}, {"instanceTypes": ["m5.large"]}),
        ({"instanceTypes": ["a", "b"], "zones": ["z"]}, {"instanceTypes": ["a", "b"], "zones": ["z"]}),
        ({"capacityTypes": ["spot"]}, {"instanceTypes": ["m5.large"], "capacityTypes": ["spot"]}),
    ],
)
def test_what_was_launched_runs_short_unless_types_are_named(
    rehearsal: Rehearsal,
    path: Path,
    scenarios: dict[str, Scenario],
    requested: datetime,
    wanted: dict[str, Any],
    asked: dict[str, Any],
) -> None:
    inflict(Target({}, rehearsal.url), Live(path), story(scenarios, outOfCapacity=wanted), 1, requested)
    assert rehearsal.asked == [("POST", "/faults", {"kind": "out-of-capacity", **asked})]
    assert marks(path) == [("out-of-capacity", asked)]


def test_throttling_and_restarts_are_the_rehearsals_matter(
    rehearsal: Rehearsal, path: Path, scenarios: dict[str, Scenario], requested: datetime
) -> None:
    target = Target({}, rehearsal.url)
    inflict(target, Live(path), story(scenarios, throttle={"calls": 3}), 1, requested)
    inflict(target, Live(path), story(scenarios, restartApiServer={}), 1, requested)
    inflict(target, Live(path), story(scenarios, clearFaults={}), 1, requested)
    assert rehearsal.asked == [
        ("POST", "/faults", {"kind": "throttle", "calls": 3}),
        ("POST", "/restarts", {"engine": "kube-apiserver"}),
        ("DELETE", "/faults", None),
    ]
    assert marks(path) == [("throttle", {"calls": 3}), ("restart-api-server", {})]


def test_a_command_publishes_an_image_and_starts_karpenter_anew(
    rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(faults, "kill_controller", lambda namespace: [f"{namespace}/karpenter-1"])
    monkeypatch.setenv("KARPSTACK_REHEARSAL_URL", rehearsal.url)
    rehearsal.answers["/images"] = (200, {"published": ["al2023@v20260814"]})
    assert main(["publish-image"]) == 0
    assert capsys.readouterr().out == "published: al2023@v20260814\nstarted again: kube-system/karpenter-1\n"
    monkeypatch.delenv("KARPSTACK_REHEARSAL_URL")
    assert main(["publish-image"]) == 2
    assert "no cloud that publishes what it is told" in capsys.readouterr().err


def test_images_are_published_by_the_rehearsal_and_their_releases_kept(
    rehearsal: Rehearsal, path: Path, scenarios: dict[str, Scenario], requested: datetime
) -> None:
    rehearsal.answers["/images"] = (200, {"published": ["al2023@v20260814"]})
    inflict(Target({}, rehearsal.url), Live(path), story(scenarios, publishImage={}), 1, requested)
    assert rehearsal.asked == [("POST", "/images", None)]
    assert marks(path) == [("publish-image", {"published": ["al2023@v20260814"]})]


def test_what_only_a_rehearsal_can_is_refused_elsewhere(
    path: Path, scenarios: dict[str, Scenario], requested: datetime
) -> None:
    with pytest.raises(FaultError, match=r"KARPSTACK_REHEARSAL_URL is not set.*run this story in a rehearsal"):
        inflict(Target({}, ""), Live(path), story(scenarios, throttle={"calls": 3}), 1, requested)


def test_a_rehearsal_that_is_gone_says_so(path: Path, scenarios: dict[str, Scenario], requested: datetime) -> None:
    with pytest.raises(FaultError, match=r"does not answer.*is the stack up"):
        inflict(Target({}, "http://127.0.0.1:9"), Live(path), story(scenarios, throttle={"calls": 3}), 1, requested)


def test_faults_that_last_are_ended(rehearsal: Rehearsal) -> None:
    assert not clear(rehearsal.url)
    short = {"kind": "out-of-capacity", "instanceTypes": ["m5.large"], "hits": 0}
    rehearsal.answers["/faults"] = (200, {"faults": [{"kind": "throttle", "calls": 3, "hits": 1}, short]})
    assert clear(rehearsal.url)
    assert rehearsal.asked == [("DELETE", "/faults", None)] * 2


def test_throttling_that_no_call_met_fails(rehearsal: Rehearsal) -> None:
    rehearsal.answers["/faults"] = (200, {"faults": [{"kind": "throttle", "calls": 3, "hits": 0}]})
    with pytest.raises(FaultError, match=r"throttling of 3 calls was set and none was made.*let a later step launch"):
        clear(rehearsal.url)


@pytest.mark.parametrize(
    ("moment", "last"),
    [
        ({"once": "pending"}, lambda line: line.get("kind") == "Pod" and "nodeName" not in line["object"]),
        (
            {"once": "launched"},
            lambda line: (
                line.get("kind") == "NodeClaim"
                and any(
                    (found["type"], found["status"]) == ("Launched", "True") for found in line["object"]["conditions"]
                )
            ),
        ),
    ],
)
def test_a_fault_in_the_middle_waits_for_its_moment(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    scenarios: dict[str, Scenario],
    timeline: list[Line],
    requested: datetime,
    moment: dict[str, Any],
    last: Any,
) -> None:
    """The timeline grows by a line at each look; the fault comes with the line that makes the moment."""
    data = scenarios[STORY].model_dump(by_alias=True, mode="json", exclude_none=True)
    data["steps"][0] |= {"meanwhile": {**moment, "killController": {}}}
    # The record is from long ago.
    monkeypatch.setattr(faults, "now", requested.isoformat)
    grown = tmp_path / "timeline.jsonl"
    waiting = iter(timeline)
    pods = Pods("karpenter-1")

    def grow(_: float) -> None:
        with grown.open("a") as file:
            file.write(json.dumps(next(waiting)) + "\n")

    monkeypatch.setattr("time.sleep", grow)

    with Writer(grown, recording=True):
        target = Target({"karpenterNamespace": "kube-system"}, "", cast(client.CoreV1Api, pods))
        inflict(target, Live(grown), parse(data, "changed"), 0, requested)
    assert [namespace for namespace, *_ in pods.deleted] == ["kube-system"]
    *before, fault = list(Reader(grown).new_lines())
    assert (fault["kind"], fault["detail"]) == ("kill-controller", {"pods": ["karpenter-1"]})
    assert last(before[-1])
    assert not any(last(line) for line in before[:-1] if line.get("object", {}).get("metadata", {}).get("namespace"))


def test_nodes_are_taken_back_in_the_middle_of_a_roll_out(
    path: Path, scenarios: dict[str, Scenario], rehearsal: Rehearsal, requested: datetime
) -> None:
    step = {"rollOut": {"workload": "inflate", "image": "registry.k8s.io/pause:3.9"}}
    changed = story(scenarios, **step, meanwhile={"after": 0, "interrupt": {"nodes": 1}})
    with Writer(path, recording=True):
        (done,) = inflict(Target({}, rehearsal.url), Live(path), changed, 1, requested)
    assert done["kind"] == "interruption"
    assert rehearsal.asked == [
        ("POST", "/interruptions", {"kind": "interruption", "instance": done["detail"]["instance"]})
    ]
    # Those are the nodes that a replacement is about.
    live = Live(path)
    live.read()
    run = StepRun(live.replay, changed, 1, requested, live.replay.time)
    assert [claim.name for claim in run.leaving()] == [done["detail"]["nodeClaim"]]


def test_a_step_without_a_middle_fails(path: Path, scenarios: dict[str, Scenario], requested: datetime) -> None:
    data = scenarios[STORY].model_dump(by_alias=True, mode="json", exclude_none=True)
    data["steps"][0] |= {"meanwhile": {"once": "launched", "killController": {}}}
    with Writer(path, recording=True), pytest.raises(FaultError, match=r"had no middle; let it bring nodes"):
        inflict(Target({}, ""), Live(path), parse(data, "changed"), 0, requested)


@mock_aws
def test_a_real_queue_gets_what_eventbridge_would_send(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    sqs = boto3.client("sqs", region_name="eu-west-1")
    url = sqs.create_queue(QueueName="interruptions")["QueueUrl"]
    (tmp_path / "config").write_text("[profile ours]\n")
    for name, value in (("CONFIG_FILE", str(tmp_path / "config")), ("PROFILE", "ours"), ("DEFAULT_PROFILE", "another")):
        monkeypatch.setenv(f"AWS_{name}", value)
    send_notice("eu-west-1", "interruptions", "interruption", "i-0123")
    (message,) = sqs.receive_message(QueueUrl=url)["Messages"]
    sent = json.loads(message["Body"])
    assert sent["detail-type"] == "EC2 Spot Instance Interruption Warning"
    assert sent["detail"] == {"instance-id": "i-0123", "instance-action": "terminate"}
    assert (sent["source"], sent["region"], sent["account"]) == ("aws.ec2", "eu-west-1", "123456789012")
    assert sent["version"] == "0"
    parse_time(sent["time"])
    monkeypatch.delenv("AWS_DEFAULT_PROFILE")  # moto itself would take it to describe a refusal
    with pytest.raises(FaultError, match=r"NonExistentQueue.*needs sqs:GetQueueUrl and sqs:SendMessage"):
        send_notice("eu-west-1", "another", "interruption", "i-0123")


def test_a_recommendation_has_no_action() -> None:
    made = notice("rebalance", "1", "eu-west-1", "i-0123")
    assert made["detail-type"] == "EC2 Instance Rebalance Recommendation"
    assert made["detail"] == {"instance-id": "i-0123"}


class Pods:
    """The part of Kubernetes' API that killing needs; notes what is deleted."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.deleted: list[tuple[str, str, int]] = []

    def list_namespaced_pod(self, namespace: str, label_selector: str, **_: object) -> client.V1PodList:
        metadata = [client.V1ObjectMeta(name=name, namespace=namespace) for name in self.names]
        return client.V1PodList(items=[client.V1Pod(metadata=found) for found in metadata])

    def delete_collection_namespaced_pod(
        self, namespace: str, label_selector: str, grace_period_seconds: int, **_: object
    ) -> None:
        self.deleted.append((namespace, label_selector, grace_period_seconds))


def test_all_pods_of_the_controller_are_deleted_at_once() -> None:
    """One after the other, the second would take over from the first, and nothing would have been killed."""
    pods = Pods("karpenter-1", "karpenter-2")
    assert faults.kill_controller("kube-system", cast(client.CoreV1Api, pods)) == ["karpenter-1", "karpenter-2"]
    assert pods.deleted == [("kube-system", "app.kubernetes.io/name=karpenter", 0)]


def test_where_no_controller_is_none_can_be_killed() -> None:
    with pytest.raises(FaultError, match=r"in kube-system, so there is no controller to kill"):
        faults.kill_controller("kube-system", cast(client.CoreV1Api, Pods()))
