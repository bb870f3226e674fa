"""From a recorded timeline to a report: a wrong expectation says expected, seen and where to look."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from karpstack.scale_test.recording.timeline import Line
from karpstack.scale_test.reports import report
from karpstack.scale_test.reports.table import table
from karpstack.scale_test.reports.writing import with_evidence_in
from karpstack.scale_test.scenarios.environments import Stack
from karpstack.scale_test.scenarios.scenario import Scenario, parse

Make = Callable[..., dict[str, Any]]
SPOT = "eks-spot-consolidation"
FIT = "eks-cheapest-fit"
QUEUE = "karpstack-eks-interruption"
READING, WAITING = True, False


@pytest.fixture
def make(scenarios: dict[str, Scenario], timeline: list[Line], outputs: dict[str, Any]) -> Make:
    """Makes the report of the recorded run, with another expectation or another timeline."""

    def made(story: str = FIT, step: int = 0, lines: list[Line] | None = None, **expect: object) -> dict[str, Any]:
        data = scenarios[story].model_dump(by_alias=True, mode="json", exclude_none=True)
        data["steps"][step]["expect"] |= expect
        changed = scenarios | {story: parse(data, story)}
        return report.make(list(changed.values()), timeline if lines is None else lines, Stack("eks", outputs))

    return made


def test_a_node_that_goes_before_its_replacement_is_ready_fails(make: Make, timeline: list[Line]) -> None:
    """As if the replacement had been initialized only when the old node was gone."""
    small = make()["stories"][1]["nodeclaims"][1]["name"]
    gone = next(
        index
        for index, line in enumerate(timeline)
        if line["type"] == "DELETED" and line["kind"] == "NodeClaim" and index > len(timeline) / 2
    )
    early = [
        line
        for line in timeline[:gone]
        if line.get("kind") == "NodeClaim" and line["object"]["metadata"]["name"] == small
    ]
    lines = [line for line in timeline if line not in early]
    lines.insert(lines.index(timeline[gone]) + 1, early[-1] | {"received": timeline[gone]["received"]})
    assert any(
        "order: expected each node disrupted only after" in failure for failure in report.failures(make(lines=lines))
    )


def test_a_story_that_broke_off_fails(make: Make, timeline: list[Line]) -> None:
    end = next(index for index, line in enumerate(timeline) if line["type"] == "STEP")
    error = timeline[end] | {"type": "ERROR", "task": "Scale to 5", "message": "no such host"}
    made = make(lines=[*timeline[:end], error])
    fit, spot = made["stories"]
    messages = "\n".join(report.failures(made))
    assert "Scale to 5: expected no error; seen no such host" in messages
    assert "step 1 (scale to 5): expected run; seen not run" in messages
    assert not spot["passed"]
    assert spot["nodeclaims"] == []
    assert fit["seconds"] > 0


def with_queue(timeline: list[Line], *seen: tuple[int, bool], story: str = FIT) -> list[Line]:
    """The timeline with the queue's errors, and whether it was being read, seen during a story."""
    end = next(index for index, line in enumerate(timeline) if line["type"] == "STEP" and line["scenario"] == story)
    lines = [
        {"type": "QUEUE", "received": timeline[end]["received"], "errors": errors, "reading": reading}
        for errors, reading in seen
    ]
    return [*timeline[:end], *lines, *timeline[end:]]


def of_the_queue(made: dict[str, Any], story: int = 0) -> list[dict[str, Any]]:
    assertions = made["stories"][story]["assertions"]
    return [assertion for assertion in assertions if assertion["name"] == "interruption queue"]


NEVER = "hardly ever a read under way"
FEW = "not judged: the controller's metrics were seen less than twice"


@pytest.mark.parametrize(
    ("queue", "seen", "said", "passed"),
    [
        (QUEUE, [(0, READING), (0, READING)], "no errors", True),
        (QUEUE, [(9, READING), (9, READING)], "no errors", True),
        (QUEUE, [(9, READING), (9, READING), (9, WAITING)], "no errors", True),
        (QUEUE, [(0, WAITING), (0, WAITING)], "no errors", True),
        (QUEUE, [(5, READING), (7, READING)], "2 errors", True),
        (QUEUE, [(9, READING), (0, READING), (1, READING)], "1 errors", True),
        (QUEUE, [(0, READING), (3, READING)], "3 errors", False),
        (QUEUE, [(9, READING), (0, READING), (4, READING)], "4 errors", False),
        (
            QUEUE,
            [(11, WAITING), (12, READING), (13, WAITING)],
            f"2 errors, 13 since the controller started and {NEVER}",
            False,
        ),
        (QUEUE, [(21, WAITING), (21, WAITING)], f"no errors, 21 since the controller started and {NEVER}", False),
        (QUEUE, [], FEW, True),
        (QUEUE, [(9, WAITING)], FEW, True),
        (None, [(0, WAITING), (9, WAITING)], "", True),
        ("", [(0, WAITING), (9, WAITING)], "", True),
    ],
)
def test_a_queue_must_be_read_also_where_the_nodes_came(
    make: Make,
    timeline: list[Line],
    outputs: dict[str, Any],
    queue: str | None,
    seen: list[tuple[int, bool]],
    said: str,
    passed: bool,
) -> None:
    outputs["interruptionQueue"] = queue
    made = make(lines=with_queue(timeline, *seen))
    found = of_the_queue(made)
    assert [one["expected"] for one in found] == ["read without errors"] * bool(said)
    assert all(one["seen"].startswith(said) for one in found)
    assert report.failures(made) == (
        []
        if passed
        else [
            f"{FIT}: interruption queue: expected read without errors; seen {said}; look at the controller's log: "
            f"Reconciler error, controller: interruption; does the queue {QUEUE} exist, and may the controller's role "
            "read it?"
        ]
    )


def test_errors_of_an_earlier_story_are_not_the_next_ones(
    make: Make, timeline: list[Line], outputs: dict[str, Any]
) -> None:
    outputs["interruptionQueue"] = QUEUE
    lines = with_queue(timeline, (0, READING), (8, WAITING))
    made = make(lines=with_queue(lines, (9, READING), (9, READING), story=SPOT))
    assert [found["passed"] for story in (0, 1) for found in of_the_queue(made, story)] == [False, True]


def test_a_gap_in_the_record_is_told(make: Make, timeline: list[Line]) -> None:
    gap = {
        "type": "GAP",
        "received": timeline[-1]["received"],
        "kind": "Pod",
        "reason": "too old resource version",
    }
    assert make(lines=[*timeline, gap])["gaps"] == [
        {"kind": "Pod", "at": gap["received"], "reason": "too old resource version"}
    ]


def test_nodes_that_are_alike_are_one_row(make: Make) -> None:
    report = make()
    story = report["stories"][0]
    (claim,) = story["nodeclaims"]
    times = claim["t"]
    longer = {**claim, "t": {**times, "gone": times["gone"] + 10}}
    story["nodeclaims"] = [claim, longer, {**claim, "zone": "us-east-1f"}]
    rows = [line for line in table(report).splitlines() if "m5.large" in line]
    assert len(rows) == 2
    lived = f"{times['gone'] - times['created']:.0f}"
    assert "2 x m5.large" in rows[0]
    assert f"{lived} to {float(lived) + 10:.0f} s" in rows[0]
    assert "us-east-1f" in rows[1]


def test_nobody_is_sent_to_evidence_that_is_not_there(make: Make, tmp_path: Path) -> None:
    found = with_evidence_in(tmp_path, make(instanceTypes=["m5.xlarge"]))
    assert "evidence/" not in str(found)
    name = found["stories"][0]["name"]
    (tmp_path / "evidence" / name).mkdir(parents=True)
    kept = with_evidence_in(tmp_path, make(instanceTypes=["m5.xlarge"]))
    assert f"evidence/{name}/" in str(kept["stories"][0])
