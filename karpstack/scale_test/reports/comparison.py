"""Compares two reports: what got better, what got worse, by rules that are data, and what cannot be compared.

Pure functions of two report.json; what comes of them is for a page, for the playbook and for tests alike.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from . import units
from .charts import PHASES, phase_name
from .schema import SCHEMA

Report = Mapping[str, Any]
_UNITS: dict[str, Callable[[float | None], str]] = {
    "duration": units.duration,
    "dollars": units.dollars,
    "times": units.times,
    "share": units.share,
    "count": units.count,
    "memory": units.memory,
}
#: Of a story and of a report, in the words of all that show it.
Verdict = Literal["better", "worse", "the same", "better and worse", "not comparable"]
#: Of a value.
Judgement = Literal["better", "worse", "the same", "not judged"]
#: What a pipeline can fail on: the verdict, or any story that fails now and any value that got worse.
FailIf = Literal["worse", "any-worse"]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Margin(_Model):
    """How large a difference must be to count: larger than both.

    Attributes:
        relative: Share of the value before.
        absolute: In the value's unit.
    """

    relative: float = Field(ge=0)
    absolute: float = Field(ge=0)


class Rules(_Model):
    """What counts as a difference. `vars/comparison.yml` beside the playbook has those that ship.

    Attributes:
        least_values: Percentiles of fewer values are not judged.
        percentiles: Those that are judged.
        time: Seconds; percentiles of many.
        complete: Seconds until all that a step waits for are there, which hang on the last of them.
        pending: Pending-pod-seconds.
        cost: USD.
        bound_ratio: Cost as a multiple of its lower bound.
        packing: Share.
        controller_memory: Bytes.
        controller_cpu: Seconds.
        controller_errors: Number.
    """

    least_values: int = Field(ge=1)
    percentiles: tuple[Literal[50, 90, 99], ...]
    time: Margin
    complete: Margin
    pending: Margin
    cost: Margin
    bound_ratio: Margin
    packing: Margin
    controller_memory: Margin
    controller_cpu: Margin
    controller_errors: Margin


def parse_rules(data: Mapping[str, Any]) -> Rules:
    """The rules from data.

    Raises:
        ValueError: Something is missing, unknown or out of range; the message names it.
    """
    try:
        return Rules.model_validate(data)
    except ValidationError as error:
        problems = "; ".join(
            f"comparison_rules.{'.'.join(map(str, details['loc']))} = {json.dumps(details['input'], default=str)[:80]}"
            f": {details['msg']}"
            for details in error.errors()
        )
        raise ValueError(
            f"{problems}; so nothing was compared. playbooks/vars/comparison.yml has all keys with good values"
        ) from error


@dataclass(frozen=True)
class Difference:
    """A value before and after.

    Attributes:
        name: What it is.
        unit: `duration`, `dollars`, `times`, `share`, `count` or `memory`: how it is written.
        before: None if it is not known.
        after: Likewise.
        verdict: `not judged` if it is only shown.
        reason: Why it is not judged; empty otherwise.
        simulated: A fake gave it, at least on one side.
        phase: The phase that it is a percentile of; empty if it is something else.
        percentile: Which.
    """

    name: str
    unit: str
    before: float | None
    after: float | None
    verdict: Judgement
    reason: str = ""
    simulated: bool = False
    phase: str = ""
    percentile: int = 0

    @property
    def change(self) -> float | None:
        """Relative change; None where there is no value to start from."""
        if self.before is None or self.after is None or self.before == 0:
            return None
        return self.after / self.before - 1


@dataclass(frozen=True)
class StoryComparison:
    """A story that both reports have.

    Attributes:
        name: Of the story.
        verdict: What it comes to.
        passed: Whether it passed, before and after.
        differences: Value by value.
        instance_types: Kinds of nodes: (kind, number before, number after).
        settings: What is configured otherwise: (key, before, after).
        curves: (phase, seconds before, seconds after, simulated): for paired distributions.
    """

    name: str
    verdict: Verdict
    passed: tuple[bool, bool]
    differences: tuple[Difference, ...]
    instance_types: tuple[tuple[str, int, int], ...]
    settings: tuple[tuple[str, str, str], ...]
    curves: tuple[tuple[str, Sequence[float], Sequence[float], bool], ...]

    @property
    def values(self) -> list[Difference]:
        """Differences other than those of phases."""
        return [difference for difference in self.differences if not difference.phase]

    @property
    def phases(self) -> list[tuple[str, list[Difference]]]:
        """Differences of phases: of each its name and its percentiles."""
        rows: dict[str, list[Difference]] = {}
        for difference in self.differences:
            if difference.phase:
                rows.setdefault(difference.name.rsplit(",", 1)[0], []).append(difference)
        return list(rows.items())


@dataclass(frozen=True)
class Comparison:
    """Two reports, compared.

    Attributes:
        verdict: Of the second over the first.
        sentence: The verdict's reason.
        stories: Those that both have.
        controller: Differences of Karpenter's controller.
        settings: Versions, environment and thresholds that differ: (key, before, after).
        not_compared: What could not be compared, and why.
        failed: Names of the stories that fail in the second report, also of those that only it has.
        missing: Names of the stories that only the first report has.
    """

    verdict: Verdict
    sentence: str
    stories: tuple[StoryComparison, ...]
    controller: tuple[Difference, ...]
    settings: tuple[tuple[str, str, str], ...]
    not_compared: tuple[str, ...]
    failed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def compare(before: Report, after: Report, rules: Rules) -> Comparison:
    """Compare two reports.

    Args:
        before: The content of the first report.json, schema 2.
        after: The second, which is judged.
        rules: What counts as a difference.

    Raises:
        ValueError: One of them has another schema.
    """
    for side, report in (("before", before), ("after", after)):
        if report.get("schema") != SCHEMA:
            raise ValueError(
                f"{side}: the report has schema {report.get('schema')!r}, only schema {SCHEMA} can be compared: run "
                "the scale test again, or make the report again from its timeline"
            )
    olds, news = ({story["name"]: story for story in report["stories"]} for report in (before, after))
    faked = bool(before["environment"].get("simulated")), bool(after["environment"].get("simulated"))
    unlike = "one is simulated, the other is not" if faked[0] != faked[1] else ""
    missing = tuple(name for name in olds if name not in news)
    not_compared = [f"{name}: only in the report before" for name in missing]
    not_compared += [f"{name}: only in the report after" for name in news if name not in olds]
    if unlike:
        real = "after" if faked[0] else "before"
        not_compared.append(f"times and what follows from them: only the report {real} is from a real cluster")
    stories = []
    other_load = set(olds) != set(news)
    for name in (name for name in olds if name in news):
        why = _not_alike(olds[name], news[name])
        if why:
            not_compared.append(f"{name}: {why}")
            other_load = True
        stories.append(_story(olds[name], news[name], rules, unlike or why))
    if other_load:
        not_compared.append("Karpenter's controller: it had other work to do, so its values are shown and not judged")
    controller = tuple(_controller(before, after, rules, unlike or ("other work" if other_load else "")))
    verdict, sentence = _verdict(stories, controller)
    return Comparison(
        verdict,
        sentence,
        tuple(stories),
        controller,
        tuple(
            setting
            for key in ("stack", "versions", "environment", "thresholds")
            for setting in _settings(before.get(key), after.get(key), key)
        ),
        tuple(not_compared),
        tuple(name for name, story in news.items() if not story["passed"]),
        missing,
    )


def what_got_worse(comparison: Comparison) -> list[str]:
    """A text for each story that fails now or was not run, and each value that got worse."""
    passed = {story.name for story in comparison.stories if story.passed[0]}
    lost = [f"{name}: {'passed before and ' if name in passed else ''}fails now" for name in comparison.failed]
    lost += [f"{name}: was not run now" for name in comparison.missing]
    groups = [(story.name, story.differences) for story in comparison.stories]
    groups.append(("Karpenter's controller", comparison.controller))
    return lost + [
        f"{name}: {value.name} {written(value.before, value.unit)} before, {written(value.after, value.unit)} after"
        for name, values in groups
        for value in values
        if value.verdict == "worse"
    ]


def data(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison as data, without the curves of its page."""
    found = asdict(comparison)
    for story in found["stories"]:
        del story["curves"]
    return found | {"worse": what_got_worse(comparison)}


def refused(comparison: Comparison, fail_if: FailIf) -> bool:
    """Whether a pipeline that fails on this fails."""
    return comparison.verdict == "worse" or (fail_if == "any-worse" and bool(what_got_worse(comparison)))


def written(value: float | None, unit: str) -> str:
    """A value in its unit, for people."""
    return _UNITS[unit](value)


def _not_alike(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Why values of two runs of a story say nothing of each other; empty if they do."""
    if not (old["passed"] and new["passed"]):
        when = "before and after" if not old["passed"] and not new["passed"] else "after" if old["passed"] else "before"
        return f"it failed {when}, so only that is compared"
    asked = [[step["title"] for step in story["steps"]] for story in (old, new)]
    if asked[0] != asked[1]:
        return f"other steps ({', '.join(asked[0])}; {', '.join(asked[1])}), so values are shown and not judged"
    workloads = [(story.get("configuration") or {}).get("workload") for story in (old, new)]
    if workloads[0] != workloads[1]:
        return "another workload, so values are shown and not judged"
    return ""


def _story(old: Mapping[str, Any], new: Mapping[str, Any], rules: Rules, unlike: str) -> StoryComparison:
    differences = tuple(_differences(old, new, rules, unlike))
    if old["passed"] != new["passed"]:
        verdict: Verdict = "better" if new["passed"] else "worse"
    else:
        verdict = _sum(difference.verdict for difference in differences)
    durations = [{times["phase"]: times for times in story["durations"]} for story in (old, new)]
    return StoryComparison(
        old["name"],
        verdict,
        (old["passed"], new["passed"]),
        differences,
        tuple(_kinds(old, new)),
        tuple(_settings(old.get("configuration"), new.get("configuration"), "")),
        tuple(
            (phase_name(phase), before["values"], after["values"], before["simulated"] or after["simulated"])
            for phase, before in durations[0].items()
            if (after := durations[1].get(phase)) and phase in PHASES and before["n"] > 1 and after["n"] > 1
        ),
    )


def _differences(old: Mapping[str, Any], new: Mapping[str, Any], rules: Rules, unlike: str) -> Iterator[Difference]:
    faked = any(times["simulated"] for story in (old, new) for times in story["durations"])
    reached = [
        {(level["step"], level["kind"]): level["seconds"] for level in story["reached"] if level["percent"] == 100}
        for story in (old, new)
    ]
    for key in {**reached[0], **reached[1]}:
        pair = reached[0].get(key), reached[1].get(key)
        name = f"all {key[1]} after the request of step {key[0]}"
        yield _judged(name, "duration", pair, rules.complete, unlike, simulated=faked)
    pair = old["pending_pod_seconds"], new["pending_pod_seconds"]
    yield _judged("waiting of all pods", "duration", pair, rules.pending, unlike, simulated=faked)
    pair = _slowest_replacement(old), _slowest_replacement(new)
    if pair != (None, None):
        name = "interruption to replacement running"
        yield _judged(name, "duration", pair, rules.time, unlike, simulated=faked)
    costs = old["cost"] or {}, new["cost"] or {}
    unknown = "a price is not known" if any(cost.get("unknown") for cost in costs) else ""
    pair = costs[0].get("usd"), costs[1].get("usd")
    dollars = _judged("cost", "dollars", pair, rules.cost, unlike or unknown, simulated=faked)
    yield dollars
    pair = costs[0].get("ratio"), costs[1].get("ratio")
    ratio = _judged("cost against the bound", "times", pair, rules.bound_ratio, unlike, simulated=faked)
    # The bound is that of the same pods: where the cost is the same, the rest is how long the story took.
    yield replace(ratio, verdict=dollars.verdict) if dollars.verdict == "the same" and ratio.reason == "" else ratio
    for resource, name in (("cpu", "packing of CPU"), ("memory", "packing of memory")):
        pair = (old["packing"] or {}).get(resource), (new["packing"] or {}).get(resource)
        yield _judged(name, "share", pair, rules.packing, unlike, more_is_better=True)
    nodes = len(old["nodeclaims"]), len(new["nodeclaims"])
    yield Difference("nodes", "count", *nodes, "not judged", "the cost tells whether more is worse")
    yield from _percentiles(old, new, rules, unlike)


def _percentiles(old: Mapping[str, Any], new: Mapping[str, Any], rules: Rules, unlike: str) -> Iterator[Difference]:
    phases = [{times["phase"]: times for times in story["durations"] if times["n"]} for story in (old, new)]
    for phase in PHASES:
        before, after = phases[0].get(phase), phases[1].get(phase)
        if not before or not after:
            continue
        sides = "simulated on one side only" if before["simulated"] != after["simulated"] else ""
        few = f"fewer than {rules.least_values} values" if min(before["n"], after["n"]) < rules.least_values else ""
        for percent in (50, 90, 99):
            difference = _judged(
                f"{phase_name(phase)}, p{percent}",
                "duration",
                (before[f"p{percent}"], after[f"p{percent}"]),
                rules.time,
                unlike or sides or few or ("" if percent in rules.percentiles else "shown only"),
                simulated=before["simulated"] or after["simulated"],
            )
            yield replace(difference, phase=phase, percentile=percent)


def _slowest_replacement(story: Mapping[str, Any]) -> float | None:
    times = [interruption["replacement_running"] for interruption in story["interruptions"]]
    return max((time for time in times if time is not None), default=None)


def _controller(before: Report, after: Report, rules: Rules, unlike: str) -> Iterator[Difference]:
    old, new = before.get("controller") or {}, after.get("controller") or {}
    for key, name, unit, margin in (
        ("peak_memory_bytes", "memory at most", "memory", rules.controller_memory),
        ("cpu_seconds", "processor time", "duration", rules.controller_cpu),
        ("api_errors", "errors of the cloud's API", "count", rules.controller_errors),
    ):
        pair = old.get(key), new.get(key)
        if pair != (None, None):
            yield _judged(name, unit, pair, margin, unlike)


def _judged(
    name: str,
    unit: str,
    pair: tuple[float | None, float | None],
    margin: Margin,
    unlike: str,
    *,
    simulated: bool = False,
    more_is_better: bool = False,
) -> Difference:
    before, after = pair
    if before is None or after is None:
        reason = unlike or ("not known" if before is None and after is None else "known on one side only")
        return Difference(name, unit, before, after, "not judged", reason, simulated)
    if unlike:
        return Difference(name, unit, before, after, "not judged", unlike, simulated)
    gap = abs(after - before)
    verdict: Judgement = "the same"
    if gap > margin.absolute and gap > margin.relative * abs(before):
        verdict = "better" if (after > before) == more_is_better else "worse"
    return Difference(name, unit, before, after, verdict, "", simulated)


def _sum(verdicts: Iterable[Verdict | Judgement]) -> Verdict:
    distinct = set(verdicts)
    if "better and worse" in distinct or {"better", "worse"} <= distinct:
        return "better and worse"
    order: tuple[Verdict, ...] = ("worse", "better", "the same")
    return next((verdict for verdict in order if verdict in distinct), "not comparable")


def _verdict(stories: Sequence[StoryComparison], controller: Sequence[Difference]) -> tuple[Verdict, str]:
    if not stories:
        return "not comparable", "The reports have no story in common."
    lost = [story.name for story in stories if story.passed == (True, False)]
    won = [story.name for story in stories if story.passed == (False, True)]
    if lost:
        return "worse", f"Passed before and fails now: {', '.join(lost)}."
    verdict = _sum([*(story.verdict for story in stories), *(difference.verdict for difference in controller)])
    values = [difference for story in stories for difference in story.differences] + list(controller)
    counts = {
        kind: sum(difference.verdict == kind for difference in values) for kind in ("better", "worse", "the same")
    }
    judged = sum(counts.values())
    passing = f"Failed before and passes now: {', '.join(won)}. " if won else ""
    if not judged:
        told = "No value of theirs can be judged." if not passing else ""
    elif counts["better"] or counts["worse"]:
        told = f"Of {judged} values that can be judged, {counts['better']} got better and {counts['worse']} got worse."
    else:
        told = f"All {judged} values that can be judged are within the margins."
    return verdict, (passing + told).strip()


def _kinds(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, int, int]]:
    before, after = (Counter(map(_kind, story["nodeclaims"])) for story in (old, new))
    for kind in {**before, **after}:
        yield kind, before[kind], after[kind]


def _kind(claim: Mapping[str, Any]) -> str:
    return f"{claim['instance_type'] or 'not launched'} {claim['capacity_type'] or ''}".strip()


def _settings(before: object, after: object, key: str) -> Iterator[tuple[str, str, str]]:
    """Leaves that differ, by their path."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in {**before, **after}:
            yield from _settings(before.get(name), after.get(name), f"{key}.{name}" if key else str(name))
    elif before != after:
        yield key, _written(before), _written(after)


def _written(value: object) -> str:
    if value is None:
        return "not set"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
