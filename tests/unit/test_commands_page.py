"""The reference of the command line has what the commands declare."""

from __future__ import annotations

import pytest

from tests.unit import commands_page


def test_the_page_is_the_declarations(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-goldens"):
        commands_page.PAGE.write_text(commands_page.page(), encoding="utf-8")
    assert commands_page.PAGE.read_text(encoding="utf-8") == commands_page.page(), "run make goldens"
