"""Compare a real run with its rehearsal: a page to share, which names no cluster, node, account or person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from karpstack.text.markdown import escape

Report = Mapping[str, Any]
#: In the order in which they come at the same moment.
_EVENTS: Final = ("created", "launched", "registered", "initialized", "disrupted", "drained", "gone")
_NONE: Final = "none"
#: The first line of a page.
TITLE: Final = "# A real run and its rehearsal"


class Stage(BaseModel):
    """A stage of a run: its name, how many seconds it took, and whether it passed."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    name: str
    seconds: float = Field(ge=0)
    passed: bool


class Run(BaseModel):
    """What `run.json` says of a run."""

    stages: list[Stage]


def page(rehearsed: Report, real: Report, runs: Mapping[str, Run]) -> str:
    """Return the page in Markdown.

    Args:
        rehearsed: The report of the rehearsal.
        real: The report of the real run.
        runs: The stages of each run, by `rehearsed` and `real`.
    """
    before = {story["name"]: story for story in rehearsed["stories"]}
    after = {story["name"]: story for story in real["stories"]}
    both = [name for name in after if name in before]
    rows = {name: list(_rows(before[name], after[name])) for name in both}
    differing = [
        f"{name}: {what}" for name in both for what, one, other in rows[name] if one != other and _judged(what)
    ]
    lines = [TITLE, "", _environment(rehearsed, real), ""]
    lines += [
        f"{len(both)} stories were run in both. " + (_differing(differing) if differing else "Nothing of them differs.")
    ]
    missing = sorted(before.keys() ^ after.keys())
    if missing:
        lines += ["", f"Run in one of the two only: {', '.join(map(escape, missing))}."]
    lines += ["", "## The run", "", *_table(_stages(runs))]
    for name in both:
        lines += ["", f"## {escape(name)}", "", *_table(rows[name])]
    return "\n".join([*lines, ""])


def _environment(rehearsed: Report, real: Report) -> str:
    environment, versions = real["environment"], real["versions"]
    return escape(
        f"{environment['kind']} with Kubernetes {versions['kubernetes']}, Karpenter {versions['karpenter']}, "
        f"karpstack {versions['karpstack']}; rehearsed with Kubernetes {rehearsed['versions']['kubernetes']}, "
        f"Karpenter {rehearsed['versions']['karpenter']}."
    ) + (" The second run was simulated too." if environment["simulated"] else "")


def _judged(what: str) -> bool:
    """Whether a difference counts: times and dollars always differ."""
    return not what.startswith(("seconds", "USD", "order"))


def _differing(found: list[str]) -> str:
    return f"{len(found)} {'value differs' if len(found) == 1 else 'values differ'}: {'; '.join(map(escape, found))}."


def _stages(runs: Mapping[str, Run]) -> Iterator[tuple[str, str, str]]:
    one, other = (
        {stage.name: stage for stage in (runs[which].stages if which in runs else ())}
        for which in ("rehearsed", "real")
    )
    for name in dict.fromkeys([*one, *other]):
        yield f"seconds of {name}", _stage(one.get(name)), _stage(other.get(name))


def _stage(stage: Stage | None) -> str:
    if stage is None:
        return "not run"
    return f"{stage.seconds:.0f}{'' if stage.passed else ', failed'}"


def _rows(before: Report, after: Report) -> Iterator[tuple[str, str, str]]:
    for what, read in (
        ("passed", lambda story: f"{'yes' if story['passed'] else 'no'}"),
        ("failed assertions", _failed),
        ("nodes", _nodes),
        ("order of events", _order),
        ("disruptions", lambda story: _counted(one["disruption"] for one in story["nodeclaims"])),
        ("refusals", _refusals),
        ("USD", lambda story: f"{story['cost']['usd']:.4f}"),
        ("seconds in all", lambda story: f"{story['seconds']:.0f}"),
    ):
        yield what, read(before), read(after)
    one, other = ({each["phase"]: each["p50"] for each in story["durations"]} for story in (before, after))
    for phase in dict.fromkeys([*one, *other]):
        yield f"seconds, median, of {phase.replace('_', ' ')}", _seconds(one.get(phase)), _seconds(other.get(phase))


def _seconds(value: float | None) -> str:
    return "not known" if value is None else f"{value:.1f}"


def _failed(story: Report) -> str:
    return "; ".join(one["name"] for one in story["assertions"] if not one["passed"]) or _NONE


def _nodes(story: Report) -> str:
    return _counted(f"{one['instance_type']} {one['capacity_type']}" for one in story["nodeclaims"])


def _order(story: Report) -> str:
    """What happened to the nodes, numbered in the order in which they were made."""
    claims = sorted(story["nodeclaims"], key=lambda one: (one["t"]["created"], str(one["instance_type"])))
    moments = [
        (one["t"][event], _EVENTS.index(event), number)
        for number, one in enumerate(claims, 1)
        for event in _EVENTS
        if one["t"][event] is not None
    ]
    return ", ".join(f"{number} {_EVENTS[event]}" for _, event, number in sorted(moments)) or _NONE


def _refusals(story: Report) -> str:
    shortages = (each["source"] for one in story["nodeclaims"] for each in (one.get("why") or {}).get("shortages", ()))
    return _counted(shortages)


def _counted(values: Any) -> str:
    counts = Counter(str(value) for value in values if value is not None)
    return ", ".join(f"{count} {value}" for value, count in sorted(counts.items())) or _NONE


def _table(rows: Any) -> list[str]:
    told = [f"| {escape(what)} | {escape(one)} | {escape(other)} |" for what, one, other in rows]
    return ["| | rehearsed | real |", "| --- | --- | --- |", *told] if told else ["Not recorded."]
