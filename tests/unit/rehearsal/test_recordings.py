"""The page about the recordings says what the records say."""

from __future__ import annotations

from tests.unit.rehearsal.recordings_page import MARK, PAGE, tables


def test_page_is_written_from_the_records() -> None:
    written = PAGE.read_text().partition(MARK)[2].strip()
    assert written == tables().strip(), "run: python -m tests.unit.rehearsal.recordings_page"
