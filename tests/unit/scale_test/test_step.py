"""Each action that a step can have is done by somebody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from karpstack.scale_test.acting import step as acting
from karpstack.scale_test.acting.cluster import RefusedError
from karpstack.scale_test.acting.faults import FaultError, Target, inflict
from karpstack.scale_test.judging.live import Live
from karpstack.scale_test.recording.timeline import Writer, now, parse_time
from karpstack.scale_test.scenarios.manifests import title
from karpstack.scale_test.scenarios.scenario import Scenario, Step, parse

STORY = "eks-cheapest-fit"
ACTIONS: dict[str, tuple[Any, list[Any]]] = {
    "scale": (3, [("change", "Deployment inflate", {"spec": {"replicas": 3}})]),
    "apply": (
        [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "b"}}],
        [("create", "ConfigMap settings")],
    ),
    "rollOut": (
        {"workload": "inflate", "image": "registry.k8s.io/pause:3.9"},
        [
            (
                "change",
                "Deployment inflate",
                {
                    "spec": {
                        "template": {
                            "spec": {
                                "containers": [
                                    {
                                        "name": "pause",
                                        "image": "registry.k8s.io/pause:3.9",
                                        "resources": {"requests": {"memory": "1Gi"}},
                                    }
                                ]
                            }
                        }
                    }
                },
            )
        ],
    ),
    "patchNodePool": (
        {"name": "cheapest-fit", "spec": {"weight": 7}},
        [("change", "NodePool cheapest-fit", {"spec": {"weight": 7}})],
    ),
    "patchNodeClass": (
        {"name": "mine", "spec": {"tags": {"a": "b"}}},
        [("change", "EC2NodeClass mine", {"spec": {"tags": {"a": "b"}}})],
    ),
    "cordon": ({"nodes": 1}, ["cordon"]),
    "deleteNode": ({}, ["delete"]),
    "churn": ({"replicas": [4, 2], "every": 1, "for": 2}, ["churn"]),
    "live": ({"for": "10s", "curve": {"*": {"0h": 2}}}, ["live"]),
    "interrupt": ({}, ["inflict"]),
    "rebalance": ({}, ["inflict"]),
    "outOfCapacity": ({}, ["inflict"]),
    "throttle": ({"calls": 2}, ["inflict"]),
    "publishImage": ({}, ["inflict"]),
    "clearFaults": ({}, ["inflict"]),
    "killController": ({}, ["inflict"]),
    "restartApiServer": ({}, ["inflict"]),
    "observe": ("nothing is done", []),
}


class Cluster:
    """Notes what is asked of it."""

    def __init__(self) -> None:
        self.done: list[Any] = []

    def create(self, manifest: dict[str, Any]) -> str:
        self.done.append(("create", title(manifest)))
        return "uid"

    def change(self, manifest: dict[str, Any], patch: object) -> None:
        self.done.append(("change", title(manifest), patch))


def with_step(scenario: Scenario, **action: Any) -> Scenario:
    data = scenario.model_dump(by_alias=True, mode="json", exclude_none=True)
    data["workload"]["namespace"] = "other"
    data["nodeClasses"] = {"mine": {"copyOf": "default"}}
    data["steps"] = [{"expect": {"within": 60}, **action}]
    return parse(data, "changed")


def act(scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    cluster = Cluster()
    said = {"inflict": "inflict", "cordon": "cordon", "delete": "delete", "live_until": "live", "churn": "churn"}
    for name, word in said.items():
        monkeypatch.setattr(acting, name, lambda *_, word=word: cluster.done.append(word))
    monkeypatch.setattr(acting, "wait_for_end", lambda *_: [])
    found = acting.take(cluster, Target({}, ""), Live(tmp_path / "timeline"), scenario, 0)  # type: ignore[arg-type]
    assert found == []
    return cluster.done


def test_no_action_is_forgotten() -> None:
    fields = {field.alias or name for name, field in Step.model_fields.items()}
    assert fields - {"expect", "meanwhile"} == set(ACTIONS)


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_is_done(
    shipped: dict[str, Scenario], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    given, done = ACTIONS[action]
    assert act(with_step(shipped[STORY], **{action: given}), tmp_path, monkeypatch) == done


def test_what_breaks_meanwhile_comes_after_the_scaling(
    shipped: dict[str, Scenario], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = with_step(shipped[STORY], scale=2, meanwhile={"after": 1, "killController": {}})
    assert act(scenario, tmp_path, monkeypatch) == [
        ("change", "Deployment inflate", {"spec": {"replicas": 2}}),
        "inflict",
    ]


@pytest.mark.parametrize("action", ["apply", "rollOut", "patchNodePool", "patchNodeClass"])
def test_what_breaks_meanwhile_comes_after_any_action_that_has_a_middle(
    shipped: dict[str, Scenario], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    given, done = ACTIONS[action]
    scenario = with_step(shipped[STORY], **{action: given}, meanwhile={"after": 1, "interrupt": {"nodes": 1}})
    assert act(scenario, tmp_path, monkeypatch) == [*done, "inflict"]


def test_a_fault_that_nobody_knows_fails_the_story(
    shipped: dict[str, Scenario], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = with_step(shipped[STORY], observe="a fault of tomorrow")
    path = tmp_path / "timeline"
    Writer(path).write("STORY", scenario=scenario.name)
    with pytest.raises(FaultError, match="observe: a fault of tomorrow: nobody here knows how to bring it about"):
        inflict(Target({}, ""), Live(path), scenario, 0, parse_time(now()))


def test_a_step_that_the_api_server_refuses_is_named_with_its_file(
    shipped: dict[str, Scenario], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise RefusedError("PATCH", 'unknown field "spec.wieght"')

    monkeypatch.setattr(Cluster, "change", refuse)
    scenario = with_step(shipped[STORY], patchNodePool={"name": "cheapest-fit", "spec": {"weight": 7}})
    place = r'^eks-cheapest-fit\.yml: steps\.0\.patchNodePool \(this is step 1\): .*: unknown field "spec\.wieght"$'
    with pytest.raises(RefusedError, match=place):
        act(scenario, tmp_path, monkeypatch)
