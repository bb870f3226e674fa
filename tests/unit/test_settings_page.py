"""The reference of settings has what the models say, and links only codes that exist."""

from __future__ import annotations

import re

import pytest

from karpstack.components.problems import CATALOGUE
from tests.unit import settings_page


@pytest.mark.parametrize("cloud", ["eks", "aks"])
def test_the_page_has_each_setting(cloud: str, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-goldens"):
        settings_page.write()
    text = (settings_page.FOLDER / f"{cloud}.md").read_text(encoding="utf-8")
    assert text == settings_page.page(cloud), "run make goldens"
    assert set(re.findall(r"settings\.md#([\w-]+)", text)) <= set(CATALOGUE.entries)


def test_a_row_has_type_default_meaning_and_codes() -> None:
    rows = [line for line in settings_page.page("eks").splitlines() if line.startswith("| `systemNodes.diskSize`")]
    assert rows == [
        "| `systemNodes.diskSize` | number, at least 20, at most 65536 | `50` "
        "| GiB of each system node's disk, 20 to 65536 |  |"
    ]
    text = settings_page.page("eks")
    assert "| `network.natGateways` | `single` or `per-zone` or `none` | `single` |" in text
    assert text.index("pod-share-too-large") > text.index("`network.podCidrMaskSize`")
