"""The disruption budgets as a calendar: a week, by NodePool and reason, and whether the change could happen now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from karpstack.karpenter.budgets import REASONS, Budget, BudgetError, allowed, budgets, calendar, reasons_of
from karpstack.scale_test.recording.timeline import parse_time

from .answer import PoolWeek, ReasonWeek, RemainingNode, ReplacedNode, Step, Week
from .phases import WhatifTimeline, is_present

_DAYS = 7
_DAY, _HOUR = timedelta(days=1), timedelta(hours=1)


def week(told: WhatifTimeline, replaced: Sequence[ReplacedNode], remaining: Sequence[RemainingNode]) -> Week:
    """The budgets of all NodePools in the week that begins on the day that is asked about.

    Args:
        told: The timeline.
        replaced: The nodes that went.
        remaining: The nodes that stayed, of which drifted ones are to go.
    """
    at = simulated_moment(told, told.before).astimezone(UTC)
    begins = at.replace(hour=0, minute=0, second=0, microsecond=0)
    names = sorted(name for name in told.replay.node_pools if not told.is_deleted(name))
    pools = [_pool(told, name, count, at, begins) for name in names if (count := _count(told, name))]
    wanted = {(node.pool, node.reason) for node in replaced if node.reason in REASONS}
    wanted |= {(node.pool, "Drifted") for node in remaining if node.drifted}
    known = {(pool.pool, row.reason): row.now for pool in pools for row in pool.reasons}
    blocked = sorted(f"{pool}: {reason}" for pool, reason in wanted if known.get((pool, reason)) == 0)
    judged = wanted & known.keys()
    return Week(
        at=at.isoformat(),
        begins=begins.isoformat(),
        pools=pools,
        possible_now=not blocked if judged else None,
        blocked=blocked,
        used_up=sorted(
            {
                cause.details
                for node in remaining
                if node.drifted and known.get((node.pool, "Drifted"))
                for cause in node.causes
                if cause.why == "disruption budget"
            }
        ),
    )


def _count(told: WhatifTimeline, name: str) -> int:
    """Nodes of a NodePool when the change began; if it had none, at the end."""
    counts = (sum(claim.node_pool == name and is_present(claim, time) for claim in told.claims) for time in told.ends)
    return next((count for count in counts if count), 0)


def _pool(told: WhatifTimeline, name: str, count: int, at: datetime, begins: datetime) -> PoolWeek:
    excerpt = told.replay.node_pool_at(name, told.end) or {}
    if "spec" not in excerpt:
        return PoolWeek(pool=name, nodes=count, reasons=[], problem="the record does not tell its budgets")
    try:
        own = budgets(asked_spec(told, name, excerpt["spec"]))
        rows = [_reason(own, reason, count, at, begins) for reason in reasons_of(told.karpenter)]
    except BudgetError as error:
        return PoolWeek(pool=name, nodes=count, reasons=[], problem=str(error))
    return PoolWeek(pool=name, nodes=count, reasons=rows)


def simulated_moment(told: WhatifTimeline, otherwise: datetime) -> datetime:
    """Return the moment that is asked about (`--at`), or another if none is."""
    return parse_time(told.settings["at"]) if told.settings.get("at") else otherwise


def simulated_offset(told: WhatifTimeline) -> timedelta:
    """Return by how much later than the rehearsal the moment is that is asked about (`--at`); zero if none is."""
    return simulated_moment(told, told.before) - told.before


def asked_spec(told: WhatifTimeline, name: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a NodePool's spec with the budgets that the stack has, where others were rehearsed."""
    changed = (told.settings.get("pools") or {}).get(name) or {}
    if "budgets" not in changed:
        return spec
    return {"disruption": {"budgets": changed["budgets"][0]}}


def _reason(own: Sequence[Budget], reason: str, count: int, at: datetime, begins: datetime) -> ReasonWeek:
    ends = begins + _DAYS * _DAY
    steps = list(calendar(own, reason, count, begins, ends))
    now = allowed(own, reason, count, at)
    later = calendar(own, reason, count, at, at + _DAYS * _DAY)
    following = None if now else next((moment for moment, number in later if number), None)
    return ReasonWeek(
        reason=reason,
        now=now,
        next_allowed=following.isoformat() if following else None,
        hours=[[_least(steps, begins + day * _DAY + hour * _HOUR) for hour in range(24)] for day in range(_DAYS)],
        steps=[Step(since=moment.isoformat(), allowed=number) for moment, number in steps],
    )


def _least(steps: Sequence[tuple[datetime, int]], hour: datetime) -> int:
    """The least that is allowed within an hour."""
    ends = [*steps[1:], (datetime.max.replace(tzinfo=UTC), 0)]
    return min(
        number for (since, number), (until, _) in zip(steps, ends, strict=True) if since < hour + _HOUR and until > hour
    )


def runs(hours: Sequence[Sequence[int]]) -> list[tuple[tuple[int, ...], list[tuple[int, int, int]]]]:
    """A week for reading: days that are alike together, each as (first hour, hour after the last, allowed)."""
    found: dict[tuple[int, ...], list[int]] = {}
    for day, row in enumerate(hours):
        found.setdefault(tuple(row), []).append(day)
    return [(tuple(days), _spans(row)) for row, days in found.items()]


def _spans(row: Sequence[int]) -> list[tuple[int, int, int]]:
    turns = [0, *(hour for hour in range(1, len(row)) if row[hour] != row[hour - 1]), len(row)]
    return [(first, last, row[first]) for first, last in pairwise(turns)]
