"""Draws the days that the changed cluster lived: pods, nodes and dollars, and which nodes were to go, hour by hour."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from markupsafe import Markup
from matplotlib.axes import Axes

from karpstack.scale_test.reports.drawing import COLOURS, Chart, Drawing, Key, value_axis
from karpstack.scale_test.reports.units import count, dollars

from .answer import PeriodHour, SimulatedPeriod

_NARROW, _WIDE = 340, 900
_ROW, _GAP, _TOP, _BOTTOM = 84, 40, 26, 34  # pixels
_LEFT, _RIGHT = 44, 14
#: Reasons in their order, each with its colour; others are quiet.
_COLOURS = {
    "Drifted": "phase-2",
    "Expired": "wait",
    "Underutilized": "accent",
    "Empty": "phase-1",
    "Interrupted": "alert",
}
_HOUR = timedelta(hours=1)


def chart(life: SimulatedPeriod) -> Chart:
    """Return the timeline of a life."""
    drawn = {why: _COLOURS.get(why, "quiet") for why in (*_COLOURS, *life.disruptions) if why in life.disruptions}
    legend = [
        Key("pods", "muted"),
        Key("nodes", "accent"),
        Key("dollars an hour", "accent", "shade"),
        *(Key(f"{why}, nodes to go", colour, "area") for why, colour in drawn.items()),
    ]
    if any(hour.blocked_reasons for hour in life.hours):
        legend.append(Key("budgets closed", "rule", "area"))
    return Chart(
        "Hour by hour, in UTC",
        _drawing(life, drawn, _NARROW),
        tuple(legend),
        _drawing(life, drawn, _WIDE),
        "Shaded grey: the disruption budgets let no node go for at least one reason." if _closed(life) else "",
    )


def _drawing(life: SimulatedPeriod, drawn: dict[str, str], width: float) -> Markup:
    hours = life.hours
    begin, end = (datetime.fromisoformat(text) for text in (life.begins, life.ends))
    times = [max(0.0, _after(hour, begin)) for hour in hours]
    span = (end - begin) / _HOUR
    rows = 4
    height = _TOP + rows * _ROW + (rows - 1) * _GAP + _BOTTOM
    with Drawing(width, height) as drawing:
        for index, (unit, whole) in enumerate(
            (("pods", True), ("nodes", True), ("USD/h", False), ("nodes to go", True))
        ):
            top = _TOP + index * (_ROW + _GAP)
            axes = drawing.axes(_LEFT, _RIGHT, top, height - top - _ROW)
            _days(axes, begin, span, labelled=index == rows - 1, every=1 if width > _NARROW or span <= 96 else 2)
            for first, last in _closed(life):
                axes.axvspan(first, last, color=COLOURS["rule"], alpha=0.55, linewidth=0, gid="data:closed")
            if unit == "nodes to go":
                _bars(axes, hours, times, span, drawn)
                top_value = float(max(sum(hour.disruptions.values()) for hour in hours))
            else:
                values = _values(hours, unit, end)
                _steps(axes, [*times, span], [*values, values[-1]], unit)
                top_value = max(values)
            value_axis(axes, max(top_value, 1 if whole else 0), unit, whole=whole)
        return drawing.svg("The changed cluster, hour by hour", _said(life))


def _values(hours: Sequence[PeriodHour], unit: str, end: datetime) -> list[float]:
    if unit == "pods":
        return [float(hour.pods) for hour in hours]
    if unit == "nodes":
        return [hour.nodes for hour in hours]
    ends = [*(datetime.fromisoformat(hour.since) for hour in hours[1:]), end]
    lengths = [(until - datetime.fromisoformat(hour.since)) / _HOUR for hour, until in zip(hours, ends, strict=True)]
    return [hour.usd / length for hour, length in zip(hours, lengths, strict=True)]


def _steps(axes: Axes, times: Sequence[float], values: Sequence[float], unit: str) -> None:
    colour = COLOURS["muted" if unit == "pods" else "accent"]
    if unit == "USD/h":
        axes.fill_between(times, values, step="post", color=colour, alpha=0.18, linewidth=0)
    axes.plot(times, values, drawstyle="steps-post", color=colour, linewidth=1.8, gid=f"data:{unit}", clip_on=False)


def _bars(axes: Axes, hours: Sequence[PeriodHour], times: Sequence[float], span: float, drawn: dict[str, str]) -> None:
    widths = [(later - time) * 0.86 for time, later in pairwise([*times, span])]
    below = [0.0] * len(hours)
    for why, colour in drawn.items():
        values = [float(hour.disruptions.get(why, 0)) for hour in hours]
        at = [index for index, value in enumerate(values) if value]
        axes.bar(
            [times[index] for index in at],
            [values[index] for index in at],
            [widths[index] for index in at],
            [below[index] for index in at],
            align="edge",
            color=COLOURS[colour],
            linewidth=0,
            gid=f"data:{why}",
        )
        below = [low + value for low, value in zip(below, values, strict=True)]


def _days(axes: Axes, begin: datetime, span: float, *, labelled: bool, every: int) -> None:
    """Draw midnights, and name the days; a short life has its hours."""
    midnight = begin.replace(hour=0, minute=0, second=0, microsecond=0)
    axes.set_xlim(0, span)
    if span <= 48:
        step = 3 if span <= 24 else 6
        first = begin.replace(minute=0, second=0, microsecond=0)
        marks = [first + hour * _HOUR for hour in range(int(span) + 2)]
        marks = [mark for mark in marks if mark.hour % step == 0 and mark >= begin]
        names = [f"{mark:%a}" if mark.hour == 0 else f"{mark:%H}" for mark in marks]
    else:
        marks = [midnight + (day + 1) * 24 * _HOUR for day in range(int(span // 24) + 1)]
        names = [f"{mark:%a} {mark.day}" if number % every == 0 else "" for number, mark in enumerate(marks)]
    at = [(mark - begin) / _HOUR for mark in marks]
    kept = [(time, name) for time, name in zip(at, names, strict=True) if 0 <= time <= span]
    axes.set_xticks([time for time, _ in kept], [name for _, name in kept] if labelled else [""] * len(kept))
    axes.grid(axis="x", color=COLOURS["rule"], linewidth=1)


def _closed(life: SimulatedPeriod) -> list[tuple[float, float]]:
    """Return from when to when budgets are closed for a reason, in hours."""
    begin, end = (datetime.fromisoformat(text) for text in (life.begins, life.ends))
    times = [*(max(0.0, _after(hour, begin)) for hour in life.hours), (end - begin) / _HOUR]
    spans: list[tuple[float, float]] = []
    for hour, (first, last) in zip(life.hours, pairwise(times), strict=True):
        if not hour.blocked_reasons:
            continue
        if spans and spans[-1][1] == first:
            spans[-1] = (spans[-1][0], last)
        else:
            spans.append((first, last))
    return spans


def _after(hour: PeriodHour, begin: datetime) -> float:
    return (datetime.fromisoformat(hour.since) - begin) / _HOUR


def _said(life: SimulatedPeriod) -> str:
    nodes, pods = [hour.nodes for hour in life.hours], [hour.pods for hour in life.hours]
    gone = ", ".join(f"{why} {count(number)}" for why, number in life.disruptions.items()) or "none"
    return (
        f"nodes from {min(nodes):.0f} to {max(nodes):.0f}, pods from {count(min(pods))} to {count(max(pods))}, "
        f"{dollars(life.usd_per_day)} a day; nodes to go: {gone}."
    )
