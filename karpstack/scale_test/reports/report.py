"""The report: what a run's timeline says about its scenarios, as data.

Made from the scenarios and the timeline alone, so that an old timeline can be judged again; facts about instance
types and thresholds are held against it. `schema` has the form of the data, and README.md beside the playbooks
explains it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from karpstack.karpenter.instance_types import Facts
from karpstack.text.shown import visible

from ..judging.assertion import TOLD, Assertion
from ..judging.assertions import judge
from ..judging.evidence import Lines
from ..judging.lines import checked
from ..judging.replay import NodeClaim, Replay
from ..judging.shortages import NAME as EARLIER_SHORTAGES
from ..judging.shortages import earlier_shortages
from ..judging.steps import StepRun
from ..judging.story import clean, interruption_queue, not_ended, not_run, resources
from ..numbers import cost, disruptions, packing, series
from ..numbers.controller import controller, restarts
from ..numbers.durations import durations, reach_times
from ..numbers.launch_reasons import LaunchReasons
from ..numbers.story import Story
from ..numbers.thresholds import Thresholds
from ..recording.timeline import Line, TimelineError, parse_time
from ..scenarios.environments import Stack, environment_of_outputs
from ..scenarios.scenario import Scenario
from .schema import SCHEMA, Report


def make(
    scenarios: Sequence[Scenario],
    timeline: Iterable[Line],
    stack: Stack,
    *,
    facts: Facts | None = None,
    thresholds: Thresholds | None = None,
    version: str | None = None,
) -> dict[str, Any]:
    """Judge a run.

    Args:
        scenarios: What was to be run.
        timeline: All its lines.
        stack: What it was run on.
        facts: What is known of the cloud's instance types; without, there is no lower bound of the cost.
        thresholds: Limits of performance; without, none is judged.
        version: Version of karpstack.

    Returns:
        The content of report.json.

    Raises:
        TimelineError: A line of the timeline cannot be read.
    """
    replay, lines, outputs = Replay(), Lines(), stack.outputs
    queue = outputs.get("interruptionQueue") or ""
    stories = {scenario.name: _StoryJudge(scenario, queue) for scenario in scenarios}
    for number, line in enumerate(replay.steps(checked(timeline)), 1):
        lines.add(number, line)
        if line["type"] in ("STORY", "STEP", "ERROR", "END") and line["scenario"] in stories:
            stories[line["scenario"]].mark(number, line, replay)
    market = cost.Market(facts, str(outputs.get("region", "")), replay.cheapest, replay.rehearsed) if facts else None
    why = LaunchReasons(replay, market, str(outputs.get("cloud", "")))
    results = [story.result(replay, lines, market, thresholds, why) for story in stories.values()]
    environment = environment_of_outputs(outputs)
    started, ended = replay.start.get("received"), replay.time.isoformat() if replay.start else None
    report = {
        "schema": SCHEMA,
        "stack": stack.name,
        "passed": bool(results) and all(story["passed"] for story in results),
        "started": started,
        "ended": ended,
        "seconds": round((replay.time - parse_time(started)).total_seconds(), 3) if started else 0.0,
        "versions": {
            "kubernetes": replay.start.get("kubernetes"),
            "karpenter": outputs.get("karpenterVersion"),
            "karpstack": version,
        },
        "environment": {
            **{key: outputs[key] for key in ("cloud", "region", "clusterName") if key in outputs},
            "kind": environment.kind if environment else None,
            "simulated": replay.rehearsed,
            **({"assumed_images": assumed} if (assumed := replay.assumed_images) else {}),
            "prices_of": market.prices_of if market and "controller" in replay.price_sources.values() else None,
        },
        **({"clock": replay.clock} if replay.clock else {}),
        "gaps": [
            {"kind": mark["kind"], "at": mark["received"], "reason": mark["reason"]}
            for mark in replay.marks
            if mark["type"] == "GAP"
        ],
        "thresholds": thresholds.data() if thresholds else {},
        "controller": controller(replay),
        "stories": results,
    }
    try:
        judged = Report.model_validate(report)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise TimelineError(
            f"timeline.jsonl: the report's {where} would be {first['input']!s:.80}, and {first['msg'].lower()}: a time "
            "or a number in it cannot be right, perhaps because a clock was set; record the run again"
        ) from error
    return judged.model_dump(mode="json", by_alias=True, exclude_unset=True)


@dataclass(frozen=True)
class _Judged:
    """An assertion and the lines of the timeline that it can be about.

    Attributes:
        assertion: What was asserted.
        step: Of which step, from 1; None of the story as a whole.
        begin: The first line.
        end: The last line.
        mark: The line that marks the step's end; None without.
    """

    assertion: Assertion
    step: int | None
    begin: int
    end: int
    mark: int | None = None


class _StoryJudge:
    """Judges one story while the timeline is replayed."""

    def __init__(self, scenario: Scenario, queue: str) -> None:
        self._scenario = scenario
        self._queue = queue
        self._judged: list[_Judged] = []
        self._phases: list[dict[str, Any]] = []
        self._reached: list[dict[str, Any]] = []
        self._runs: list[StepRun] = []
        self._started: str | None = None
        self._ended: str | None = None
        self._is_ended = False
        self._begin = self._last = 1

    def mark(self, number: int, line: Line, replay: Replay) -> None:
        self._ended = line["received"]
        match line["type"]:
            case "STORY":
                self._started, self._is_ended = line["received"], False
                # Of an earlier run in the same file, what failed still counts, and no step stands for one of this run.
                self._runs, self._phases, self._reached = [], [], []
                self._begin = self._last = number
            case "STEP":
                if self._started is None:
                    raise TimelineError(
                        f"timeline.jsonl, line {number}: a step of {self._scenario.name}, of which the file has no "
                        "beginning, so it cannot be judged; run the scenario again"
                    )
                if line["step"] >= len(self._scenario.steps):
                    raise TimelineError(
                        f"timeline.jsonl, line {number}: step {line['step'] + 1} of {self._scenario.name}, which has "
                        f"{len(self._scenario.steps)}: the file is of another run; judge it by that run's scenarios"
                    )
                run = StepRun(
                    replay,
                    self._scenario,
                    line["step"],
                    parse_time(line["requested"]),
                    replay.time,
                    line["outcome"],
                )
                self._runs.append(run)
                self._judged += [
                    _Judged(assertion, run.index + 1, self._last, number, number) for assertion in judge(run)
                ]
                self._phases += _phases(run)
                self._reached += reach_times(run, run.replicas if run.step.scale is not None else None)
                self._last = number
            case "ERROR":
                error = Assertion(
                    line["task"],
                    "no error",
                    line["message"],
                    passed=False,
                    where_to_look=f"evidence/{self._scenario.name}/, the playbook's output",
                )
                self._judged.append(_Judged(error, None, self._begin, number, number))
            case "END":
                self._is_ended = True
                for assertion in (
                    interruption_queue(replay, self._scenario, self._queue),
                    clean(replay, self._scenario),
                ):
                    if assertion:
                        self._judged.append(_Judged(assertion, None, self._begin, number, number))

    def result(
        self,
        replay: Replay,
        lines: Lines,
        market: cost.Market | None,
        thresholds: Thresholds | None,
        why: LaunchReasons,
    ) -> dict[str, Any]:
        scenario = self._scenario
        of_story = [found for found in (earlier_shortages(replay, scenario), resources(replay, scenario)) if found]
        missing = sorted(set(range(len(scenario.steps))) - {run.index for run in self._runs})
        judged = [
            *self._judged,
            *(_Judged(not_run(scenario, index), index + 1, lines.last + 1, lines.last) for index in missing),
            *(_Judged(assertion, None, self._begin, lines.last) for assertion in of_story),
        ]
        if self._started and not self._is_ended:
            judged.append(_Judged(not_ended(), None, lines.last + 1, lines.last))
        result: dict[str, Any] = {
            "name": scenario.name,
            "description": scenario.description,
            "tags": list(scenario.tags),
            "passed": False,
            "started": self._started,
            "ended": self._ended,
            "seconds": 0.0,
        }
        if self._started and self._ended:
            story = Story(replay, scenario, parse_time(self._started), parse_time(self._ended))
            result["seconds"] = story.after(story.end)
            result |= self._numbers(story, market, why)
            judged += [
                _Judged(cost.within(run, story, market, factor), run.index + 1, self._begin, lines.last)
                for run in self._runs
                if (factor := run.step.expect.cost_within) is not None
            ]
        else:
            result |= _NOTHING
        result["configuration"] = {
            "nodePools": cost.specs(scenario, replay),
            "workload": _deployed(scenario),
        }
        if thresholds and self._started:
            judged += [
                _Judged(assertion, None, lines.last + 1, lines.last)
                for assertion in thresholds.judge(scenario.name, result)
            ]
        result["passed"] = all(entry.assertion.passed for entry in judged)
        result["assertions"] = [
            {
                **entry.assertion.report_fields,
                "step": entry.step,
                "lines": lines.of(entry.assertion, scenario.name, entry.begin, entry.end, entry.mark),
            }
            for entry in judged
        ]
        return result

    def _numbers(self, story: Story, market: cost.Market | None, why: LaunchReasons) -> dict[str, Any]:
        money, rows = cost.cost(story, market)
        requests = [(run.requested, run.replicas) for run in self._runs if run.step.scale is not None]
        return {
            "steps": [
                {
                    "index": run.index + 1,
                    "title": run.title,
                    "requested": story.after(run.requested),
                    "ended": story.after(run.ended),
                    "outcome": run.outcome,
                    "seconds": round(run.seconds, 3),
                }
                for run in self._runs
            ],
            "nodeclaims": [_node_claim(story, claim) | {"why": why.of(story, claim)} for claim in story.claims],
            "phases": self._phases,
            "durations": durations(story.replay, story.pods, story.claims),
            "reached": self._reached,
            "pending_pod_seconds": series.pending_pod_seconds(story),
            "series": {"pods": series.pods(story, requests), "nodes": series.nodes(story), "cost": rows},
            "cost": money,
            "packing": packing.packing(story),
            "consolidation": disruptions.consolidation(story, self._runs),
            "interruptions": list(disruptions.interruptions(story)),
            "faults": disruptions.faults(story),
            "controller_restarts": restarts(story),
        }


# What is told of a story that never began.
_NOTHING: dict[str, Any] = {
    "steps": [],
    "nodeclaims": [],
    "phases": [],
    "durations": [],
    "reached": [],
    "pending_pod_seconds": 0.0,
    "series": {"pods": [], "nodes": [], "cost": []},
    "cost": {
        "usd": 0.0,
        "bound_usd": None,
        "ratio": None,
        "peak_usd_per_hour": 0.0,
        "unknown": [],
        "no_bound": "the story did not begin",
    },
    "packing": {"cpu": None, "memory": None},
    "consolidation": None,
    "interruptions": [],
    "faults": [],
    "controller_restarts": None,
}


def _node_claim(story: Story, claim: NodeClaim) -> dict[str, Any]:
    replay, offering = story.replay, claim.offering
    condition = {"launched": "Launched", "registered": "Registered", "initialized": "Initialized"}
    return {
        "name": claim.name,
        "instance_type": offering.instance_type if offering else None,
        "zone": offering.zone if offering else None,
        "capacity_type": offering.capacity_type if offering else None,
        "nodepool": claim.node_pool,
        "node": claim.node,
        "vcpus": float(claim.cpus) if claim.cpus is not None else None,
        "memory_bytes": claim.memory,
        "price_per_hour": (price := replay.price(claim)),
        "price_simulated": price is not None and replay.price_simulated(claim),
        "price_source": replay.price_source(claim),
        "created": claim.created,
        **{
            key: claim.conditions[kind]["lastTransitionTime"] if kind in claim.reached else None
            for key, kind in condition.items()
        },
        "gone": claim.gone.isoformat() if claim.gone else None,
        "t": {
            "created": story.t(claim.first_seen),
            **{key: story.t(claim.reached.get(kind)) for key, kind in condition.items()},
            "disrupted": story.t(claim.disrupted),
            "drained": story.t(claim.reached.get("Drained")),
            "gone": story.t(claim.gone),
        },
        "disruption": disruptions.reason(replay, claim),
        "simulated": replay.simulated(claim),
    }


def _deployed(scenario: Scenario) -> dict[str, Any]:
    """What was deployed, in the scenario's words."""
    said = scenario.model_dump(by_alias=True, mode="json", exclude_none=True)
    return {**said["workload"], **{key: said[key] for key in ("workloads", "manifests") if said[key]}}


def _phases(run: StepRun) -> Iterator[dict[str, Any]]:
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
        "pods_ready": [
            time
            for time, count in replay.ready.get(scenario, ())
            if run.step.scale is not None and count == run.replicas
        ],
        "nodeclaims_disrupted": [claim.deleting for claim in old],
        "nodeclaims_gone": [claim.gone for claim in old],
        "at_rest": [run.ended if run.outcome == "rest" else None],
    }
    for phase, all_times in times.items():
        inside = [time for time in all_times if time is not None and run.during(time)]
        if inside:
            yield {
                "step": run.index + 1,
                "phase": phase,
                "n": len(inside),
                "first": _after(min(inside), run),
                "last": _after(max(inside), run),
                "at": max(inside).isoformat(),
            }


def _after(time: datetime, run: StepRun) -> float:
    return round((time - run.requested).total_seconds(), 3)


def failures(report: Mapping[str, Any]) -> list[str]:
    """One message for each assertion that failed, and what earlier stories may have to do with it."""
    return [
        visible(f"{story['name']}: {message(assertion)}")
        for story in report["stories"]
        for assertion in story["assertions"]
        if not assertion["passed"] or (assertion["name"] == EARLIER_SHORTAGES and not story["passed"])
    ]


def message(assertion: Mapping[str, Any]) -> str:
    """What people read of an assertion of the report."""
    return Assertion(**{field: assertion[field] for field in TOLD}).message
