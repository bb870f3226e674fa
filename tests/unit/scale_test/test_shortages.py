"""What earlier stories of a run left short, and which come last because they leave something short."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.scale_test.reports import report
from karpstack.scale_test.scenarios.choosing import choose
from karpstack.scale_test.scenarios.environments import Stack
from karpstack.scale_test.scenarios.scenario import Scenario
from tests.unit.scale_test.told_choices import ON_DEMAND, STORY, Choices, called, types

BEFORE = "before"
ROWS = yaml.safe_load(Path(__file__).with_name("shortages.yaml").read_text(encoding="utf-8"))
M5 = {"instanceTypes": ["m5.large"]}


def before(kind: str = "out-of-capacity", detail: dict[str, Any] | None = None, killed: str = "") -> Choices:
    """A run whose first story took something; its end is 30 s after that. `killed`: when the controller was."""
    lines = Choices()
    lines.lines.pop()  # its own beginning
    lines.add("STORY", scenario=BEFORE)
    lines.unavailable("x9.unsold")  # what is on sale nowhere
    lines.claim(types("m5.large"), ON_DEMAND, name="taken", bought=("m5.large", "on-demand", "us-east-1a"))
    if killed == "before":
        lines.add("FAULT", scenario=BEFORE, step=0, kind="kill-controller", detail={"pods": ["karpenter"]})
    lines.add("FAULT", scenario=BEFORE, step=0, kind=kind, detail=M5 if detail is None else detail)
    if killed == "after":
        lines.add("FAULT", scenario=BEFORE, step=1, kind="kill-controller", detail={"pods": ["karpenter"]})
    if killed == "and launched":
        lines.add("FAULT", scenario=BEFORE, step=1, kind="kill-controller", detail={"pods": ["karpenter"]})
        lines.claim(types("m5.large"), ON_DEMAND, name="later", bought=None)
    lines.wait(30)
    lines.add("END", scenario=BEFORE)
    return lines


def seen(scenario: Scenario, lines: Choices) -> str | None:
    """What the story after it is told; None if nothing."""
    made = report.make([scenario], lines.end(), Stack("told", {"cloud": "aws", "region": "us-east-1"}))
    (story,) = made["stories"]
    found = [one for one in story["assertions"] if one["name"] == "earlier shortages"]
    assert all(one["passed"] for one in found)
    # Where the story fails, as this one does for it takes no step, it is said too.
    assert sum("earlier shortages" in failure for failure in report.failures(made)) == len(found)
    return found[0]["seen"] if found else None


@pytest.fixture
def scenario(shipped: dict[str, Scenario]) -> Scenario:
    return shipped[STORY].in_environment("eks")


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_story_is_told_what_the_one_before_left_short(scenario: Scenario, row: dict[str, Any]) -> None:
    lines = before(**row.get("before", {}))
    called(lines, row["do"], {})
    said = seen(scenario, lines)
    assert (said is None) is (row["told"] is None)
    assert (row["told"] or "") in str(said)


def test_azure_remembers_for_an_hour(shipped: dict[str, Scenario]) -> None:
    azure = shipped["drift"].in_environment("aks-self-hosted").model_copy(update={"name": STORY})
    lines = before()
    lines.wait(3500)
    lines.add("STORY", scenario=STORY)
    assert "For 60 min after" in str(seen(azure, lines))


def test_stories_that_take_capacity_come_last(shipped: dict[str, Scenario]) -> None:
    outputs = {
        "cloud": "aws",
        "region": "us-east-1",
        "karpenterVersion": "1.15.1",
        "nodePools": ["default", "on-demand"],
        "nodeClasses": ["default"],
        "interruptionQueue": "queue",
    }
    names = ["capacity-shortage", "drift", "eks-interruption", "eks-rebalance", "zone-short"]
    scenarios = [shipped[name] for name in names]
    chosen = [one.name for one in choose(scenarios, outputs, rehearsed=True).scenarios]
    assert chosen == ["drift", "eks-rebalance", "eks-interruption", "capacity-shortage", "zone-short"]
    # Whoever names them has a reason for the order.
    assert [one.name for one in choose(scenarios, outputs, names, rehearsed=True).scenarios] == names
