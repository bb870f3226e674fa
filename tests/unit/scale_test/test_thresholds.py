"""Thresholds: data that is checked, and stories held against it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.karpenter.instance_types import Facts
from karpstack.scale_test.numbers.thresholds import Thresholds, ThresholdsError
from karpstack.scale_test.recording.timeline import Line
from karpstack.scale_test.reports import report
from karpstack.scale_test.scenarios.environments import Stack
from karpstack.scale_test.scenarios.scenario import Scenario

ROOT = Path(__file__).resolve().parents[3]
FIT, SPOT = "eks-cheapest-fit", "eks-spot-consolidation"


def parse(data: object) -> Thresholds:
    return Thresholds.parse(data, "thresholds.yml", [FIT, SPOT])


@pytest.fixture
def failures(scenarios: dict[str, Scenario], timeline: list[Line], outputs: dict[str, Any]) -> Any:
    def found(limits: dict[str, Any], **options: Any) -> list[str]:
        options = {"facts": Facts.load("aws"), **options}
        made = report.make(
            [scenarios[FIT], scenarios[SPOT]], timeline, Stack("eks", outputs), thresholds=parse(limits), **options
        )
        assert made["thresholds"] == parse(limits).data()
        return report.failures(made)

    return found


def test_the_shipped_thresholds_are_of_shipped_scenarios(shipped: dict[str, Scenario]) -> None:
    found = Thresholds.load(ROOT / "playbooks" / "thresholds.yml", shipped)
    assert found.data()["default"]["phases"]


def test_the_recorded_stories_keep_within_the_shipped_thresholds(failures: Any) -> None:
    shipped = yaml.safe_load((ROOT / "playbooks" / "thresholds.yml").read_text())
    assert failures({name: limits for name, limits in shipped.items() if name in ("default", FIT, SPOT)}) == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            {"eks-cheapest-fitt": {}},
            "eks-cheapest-fitt: no such scenario, so it would limit nothing; did you mean eks-ch",
        ),
        ({FIT: {"node": 1}}, "eks-cheapest-fit.node: 1: unknown key, so it would limit nothing; did you mean nodes?"),
        (
            {"default": {"packing": {"gpu": 1}}},
            "default.packing.gpu: 1: unknown key, so it would limit nothing; did you mean cpu?",
        ),
        (
            {"default": {"phases": {"pod_pending_to_run": {}}}},
            "'pod_pending_to_run' is no phase, so it would limit nothing; did you mean pod_pending_to_running?",
        ),
        (
            {"default": {"phases": {"pod_pending_to_running": {"p95": 1}}}},
            "p95: 1: unknown key, so it would limit nothing; did you mean p99?",
        ),
        (
            {"default": {"cost_ratio": 0.5}},
            "default.cost_ratio: input should be greater than or equal to 1; no threshold",
        ),
        ({"default": []}, "thresholds.yml: default: [] limits nothing"),
        ({"default": False}, "thresholds.yml: default: False limits nothing"),
        ([1], "[1] limits nothing; write limits under names of scenarios"),
    ],
)
def test_a_wrong_threshold_fails_with_the_fix(data: object, message: str) -> None:
    with pytest.raises(ThresholdsError) as error:
        parse(data)
    assert message in str(error.value)
    assert "thresholds.yml" in str(error.value)


def test_all_that_is_wrong_is_named_at_once() -> None:
    with pytest.raises(ThresholdsError) as error:
        parse({"nobody": {"nodes": -1, "usd": 0}})
    assert len(str(error.value).splitlines()) == 3


def test_a_file_that_is_not_there_or_no_yaml_is_named(tmp_path: Path) -> None:
    path = tmp_path / "limits.yml"
    for content in (None, "a: [", "", "[]", "false"):
        if content is not None:
            path.write_text(content)
        with pytest.raises(ThresholdsError, match=r"limits\.yml"):
            Thresholds.load(path, [])
    path.write_text("{}")
    assert Thresholds.load(path, []).data() == {}


def test_a_storys_own_limits_go_before_the_default() -> None:
    found = parse({"default": {"nodes": 3, "packing": {"cpu": 0.2}}, FIT: {"nodes": 1, "packing": {"memory": 0.1}}})
    assert found.data(FIT) == {"nodes": 1, "packing": {"cpu": 0.2, "memory": 0.1}}
    assert found.data(SPOT) == {"nodes": 3, "packing": {"cpu": 0.2}}


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"nodes": 0}, "threshold nodes: expected at most 0 nodes; seen 1 nodes"),
        ({"usd": 1e-6}, "threshold usd: expected at most 1e-06 USD; seen 0.000"),
        ({"peak_usd_per_hour": 0.05}, "threshold peak_usd_per_hour: expected at most 0.05 USD an hour; seen 0.096"),
        ({"cost_ratio": 1.01}, "threshold cost_ratio: expected at most 1.01 times the lower bound; seen 1."),
        ({"pending_pod_seconds": 1}, "threshold pending_pod_seconds: expected at most 1 s; seen"),
        ({"packing": {"memory": 0.99}}, "threshold packing memory: expected at least 0.99; seen 0."),
        (
            {"phases": {"pod_pending_to_nominated": {"p50": 0.001}}},
            "threshold pod_pending_to_nominated p50: expected at most 0.001 s; seen 1.",
        ),
        (
            {"phases": {"pod_pending_to_running": {"max": 0.001}}, "simulated_phases": True},
            "threshold pod_pending_to_running max: expected at most 0.001 s; seen",
        ),
    ],
)
def test_a_limit_that_is_passed_fails_the_story(failures: Any, limits: dict[str, Any], message: str) -> None:
    (failure,) = failures({FIT: limits})
    assert failure.startswith(f"{FIT}: {message}")
    assert "report.json" in failure


def test_simulated_phases_are_not_judged_unless_that_is_said(failures: Any) -> None:
    assert failures({FIT: {"phases": {"pod_pending_to_running": {"max": 0.001}}}}) == []


def test_a_ratio_that_is_not_known_fails(failures: Any) -> None:
    (failure,) = failures({FIT: {"cost_ratio": 3}}, facts=None)
    assert "threshold cost_ratio: expected at most 3; seen not known: no facts about instance types" in failure


def test_a_story_without_a_look_at_the_metrics_says_that_restarts_are_not_judged() -> None:
    limits = Thresholds.parse({"default": {"controller_restarts": 0}}, "a.yml", [FIT])
    story = {
        "durations": [],
        "pending_pod_seconds": 0.0,
        "cost": {"ratio": None, "usd": 0.0, "peak_usd_per_hour": 0.0},
        "series": {"nodes": []},
        "controller_restarts": None,
    }
    (found,) = limits.judge(FIT, story)
    assert (found.name, found.passed) == ("threshold controller_restarts", True)
    assert found.seen.startswith("not judged: ")


@pytest.mark.parametrize(("most", "failed"), [(0, 1), (1, 0)])
def test_a_controller_that_crashed_fails_the_story_in_which_it_did(
    failures: Any, timeline: list[Line], most: int, failed: int
) -> None:
    """It came back between two looks of the first story; the second has nothing to do with that."""
    begun = next(index for index, line in enumerate(timeline) if line["type"] == "STEP")
    for line in timeline[begun:]:
        if line["type"] == "CONTROLLER":
            line["started"] += 60.0
    found = failures({"default": {"controller_restarts": most}})
    assert [text.startswith(f"{FIT}: threshold controller_restarts") for text in found] == [True] * failed
