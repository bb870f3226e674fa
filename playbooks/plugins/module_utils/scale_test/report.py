"""The report: what a run's timeline says about its scenarios, as data, as JUnit and as a table.

Made from the scenarios and the timeline alone, so that an old timeline can be judged again. README.md beside
the playbooks has the schema of the data.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from junitparser import Failure, JUnitXml, TestCase, TestSuite
from rich.console import Console
from rich.table import Table

from .assertions import Assertion, clean, interruption_queue, judge, not_run, resources
from .replay import NodeClaim, Replay
from .scenario import Scenario
from .steps import StepRun
from .timeline import Line, parse_time

SCHEMA = 1


def make(
    scenarios: Sequence[Scenario], timeline: Iterable[Line], stack: str, outputs: Mapping[str, Any]
) -> dict[str, Any]:
    """Judge a run.

    Args:
        scenarios: What was to be run.
        timeline: All its lines.
        stack: Name of the stack.
        outputs: The stack's outputs.

    Returns:
        The content of report.json.
    """
    by_name = {scenario.name: scenario for scenario in scenarios}
    replay = Replay()
    queue = outputs.get("interruptionQueue") or ""
    stories = {name: _Story(scenario, queue) for name, scenario in by_name.items()}
    for line in replay.steps(timeline):
        if line["type"] in ("STORY", "STEP", "ERROR", "END") and line["scenario"] in stories:
            stories[line["scenario"]].mark(line, replay)
    found = [story.result(replay) for story in stories.values()]
    return {
        "schema": SCHEMA,
        "stack": stack,
        "passed": all(story["passed"] for story in found),
        "started": replay.start.get("received"),
        "versions": {
            "kubernetes": replay.start.get("kubernetes"),
            "karpenter": outputs.get("karpenterVersion"),
        },
        "environment": {key: outputs[key] for key in ("cloud", "region", "clusterName") if key in outputs},
        "gaps": [
            {"kind": mark["kind"], "at": mark["received"], "reason": mark["reason"]}
            for mark in replay.marks
            if mark["type"] == "GAP"
        ],
        "stories": found,
    }


class _Story:
    """Gathers one story's results while the timeline is replayed."""

    def __init__(self, scenario: Scenario, queue: str) -> None:
        self._scenario = scenario
        self._queue = queue
        self._assertions: list[Assertion] = []
        self._phases: list[dict[str, Any]] = []
        self._steps = 0
        self._started: str | None = None
        self._ended: str | None = None

    def mark(self, line: Line, replay: Replay) -> None:
        self._ended = line["received"]
        match line["type"]:
            case "STORY":
                self._started = line["received"]
            case "STEP":
                run = StepRun(
                    replay,
                    self._scenario,
                    line["step"],
                    parse_time(line["requested"]),
                    replay.time,
                    line["outcome"],
                )
                self._assertions += judge(run)
                self._phases += _phases(run)
                self._steps += 1
            case "ERROR":
                self._assertions.append(
                    Assertion(
                        line["task"],
                        "no error",
                        line["message"],
                        passed=False,
                        where_to_look=f"evidence/{self._scenario.name}/, the playbook's output",
                    )
                )
            case "END":
                if read := interruption_queue(replay, self._scenario, self._queue):
                    self._assertions.append(read)
                self._assertions.append(clean(replay, self._scenario))

    def result(self, replay: Replay) -> dict[str, Any]:
        name = self._scenario.name
        missing = [not_run(self._scenario, index) for index in range(self._steps, len(self._scenario.steps))]
        in_cloud = resources(replay, self._scenario)
        assertions = [*self._assertions, *missing, *([in_cloud] if in_cloud else [])]
        seconds = (
            (parse_time(self._ended) - parse_time(self._started)).total_seconds()
            if self._started and self._ended
            else 0
        )
        return {
            "name": name,
            "description": self._scenario.description,
            "passed": all(assertion.passed for assertion in assertions),
            "started": self._started,
            "seconds": round(seconds, 3),
            "assertions": [asdict(assertion) for assertion in assertions],
            "nodeclaims": [_node_claim(replay, claim) for claim in replay.claims_of(self._scenario)]
            if self._started
            else [],
            "phases": self._phases,
        }


def _node_claim(replay: Replay, claim: NodeClaim) -> dict[str, Any]:
    offering = claim.offering
    return {
        "name": claim.name,
        "instance_type": offering.instance_type if offering else None,
        "zone": offering.zone if offering else None,
        "capacity_type": offering.capacity_type if offering else None,
        "nodepool": claim.node_pool,
        "price_per_hour": replay.price(claim),
        "created": claim.created,
        **{
            kind.lower(): claim.conditions[kind]["lastTransitionTime"] if kind in claim.reached else None
            for kind in ("Launched", "Registered", "Initialized")
        },
        "gone": claim.gone.isoformat() if claim.gone else None,
        "simulated": replay.simulated(claim),
    }


def _phases(run: StepRun) -> list[dict[str, Any]]:
    """When each phase of a step was reached, by time of receipt; phases that it did not have are left out."""
    replay, scenario = run.replay, run.scenario.name
    new = [claim for claim in run.claims() if claim.first_seen >= run.requested]
    old = [claim for claim in run.claims() if claim.first_seen < run.requested]
    added = replay.pods_added.get(scenario, [])
    uids = {uid for _, uid in added}
    times: dict[str, list[datetime | None]] = {
        "pods_created": [time for time, _ in added],
        "pods_nominated": [
            time
            for time, event in replay.events
            if event.get("reason") == "Nominated" and event["involvedObject"].get("uid") in uids
        ],
        "nodeclaims_created": [claim.first_seen for claim in new],
        "nodeclaims_launched": [claim.reached.get("Launched") for claim in new],
        "nodeclaims_registered": [claim.reached.get("Registered") for claim in new],
        "nodeclaims_initialized": [claim.reached.get("Initialized") for claim in new],
        "pods_ready": [time for time, count in replay.ready.get(scenario, ()) if count == run.step.scale],
        "nodeclaims_disrupted": [claim.deleting for claim in old],
        "nodeclaims_gone": [claim.gone for claim in old],
        "at_rest": [run.ended if run.outcome == "rest" else None],
    }
    found = []
    for phase, all_times in times.items():
        inside = [time for time in all_times if time is not None and run.during(time)]
        if inside:
            found.append(
                {
                    "step": run.index + 1,
                    "phase": phase,
                    "n": len(inside),
                    "first": _after(min(inside), run),
                    "last": _after(max(inside), run),
                    "at": max(inside).isoformat(),
                }
            )
    return found


def _after(time: datetime, run: StepRun) -> float:
    return round((time - run.requested).total_seconds(), 3)


def failures(report: Mapping[str, Any]) -> list[str]:
    """One message for each assertion that failed."""
    return [
        f"{story['name']}: {Assertion(**assertion).message}"
        for story in report["stories"]
        for assertion in story["assertions"]
        if not assertion["passed"]
    ]


def junit(report: Mapping[str, Any]) -> JUnitXml:
    """The report in JUnit's terms: a suite a story, a case an assertion."""
    document = JUnitXml(f"scale test of {report['stack']}")
    for story in report["stories"]:
        suite = TestSuite(story["name"])
        suite.timestamp = story["started"]
        for assertion in story["assertions"]:
            case = TestCase(assertion["name"], classname=f"scale_test.{story['name']}")
            if not assertion["passed"]:
                case.result = [Failure(Assertion(**assertion).message, type_="expectation")]
            suite.add_testcase(case)
        document.add_testsuite(suite)
        suite.time = story["seconds"]
    return document


def table(report: Mapping[str, Any], width: int = 140) -> str:
    """The report for a terminal, without colours."""
    drawn = Table(
        title=f"Scale test of {report['stack']}: {'passed' if report['passed'] else 'FAILED'}",
        title_justify="left",
    )
    for heading in ("story", "result", "assertions", "seconds", "node", "USD/h", "lived"):
        drawn.add_column(
            heading,
            justify="right" if heading in ("assertions", "seconds", "USD/h") else "left",
            overflow="fold",
        )
    for story in report["stories"]:
        assertions = story["assertions"]
        first = (
            story["name"],
            "passed" if story["passed"] else "FAILED",
            f"{sum(assertion['passed'] for assertion in assertions)}/{len(assertions)}",
            f"{story['seconds']:.1f}",
        )
        for claim in story["nodeclaims"] or [None]:
            drawn.add_row(*first, *(_cells(claim) if claim else ("none", "", "")))
            first = ("", "", "", "")
        drawn.add_section()
    output = io.StringIO()
    Console(file=output, width=width, no_color=True).print(drawn)
    return output.getvalue().rstrip()


def _cells(claim: Mapping[str, Any]) -> tuple[str, str, str]:
    price = claim["price_per_hour"]
    lived = (
        f"{(parse_time(claim['gone']) - parse_time(claim['created'])).total_seconds():.0f} s"
        if claim["gone"] and claim["created"]
        else ""
    )
    return (
        f"{claim['instance_type'] or 'not launched'} {claim['capacity_type'] or ''} {claim['zone'] or ''}",
        f"{price:.4f}" if price is not None else "not known",
        lived,
    )
