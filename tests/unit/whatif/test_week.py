"""The disruption budgets as a calendar."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.whatif.made import Made
from tests.unit.whatif.told import judged, told
from whatif.answer import ReasonWeek, Week
from whatif.markdown import calendar_words
from whatif.phases import read
from whatif.week import runs

WORKING = {"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h", "reasons": ["Drifted"]}


def week(budgets: list[dict[str, Any]], nodes: int = 10, **settings: Any) -> Week:
    made = Made()
    made.pool(disruption={"budgets": budgets})
    for index in range(nodes):
        made.node(f"n{index}", conditions={"Drifted": "NodePoolDrifted"})
    phases = {"settings": settings} if settings else {}
    return judged(read(made.lines(**phases))).week


def row(found: Week, reason: str) -> ReasonWeek:
    return next(one for one in found.pools[0].reasons if one.reason == reason)


def test_a_budget_with_a_schedule_forbids_it_now_and_says_when_it_ends() -> None:
    found = week([{"nodes": "20%"}, WORKING])  # the change begins on a Monday at half past nine
    assert (row(found, "Drifted").now, row(found, "Underutilized").now) == (0, 2)
    assert row(found, "Drifted").next_allowed == "2026-11-23T17:00:00+00:00"
    assert (found.possible_now, found.blocked) == (False, ["default: Drifted"])


def test_hour_by_hour() -> None:
    hours = row(week([{"nodes": "20%"}, WORKING]), "Drifted").hours
    assert len(hours) == 7
    assert hours[0] == [2] * 9 + [0] * 8 + [2] * 7
    assert hours[5] == hours[6] == [2] * 24  # the weekend


def test_of_an_hour_the_least_counts() -> None:
    half = {**WORKING, "schedule": "30 9 * * *", "duration": "10m"}
    assert row(week([{"nodes": "20%"}, half]), "Drifted").hours[0][8:11] == [2, 0, 2]


def test_asked_for_another_moment() -> None:
    found = week([{"nodes": "20%"}, WORKING], at="2026-11-28T12:00:00+00:00")
    assert (found.at, found.begins) == ("2026-11-28T12:00:00+00:00", "2026-11-28T00:00:00+00:00")
    assert (row(found, "Drifted").now, found.possible_now) == (2, True)


def test_budgets_that_were_rehearsed_in_place_of_others_are_not_the_stacks() -> None:
    asked = [{"nodes": "20%"}, WORKING]
    found = week([{"nodes": "100%"}], pools={"default": {"budgets": [asked, [{"nodes": "100%"}]]}})
    assert row(found, "Drifted").now == 0


def test_a_budget_that_karpenter_cannot_evaluate_is_a_problem() -> None:
    found = week([{"nodes": "1", "schedule": "at noon", "duration": "8h"}])
    assert found.pools[0].reasons == []
    assert "at noon" in (found.pools[0].problem or "")


def test_a_recorded_budget_forbids_the_drift() -> None:
    found = judged(told("eks.budget-by-reason", 1)).week
    assert (found.possible_now, found.blocked) == (False, ["budget-by-reason: Drifted"])


def test_a_recorded_drift_within_its_budget() -> None:
    found = judged(told("eks.image-drift", 2)).week
    assert found.possible_now is True
    assert (found.pools[0].nodes, row(found, "Drifted").now) == (50, 10)


def test_a_change_that_asks_budgets_for_nothing() -> None:
    made = Made()
    made.pool()
    made.node("one")
    assert judged(read(made.lines())).week.possible_now is None


def test_pools_without_nodes_have_no_calendar() -> None:
    made = Made()
    made.pool()
    made.pool("empty")
    made.node("one")
    assert [pool.pool for pool in judged(read(made.lines())).week.pools] == ["default"]


def test_a_record_without_budgets_has_no_calendar() -> None:
    found = judged(told("eks.drift", 1)).week
    assert [(pool.pool, pool.problem) for pool in found.pools] == [("drift", "the record does not tell its budgets")]
    assert found.possible_now is None


@pytest.mark.parametrize(
    ("hours", "words"),
    [
        ([[2] * 24] * 7, "2 at any hour"),
        (
            [[0] * 9 + [1] * 15] * 5 + [[3] * 24] * 2,
            "Mon, Tue, Wed, Thu, Fri: 0 from 0 to 9 h, 1 from 9 to 24 h; Sat, Sun: 3 at any hour",
        ),
    ],
)
def test_a_week_in_words(hours: list[list[int]], words: str) -> None:
    assert calendar_words(hours, "2026-11-23T00:00:00+00:00") == words


def test_days_that_are_alike_are_together() -> None:
    assert runs([[1, 1], [2, 1], [1, 1]]) == [((0, 2), [(0, 2, 1)]), ((1,), [(0, 1, 2), (1, 2, 1)])]
