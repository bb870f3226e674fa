"""The stories of the EKS example environment, by the real engines; and a story that must fail."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests import stories
from tests.rehearsal.conftest import ROOT, RehearsedStack


@pytest.fixture(scope="module")
def report(eks: RehearsedStack, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("report")
    eks.succeed("run", "--report", str(folder))
    assert (folder / "junit.xml").is_file()
    return dict(json.loads((folder / "report.json").read_text()))


def test_cheapest_fit_is_one_m5_large(report: dict[str, Any]) -> None:
    stories.check_cheapest_fit(report)
    (claim,) = stories.story(report, "eks-cheapest-fit")["nodeclaims"]
    assert claim["price_per_hour"] == pytest.approx(0.096)  # what Karpenter's own table says for us-east-1


def test_spot_consolidation_ends_on_a_cheaper_smaller_spot_node(report: dict[str, Any]) -> None:
    stories.check_spot_consolidation(report)


def test_a_wrong_expectation_fails_with_expected_seen_and_where(eks: RehearsedStack, tmp_path: Path) -> None:
    scenarios = tmp_path / "scenarios"
    scenarios.mkdir()
    original = ROOT / "playbooks" / "scenarios" / "eks-cheapest-fit.yml"
    wrong = original.read_text().replace("- m5.large", "- c5.large").replace("[m5.large]", "[c5.large]")
    assert wrong != original.read_text()
    (scenarios / original.name).write_text(wrong)
    result = eks.by_hand(
        "ansible-playbook",
        "playbooks/scale_test.yml",
        "-e",
        f"scenario_dir={scenarios}",
        "-e",
        f"report_dir={tmp_path / 'report'}",
    )
    assert result.returncode != 0
    for words in ("expected", "c5.large", "m5.large"):
        assert words in result.stdout, result.stdout
    found = stories.story(json.loads((tmp_path / "report" / "report.json").read_text()), "eks-cheapest-fit")
    assert not found["passed"]
    shutil.rmtree(scenarios)
