"""The page of supported types has what the simulated providers support."""

from __future__ import annotations

import pytest

from tests.unit.rehearsal import rehearsed_types_page


def test_the_page_is_the_tables(request: pytest.FixtureRequest) -> None:
    page, text = rehearsed_types_page.PAGE, rehearsed_types_page.page()
    if request.config.getoption("--update-goldens"):
        page.write_text(text, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == text, "run make goldens"
