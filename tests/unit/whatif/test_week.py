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
            "Mon, Tue, Wed, Thu, Fri: 0 from 0 to 9 h, 1 from 9 to 24 h; Sat, Sun: 3 at any hour",
        ),
    ],
)
def test_a_week_in_words(hours: list[list[int]], words: str) -> None:
    assert calendar_words(hours, "2026-11-23T00:00:00+00:00") == words


def test_days_that_are_alike_are_together() -> None:
    assert runs([[1, 1], [2, 1], [1, 1]]) == [((0, 2), [(0, 2, 1)]), ((1,), [(0, 1, 2), (1, 2, 1)])]
