"""What earlier stories of a run left short, and which come last because they leave something short."""

from __future__ import annotations

from typing import Any

import pytest

from scale_test.reports import report
from scale_test.scenarios.choosing import choose
from scale_test.scenarios.environments import Stack
from scale_test.scenarios.scenario import Scenario
from tests.unit.scale_test.told_choices import ON_DEMAND, STORY, Choices, types

BEFORE = "before"
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


@pytest.mark.parametrize(("waited", "told"), [(0, True), (170, True), (190, False)])
def test_a_shortage_is_told_in_the_next_story_for_as_long_as_karpenter_remembers(
    scenario: Scenario, *, waited: float, told: bool
) -> None:
    lines = before()
    lines.wait(waited)
    lines.add("STORY", scenario=STORY)
    lines.wait(5)
    said = seen(scenario, lines)
    assert (said is not None) is told
    if waited == 0:
        assert said is not None
        assert said.startswith("before, which ended 1 s before, took m5.large. For 3 min after")


def test_azure_remembers_for_an_hour(shipped: dict[str, Scenario]) -> None:
    azure = shipped["drift"].in_environment("aks-self-hosted").model_copy(update={"name": STORY})
    lines = before()
    lines.wait(3500)
    lines.add("STORY", scenario=STORY)
    assert "For 60 min after" in str(seen(azure, lines))


@pytest.mark.parametrize(
    ("became", "told"),
    [(["m5.large"], "left m5.large (on-demand, us-east-1a), which the controller's metrics say"), (["c5.large"], None)],
)
def test_the_metrics_decide_what_is_left(scenario: Scenario, became: list[str], told: str | None) -> None:
    """A shortage that no launch met is none; what the fault did not take is no leftover."""
    lines = before()
    lines.add("STORY", scenario=STORY)
    lines.wait(65)  # renewed once a minute
    lines.unavailable(*became)
    said = seen(scenario, lines)
    assert (said is None) if told is None else (told in str(said))


def test_what_is_available_again_is_not_left(scenario: Scenario) -> None:
    lines = before()
    lines.unavailable("m5.large")
    lines.wait(100)
    lines.unavailable("m5.large", key="ceased")
    lines.add("STORY", scenario=STORY)
    lines.wait(5)
    assert seen(scenario, lines) is None


def test_what_the_story_takes_itself_is_not_an_earlier_ones(scenario: Scenario) -> None:
    lines = before()
    lines.add("STORY", scenario=STORY)
    lines.add("FAULT", scenario=STORY, step=0, kind="out-of-capacity", detail=M5)
    lines.wait(65)
    lines.unavailable("m5.large")
    # The metrics do not tell the two apart, so that it is only known what was taken.
    assert "took m5.large" in str(seen(scenario, lines))


def test_an_interruption_takes_the_spot_offering(scenario: Scenario) -> None:
    lines = before("interruption", {"nodeClaim": "taken", "instance": "i-1"})
    lines.add("STORY", scenario=STORY)
    assert "took m5.large (spot, us-east-1a)" in str(seen(scenario, lines))


@pytest.mark.parametrize(("kind", "detail"), [("throttle", {"calls": 3}), ("rebalance", {"nodeClaim": "taken"})])
def test_other_faults_leave_nothing_short(scenario: Scenario, kind: str, detail: dict[str, Any]) -> None:
    lines = before(kind, detail)
    lines.add("STORY", scenario=STORY)
    assert seen(scenario, lines) is None


@pytest.mark.parametrize(("killed", "told"), [("before", True), ("after", False), ("and launched", True)])
def test_a_controller_that_is_started_anew_remembers_nothing(scenario: Scenario, *, killed: str, told: bool) -> None:
    lines = before(killed=killed)
    lines.add("STORY", scenario=STORY)
    assert (seen(scenario, lines) is not None) is told


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
