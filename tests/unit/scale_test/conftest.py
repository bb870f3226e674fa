"""What the tests of the scale test share: the shipped scenarios and a timeline recorded from a run of those for EKS.

The production controller made the decisions in `eks.timeline.jsonl`; lines that no test needs are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from karpstack.scale_test.recording.timeline import Line
from karpstack.scale_test.scenarios.scenario import Scenario, load

SCENARIOS = Path(__file__).resolve().parents[3] / "playbooks" / "scenarios"


@pytest.fixture(scope="session")
def read_once() -> Iterator[list[Scenario]]:
    """The shipped scenarios, the same for all tests of a process; that none of them changed one is seen at the end."""
    scenarios = load(SCENARIOS)
    yield scenarios
    assert scenarios == load(SCENARIOS), "a test changed a scenario that others judge too; it has to copy it"


@pytest.fixture
def shipped(read_once: list[Scenario]) -> dict[str, Scenario]:
    """The shipped scenarios by name; do not change one."""
    return {scenario.name: scenario for scenario in read_once}


@pytest.fixture
def scenarios(shipped: dict[str, Scenario]) -> dict[str, Scenario]:
    """Those of the recorded timeline, by name."""
    return {name: shipped[name] for name in ("eks-cheapest-fit", "eks-spot-consolidation")}


@pytest.fixture
def timeline() -> list[Line]:
    """The recorded timeline."""
    path = Path(__file__).with_name("eks.timeline.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def outputs() -> dict[str, Any]:
    """Outputs of a stack that those for EKS suit."""
    return {
        "cloud": "aws",
        "region": "us-east-1",
        "clusterName": "karpstack-eks",
        "karpenterVersion": "1.14.1",
        "featureGates": ["staticCapacity"],
        "nodePools": ["default"],
        "nodeClasses": ["bottlerocket", "default"],
    }
