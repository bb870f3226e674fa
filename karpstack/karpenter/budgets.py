"""Disruption budgets as a calendar: how many of a NodePool's nodes Karpenter may disrupt at a moment, for a reason.

As `GetAllowedDisruptionsByReason` and `Budget.IsActive` of sigs.k8s.io/karpenter do it (pkg/apis/v1/nodepool.go,
v1.15.0): the least of the budgets that are active and about the reason counts, a share is rounded up, and a budget with
a schedule is active from each of its moments, in UTC, for its duration. Nodes that are not ready or already on their
way out are not subtracted here; they are part of what is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from heapq import merge
from itertools import takewhile
from typing import Any, Final

from cronsim import CronSim, CronSimError

from .quantities import duration

#: For what nodes are disrupted by choice; budgets do not hold up expiry, interruption or deletion. Unhealthy came with
#: 1.15: until then, repair did not ask them.
REASONS: Final = ("Underutilized", "Empty", "Drifted", "Unhealthy")
_UNHEALTHY_SINCE: Final = (1, 15)

# Go's, and so Karpenter's: some 292 years.
_LONGEST: Final = timedelta(microseconds=(2**63 - 1) // 1000)
_DEFAULT: Final = ({"nodes": "10%"},)
_NAMED: Final = {
    "@annually": "0 0 1 1 *",
    "@yearly": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
# Lowest and highest value of each field: minute, hour, day of the month, month, day of the week.
_RANGES: Final = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_VALUE: Final = r"(?:\d{1,2}|[A-Za-z]{3})"
_TERM: Final = re.compile(rf"([*?]|{_VALUE}(?:-{_VALUE})?)(?:/(\d{{1,2}}))?", re.ASCII)


class BudgetError(ValueError):
    """A budget that Karpenter can't evaluate; it then disrupts no node of the NodePool for any reason.

    Attributes:
        key: What of it.
        value: What that is.
        wanted: What it ought to be.
    """

    def __init__(self, key: str, value: str, wanted: str) -> None:
        super().__init__(
            f"{key} of a disruption budget is {value!r}: Karpenter would disrupt no node of the NodePool; "
            f"write {wanted}"
        )
        self.key, self.value, self.wanted = key, value, wanted


@dataclass(frozen=True)
class Budget:
    """One disruption budget.

    Attributes:
        nodes: A number of nodes, or a share such as `10%`.
        reasons: What it is about; None is every reason.
        schedule: When it begins to be active: five fields of cron, or a name such as `@daily`; None is always.
        lasting: How long it is active each time.

    Raises:
        BudgetError: Karpenter can't evaluate it.
    """

    nodes: str
    reasons: frozenset[str] | None = None
    schedule: str | None = None
    lasting: timedelta = timedelta()

    def __post_init__(self) -> None:
        if not re.fullmatch(r"(?:100|[0-9]{1,2})%|[0-9]{1,9}", self.nodes):
            raise BudgetError("nodes", self.nodes, "a number of nodes, or a share such as 10%")
        if self.schedule is not None:
            self._moments(self.schedule, datetime(2000, 1, 1, tzinfo=UTC))

    def active(self, at: datetime) -> bool:
        """Whether it limits anything at a moment, which has a time zone."""
        if self.schedule is None:
            return True
        return next(self._moments(self.schedule, at - self.lasting)) <= at

    @property
    def weekly(self) -> bool:
        """Whether one week is as the other, because no day of a month and no month is in its schedule."""
        return self.schedule is None or _cron(self.schedule).split()[2:4] == ["*", "*"]

    def limit(self, count: int) -> int:
        """How many of `count` nodes may be disrupted while it is active."""
        return -(-count * int(self.nodes[:-1]) // 100) if self.nodes.endswith("%") else int(self.nodes)

    def changes(self, begin: datetime, end: datetime) -> Iterator[datetime]:
        """The moments after `begin` and before `end` at which it may become active, or cease to be."""
        if self.schedule is None:
            return
        for moment in takewhile(lambda moment: moment < end, self._moments(self.schedule, begin - self.lasting)):
            yield from (turn for turn in (moment, moment + self.lasting) if begin < turn < end)

    def spans(self, begin: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
        """When it is active between two moments, in order: from the first of each pair, and no more at the second."""
        if self.schedule is None:
            yield begin, end
            return
        if self.active(begin):  # of what began before, the last reaches farthest
            before = next(self._moments(self.schedule, begin + timedelta(seconds=1), backwards=True))
            yield begin, before + self.lasting
        for moment in takewhile(lambda moment: moment < end, self._moments(self.schedule, begin)):
            yield moment, moment + self.lasting

    @staticmethod
    def _moments(schedule: str, moment: datetime, backwards: bool = False) -> Iterator[datetime]:
        try:
            return CronSim(_cron(schedule), moment.astimezone(UTC), reverse=backwards)
        except CronSimError as error:
            wanted = "five fields of cron, for example `0 9 * * mon-fri`, or a name such as @daily"
            raise BudgetError("schedule", schedule, wanted) from error


def budgets(spec: Mapping[str, Any]) -> list[Budget]:
    """The budgets of a NodePool's spec; where it has none, Karpenter's own: a tenth of the nodes.

    Raises:
        BudgetError: Karpenter can't evaluate one of them.
    """
    entries = (spec.get("disruption") or {}).get("budgets")
    return [_budget(entry) for entry in (_DEFAULT if entries is None else entries)]


def allowed(of: Iterable[Budget], reason: str, count: int, at: datetime) -> int:
    """How many of `count` nodes may be on their way out at a moment for a reason; all where no budget is active."""
    about = (budget for budget in of if budget.reasons is None or reason in budget.reasons)
    return min((budget.limit(count) for budget in about if budget.active(at)), default=count)


def unlimited(of: Iterable[Budget], reason: str, begin: datetime, end: datetime) -> datetime | None:
    """The first moment before `end` at which no budget is active for a reason; None where there is none.

    Args:
        of: The NodePool's budgets.
        reason: One of `REASONS`.
        begin: The first moment that is looked at, which has a time zone.
        end: The moment before which is looked.
    """
    about = (budget for budget in of if budget.reasons is None or reason in budget.reasons)
    limited = begin
    for first, last in merge(*(budget.spans(begin, end) for budget in about)):
        if first > limited:
            break
        limited = max(limited, last)
    return limited if limited < end else None


def calendar(
    of: Iterable[Budget], reason: str, count: int, begin: datetime, end: datetime
) -> Iterator[tuple[datetime, int]]:
    """The same over time, as steps: from each moment on, until the next, so many of `count` nodes.

    Args:
        of: The NodePool's budgets.
        reason: One of `REASONS`.
        count: Nodes of the pool.
        begin: The first moment, which has a time zone.
        end: The calendar ends before this moment.
    """
    kept = list(of)
    before = None
    for moment in sorted({begin, *(moment for budget in kept for moment in budget.changes(begin, end))}):
        now = allowed(kept, reason, count, moment)
        if now != before:
            yield moment, now
        before = now


def _budget(entry: Mapping[str, Any]) -> Budget:
    reasons, schedule, lasting = entry.get("reasons"), entry.get("schedule"), entry.get("duration")
    if (schedule is None) != (lasting is None):
        raise BudgetError(
            "schedule and duration", f"{schedule} and {lasting}", "both, or neither for a budget for ever"
        )
    try:
        time = duration(lasting) if lasting is not None else timedelta()
        if time > _LONGEST:
            raise ValueError(f"{lasting} is longer than any time in Go")
    except ValueError as error:
        raise BudgetError("duration", str(lasting), "a duration such as 8h or 1h30m") from error
    return Budget(
        str(entry.get("nodes") or "10%"), None if reasons is None else frozenset(map(str, reasons)), schedule, time
    )


def _cron(schedule: str) -> str:
    """A schedule as Karpenter's parser (github.com/robfig/cron) reads it, in terms that cronsim reads the same way."""
    fields = _NAMED.get(schedule, schedule).split()
    if len(fields) != len(_RANGES):
        raise CronSimError(schedule)
    return " ".join(_field(field, low, high) for field, (low, high) in zip(fields, _RANGES, strict=True))


def _field(field: str, low: int, high: int) -> str:
    terms, free = [], False
    for term in field.split(","):
        match = _TERM.fullmatch(term)
        numbers = [int(number) for number in re.findall(r"\d+", match[1])] if match else []
        if not match or numbers != sorted(numbers) or not all(low <= number <= high for number in numbers):
            raise CronSimError(term)
        values, step = match[1], int(match[2] or 1)
        if values in "*?":
            # For cronsim a day field that begins with * is free; for robfig it is so with any * that has no step.
            free = free or step == 1
            values = f"{low}-{high}"
        elif match[2] and "-" not in values:
            values = f"{values}-{high}"
        first, _, last = values.partition("-")
        # For cronsim a range of one value with a step has no end.
        terms.append(first if last in ("", first) else f"{values}/{step}")
    return "*" if free else ",".join(terms)


def reasons_of(version: str) -> tuple[str, ...]:
    """Return the reasons of `REASONS` that a version of Karpenter has; all of them if the version is unknown."""
    found = re.match(r"v?(\d+)\.(\d+)", version)
    earlier = found is not None and (int(found[1]), int(found[2])) < _UNHEALTHY_SINCE
    return tuple(one for one in REASONS if not (earlier and one == "Unhealthy"))
