"""What happened in the days that the changed cluster lived: hour by hour, what it cost and which nodes were to go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from karpstack.karpenter.budgets import BudgetError, budgets, calendar, reasons_of
from karpstack.scale_test.numbers.disruptions import reason
from karpstack.scale_test.numbers.figures import Steps, accumulate, integral
from karpstack.scale_test.recording.timeline import parse_time

from .answer import PeriodDay, PeriodHour, SimulatedPeriod
from .departures import departures
from .nodes import series
from .phases import DaysTimeline, is_present, stays
from .prices import Priced
from .remaining import staying
from .unscheduled_pods import unscheduled_pods, unscheduled_span

_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
_UNSAID = "unknown"
_DIGITS = 6  # of a dollar
_Span = tuple[datetime, datetime]
_Gone = tuple[datetime, str]


def life(told: DaysTimeline, market: Priced) -> SimulatedPeriod:
    """Return what happened in these days."""
    begin, end = told.before, told.end
    points = series(told, market, begin, end)
    nodes: Steps = [(begin + timedelta(seconds=point.t), float(point.nodes)) for point in points]
    usd: Steps = [(begin + timedelta(seconds=point.t), point.usd_per_hour) for point in points]
    gone = sorted(
        (claim.disrupted, reason(told.replay, claim) or _UNSAID)
        for claim in told.claims
        if claim.disrupted and begin < claim.disrupted <= end
    )
    spans = sorted(span for pod in told.pods if pod.unschedulable and (span := unscheduled_span(told, pod)))
    lived = unscheduled_pods(told)
    known = all(market.usd(claim) is not None for claim in told.claims if _cost(claim.gone, begin) and claim.offering)
    total = _dollars(usd, begin, end)
    drifted = (claim for claim in told.claims if stays(claim, end))
    by_hour: dict[str, list[int]] = {why: [0] * 24 for why in sorted({why for _, why in gone})}
    for time, why in gone:
        by_hour[why][time.astimezone(UTC).hour] += 1
    ends = told.phases["life-ends"]
    return SimulatedPeriod(
        begins=begin.isoformat(),
        ends=end.isoformat(),
        real_seconds=ends.get("realSeconds") or 0.0,
        skipped_seconds=ends.get("skippedSeconds") or 0.0,
        curve=told.phases["life-begins"].get("curve"),
        images=[
            mark["received"]
            for mark in told.replay.marks
            if mark.get("phase") == "image-published" and begin <= parse_time(mark["received"]) <= end
        ],
        usd=total if known else None,
        usd_per_day=round(total / ((end - begin) / _DAY), _DIGITS) if known else None,
        disruptions=_counted(gone),
        disruptions_by_hour=by_hour,
        pods_moved=len(departures(told)),
        workloads_without_node=lived.workloads,
        pods_without_node=lived.pods,
        pods_without_node_at_once=lived.at_once,
        longest_without_node=lived.longest,
        drifted_nodes=staying(
            told, market, [claim for claim in drifted if claim.conditions.get("Drifted", {}).get("status") == "True"]
        ),
        hours=list(_hours(told, nodes, usd, gone, spans)),
        days=[
            PeriodDay(
                since=first.isoformat(),
                usd=_dollars(usd, first, last),
                disruptions=_counted([one for one in gone if first <= one[0] < last]),
                pods_without_node=len(own := [span for span in spans if first <= span[0] < last]),
                longest_without_node=max((_seconds(span) for span in own), default=0.0),
            )
            for first, last in _stretches(begin, end, _DAY)
        ],
    )


def _hours(
    told: DaysTimeline, nodes: Steps, usd: Steps, gone: Sequence[_Gone], spans: Sequence[_Span]
) -> Iterator[PeriodHour]:
    pods = accumulate(change for pod in told.pods for change in ((pod.seen, 1.0), (pod.left, -1.0)))
    closed = {why: list(_closed(told, why)) for why in reasons_of(told.karpenter)}
    for first, last in _hourly(told.before, told.end):
        yield PeriodHour(
            since=first.isoformat(),
            nodes=round(integral(nodes, first, last) / (last - first).total_seconds(), 2),
            usd=_dollars(usd, first, last),
            pods=round(max([_value(pods, first), *(count for time, count in pods if first < time < last)])),
            disruptions=_counted([one for one in gone if first <= one[0] < last]),
            pods_without_node=sum(first <= span[0] < last for span in spans),
            blocked_reasons=[why for why, times in closed.items() if any(a <= first and last <= b for a, b in times)],
        )


def _closed(told: DaysTimeline, why: str) -> Iterator[_Span]:
    """Yield from when to when no NodePool's budgets allow any node to go for a reason."""
    begin, end = told.before, told.end
    steps: list[tuple[datetime, float]] = []
    pools = 0
    for name in told.replay.node_pools:
        counts = (
            sum(claim.node_pool == name and is_present(claim, time) for claim in told.claims) for time in (begin, end)
        )
        excerpt = told.replay.node_pool_at(name, begin)
        if not (count := max(counts)) or not excerpt:
            continue
        pools += 1
        with suppress(BudgetError):  # then it allows none
            before = 0.0
            for moment, allowed in calendar(budgets(excerpt.get("spec") or {}), why, count, begin, end):
                steps.append((moment, float(allowed > 0) - before))
                before = float(allowed > 0)
    if not pools:
        return
    opened = accumulate([(begin, 0.0), *steps])
    for (since, value), until in zip(opened, [*(time for time, _ in opened[1:]), end], strict=True):
        if value == 0:
            yield since, until


def _hourly(begin: datetime, end: datetime) -> Iterator[_Span]:
    """Yield the hours of the clock; the first and the last may be shorter."""
    full = begin.replace(minute=0, second=0, microsecond=0) + _HOUR
    yield begin, min(full, end)
    yield from _stretches(full, end, _HOUR)


def _stretches(begin: datetime, end: datetime, length: timedelta) -> Iterator[_Span]:
    first = begin
    while first < end:
        yield first, min(first + length, end)
        first += length


def _value(steps: Steps, at: datetime) -> float:
    return next((value for time, value in reversed(steps) if time <= at), 0.0)


def _dollars(usd: Steps, begin: datetime, end: datetime) -> float:
    return round(integral(usd, begin, end) / _HOUR.total_seconds(), _DIGITS)


def _counted(gone: Sequence[_Gone]) -> dict[str, int]:
    return dict(sorted(Counter(why for _, why in gone).items()))


def _seconds(span: _Span) -> float:
    return round((span[1] - span[0]).total_seconds(), 3)


def _cost(gone: datetime | None, begin: datetime) -> bool:
    return gone is None or gone > begin
