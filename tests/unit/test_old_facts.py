"""Facts that are old are a warning, and then an error, which a setting lifts."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from karpstack.components import settings
from karpstack.components.problems import SettingsError
from karpstack.components.settings import facts_checks
from karpstack.karpenter import fact_dates
from karpstack.karpenter.findings import Finding
from karpstack.karpenter.instance_types import FOLDER
from tests.unit.example_stack import example

MADE = date(2026, 1, 1)
STACKS = {"aws": "eks", "azure": "aks-nap"}


@pytest.fixture(params=["aws", "azure"])
def cloud(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    days = {f"versions-{request.param}.json": MADE, "locations-azure.json": MADE - timedelta(days=999)}
    monkeypatch.setattr(
        fact_dates, "days", lambda *_: days if request.param == "azure" else {**days, "locations-azure.json": MADE}
    )
    return str(request.param)


@pytest.mark.parametrize(
    ("days", "accepted", "simulated", "severity"),
    [
        (60, False, False, "warning of locations"),
        (61, False, False, "warning"),
        (180, False, False, "warning"),
        (181, False, False, "error"),
        (181, True, False, "warning"),
        (181, False, True, "warning"),
    ],
)
def test_old_facts_are_said(cloud: str, days: int, accepted: bool, simulated: bool, severity: str) -> None:
    today = MADE + timedelta(days=days)
    found = list(facts_checks.old_facts(cloud, "r", today, accepted=accepted, simulated=simulated))
    if severity == "warning of locations":
        assert [problem.warning for problem in found] == ([True] if cloud == "azure" else [])
        return
    (problem,) = found
    assert problem.warning == (severity == "warning")
    assert f"versions-{cloud}.json {days} days" in problem.consequence
    assert ("pulumi config set karpstack:acceptOldFacts true" in problem.fix) == (severity == "error")


def test_the_configuration_is_judged_by_it(cloud: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stack, late = STACKS[cloud], date(2026, 11, 22)
    with pytest.raises(SettingsError, match="this data is old"):
        settings.load(example(stack), today=late)
    said: list[Finding] = []
    loaded = settings.load(example(stack, acceptOldFacts=True), today=late, warn=said.append)
    assert loaded.accept_old_facts
    assert any("this data is old" in problem.consequence for problem in said)
    assert settings.load(example(stack), today=late, simulated=True)


def test_every_file_says_its_day(days_of_files: None) -> None:
    dated = {*fact_dates.days("aws"), *fact_dates.days("azure")}
    assert dated == {path.name for path in FOLDER.glob("*.json")} - {"metrics-aws.json"}


def test_a_rehearsal_plays_no_day_after_its_calendar_counts(cloud: str) -> None:
    last = MADE + timedelta(days=fact_dates.REFUSED)
    assert fact_dates.played(cloud, last - timedelta(days=1)) == last - timedelta(days=1)
    assert fact_dates.played(cloud, date(2099, 1, 1)) == last
    late = last + timedelta(days=2000)
    assert settings.load(example(STACKS[cloud]), today=late, simulated=True)
    with pytest.raises(SettingsError, match=r"cluster\.version"):
        settings.load(example(STACKS[cloud], acceptOldFacts=True), today=late)


@pytest.mark.parametrize(("days", "old"), [(60, False), (61, True)])
def test_old_prices_are_said_of_a_cost(monkeypatch: pytest.MonkeyPatch, days: int, old: bool) -> None:
    monkeypatch.setattr(fact_dates, "days", lambda *_: {"aws.json": MADE})
    said = fact_dates.old_prices("aws", MADE + timedelta(days=days))
    assert said == ("The list prices are of 2026-01-01 and 61 days old: they may have changed." if old else "")
    assert not fact_dates.old_prices("azure", MADE)
