"""Both AKS environments: up, and one story each, which pins its instance type or pool; `test_broken_aks` goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import stories
from tests.rehearsal.conftest import RehearsedStack


@pytest.mark.parametrize(
    ("environment", "scenario", "instance_type", "capacity_type"),
    [
        ("aks_nap", "nap-weight-pinned", "Standard_D8_v4", "on-demand"),
        ("aks_self_hosted", "self-hosted-inflate", "Standard_D", "on-demand"),
    ],
)
def test_aks(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    environment: str,
    scenario: str,
    instance_type: str,
    capacity_type: str,
) -> None:
    stack: RehearsedStack = request.getfixturevalue(environment)
    report = tmp_path / "report"
    stack.succeed("run", "--scenarios", scenario, "--report", str(report))
    found = stories.story(json.loads((report / "report.json").read_text()), scenario)
    assert found["passed"], found
    (claim,) = found["nodeclaims"]
    assert claim["instance_type"].startswith(instance_type)
    assert claim["capacity_type"] == capacity_type
