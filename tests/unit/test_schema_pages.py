"""The pages of whatif.json and report.json have what the models say."""

from __future__ import annotations

import pytest

from tests.unit import schema_pages


@pytest.mark.parametrize("name", schema_pages.PAGES)
def test_the_page_is_the_schemas(name: str, request: pytest.FixtureRequest) -> None:
    path, text = schema_pages.FOLDER / f"{name}.md", schema_pages.PAGES[name].text()
    if request.config.getoption("--update-goldens"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text, "run make goldens"
