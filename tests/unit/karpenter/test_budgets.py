"""Disruption budgets as a calendar. The cases are those of Karpenter's documentation and of its own code."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from karpstack.karpenter.budgets import REASONS, Budget, BudgetError, allowed, budgets, calendar, reasons_of, unlimited


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def of(*entries: dict[str, Any]) -> list[Budget]:
    return budgets({"disruption": {"budgets": list(entries)}})


MONDAY = at("2026-03-02T00:00")
OFFICE = {"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h"}


@pytest.mark.parametrize(
    ("nodes", "count", "may_go"),
    [("10%", 20, 2), ("10%", 19, 2), ("5%", 10, 1), ("0%", 10, 0), ("100%", 7, 7), ("3", 2, 3), ("10%", 0, 0)],
)
def test_a_share_is_rounded_up(nodes: str, count: int, may_go: int) -> None:
    assert allowed(of({"nodes": nodes}), "Empty", count, MONDAY) == may_go


@pytest.mark.parametrize("spec", [{}, {"disruption": None}, {"disruption": {"budgets": None}}])
def test_without_budgets_a_tenth_may_go(spec: dict[str, Any]) -> None:
    assert allowed(budgets(spec), "Drifted", 30, MONDAY) == 3


def test_with_an_empty_list_all_may_go() -> None:
    assert allowed(of(), "Drifted", 30, MONDAY) == 30


def test_the_least_of_those_about_the_reason_counts() -> None:
    pool = of({"nodes": "20%", "reasons": ["Empty", "Drifted"]}, {"nodes": "5"}, {"nodes": "0", "reasons": ["Empty"]})
    assert [allowed(pool, reason, 10, MONDAY) for reason in ("Empty", "Drifted", "Underutilized")] == [0, 2, 5]
    assert allowed(of({"nodes": "0", "reasons": []}), "Empty", 10, MONDAY) == 10


@pytest.mark.parametrize(
    ("moment", "active"),
    [
        ("2026-03-02T08:59:59", False),
        ("2026-03-02T09:00", True),
        ("2026-03-02T16:59:59", True),
        ("2026-03-02T17:00", False),
        ("2026-03-01T12:00", False),  # a Sunday
    ],
)
def test_a_budget_is_active_from_its_moment_for_its_duration(moment: str, active: bool) -> None:
    (budget,) = of(OFFICE)
    assert budget.active(at(moment)) is active


def test_schedules_are_in_utc() -> None:
    (budget,) = of(OFFICE)
    assert budget.active(datetime(2026, 3, 2, 11, tzinfo=timezone(timedelta(hours=2))))
    assert not budget.active(datetime(2026, 3, 2, 10, tzinfo=timezone(timedelta(hours=2))))


def test_a_calendar_of_a_day() -> None:
    pool = of({"nodes": "20%"}, OFFICE, {"nodes": "1", "schedule": "@daily", "duration": "2h30m"})
    found = list(calendar(pool, "Underutilized", 10, MONDAY, MONDAY + timedelta(days=1)))
    assert [(f"{moment:%H:%M}", nodes) for moment, nodes in found] == [
        ("00:00", 1),
        ("02:30", 2),
        ("09:00", 0),
        ("17:00", 2),
    ]
    # One that has begun before the calendar does.
    assert next(calendar(pool, "Empty", 10, at("2026-03-02T12:00"), at("2026-03-03T00:00")))[1] == 0


def test_moments_that_meet_are_one_time() -> None:
    pool = of({"nodes": "0", "schedule": "@hourly", "duration": "1h"})
    assert [nodes for _, nodes in calendar(pool, "Empty", 10, MONDAY, MONDAY + timedelta(days=7))] == [0]


@pytest.mark.parametrize(
    ("schedule", "days"),
    [
        ("0 0 1 * mon", [1, 2, 9, 16, 23, 30]),  # either day
        ("0 0 */2 * 1", [1, 2, 3, 5, 7, 9, 11, 13, 15, 16, 17, 19, 21, 23, 25, 27, 29, 30, 31]),  # a step is no star
        ("0 0 10/10 * *", [10, 20, 30]),
        ("0 0 ? * 5/1", [6, 7, 13, 14, 20, 21, 27, 28]),  # to Saturday, not to the Sunday after it
        ("0 0 5,* * 0", [1, 8, 15, 22, 29]),
        ("0 0 4-4/3 * *", [4]),
    ],
)
def test_days_are_karpenters(schedule: str, days: list[int]) -> None:
    (budget,) = of({"nodes": "0", "schedule": schedule, "duration": "1h"})
    month = [datetime(2026, 3, day, tzinfo=UTC) for day in range(1, 32)]
    assert [day.day for day in month if budget.active(day)] == days


@pytest.mark.parametrize(
    ("entry", "key"),
    [
        ({"nodes": "110%"}, "nodes"),
        ({"nodes": "-1"}, "nodes"),
        ({"nodes": "1", "schedule": "@daily"}, "schedule and duration"),
        ({"nodes": "1", "duration": "1h"}, "schedule and duration"),
        ({"nodes": "1", "schedule": "@daily", "duration": "1d"}, "duration"),
        ({"nodes": "1", "schedule": "TZ=UTC 0 0 * * *", "duration": "1h"}, "schedule"),
        ({"nodes": "1", "schedule": "0 0 * *", "duration": "1h"}, "schedule"),
        ({"nodes": "1", "schedule": "0 0 * * 7", "duration": "1h"}, "schedule"),
        ({"nodes": "1", "schedule": "0 0 L * *", "duration": "1h"}, "schedule"),
        ({"nodes": "1", "schedule": "0 24 * * *", "duration": "1h"}, "schedule"),
        ({"nodes": "1", "schedule": "0 0 30 2 *", "duration": "1h"}, "schedule"),
        ({"nodes": "1", "schedule": "*/0 * * * *", "duration": "1h"}, "schedule"),
        ({"nodes": "1", "schedule": "0 *,9-8 * * *", "duration": "1h"}, "schedule"),
        ({"nodes": "1", "schedule": "0 0 * * 1#2", "duration": "1h"}, "schedule"),
        ({"nodes": "1", "schedule": "@daily", "duration": "2600000h"}, "duration"),
    ],
)
def test_what_karpenter_cannot_evaluate_is_refused(entry: dict[str, Any], key: str) -> None:
    with pytest.raises(BudgetError, match=f"^{key} of a disruption budget is .*would disrupt no node.*; write "):
        of(entry)


@pytest.mark.parametrize(
    ("entries", "moment"),
    [
        ([{"nodes": "10%"}], None),
        ([], "2026-03-02T00:00"),
        ([OFFICE], "2026-03-02T00:00"),
        ([OFFICE, {"nodes": "10%", "reasons": ["Drifted"]}], None),
        ([OFFICE, {"nodes": "10%", "reasons": ["Empty"]}], "2026-03-02T00:00"),
        ([OFFICE, {"nodes": "10%", "schedule": "0 17 * * *", "duration": "16h"}], "2026-03-07T09:00"),
        ([{"nodes": "1", "schedule": "@hourly", "duration": "1h"}], None),
        ([{"nodes": "1", "schedule": "@hourly", "duration": "59m"}], "2026-03-02T00:59"),
        ([{"nodes": "1", "schedule": "0 0 1 1 *", "duration": "1500h"}], "2026-03-04T12:00"),
        ([{"nodes": "1", "schedule": "* * * * *", "duration": "876000h"}], None),
    ],
)
def test_the_first_moment_without_a_limit(entries: list[dict[str, Any]], moment: str | None) -> None:
    found = unlimited(of(*entries), "Drifted", MONDAY, MONDAY + timedelta(days=7))
    assert found == (at(moment) if moment else None)
    if found:
        assert allowed(of(*entries), "Drifted", 100, found) == 100


@pytest.mark.parametrize(
    ("version", "reasons"),
    [("1.14.2", REASONS[:-1]), ("v1.9.0", REASONS[:-1]), ("1.15.0", REASONS), ("2.0.0", REASONS), ("managed", REASONS)],
)
def test_reasons_of_a_version(version: str, reasons: tuple[str, ...]) -> None:
    assert reasons_of(version) == reasons
