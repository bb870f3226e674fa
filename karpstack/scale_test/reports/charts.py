"""The charts of a report, each from the part of report.json that it shows. A part that is empty has no chart."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection

from karpstack.text.shown import visible

from .drawing import COLOURS, HATCH, Chart, Drawing, Key, quantiles, thin, time_axis, value_axis
from .units import count, dollars, duration, memory

Story = Mapping[str, Any]

PHASES = {
    "pod_pending_to_nominated": "pending to nominated",
    "pod_nominated_to_scheduled": "nominated to scheduled",
    "pod_scheduled_to_running": "scheduled to running",
    "pod_pending_to_running": "pending to running",
    "nodeclaim_created_to_launched": "created to launched",
    "nodeclaim_launched_to_registered": "launched to registered",
    "nodeclaim_registered_to_initialized": "registered to initialized",
    "node_disrupted_to_drained": "disrupted to drained",
    "node_drained_to_gone": "drained to gone",
}
_SUBJECTS = {"pod": "pod", "nodeclaim": "NodeClaim", "node": "node"}
# What of the durations is simulated tells which moments of a step are.
_REACHED_BY = {
    "pods_ready": "pod_scheduled_to_running",
    "nodeclaims_launched": "nodeclaim_created_to_launched",
    "nodeclaims_registered": "nodeclaim_launched_to_registered",
    "nodeclaims_initialized": "nodeclaim_registered_to_initialized",
}
# The stretches of a node's life in the Gantt chart, with their colours and the phases that they are made of.
_STRETCHES = {
    "created to launched": ("phase-1", {"nodeclaim_created_to_launched"}),
    "launched to initialized": (
        "phase-3",
        {"nodeclaim_launched_to_registered", "nodeclaim_registered_to_initialized"},
    ),
    "initialized": ("accent", set[str]()),
    "disrupted to gone": ("wait", {"node_disrupted_to_drained", "node_drained_to_gone"}),
}
_CURVES = (("accent", "-"), ("wait", (0, (5, 2))), ("ink", (0, (1, 1.6))), ("quiet", "-"))
_STYLES = {"-": "line", (0, (5, 2)): "dashed", (0, (1, 1.6)): "dotted"}
_WIDTH, _WIDE = 340, 900
_HATCHED: dict[str, Any] = {"hatch": HATCH, "edgecolor": COLOURS["surface"], "linewidth": 0}
_LABELLED = 30  # NodeClaims in a Gantt chart that can have a name each


def waterfall(story: Story, step: Mapping[str, Any]) -> Chart | None:
    """From when to when the step's pods and nodes reached each phase.

    Args:
        story: Of the report.
        step: One of its steps.
    """
    phases = [phase for phase in story["phases"] if phase["step"] == step["index"]]
    if not phases:
        return None
    faked = {phase for phase, by in _REACHED_BY.items() if by in simulated_phases(story)}
    end = max(max(phase["last"] for phase in phases), 0.001)
    row, top, bottom = 21, 4, 34
    with Drawing(_WIDTH, top + row * len(phases) + bottom) as drawing:
        room = 8 + 6.4 * max(len(duration(phase["last"])) for phase in phases)
        axes = drawing.axes(left=134, right=room, top=top, bottom=bottom)
        time_axis(axes, end, "since the request")
        axes.set_ylim(len(phases) - 0.5, -0.5)
        axes.set_yticks(range(len(phases)), [_moments(phase["phase"]) for phase in phases], color=COLOURS["ink"])
        axes.grid(axis="x", color=COLOURS["rule"], linewidth=1)
        axes.spines["bottom"].set_visible(False)
        for index, phase in enumerate(phases):
            least = 0.026 * end
            colour = COLOURS["accent" if phase["phase"].startswith("pods") else "phase-2"]
            axes.barh(
                index,
                max(phase["last"] - phase["first"], least),
                left=min(max(phase["first"], 0), end - least),
                height=0.52,
                color=COLOURS["ink"] if phase["phase"] == "at_rest" else colour,
                **(_HATCHED if phase["phase"] in faked else {}),
                gid=f"data:{phase['phase']}",
                clip_on=False,
            )
            axes.annotate(
                duration(phase["last"]),
                (1, index),
                xycoords=("axes fraction", "data"),
                xytext=(room - 2, 0),
                textcoords="offset points",
                ha="right",
                va="center",
                color=COLOURS["ink"],
            )
        title = step_title(step)
        description = "; ".join(
            f"{_moments(phase['phase'])} from {duration(phase['first'])} to {duration(phase['last'])} (n {phase['n']})"
            for phase in phases
        )
        svg = drawing.svg(f"{story['name']}, {title}: phases, in seconds after the request", description)
    legend = [Key("pods", "accent", "area"), Key("nodes", "phase-2", "area")]
    if faked & {phase["phase"] for phase in phases}:
        legend.append(Key("simulated", "quiet", "hatched"))
    return Chart(visible(title), svg, tuple(legend))


def distributions(story: Story) -> Iterator[Chart]:
    """How long each phase took: for pods, for nodes that come and for nodes that go, the share that was through."""
    for prefix, title in (
        ("pod_", "Pods, share through"),
        ("nodeclaim_", "Nodes coming, share through"),
        ("node_", "Nodes going, share through"),
    ):
        curves = [
            (PHASES[times["phase"]], times["values"], times["simulated"])
            for times in story["durations"]
            if times["phase"].startswith(prefix) and times["phase"] in PHASES and times["values"]
        ]
        if prefix == "pod_":
            curves.reverse()  # the whole first: it has the accent
        if curves:
            yield ecdf(story["name"], title, curves)


def ecdf(name: str, title: str, curves: Sequence[tuple[str, Sequence[float], bool]], *, paired: bool = False) -> Chart:
    """Empirical distributions of durations.

    Args:
        name: Of the story.
        title: Of the chart.
        curves: Name, seconds, and whether they are simulated; four at most.
        paired: The first is what the second is compared with.
    """
    looks = (("quiet", "-"), ("accent", "-")) if paired else _CURVES
    end = max(max(values) for _, values, _ in curves)
    legend, said = [], []
    with Drawing(_WIDTH, 190) as drawing:
        axes = drawing.axes(left=40, top=18)
        time_axis(axes, end * 1.02, "taken")
        axes.set_ylim(0, 1.03)
        axes.set_yticks([0, 0.5, 0.9, 1], ["0", "50 %", "90 %", ""])
        axes.grid(axis="y", color=COLOURS["rule"], linewidth=1)
        axes.annotate("100 %", (0, 1), xytext=(-5, 0), textcoords="offset points", ha="right", va="bottom")
        for (curve, values, faked), (colour, dashes) in zip(curves, looks, strict=False):
            points = [*quantiles(values), (end * 1.02, 1.0)]
            axes.plot(
                *zip(*points, strict=True),
                drawstyle="steps-post",
                color=COLOURS[colour],
                linewidth=2 if colour == "accent" else 1.6,
                linestyle=dashes,
                gid=f"data:{visible(curve)}",
                zorder=3 if colour == "accent" else 2,
            )
            legend.append(Key(f"{curve}, simulated" if faked else curve, colour, _STYLES[dashes]))
            half = sorted(values)[(len(values) - 1) // 2]
            said.append(f"{curve}: half within {duration(half)}, all within {duration(max(values))} (n {len(values)})")
        svg = drawing.svg(f"{name}: {title}, by seconds taken", "; ".join(said))
    return Chart(visible(title), svg, tuple(legend))


def over_time(story: Story) -> Iterator[Chart]:
    """Pods, nodes and cost per hour over the time of the story."""
    series = story["series"]
    columns: tuple[tuple[str, str, str], ...]
    if pods := series["pods"]:
        columns = (("wanted", "quiet", "dashed"), ("running", "accent", "shade"), ("pending", "wait", "line"))
        highest = f"at most {count(max(row[2] for row in pods))} running, {count(max(row[3] for row in pods))} pending"
        yield _series(story, "Pods", "pods", pods, columns, highest)
    if nodes := series["nodes"]:
        columns = (("present", "phase-2", "shade"), ("ready", "accent", "line"))
        yield _series(story, "Nodes", "nodes", nodes, columns, f"at most {count(max(n[1] for n in nodes))}")
    bounded = all(row[2] is not None for row in series["cost"])
    cost = [row if bounded else row[:2] for row in series["cost"]]
    if cost and all(row[1] is not None for row in cost):
        told = story["cost"] or {}
        columns = (
            (_marked("cost", told.get("simulated", False)), "accent", "shade"),
            (_marked("lower bound", told.get("bound_simulated", False)), "ink", "dotted"),
        )[: len(cost[0]) - 1]
        highest = f"at most {dollars(max(row[1] for row in cost))} per hour"
        if len(columns) == 2:
            highest += f", where {dollars(max(row[2] for row in cost))} would do"
        yield _series(story, "Cost per hour", "USD/h", cost, columns, highest)


def _marked(name: str, simulated: bool) -> str:
    return f"{name}, simulated" if simulated else name


def _series(
    story: Story,
    title: str,
    unit: str,
    rows: Sequence[Sequence[float]],
    columns: Sequence[tuple[str, str, str]],
    said: str,
) -> Chart:
    end = max(story["seconds"], rows[-1][0])
    rows = thin([[0, *([0] * len(columns))], *rows, [end, *rows[-1][1:]]])
    times = [row[0] for row in rows]
    with Drawing(_WIDTH, 190) as drawing:
        axes = drawing.axes(left=44, top=26)
        time_axis(axes, end, "since the story began")
        value_axis(axes, max(max(row[1:]) for row in rows), unit, whole=unit != "USD/h")
        for column, (name, colour, style) in enumerate(columns, 1):
            values = [row[column] for row in rows]
            if style == "shade":
                axes.fill_between(
                    times, values, step="post", color=COLOURS[colour], alpha=0.18, linewidth=0, gid=f"data:area {name}"
                )
            axes.plot(
                times,
                values,
                drawstyle="steps-post",
                color=COLOURS[colour],
                linewidth=1.8,
                linestyle={"dashed": (0, (5, 2)), "dotted": (0, (1, 1.6))}.get(style, "-"),
                gid=f"data:{name}",
                clip_on=False,
            )
        legend = [Key(name, colour, style) for name, colour, style in columns]
        legend += _marks(axes, story)
        svg = drawing.svg(f"{story['name']}: {title} over time, in {unit}", f"{title}: {said}.")
    return Chart(title, svg, tuple(legend))


def _marks(axes: Axes, story: Story) -> list[Key]:
    """Draw when steps were requested and faults were made; return the legend's entries for what was drawn."""
    for step in story["steps"]:
        axes.axvline(step["requested"], color=COLOURS["muted"], linewidth=0.8, gid=f"data:step {step['index']}")
    for fault in story["faults"]:
        axes.axvline(
            fault["t"], color=COLOURS["alert"], linewidth=1.2, linestyle=(0, (3, 2)), gid=f"data:fault {fault['kind']}"
        )
    return [
        *([Key("step requested", "muted", "moment")] if story["steps"] else []),
        *([Key("fault", "alert", "dashed")] if story["faults"] else []),
    ]


def gantt(story: Story) -> Chart | None:
    """The life of each node: coming, serving, going; with its instance type, why it went, and what was broken."""
    claims = [claim for claim in story["nodeclaims"] if claim["t"]["created"] is not None]
    if not claims:
        return None
    faked = simulated_phases(story)
    played = any(claim["simulated"] for claim in claims)
    legend = [
        Key(f"{name}, simulated", colour, "hatched") if played and phases & faked else Key(name, colour, "area")
        for name, (colour, phases) in _STRETCHES.items()
    ]
    if story["faults"] or story["interruptions"]:
        legend.append(Key("fault or interruption", "alert", "dashed"))
    draw = _gantt_with_names if len(claims) <= _LABELLED else _gantt_of_groups
    return Chart(
        "Nodes, each from NodeClaim to gone",
        draw(story, claims, _WIDTH, faked=faked),
        tuple(legend),
        draw(story, claims, _WIDE, faked=faked),
    )


def _gantt_with_names(story: Story, claims: Sequence[Mapping[str, Any]], width: float, *, faked: set[str]) -> Any:
    wide = width > _WIDTH
    ordered = sorted(claims, key=lambda claim: claim["t"]["created"])
    longest = max(len(_make(claim)) for claim in ordered)
    row, left = (22, min(6.6 * longest + 16, 340)) if wide else (34, 2)
    with Drawing(width, 8 + row * len(ordered) + 34) as drawing:
        axes = drawing.axes(left=left, right=14 if not wide else 100, top=8)
        _gantt_axes(axes, story, len(ordered))
        shift_down = 0 if wide else 0.2
        rows = [(index + shift_down, claim) for index, claim in enumerate(ordered)]
        _bars(axes, story, rows, 0.5 if wide else 0.34, faked=faked)
        for index, claim in enumerate(ordered):
            what = visible(_make(claim))
            why = visible(claim["disruption"] or "")
            if wide:
                for text, x, shift, align, colour in (
                    (what, 0, -left, "left", "ink"),
                    (why, 1, 10, "left", "muted"),
                ):
                    axes.annotate(
                        text,
                        (x, index),
                        xycoords=("axes fraction", "data"),
                        xytext=(shift, 0),
                        textcoords="offset points",
                        ha=align,
                        va="center",
                        color=COLOURS[colour],
                    )
            else:
                for text, x, align, colour in ((what, 0, "left", "ink"), (why, 1, "right", "muted")):
                    axes.annotate(
                        text,
                        (x, index - 0.22),
                        xycoords=("axes fraction", "data"),
                        ha=align,
                        va="center",
                        color=COLOURS[colour],
                    )
        return drawing.svg(*_gantt_texts(story, ordered))


def _gantt_of_groups(story: Story, claims: Sequence[Mapping[str, Any]], width: float, *, faked: set[str]) -> Any:
    """Many nodes: thin bars without a name, under the name of what they have in common."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for claim in claims:
        groups.setdefault(_make(claim, zone=False), []).append(claim)
    bar = 5 if len(claims) <= 100 else max(1.6, 600 / len(claims))
    head = 20 / bar
    rows: list[tuple[float, Mapping[str, Any]]] = []
    heads: list[tuple[float, str]] = []
    y = 0.0
    for make, members in sorted(groups.items(), key=lambda group: -len(group[1])):
        heads.append((y + head * 0.5, f"{make}  ×  {len(members)}"))  # noqa: RUF001
        y += head
        for claim in sorted(members, key=lambda claim: claim["t"]["created"]):
            rows.append((y + 0.5, claim))
            y += 1
        y += 4 / bar
    with Drawing(width, 8 + y * bar + 34) as drawing:
        axes = drawing.axes(left=8, right=14, top=8)
        _gantt_axes(axes, story, y, offset=0)
        for at, text in heads:
            axes.annotate(
                visible(text), (0, at), xycoords=("axes fraction", "data"), ha="left", va="center", color=COLOURS["ink"]
            )
        _bars(axes, story, rows, 0.78, faked=faked)
        return drawing.svg(*_gantt_texts(story, claims))


def _gantt_axes(axes: Axes, story: Story, rows: float, offset: float = 0.5) -> None:
    time_axis(axes, story["seconds"], "since the story began")
    axes.set_ylim(rows - offset, -offset)
    axes.set_yticks([])
    axes.grid(axis="x", color=COLOURS["rule"], linewidth=1)
    axes.spines["bottom"].set_visible(False)
    for fault in story["faults"]:
        axes.axvline(
            fault["t"],
            color=COLOURS["alert"],
            linewidth=1.2,
            linestyle=(0, (3, 2)),
            gid=f"data:fault {fault['kind']}",
            zorder=4,
        )


def _bars(
    axes: Axes, story: Story, rows: Sequence[tuple[float, Mapping[str, Any]]], height: float, *, faked: set[str]
) -> None:
    """All bars of one kind are one artist: hundreds of nodes stay quick to draw and to show."""
    stretches: dict[tuple[str, str, bool], list[tuple[float, float, float]]] = {}
    for y, claim in rows:
        for name, colour, hatched, start, end in _life(claim, story["seconds"], faked=faked):
            stretches.setdefault((name, colour, hatched), []).append((y, start, end))
    for (name, colour, hatched), bars in stretches.items():
        half = height / 2
        axes.add_collection(
            PolyCollection(
                [[(start, y - half), (end, y - half), (end, y + half), (start, y + half)] for y, start, end in bars],
                facecolors=COLOURS[colour],
                gid=f"data:{name}",
                zorder=2,
                **(_HATCHED if hatched else {"linewidth": 0}),
            ),
            autolim=False,
        )
    by_name = {claim["name"]: y for y, claim in rows}
    interrupted = [(warning["t"], warning["nodeclaim"]) for warning in story["interruptions"]]
    marks = [(time, by_name[name]) for time, name in interrupted if name in by_name]
    if marks:
        axes.plot(
            *zip(*marks, strict=True), "D", color=COLOURS["alert"], markersize=5, gid="data:interruption", zorder=5
        )


def _life(claim: Mapping[str, Any], story_end: float, *, faked: set[str]) -> list[tuple[str, str, bool, float, float]]:
    """Stretches of a node's life: name, colour, whether simulated, start, end. What was not reached is left out."""
    t = claim["t"]
    gone = t["gone"] if t["gone"] is not None else story_end
    leaving = t["disrupted"] if t["disrupted"] is not None else gone
    booted = t["initialized"] if t["initialized"] is not None else leaving
    launched = t["launched"] if t["launched"] is not None else leaving
    times = (t["created"], launched, booted, leaving, gone)
    return [
        (name, colour, claim["simulated"] and bool(phases & faked), start, end)
        for (name, (colour, phases)), (start, end) in zip(_STRETCHES.items(), itertools.pairwise(times), strict=True)
        if end > start
    ]


def _gantt_texts(story: Story, claims: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    makes: dict[str, int] = {}
    for claim in claims:
        makes[_make(claim, zone=False)] = makes.get(_make(claim, zone=False), 0) + 1
    return (
        f"{story['name']}: nodes over time, in seconds since the story began",
        f"{len(claims)} nodes: " + ", ".join(f"{number} {make}" for make, number in makes.items()),
    )


def controller(report: Mapping[str, Any]) -> list[Chart]:
    """Memory and processor of Karpenter's controller over the run."""
    process = report.get("controller") or {}
    samples = process.get("samples") or []
    if len(samples) < 2:
        return []
    end = samples[-1][0]
    rates = [
        [before[0], max(after[2] - before[2], 0) / (after[0] - before[0])]
        for before, after in itertools.pairwise(samples)
        if after[0] > before[0] and None not in (before[2], after[2])
    ]
    sizes = [[row[0], row[1] / 2**20] for row in samples if row[1] is not None]
    charts = []
    for title, unit, rows, said in (
        ("Memory of the controller", "MiB", sizes, f"at most {memory(process.get('peak_memory_bytes'))}"),
        ("Processors used by the controller", "cores", rates, f"{duration(process.get('cpu_seconds'))} in all"),
    ):
        if not rows:
            continue
        shown = thin(rows)
        with Drawing(_WIDTH, 170) as drawing:
            axes = drawing.axes(left=44, top=26)
            time_axis(axes, end, "since the run began")
            value_axis(axes, max(row[1] for row in shown), unit)
            axes.plot(
                *zip(*shown, strict=True), color=COLOURS["accent"], linewidth=1.6, gid=f"data:{unit}", clip_on=False
            )
            charts.append(Chart(title, drawing.svg(f"{title} over time, in {unit}", said)))
    return charts


def phase_name(phase: str) -> str:
    """A phase's name for people, with whose it is; a phase that is not known keeps its own."""
    subject, _, rest = phase.partition("_")
    return f"{_SUBJECTS.get(subject, subject)} {PHASES.get(phase, rest.replace('_', ' '))}"


def simulated_phases(story: Story) -> set[str]:
    """Phases of which a fake gave at least one time."""
    return {times["phase"] for times in story["durations"] if times["simulated"]}


def _make(claim: Mapping[str, Any], *, zone: bool = True) -> str:
    parts = (claim["instance_type"] or "not launched", claim["capacity_type"], claim["zone"] if zone else None)
    return " ".join(part for part in parts if part)


def step_title(step: Mapping[str, Any]) -> str:
    """A step's title, with its number if it does not say it: `Step 1 (scale to 5)`."""
    title = str(step["title"])
    said = title.lower().startswith(f"step {step['index']}")
    return visible(title[:1].upper() + title[1:] if said else f"Step {step['index']}: {title}")


def _moments(phase: str) -> str:
    return visible(phase.replace("nodeclaims_", "NodeClaims ").replace("_", " "))
