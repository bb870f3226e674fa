"""whatif.md: the answer as a comment on a pull request (GitHub's Markdown): short, with details to unfold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from typing import TypeVar

from karpstack.scale_test.reports import units
from karpstack.text.markdown import code, collapsed, escape, fitting, table, unlinked
from karpstack.text.shown import listed

from . import wording
from .answer import (
    Answer,
    BlastRadius,
    BlockedEviction,
    Inventory,
    NotSchedulableAgain,
    PoolWeek,
    SimulatedPeriod,
    Week,
    WorkloadWithoutNode,
)
from .conclusion import conclusion, differs
from .week import runs

_NAMED = 4  # nodes in a cell
_PARAGRAPH = 3000  # characters
_WHOLE = "whatif.html"
#: Days of the week, from Monday.
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_SIGNS = {"within limits": "✅ ", "limits exceeded": "❌ ", "refused": "⛔ "}
_WARNING = "⚠️ "


def render(answer: Answer) -> str:
    """The comment."""
    return fitting("\n".join(_document(answer)).rstrip() + "\n", _WHOLE)


def _document(answer: Answer) -> Iterator[str]:
    sign = _SIGNS[answer.verdict] if wording.is_limited(answer) else ""
    radius = answer.blast_radius
    warned = wording.over_limits(radius) or wording.short_lives(radius) or differs(answer.accuracy)
    if answer.verdict == "within limits" and warned:
        sign = _WARNING
    yield f"## {sign}{escape(conclusion(answer))}\n"
    # Who refuses the change, says so in words of theirs.
    sentence = escape(answer.sentence) if answer.refused else _own(answer.sentence)
    yield f"{escape(wording.title(answer))}: {escape(wording.verdict(answer))}. **{sentence}**\n"
    if answer.after and answer.blast_radius:
        yield from _summary(answer, answer.before, answer.after, answer.blast_radius)
        if answer.prices_note:
            yield f"{escape(answer.prices_note)}\n"
        if open_end := wording.open_end(answer.after):
            yield f"{escape(open_end)}\n"
    if answer.refused:
        said = "\n".join(escape(line) for line in answer.refused.splitlines() if line.strip())
        yield from collapsed("Why the change was refused", [f"<pre>{said}</pre>\n"])
    yield from _broken(answer)
    yield from (f"> {escape(notice)}\n" for notice, _ in wording.notices(answer.blast_radius))
    yield f"{escape(answer.accuracy.sentence, _PARAGRAPH)}\n"
    yield from _limits(answer)
    if answer.after and answer.blast_radius:
        yield from _inventory(answer.before, answer.after, wording.dollars_label(answer))
        yield from _radius(answer.blast_radius, answer.before)
        yield from _held(answer.blast_radius)
        yield from _not_schedulable_again(answer.blast_radius)
        yield from _remaining(answer)
    if answer.simulated_period:
        yield from _life(answer.simulated_period, answer.before)
    yield from _week(answer.week)
    yield from _accuracy(answer)
    yield from _made(answer)


_Row = TypeVar("_Row")


def _columns(rows: Sequence[_Row], *columns: tuple[str, Callable[[_Row], str]]) -> Iterator[str]:
    """A table with a column for each heading, and what it says of a row; nothing without rows."""
    if rows:
        cells = [tuple(cell(row) for _, cell in columns) for row in rows]
        yield from table(tuple(heading for heading, _ in columns), cells, _WHOLE)


def _workload(one: WorkloadWithoutNode | NotSchedulableAgain | BlockedEviction) -> str:
    return escape(f"{one.namespace}/{one.workload}")


def _own(text: str) -> str:
    """Text of ours, with names in it: a dollar begins a formula."""
    return unlinked(text.replace("$", "\\$"))


def _summary(answer: Answer, before: Inventory, after: Inventory, radius: BlastRadius) -> Iterator[str]:
    label, drifted = wording.dollars_label(answer), wording.drifted(answer.remaining)
    marked = "simulated" if before.spot_simulated or after.spot_simulated else ""
    undecided = after.open_end is not None
    rows = [
        (
            label,
            *_dollars(before.usd_per_hour, after.usd_per_hour, wording.direction(before, after), open_end=undecided),
        ),
        *_while_draining(before, after),
        (
            f"of which spot{f', prices {marked}' if marked else ''}",
            *_dollars(before.spot_usd_per_hour, after.spot_usd_per_hour, wording.direction(before, after)),
        ),
        ("lower bound, times", _own(wording.bound(before)), _own(wording.bound(after)), ""),
        ("nodes", str(before.nodes), str(after.nodes), wording.counted(before.nodes, after.nodes)),
        ("nodes that go", "", str(len(radius.replaced)), ""),
        ("nodes that have drifted and stay", "", str(drifted), ""),
        ("pods moved", "", wording.moved(radius), ""),
        ("pods unschedulable for a while", "", str(radius.pods_without_node), ""),
        ("pods without a node", str(before.waiting), str(after.waiting), ""),
        ("workloads without a NodePool", "", str(len(radius.not_schedulable_again)), ""),
        ("pods deleted in spite of a block", "", str(radius.pods_killed), ""),
    ]
    if before.spot_usd_per_hour == 0 and after.spot_usd_per_hour == 0:
        del rows[1]
    yield from table(("", "before:", "after:", "change:"), rows, _WHOLE)


def _while_draining(before: Inventory, after: Inventory) -> Iterator[tuple[str, ...]]:
    """The figure with nodes that are on their way out, where there are any."""
    if before.draining or after.draining:
        written = _dollars(wording.during_usd(before), wording.during_usd(after))[:2]
        yield f"with nodes on their way out ({before.draining} before, {after.draining} after)", *written, ""


def _dollars(
    before: float | None, after: float | None, direction: str = "-", *, open_end: bool = False
) -> tuple[str, str, str]:
    """Both amounts and the difference; without a direction, the difference is not stated."""
    written = [_own(units.dollars(usd)) if usd is not None else "not known" for usd in (before, after)]
    change = wording.change(before, after)
    return (
        written[0],
        written[1],
        _own(change if change == "" or direction or (change == "none" and not open_end) else "not decided yet"),
    )


def _broken(answer: Answer) -> Iterator[str]:
    for limit in answer.limits:
        if not limit.within_limit:
            yield f"> **{limit.name}**: {escape(limit.limit)}, measured: {escape(limit.measured)}\n"


def _limits(answer: Answer) -> Iterator[str]:
    rows = _columns(
        answer.limits,
        ("limit", lambda one: one.name),
        ("allowed", lambda one: escape(one.limit)),
        ("measured", lambda one: escape(one.measured)),
        ("within the limit", lambda one: "yes" if one.within_limit else "**no**"),
    )
    if answer.limits:
        yield from collapsed(
            f"Limits: {sum(one.within_limit for one in answer.limits)} of {len(answer.limits)} within the limit", rows
        )


def _inventory(before: Inventory, after: Inventory, label: str) -> Iterator[str]:
    def lines() -> Iterator[str]:
        for title, groups in wording.groups(before, after):
            head = (title, "nodes before:", "after:", f"{label} before:", "after:")
            rows = [(escape(row.name), *map(str, row.nodes), *_dollars(*row.usd)[:2]) for row in groups]
            yield from table(head, rows, _WHOLE)
        daemons = [_own(wording.overhead(one)) for one in (before, after)]
        yield f"DaemonSets: {daemons[0]} before, {daemons[1]} after.\n"

    yield from collapsed("Nodes by pool, type, zone and capacity type", lines())


def _radius(radius: BlastRadius, before: Inventory) -> Iterator[str]:
    if not (radius.replaced or radius.created or radius.workloads_without_node):
        return
    goes = "goes" if len(radius.replaced) == 1 else "go"
    went = f"{len(radius.replaced)} of {wording.plural(before.nodes, 'node')} {goes}"
    moved = wording.plural(radius.pods_moved, "pod")
    lines = [*_replaced(radius), *_came(radius), *_workload_without_node(radius)]
    yield from collapsed(f"Blast radius: {went}, {len(radius.created)} came, {moved} moved", lines)


def _replaced(radius: BlastRadius) -> Iterator[str]:
    return _columns(
        radius.replaced,
        ("", lambda one: str(one.order)),
        ("node", lambda one: escape(wording.node(one))),
        ("NodePool", lambda one: escape(one.pool)),
        ("why", lambda one: escape(wording.cause(one))),
        ("decided after:", lambda one: units.duration(one.decided)),
        ("gone after:", lambda one: "not gone" if one.gone is None else units.duration(one.gone)),
        ("pods:", lambda one: str(one.pods)),
        ("delayed by", lambda one: "<br>".join(escape(wording.held(held)) for held in one.delays)),
    )


def _came(radius: BlastRadius) -> Iterator[str]:
    return _columns(
        radius.created,
        ("new node", lambda one: escape(wording.node(one))),
        ("NodePool", lambda one: escape(one.pool)),
        ("why", lambda one: escape(wording.purpose(one))),
        ("after:", lambda one: units.duration(one.since)),
        ("gone again after:", wording.removal_text),
    )


def _workload_without_node(radius: BlastRadius) -> Iterator[str]:
    return _columns(
        radius.workloads_without_node,
        ("workload", _workload),
        ("unschedulable pods:", lambda one: str(one.pods)),
        ("longest:", lambda one: units.duration(one.longest)),
        ("still without:", lambda one: str(one.at_the_end)),
        ("before:", lambda one: str(one.before)),
        ("Karpenter's message", lambda one: escape(wording.unschedulable_reason(one))),
    )


def _not_schedulable_again(radius: BlastRadius) -> Iterator[str]:
    rows = _columns(
        radius.not_schedulable_again,
        ("workload", _workload),
        ("pods that run:", lambda one: str(one.pods)),
        ("on nodes:", lambda one: str(one.nodes)),
        ("why not", lambda one: escape(one.why)),
    )
    if radius.not_schedulable_again:
        yield from collapsed(
            f"No NodePool any more for {wording.plural(len(radius.not_schedulable_again), 'workload')}", rows
        )


def _held(radius: BlastRadius) -> Iterator[str]:
    rows = _columns(
        radius.blocked_evictions,
        ("workload", _workload),
        ("pods:", lambda one: str(one.pods)),
        ("node", lambda one: escape(one.node_claim)),
        ("what happens to them", lambda one: escape(wording.held_pod_outcome(one))),
    )
    if radius.blocked_evictions:
        held = sum(one.pods for one in radius.blocked_evictions)
        yield from collapsed(f"Blocked evictions: pods on nodes that must go: {held}", rows)


def _remaining(answer: Answer) -> Iterator[str]:
    rows = _columns(
        wording.causes(answer.remaining),
        ("nodes:", lambda cause: str(len(cause.nodes))),
        ("cause", lambda cause: escape(cause.why)),
        ("details", lambda cause: escape(cause.details)),
        ("reported", lambda cause: cause.said),
        ("nodes", lambda cause: escape(listed([one.node_claim for one in cause.nodes], _NAMED))),
    )
    if answer.remaining:
        yield from collapsed(f"Why {wording.plural(len(answer.remaining), 'node')} stayed", rows)


def _life(life: SimulatedPeriod, before: Inventory) -> Iterator[str]:
    def lines() -> Iterator[str]:
        reasons = list(life.disruptions)
        rows = [
            (
                units.moment(day.since),
                _own(units.dollars(day.usd)),
                *(str(day.disruptions.get(reason, 0)) for reason in reasons),
                str(day.pods_without_node),
                units.duration(day.longest_without_node) if day.pods_without_node else "",
            )
            for day in life.days
        ]
        head = ("24 hours from", "dollars:", *(f"{reason}:" for reason in reasons), "unschedulable pods:", "longest:")
        yield from table(head, rows, _WHOLE)
        if reasons:
            head = ("hour of the day, UTC", *(f"{reason}:" for reason in reasons))
            hours = [hour for hour in range(24) if any(life.disruptions_by_hour[reason][hour] for reason in reasons)]
            rows = [(str(hour), *(str(life.disruptions_by_hour[reason][hour]) for reason in reasons)) for hour in hours]
            yield from table(head, rows, _WHOLE)
        if life.drifted_nodes:
            yield "Drifted and not replaced at the end:\n"
            yield from _columns(
                life.drifted_nodes,
                ("node", lambda one: escape(wording.node(one))),
                ("NodePool", lambda one: escape(one.pool)),
                ("cause", lambda one: wording.WHY[one.why]),
                ("Karpenter's message", lambda one: escape(one.details or "")),
            )
        yield f"{wording.pace(life)}\n"

    yield f"{_own(wording.life(life, before))}\n"
    yield from collapsed(f"Day by day: {wording.span(life)}", lines())


def _week(week: Week) -> Iterator[str]:
    if not week.pools:
        return
    moment = units.moment(week.at)
    rows = [row for pool in week.pools for row in _pool(pool, week)]
    head = ("NodePool", "nodes before:", "for", "at once, at that moment:", "within the week, UTC")
    yield from collapsed(f"Disruption budgets, {moment}: {wording.budgets_now(week)}", table(head, rows, _WHOLE))


def _pool(pool: PoolWeek, week: Week) -> Iterator[tuple[str, ...]]:
    if pool.problem:
        yield escape(pool.pool), str(pool.nodes), "", "0", escape(pool.problem)
    alike: dict[tuple[tuple[int, ...], ...], list[str]] = {}
    for row in pool.reasons:
        alike.setdefault(tuple(map(tuple, row.hours)), []).append(row.reason)
    for hours, names in alike.items():
        one = next(row for row in pool.reasons if row.reason == names[0])
        yield escape(pool.pool), str(pool.nodes), ", ".join(names), str(one.now), calendar_words(hours, week.begins)


def calendar_words(hours: Sequence[Sequence[int]], begins: str) -> str:
    """A week in words: `Mon to Fri: 0 from 9 to 17 h, else 2`, or `2 at any hour`."""
    first = wording.weekday(begins)
    found = runs(hours)
    parts = []
    for days, spans in found:
        told = ", ".join(f"{number} from {begin} to {end} h" for begin, end, number in spans)
        if len(spans) == 1:
            told = f"{spans[0][2]} at any hour"
        parts.append(told if len(found) == 1 else f"{_day_names({(first + day) % 7 for day in days}, first)}: {told}")
    return "; ".join(parts)


def _day_names(days: Set[int], first: int) -> str:
    """Days of the week as in a calendar: `Mon to Fri`, also if the week begins on a Thursday."""
    begins = sorted((day for day in days if (day - 1) % 7 not in days), key=lambda day: (day - first) % 7)
    names = []
    for begin in begins:
        row = [day % 7 for day in range(begin, begin + 7)]
        row = row[: next((number for number, day in enumerate(row) if day not in days), 7)]
        names += [f"{DAYS[row[0]]} to {DAYS[row[-1]]}"] if len(row) > 2 else [DAYS[day] for day in row]
    return ", ".join(names)


def _accuracy(answer: Answer) -> Iterator[str]:
    if not answer.accuracy.compared:
        return
    as_is = answer.accuracy.initial_nodes
    loaded = {one.what: one.rehearsed for one in as_is.figures} if as_is else {}
    of_loaded = [("base when loaded:", lambda one: _figure(loaded.get(one.what)))] if as_is else []
    rows = _columns(
        answer.accuracy.figures,
        ("", lambda one: escape(one.what)),
        ("real cluster:", lambda one: _figure(one.real)),
        *of_loaded,
        ("base before the change:", lambda one: _figure(one.rehearsed)),
        ("difference:", lambda one: "" if one.difference is None else f"{one.difference:.1%}".replace("%", " %")),
        ("", lambda one: escape(one.note)),
    )
    yield from collapsed("The base and the real cluster", rows)


def _figure(number: float | None) -> str:
    return "not known" if number is None else f"{number:.4g}"


def _made(answer: Answer) -> Iterator[str]:
    def lines() -> Iterator[str]:
        for text in (*answer.prices, *wording.settings(answer.settings), *answer.unknown):
            yield f"- {escape(wording.capital(text))}"
        yield ""
        yield from _columns(
            (answer.blast_radius.applied if answer.blast_radius else None) or [],
            ("operation", lambda one: f"**{escape(one.op)}**"),
            ("resource", lambda one: escape(one.name)),
            ("changes", lambda one: escape(one.what)),
            ("type", lambda one: code(one.type)),
        )

    yield from collapsed("Prices, what was shortened, and what is not known", lines())
