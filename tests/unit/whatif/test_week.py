"""The disruption budgets as a calendar."""

from __future__ import annotations

import pytest

from karpstack.whatif.markdown import calendar_words
from karpstack.whatif.week import runs


@pytest.mark.parametrize(
    ("hours", "words"),
    [
        ([[2] * 24] * 7, "2 at any hour"),
        (
            [[0] * 9 + [1] * 15] * 5 + [[3] * 24] * 2,
            "Mon to Fri: 0 from 0 to 9 h, 1 from 9 to 24 h; Sat, Sun: 3 at any hour",
        ),
        (
            [[1] * 24, [0] * 24, [1] * 24, [0] * 24, *[[1] * 24] * 3],
            "Wed, Fri to Mon: 1 at any hour; Tue, Thu: 0 at any hour",
        ),
    ],
)
def test_a_week_in_words(hours: list[list[int]], words: str) -> None:
    assert calendar_words(hours, "2026-11-23T00:00:00+00:00") == words


def test_days_are_in_the_order_of_a_calendar_if_the_week_begins_on_a_thursday() -> None:
    hours = [[0] * 24] * 2 + [[1] * 24] * 2 + [[0] * 24] * 3
    assert calendar_words(hours, "2026-11-26T00:00:00+00:00") == "Mon to Fri: 0 at any hour; Sat, Sun: 1 at any hour"


def test_days_that_are_alike_are_together() -> None:
    assert runs([[1, 1], [2, 1], [1, 1]]) == [((0, 2), [(0, 2, 1)]), ((1,), [(0, 1, 2), (1, 2, 1)])]
