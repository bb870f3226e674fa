"""karpenter.releases and karpenter.images: what a service offers on a day, and which images there are for it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from karpstack.karpenter import images, releases
from karpstack.karpenter.fact_files import VARIABLE, FactsError


@pytest.mark.parametrize(
    ("cloud", "version", "day", "status"),
    [
        ("aws", "1.36", "2026-06-01", "planned"),
        ("aws", "1.36", "2026-06-02", "standard"),
        ("aws", "1.34", "2026-12-01", "standard"),
        ("aws", "1.34", "2026-12-02", "extended"),
        ("aws", "1.31", "2026-11-25", "extended"),
        ("aws", "1.31", "2026-11-26", "ended"),
        ("aws", "1.20", "2026-11-22", "ended"),
        ("aws", "1.99", "2026-11-22", "newer"),
        ("azure", "1.34", "2026-11-30", "standard"),
        ("azure", "1.34", "2026-12-01", "extended"),
        ("azure", "1.37", "2026-12-01", "planned"),
    ],
)
def test_a_version_has_its_days(cloud: str, version: str, day: str, status: str) -> None:
    assert releases.status(cloud, version, date.fromisoformat(day)) == status


@pytest.mark.parametrize("cloud", ["aws", "azure"])
def test_the_calendars_go_forward(cloud: str) -> None:
    found = list(releases.releases(cloud).values())
    assert [releases.number(one.version) for one in found] == sorted(releases.number(one.version) for one in found)
    assert all(one.begins < one.standard < one.extended for one in found)


@pytest.mark.parametrize(
    ("alias", "kubernetes", "certain"),
    [
        ("al2023@latest", "1.36", None),
        ("al2023@v20260714", "1.36", None),
        ("AL2023@v20260714", "1.36", None),
        ("al2023@v20251108", "1.34", None),
        ("al2023@v20251108", "1.36", True),
        ("al2023@20260714", "1.36", True),
        ("al2023@a@b", "1.36", True),
        ("al2023@v20261121", "1.36", False),
        ("al2023@v20261123", "1.36", True),  # tomorrow's
        ("al2023@v20991231", "1.36", True),
        ("al2023@v20260231", "1.36", True),
        ("al2023@v20260714", "1.37", True),  # there is no image of 1.37 that the facts know
        ("bottlerocket@v9.0.0", "1.37", True),
        ("al2023@latest", "1.37", None),
        ("al2@latest", "1.32", None),
        ("al2@latest", "1.33", True),
        ("bottlerocket@1.61.0", "1.36", None),
        ("bottlerocket@v1.60.9", "1.36", True),
        ("bottlerocket@v1.64.0", "1.30", True),  # its variant was removed
        ("bottlerocket@v9.0.0", "1.36", False),
        ("bottlerocket@1.0.0", "1.33", None),  # the first is not known
    ],
)
def test_an_alias_has_an_image_or_none(alias: str, kubernetes: str, certain: bool | None) -> None:
    found = images.verdict(alias, kubernetes, date(2026, 11, 22))
    assert (found and found.certain) is certain


def test_what_is_assumed_to_exist_is_said() -> None:
    said = "Assumed to exist, because the facts do not know it: the image bottlerocket@v9.0.0."
    aliases = ["al2023@latest", "bottlerocket@v9.0.0", "bottlerocket@v1.64.0"]
    day = date(2026, 11, 22)
    assert images.assumed(aliases, "v1.36.2", day) == images.assumed(aliases, "1.36", day) == said
    assert images.assumed(aliases, "", day) == images.assumed(aliases[:1], "1.36", day) == ""


@pytest.mark.parametrize("content", ['{"as_of": "9999-01-01", "versions": {"1.36": 5}}', "[" * 100_000])
def test_facts_of_another_shape_are_told(content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "versions-aws.json").write_text(content)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    releases.releases.cache_clear()
    try:
        with pytest.raises(FactsError, match=r"versions-aws\.json: .*not a file of facts"):
            releases.releases("aws")
    finally:
        releases.releases.cache_clear()
