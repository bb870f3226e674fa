"""whatif.html: the answer as one page that needs nothing but itself, in the style of the report."""

from __future__ import annotations

from pathlib import Path

from karpstack.scale_test.reports.drawing import COLOURS, Chart, Drawing, Key, thin, time_axis, value_axis
from karpstack.scale_test.reports.page import template
from karpstack.scale_test.reports.units import count, dollars

from . import life_chart, wording
from .answer import Answer, PoolWeek
from .conclusion import conclusion
from .markdown import DAYS

_TEMPLATES = Path(__file__).parent / "templates"
_WIDTH = 340


def render(answer: Answer) -> str:
    """The page.

    Returns:
        HTML.
    """
    return template("whatif.html.j2", _TEMPLATES).render(
        answer=answer,
        words=wording,
        conclusion=conclusion,
        groups=wording.groups(answer.before, answer.after) if answer.after else [],
        causes=wording.causes(answer.remaining),
        charts=_charts(answer),
        life_chart=life_chart.chart(answer.simulated_period) if answer.simulated_period else None,
        days=[DAYS[(wording.weekday(answer.week.begins) + day) % 7] for day in range(7)],
        weeks=[(pool, _alike(pool)) for pool in answer.week.pools],
    )


def _alike(pool: PoolWeek) -> list[tuple[list[str], list[list[int]], int, str | None]]:
    """Reasons for which the budgets allow the same: their names, the week, what is allowed now, and when more is."""
    found: dict[tuple[tuple[int, ...], ...], list[int]] = {}
    for index, row in enumerate(pool.reasons):
        found.setdefault(tuple(map(tuple, row.hours)), []).append(index)
    return [
        (
            [pool.reasons[index].reason for index in same],
            [list(row) for row in hours],
            pool.reasons[same[0]].now,
            pool.reasons[same[0]].next_allowed,
        )
        for hours, same in found.items()
    ]


def _charts(answer: Answer) -> list[Chart]:
    """Nodes and dollars over the time of the change."""
    points = [point for point in answer.series if point.t >= 0] or list(answer.series[-1:])
    before = [point for point in answer.series if point.t < 0]
    if answer.blast_radius is None or not points:
        return []
    begin = before[-1] if before else points[0]
    rows = [[0.0, float(begin.nodes), begin.usd_per_hour]]
    rows += [[max(0.0, point.t), float(point.nodes), point.usd_per_hour] for point in points]
    rows.append([max(answer.blast_radius.seconds, rows[-1][0]), *rows[-1][1:]])
    said = f"from {count(rows[0][1])} to {count(rows[-1][1])}, at most {count(max(row[1] for row in rows))}"
    usd = f"from {dollars(rows[0][2])} to {dollars(rows[-1][2])}, at most {dollars(max(row[2] for row in rows))}"
    return [
        _chart("Nodes", "nodes", [[row[0], row[1]] for row in rows], said),
        _chart(wording.dollars_label(answer), "USD/h", [[row[0], row[2]] for row in rows], usd),
    ]


def _chart(title: str, unit: str, rows: list[list[float]], said: str) -> Chart:
    kept = thin(rows)
    times, values = [row[0] for row in kept], [row[1] for row in kept]
    with Drawing(_WIDTH, 190) as drawing:
        axes = drawing.axes(left=44, top=26)
        time_axis(axes, times[-1], "since the change began")
        value_axis(axes, max(values), unit, whole=unit == "nodes")
        axes.fill_between(times, values, step="post", color=COLOURS["accent"], alpha=0.18, linewidth=0)
        axes.plot(
            times,
            values,
            drawstyle="steps-post",
            color=COLOURS["accent"],
            linewidth=1.8,
            gid=f"data:{unit}",
            clip_on=False,
        )
        svg = drawing.svg(f"{title} over time, in {unit}", f"{title}: {said}.")
    return Chart(title, svg, (Key(unit, "accent", "shade"),))
