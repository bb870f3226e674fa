"""whatif.md: the answer as a comment on a pull request (GitHub's Markdown): short, with details to unfold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scale_test.reports import units
from scale_test.text.markdown import code, escape, fitting, folded, table
from scale_test.text.shown import listed

from . import wording
from .answer import Answer, BlastRadius, Inventory, Life, PoolWeek, Week
from .week import runs

_NAMED = 4  # nodes in a cell
_WHOLE = "whatif.html"
#: Days of the week, from Monday.
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_SIGNS = {"within limits": "✅ ", "limits broken": "❌ ", "refused": "⛔ "}


def render(answer: Answer) -> str:
    """The comment."""
    return fitting("\n".join(_document(answer)).rstrip() + "\n", _WHOLE)


def _document(answer: Answer) -> Iterator[str]:
    sign = _SIGNS[answer.verdict] if wording.is_limited(answer) else ""
    yield f"## {sign}{escape(wording.title(answer))}: {wording.verdict(answer)}\n"
    # Who refuses the change, says so in words of theirs.
    yield f"**{escape(answer.sentence) if answer.refused else _own(answer.sentence)}**\n"
    if answer.after and answer.blast_radius:
        yield from _summary(answer, answer.before, answer.after, answer.blast_radius)
        if answer.prices_elsewhere:
            yield f"{escape(answer.prices_elsewhere)}\n"
    if answer.refused:
        said = "\n".join(escape(line) for line in answer.refused.splitlines() if line.strip())
        yield from folded("What was said", [f"<pre>{said}</pre>\n"])
    yield from _broken(answer)
    yield f"{escape(answer.truth.sentence)}\n"
    yield from _limits(answer)
    if answer.after and answer.blast_radius:
        yield from _inventory(answer.before, answer.after, wording.dollars_label(answer))
        yield from _radius(answer.blast_radius, answer.before)
        yield from _held(answer.blast_radius)
        yield from _not_anew(answer.blast_radius)
        yield from _surviving(answer)
    if answer.life:
        yield from _life(answer.life)
    yield from _week(answer.week)
    yield from _truth(answer)
    yield from _made(answer)


def _own(text: str) -> str:
    """Text of ours: a dollar begins a formula."""
    return text.replace("$", "\\$")


def _summary(answer: Answer, before: Inventory, after: Inventory, radius: BlastRadius) -> Iterator[str]:
    label, drifted = wording.dollars_label(answer), wording.drifted(answer.surviving)
    marked = "simulated" if before.spot_simulated or after.spot_simulated else ""
    rows = [
        (label, *_dollars(before.usd_per_hour, after.usd_per_hour, wording.direction(before, after))),
        *_while_draining(before, after),
        (
            f"of which spot{f', prices {marked}' if marked else ''}",
            *_dollars(before.spot_usd_per_hour, after.spot_usd_per_hour, wording.direction(before, after)),
        ),
        ("lower bound, times", _own(wording.bound(before)), _own(wording.bound(after)), ""),
        ("nodes", str(before.nodes), str(after.nodes), wording.counted(before.nodes, after.nodes)),
        ("nodes replaced", "", str(len(radius.replaced)), ""),
        ("nodes that have drifted and stay", "", str(drifted), ""),
        ("pods moved", "", wording.moved(radius), ""),
        ("pods without a home for a while", "", str(radius.without_home), ""),
        ("pods without a node", str(before.waiting), str(after.waiting), ""),
        ("workloads without a NodePool", "", str(len(radius.not_anew)), ""),
        ("pods deleted although something forbids it", "", str(radius.pods_killed), ""),
    ]
    if before.spot_usd_per_hour == 0 and after.spot_usd_per_hour == 0:
        del rows[1]
    yield from table(("", "before:", "after:", "change:"), rows, _WHOLE)


def _while_draining(before: Inventory, after: Inventory) -> Iterator[tuple[str, ...]]:
    """The figure with nodes that are on their way out, where there are any."""
    if before.leaving or after.leaving:
        written = _dollars(wording.during_usd(before), wording.during_usd(after))[:2]
        yield f"with nodes on their way out ({before.leaving}, {after.leaving})", *written, ""


def _dollars(before: float | None, after: float | None, direction: str = "-") -> tuple[str, str, str]:
    """Both amounts and the difference; without a direction, the difference is not stated."""
    written = [_own(units.dollars(usd)) if usd is not None else "not known" for usd in (before, after)]
    change = wording.change(before, after)
    return written[0], written[1], _own(change if direction or change in ("", "none") else "not decided yet")


def _broken(answer: Answer) -> Iterator[str]:
    for limit in answer.limits:
        if not limit.kept:
            yield f"> **{limit.name}**: {escape(limit.limit)}, seen {escape(limit.seen)}\n"


def _limits(answer: Answer) -> Iterator[str]:
    if answer.limits:
        rows = [
            (one.name, escape(one.limit), escape(one.seen), "yes" if one.kept else "**no**") for one in answer.limits
        ]
        kept = sum(limit.kept for limit in answer.limits)
        yield from folded(
            f"Limits: {kept} of {len(rows)} kept", table(("limit", "allowed", "seen", "kept"), rows, _WHOLE)
        )


def _inventory(before: Inventory, after: Inventory, label: str) -> Iterator[str]:
    def lines() -> Iterator[str]:
        for title, groups in wording.groups(before, after):
            head = (title, "nodes before:", "after:", f"{label} before:", "after:")
            rows = [(escape(row.name), *map(str, row.nodes), *_dollars(*row.usd)[:2]) for row in groups]
            yield from table(head, rows, _WHOLE)
        daemons = [_own(wording.overhead(one)) for one in (before, after)]
        yield f"DaemonSets of the workload: {daemons[0]} before, {daemons[1]} after.\n"

    yield from folded("Nodes by pool, type, zone and capacity type", lines())


def _radius(radius: BlastRadius, before: Inventory) -> Iterator[str]:
    if not (radius.replaced or radius.made or radius.homeless):
        return
    went = f"{len(radius.replaced)} of {wording.plural(before.nodes, 'node')} replaced"
    moved = wording.plural(radius.pods_moved, "pod")
    lines = [*_replaced(radius), *_came(radius), *_homeless(radius)]
    yield from folded(f"Blast radius: {went}, {len(radius.made)} came, {moved} moved", lines)


def _replaced(radius: BlastRadius) -> Iterator[str]:
    rows = [
        (
            str(one.order),
            escape(wording.node(one)),
            escape(one.pool),
            escape(wording.cause(one)),
            units.duration(one.decided),
            units.duration(one.gone) if one.gone is not None else "not gone",
            str(one.pods),
            "<br>".join(escape(wording.held(held)) for held in one.held_up),
        )
        for one in radius.replaced
    ]
    if rows:
        head = ("", "node", "NodePool", "why", "decided after:", "gone after:", "pods:", "held up by")
        yield from table(head, rows, _WHOLE)


def _came(radius: BlastRadius) -> Iterator[str]:
    rows = [
        (
            escape(wording.node(one)),
            escape(one.pool),
            escape(wording.purpose(one)),
            units.duration(one.since),
            "" if one.gone is None else units.duration(one.gone),
        )
        for one in radius.made
    ]
    if rows:
        yield from table(("node that came", "NodePool", "why", "after:", "gone again after:"), rows, _WHOLE)


def _homeless(radius: BlastRadius) -> Iterator[str]:
    rows = [
        (
            escape(f"{one.namespace}/{one.workload}"),
            str(one.pods),
            units.duration(one.longest),
            str(one.at_the_end),
            str(one.before),
            escape(one.words or ""),
        )
        for one in radius.homeless
    ]
    if rows:
        head = ("workload", "pods without a home:", "longest:", "still without:", "before:", "the controller's words")
        yield from table(head, rows, _WHOLE)


def _not_anew(radius: BlastRadius) -> Iterator[str]:
    rows = [
        (escape(f"{one.namespace}/{one.workload}"), str(one.pods), str(one.nodes), escape(one.why))
        for one in radius.not_anew
    ]
    if rows:
        title = f"No NodePool any more for {wording.plural(len(rows), 'workload')}"
        yield from folded(title, table(("workload", "pods that run:", "on nodes:", "why not"), rows, _WHOLE))


def _held(radius: BlastRadius) -> Iterator[str]:
    rows = [
        (escape(f"{one.namespace}/{one.workload}"), str(one.pods), escape(one.node_claim), escape(wording.fate(one)))
        for one in radius.held
    ]
    if rows:
        title = f"Pods that something keeps on nodes that are to go: {sum(one.pods for one in radius.held)}"
        yield from folded(title, table(("workload", "pods:", "node", "what becomes of them"), rows, _WHOLE))


def _surviving(answer: Answer) -> Iterator[str]:
    if causes := wording.causes(answer.surviving):
        rows = [
            (
                str(len(cause.nodes)),
                escape(cause.why),
                escape(cause.words),
                cause.said,
                escape(listed([one.node_claim for one in cause.nodes], _NAMED)),
            )
            for cause in causes
        ]
        title = f"Why {wording.plural(len(answer.surviving), 'node')} stayed"
        yield from folded(title, table(("nodes:", "cause", "what exactly", "said", "which"), rows, _WHOLE))


def _life(life: Life) -> Iterator[str]:
    def lines() -> Iterator[str]:
        reasons = list(life.disruptions)
        rows = [
            (
                units.moment(day.since),
                _own(units.dollars(day.usd)),
                *(str(day.disruptions.get(reason, 0)) for reason in reasons),
                str(day.without_home),
                units.duration(day.longest_without_home) if day.without_home else "",
            )
            for day in life.days
        ]
        head = ("24 hours from", "dollars:", *(f"{reason}:" for reason in reasons), "pods without a home:", "longest:")
        yield from table(head, rows, _WHOLE)
        if reasons:
            head = ("hour of the day, UTC", *(f"{reason}:" for reason in reasons))
            hours = [hour for hour in range(24) if any(life.disruptions_by_hour[reason][hour] for reason in reasons)]
            rows = [(str(hour), *(str(life.disruptions_by_hour[reason][hour]) for reason in reasons)) for hour in hours]
            yield from table(head, rows, _WHOLE)
        if life.never:
            yield "Drifted, and still there at the end:\n"
            rows = [
                (escape(wording.node(one)), escape(one.pool), wording.WHY[one.why], escape(one.words or ""))
                for one in life.never
            ]
            yield from table(("node", "NodePool", "cause", "the controller's words"), rows, _WHOLE)
        yield f"{wording.pace(life)}\n"

    yield f"{_own(wording.life(life))}\n"
    yield from folded(f"Day by day: {wording.span(life)}", lines())


def _week(week: Week) -> Iterator[str]:
    if not week.pools:
        return
    moment = units.moment(week.at)
    rows = [row for pool in week.pools for row in _pool(pool, week)]
    head = ("NodePool", "nodes:", "for", "at once, at that moment:", "within the week, UTC")
    yield from folded(f"Disruption budgets, {moment}: {wording.budgets_now(week)}", table(head, rows, _WHOLE))


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
        names = ", ".join(DAYS[(first + day) % 7] for day in days)
        parts.append(told if len(found) == 1 else f"{names}: {told}")
    return "; ".join(parts)


def _truth(answer: Answer) -> Iterator[str]:
    if answer.truth.compared:
        as_is = answer.truth.as_is
        loaded = {one.what: one.rehearsed for one in as_is.figures} if as_is else {}
        rows = [
            (
                escape(one.what),
                _figure(one.real),
                *([_figure(loaded.get(one.what))] if as_is else []),
                _figure(one.rehearsed),
                f"{one.distance:.1%}".replace("%", " %") if one.distance is not None else "",
                escape(one.note),
            )
            for one in answer.truth.figures
        ]
        head = (
            "",
            "real cluster:",
            *(["base when loaded:"] if as_is else []),
            "base before the change:",
            "distance:",
            "",
        )
        yield from folded("How far the base is from the real cluster", table(head, rows, _WHOLE))


def _figure(number: float | None) -> str:
    return "not known" if number is None else f"{number:.4g}"


def _made(answer: Answer) -> Iterator[str]:
    def lines() -> Iterator[str]:
        for text in (*answer.prices, *wording.settings(answer.settings), *answer.unknown):
            yield f"- {escape(wording.capital(text))}"
        yield ""
        if answer.blast_radius and answer.blast_radius.applied:
            rows = [
                (f"**{escape(one.op)}**", escape(one.name), escape(one.what), code(one.type))
                for one in answer.blast_radius.applied
            ]
            yield from table(("operation", "resource", "what of it", "type"), rows, _WHOLE)

    yield from folded("Prices, what was shortened, and what is not known", lines())
