"""Both AKS environments: up, one story that pins its instance type or pool, down, nothing left."""

from __future__ import annotations

import json
from pathlib import Path

import psutil
import pytest

from rehearsal.daemon import read
from tests import stories
from tests.rehearsal.conftest import new_stack, preview_as_production


@pytest.mark.parametrize(
    ("stack_name", "scenario", "instance_type", "capacity_type"),
    [
        ("aks-nap", "nap-weight-pinned", "Standard_D8_v4", "on-demand"),
        ("aks-self-hosted", "self-hosted-inflate", "Standard_D", "on-demand"),
    ],
)
def test_aks(tmp_path: Path, stack_name: str, scenario: str, instance_type: str, capacity_type: str) -> None:
    stack = new_stack(tmp_path, stack_name)
    report = tmp_path / "report"
    try:
        stack.succeed("up")
        # It has no logs, for a reason, and breaks no other rule.
        assert preview_as_production(stack).count("exceptions-in-force") == 1
        stack.succeed("run", "--scenarios", scenario, "--report", str(report))
    finally:
        stack.command("down", "--force")
    found = stories.story(json.loads((report / "report.json").read_text()), scenario)
    assert found["passed"], found
    (claim,) = found["nodeclaims"]
    assert claim["instance_type"].startswith(instance_type)
    assert claim["capacity_type"] == capacity_type
    info = read(stack.folder)
    assert info is not None
    assert not psutil.pid_exists(info.pid)
