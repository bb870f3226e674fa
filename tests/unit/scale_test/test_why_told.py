"""Why nodes are what they are, by stories as they were recorded with the production controller."""

from __future__ import annotations

from typing import Any

from karpenter.instance_types import Facts
from scale_test.reports.report import make
from scale_test.scenarios.environments import Stack
from scale_test.scenarios.scenario import Scenario
from tests.unit.scale_test.test_told_stories import told


def nodes(recorded: str, shipped: dict[str, Scenario]) -> list[dict[str, Any]]:
    kind, name = recorded.split(".")
    stack = Stack("told", {"cloud": "aws", "region": "us-east-1"})
    made = make([shipped[name].in_environment(kind)], told(recorded), stack, facts=Facts.load("aws"))
    found: list[dict[str, Any]] = made["stories"][0]["nodeclaims"]
    return found


def verdicts(node: dict[str, Any]) -> list[tuple[str, str, list[str]]]:
    return [(pool["name"], pool["verdict"], pool["about"]) for pool in node["why"]["pools"]]


def test_a_tainted_pool_of_greater_weight_is_passed_over_for_its_taint(shipped: dict[str, Scenario]) -> None:
    web, *_, train = nodes("eks.gpu-pool", shipped)
    assert verdicts(web) == [
        ("gpu-pool", "taint", ["nvidia.com/gpu=true:NoSchedule"]),
        ("gpu-pool-general", "taken", []),
        ("default", "later", []),
    ]
    assert verdicts(train) == [("gpu-pool", "taken", []), ("gpu-pool-general", "later", []), ("default", "later", [])]
    assert web["why"]["price"]["rank"] == train["why"]["price"]["rank"] == 1


def test_the_second_cheapest_is_taken_where_the_cheapest_was_taken_away(shipped: dict[str, Scenario]) -> None:
    first, second = nodes("eks.capacity-shortage", shipped)
    assert (first["why"]["price"]["rank"], first["why"]["shortages"]) == (1, [])
    assert second["why"]["price"]["rank"] == 2
    assert second["why"]["price"]["cheaper"] == [first["instance_type"]]
    (short,) = second["why"]["shortages"]
    assert (short["source"], short["instance_types"]) == ("fault", [first["instance_type"]])
    # Karpenter writes no more than that.
    assert first["why"]["offered"]["instance_types"] == 600
    assert first["why"]["offered"]["zones"] == ["us-east-1a", "us-east-1b", "us-east-1c"]


def test_an_older_recording_says_what_it_does_not_tell(shipped: dict[str, Scenario]) -> None:
    for node in nodes("eks.budget-by-reason", shipped):
        assert (node["why"]["offered"], node["why"]["price"]) == (None, None)
        assert node["why"]["availability"] == "not recorded"
        assert ("default", "requirements", ["karpenter.sh/nodepool In [budget-by-reason]"]) in verdicts(node)
