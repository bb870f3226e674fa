"""What a step expects of each workload, judged over timelines that are made up: rows of `expected.yaml`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.scale_test.judging.assertions import judge
from karpstack.scale_test.judging.steps import StepRun, outcome
from karpstack.scale_test.scenarios.scenario import parse
from tests.unit.scale_test.full_scenario import FULL, OBSERVING, with_value
from tests.unit.scale_test.told_pods import Told

ROWS = yaml.safe_load(Path(__file__).with_name("expected.yaml").read_text(encoding="utf-8"))
OLD, NEW = "registry.k8s.io/pause:3.9", "registry.k8s.io/pause:3.10"
NAMES: dict[str, Any] = {
    "OLD": OLD,
    "NEW": NEW,
    "ROLLED_OUT": {
        "workloads.web.image": OLD,
        "steps.0": {"rollOut": {"workload": "web", "image": NEW}, "expect": {"within": 60}},
    },
    "AGENT": [
        ["pod", "agent-1", "agent", 2, {"node": "a"}],
        ["moved", "web-1", "web", 6],
        ["pod", "agent-1", "agent", 7, {"node": "a", "going": True}],
    ],
    "TWO_DRIFTED": [["node", "a", 6, {"reason": "Drifted"}], ["node", "b", 7, {"reason": "Drifted"}]],
}


def run(row: dict[str, Any]) -> StepRun:
    data = FULL | OBSERVING
    for path, value in meant(row.get("set", {})).items():
        data = with_value(data, path, value)
    expect = row.get("expect", {"disruptionBudgetsKept": True} if "budgets" in row else {})
    data = with_value(data, "steps.0.expect", data["steps"][0]["expect"] | expect)
    told = Told(parse(data, "full.yml").in_environment("eks"))
    if "budgets" in row:
        told.budgets(0, *row["budgets"])
        for node in ("a", "b", "c"):
            told.node(node, 1)
    elif not row.get("bare"):
        told.settled(NEW)
    for call, *given in meant(row.get("do", [])):
        named = given.pop() if isinstance(given[-1], dict) and call != "budgets" else {}
        getattr(told, call)(*given, **meant(named))
    return told.run(0, 4 if row.get("bare") else 5, row["until"])


def meant(given: Any) -> Any:
    if isinstance(given, dict):
        return {key: meant(value) for key, value in given.items()}
    return NAMES.get(given, given) if isinstance(given, str) else given


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_what_a_step_expects_of_workloads(row: dict[str, Any]) -> None:
    step = run(row)
    if "outcome" in row:
        assert outcome(step) == row["outcome"]
    found = {one.name.partition(", ")[2]: one for one in judge(step)}
    for name, (seen, passed) in row.get("judged", {}).items():
        assert found[name].passed is passed, found[name].seen
        assert seen in (None, found[name].seen)
    for expected in row.get("expected", ()):
        assert expected in {one.expected for one in found.values()}
