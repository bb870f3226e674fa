"""The charts of an advice: dollars an hour against moved pods, and against pods that had no node for a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from matplotlib.ticker import MaxNLocator

from karpstack.scale_test.reports.drawing import COLOURS, Chart, Drawing, Key, value_axis
from karpstack.scale_test.reports.units import dollars

from .advice import Advice, Advised

_WIDTH: Final = 340
_HEIGHT: Final = 240
_TOP: Final = 26
_BOTTOM: Final = 44
# Pixels of a label: from its point, of a line, of a letter.
_GAP, _LINE, _LETTER = 8, 14, 6.5
_NOW: Final = "now"

_Pods = Callable[[Advised], float | None]  # the pods of a candidate that a chart shows


class _Point(NamedTuple):
    name: str
    pods: float
    usd: float
    better: bool = False


class _Label(NamedTuple):
    name: str
    pods: float
    usd: float
    left: bool
    offset: float


def charts(advice: Advice) -> list[Chart]:
    """Return both charts; none if no candidate has a price."""
    days = advice.pods_moved_per_day is not None
    moved: _Pods = (lambda one: one.pods_moved_per_day) if days else (lambda one: one.pods_moved)
    drawn: list[tuple[str, _Pods, float | None]] = [
        (
            f"Dollars an hour against pods moved{' a day' if days else ' by the change'}",
            moved,
            advice.pods_moved_per_day or 0.0,
        ),
        (
            "Dollars an hour against pods that had no node for a time",
            lambda one: one.pods_without_node,
            None if days else 0.0,
        ),
    ]
    made = []
    for title, pods_of, now in drawn:
        points = [
            _Point(one.name, pods, one.usd_per_hour, one.verdict == "better")
            for one in advice.candidates
            if one.usd_per_hour is not None and (pods := pods_of(one)) is not None
        ]
        if points:
            start = [] if advice.usd_per_hour is None or now is None else [_Point(_NOW, now, advice.usd_per_hour)]
            made.append(_chart(title, [*start, *points]))
    return made


def _chart(title: str, points: Sequence[_Point]) -> Chart:
    most = max(max(point.pods for point in points), 1.0)
    top = max(point.usd for point in points)
    said = "; ".join(f"{point.name} {dollars(point.usd)}, {point.pods:g} pods" for point in points)
    with Drawing(_WIDTH, _HEIGHT) as drawing:
        axes = drawing.axes(left=44, top=_TOP, bottom=_BOTTOM)
        axes.set_xlim(-0.04 * most, 1.06 * most)
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True, min_n_ticks=2))
        axes.set_xlabel("pods", loc="left", labelpad=2)
        value_axis(axes, top, "USD/h")
        for point in points:
            colour = COLOURS["accent" if point.better else "ink" if point.name == _NOW else "quiet"]
            axes.scatter([point.pods], [point.usd], s=36, color=colour, gid=f"data:{point.name}", clip_on=False)
        for label in _labels(points, most, top):
            axes.annotate(
                label.name,
                (label.pods, label.usd),
                xytext=(-_GAP if label.left else _GAP, label.offset),
                textcoords="offset points",
                ha="right" if label.left else "left",
                va="center",
            )
        svg = drawing.svg(title, said)
    return Chart(
        title, svg, (Key(_NOW, "ink", "area"), Key("better", "accent", "area"), Key("others", "quiet", "area"))
    )


def _labels(points: Sequence[_Point], most: float, top: float) -> Iterator[_Label]:
    """Yield the labels from below; each moves up until it covers no other."""
    placed: list[tuple[float, float, float]] = []
    for point in sorted(points, key=lambda point: point.usd):
        left, width = point.pods > most / 2, len(point.name) * _LETTER + _GAP
        x = point.pods / (1.1 * most) * _WIDTH
        begin, end = (x - width, x) if left else (x, x + width)
        height = lowest = point.usd / (1.06 * top or 1.0) * (_HEIGHT - _TOP - _BOTTOM)
        for first, last, other in placed:
            if first < end and begin < last and height < other + _LINE:
                height = other + _LINE
        placed.append((begin, end, height))
        yield _Label(point.name, point.pods, point.usd, left, height - lowest)
