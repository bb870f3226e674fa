"""All that a report says of each recorded story, held against a file: numbers, reasons, assertions, table, JUnit.

`pytest --update-goldens` writes the files; look at the difference that `zcat` shows before you commit it.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.karpenter.instance_types import Facts
from karpstack.scale_test.numbers.thresholds import Thresholds
from karpstack.scale_test.recording.timeline import TimelineError
from karpstack.scale_test.reports import report
from karpstack.scale_test.reports.junit import junit
from karpstack.scale_test.reports.reasons import markdown
from karpstack.scale_test.reports.schema import Report
from karpstack.scale_test.reports.table import table
from karpstack.scale_test.scenarios.environments import Stack
from karpstack.scale_test.scenarios.scenario import Scenario
from tests.unit.scale_test.test_told_stories import PLAIN, RECORDED, stories_of, told

HERE = Path(__file__).parent
OUTPUTS = {
    "aws": {"cloud": "aws", "region": "us-east-1", "karpenterVersion": "1.14.1", "interruptionQueue": "queue"},
    "azure": {"cloud": "azure", "region": "westus2", "karpenterVersion": "managed"},
}


def differences(before: Any, after: Any, at: str = "") -> list[str]:
    """Return where two documents differ, at most ten places."""
    if isinstance(before, dict) and isinstance(after, dict):
        pairs = [(f"{at}.{key}", before.get(key), after.get(key)) for key in {**before, **after}]
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = [(f"{at}.{index}", *pair) for index, pair in enumerate(zip(before, after, strict=True))]
    else:
        return [] if before == after else [f"{at}: {str(before)[:200]} -> {str(after)[:200]}"]
    return [line for key, old, new in pairs for line in differences(old, new, key)][:10]


@pytest.mark.parametrize("name", [*PLAIN, *RECORDED])
def test_the_report_is_the_golden_one(name: str, shipped: dict[str, Scenario], request: pytest.FixtureRequest) -> None:
    kind = name.split(".")[0]
    cloud = "aws" if kind == "eks" else "azure"
    scenarios = [shipped[one].in_environment(kind) for one in stories_of(name)]
    limits = yaml.safe_load((HERE.parents[2] / "playbooks" / "thresholds.yml").read_text())
    made = report.make(
        scenarios,
        told(name),
        Stack("told", OUTPUTS[cloud]),
        facts=Facts.load(cloud),
        thresholds=Thresholds.parse(limits, "thresholds", shipped),
        version="0.1.0",
    )
    Report.model_validate(made)
    cases = [(case.name, [one.message for one in case.result]) for suite in junit(made) for case in suite]
    found = {
        "report": made,
        "table": [row for row in table(made).splitlines() if row[:1] in "│┃"],
        "why": markdown(made).splitlines(),
        "junit": cases,
    }
    found = json.loads(json.dumps(found))
    path = HERE / "told" / f"{name}.report.json.gz"
    if request.config.getoption("--update-goldens"):
        path.write_bytes(gzip.compress(f"{json.dumps(found, indent=1)}\n".encode(), mtime=0))
    assert differences(json.loads(gzip.decompress(path.read_bytes())), found) == []


@pytest.mark.parametrize("began", ["1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-01-01T00:00:00Z"])
def test_a_time_that_cannot_be_right_is_an_error(began: str, shipped: dict[str, Scenario]) -> None:
    """As a clock leaves it that is set during the recording."""
    name = next(name for name in RECORDED if name.startswith("eks."))
    scenarios = [shipped[one].in_environment("eks") for one in stories_of(name)]
    first, *lines = told(name)
    with pytest.raises(TimelineError, match=r"^timeline.jsonl"):
        report.make(scenarios, [{**first, "received": began}, *lines], Stack("mine", {}), version="1")


@pytest.mark.parametrize("name", ["eks.drift", "eks.budget"])
def test_a_timeline_that_ends_before_the_story_does_not_pass(name: str, shipped: dict[str, Scenario]) -> None:
    """A job was killed during the clean-up, for example: it is not known whether the nodes are gone."""
    scenarios = [shipped[one].in_environment("eks") for one in stories_of(name)]
    lines = list(told(name))
    for number, line in enumerate(lines):
        passed = report.make(scenarios, lines[:number], Stack("mine", {}), version="1")["passed"]
        assert not passed, f"cut before line {number + 1}, {line['type']}"
        if line["type"] == "END":
            break


def test_what_did_not_run_does_not_pass(shipped: dict[str, Scenario]) -> None:
    """There is no story at all, or a story begins again and does not end, or a step stands there twice."""
    scenarios = [shipped[one].in_environment("eks") for one in stories_of("eks.budget")]
    lines = list(told("eks.budget"))
    assert report.make(scenarios, lines, Stack("mine", {}), version="1")["passed"]
    assert not report.make([], lines, Stack("mine", {}), version="1")["passed"]
    again = [*lines, {**next(line for line in lines if line["type"] == "STORY"), "received": lines[-1]["received"]}]
    assert not report.make(scenarios, again, Stack("mine", {}), version="1")["passed"]
    twice = [line | ({"step": 0} if line["type"] == "STEP" else {}) for line in lines]
    assert not report.make(scenarios, twice, Stack("mine", {}), version="1")["passed"]
