"""Both AKS environments: up, and one story each, which pins its instance type or pool; `test_broken_aks` goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests import stories
from tests.rehearsal.conftest import RehearsedStack, preview_as_production


def only_claim(stack: RehearsedStack, scenario: str, report: Path) -> dict[str, Any]:
    """The only NodeClaim of a story that passed. The environment is one for production, too."""
    # It has no logs, for a reason, and breaks no other rule.
    assert preview_as_production(stack).count("exceptions-in-force") == 1
    stack.succeed("run", "--scenarios", scenario, "--report", str(report))
    found = stories.story(json.loads((report / "report.json").read_text()), scenario)
    assert found["passed"], found
    (claim,) = found["nodeclaims"]
    assert claim["capacity_type"] == "on-demand"
    return dict(claim)


def test_node_auto_provisioning(aks_nap: RehearsedStack, tmp_path: Path) -> None:
    assert only_claim(aks_nap, "nap-weight-pinned", tmp_path)["instance_type"] == "Standard_D8_v4"


def test_self_hosted(aks_self_hosted: RehearsedStack, tmp_path: Path) -> None:
    assert only_claim(aks_self_hosted, "self-hosted-inflate", tmp_path)["instance_type"].startswith("Standard_D")
