"""What a node could have been launched as, where its choice stands by price, and what was short."""

from __future__ import annotations

import random
import time
from datetime import timedelta
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.karpenter.instance_types import Facts
from karpstack.scale_test.recording.timeline import Line
from karpstack.scale_test.reports.report import make
from karpstack.scale_test.scenarios.environments import Stack
from karpstack.scale_test.scenarios.scenario import Scenario, parse
from tests.unit.scale_test.told_choices import BEGIN, ON_DEMAND, SPOT, STORY, TAKEN, Choices, called, meant, types

AWS = Facts.load("aws")
SIZES = ("m5.large", "m6g.large", "m7g.large")  # 0.096, 0.077, 0.0816 USD an hour on demand


@pytest.fixture
def scenario(shipped: dict[str, Scenario]) -> Scenario:
    return shipped[STORY]


def why(
    scenario: Scenario, lines: list[Line], claim: str = "claim", cloud: str = "aws", region: str = "us-east-1"
) -> dict[str, Any]:
    made = make([scenario], lines, Stack("told", {"cloud": cloud, "region": region}), facts=Facts.load(cloud))
    found: dict[str, Any] = next(one for one in made["stories"][0]["nodeclaims"] if one["name"] == claim)["why"]
    return found


def told(*requirements: Line, zones: tuple[str, ...] = ("us-east-1a", "us-east-1b"), simulated: bool = True) -> Choices:
    """What is there before the NodeClaim."""
    found = Choices()
    if zones:
        found.node_class(*zones)
    found.pool(TAKEN, *requirements)
    found.pod()
    node = {"metadata": {"name": "node", "uid": "node"}, "simulated": simulated}
    found.add("ADDED", kind="Node", object=node)
    return found


LAUNCHED = [{"type": "Launched", "status": "True", "lastTransitionTime": "2026-11-22T20:00:00Z"}]
NAMES = {"SIZES": types(*SIZES), "LAUNCHED": LAUNCHED, "LEAST": types(*SIZES, least=5)}


def at(document: Any, path: str) -> Any:
    for key in path.split("."):
        document = document[int(key) if isinstance(document, list) else key]
    return document


@pytest.mark.parametrize(
    "row", yaml.safe_load(Path(__file__).with_name("told_choices.yaml").read_text()), ids=itemgetter("of")
)
def test_why_a_node_was_chosen(scenario: Scenario, row: dict[str, Any]) -> None:
    setup = row.get("setup", {})
    lines = Choices() if row.get("bare") else told(*meant(setup.pop("pool", []), NAMES), **setup)
    called(lines, row["do"], NAMES)
    if ["end"] not in row["do"]:
        lines.end()
    cloud = row.get("cloud", "aws")
    found = why(scenario, lines.lines, cloud=cloud, region="us-east-1" if cloud == "aws" else "westus2")
    assert {path: at(found, path) for path in row.get("why", {})} == row.get("why", {})
    if "short" in row:
        assert [[one["source"], *one["instance_types"]] for one in found["shortages"]] == row["short"]


def spot(name: str, zone: str) -> float:
    price = AWS.price(name, "spot", "us-east-1", zone, simulated=True)
    assert price is not None
    return price


def test_spot_is_compared_in_the_cheapest_zone_with_a_subnet_and_paid_for_where_it_is(scenario: Scenario) -> None:
    zones = ("us-east-1a", "us-east-1b")
    cheap, dear = sorted(zones, key=lambda zone: spot("m5.large", zone))
    lines = told(zones=zones)
    lines.claim(types("m5.large"), SPOT, bought=("m5.large", "spot", dear))
    price = why(scenario, lines.end())["price"]
    assert (price["rank"], price["usd_per_hour"]) == (1, spot("m5.large", dear))
    assert price["least_usd_per_hour"] == spot("m5.large", cheap) < price["usd_per_hour"]
    assert price["simulated"]


def test_what_was_given_back_is_not_short(scenario: Scenario) -> None:
    data = scenario.model_dump(by_alias=True, mode="json", exclude_none=True)
    data["steps"].insert(1, {"clearFaults": {}, "expect": {"within": 60}})
    lines = told()
    lines.add("FAULT", scenario=STORY, step=0, kind="out-of-capacity", detail={"instanceTypes": ["m6g.large"]})
    lines.claim(types(*SIZES), ON_DEMAND, name="short")
    lines.add("STEP", scenario=STORY, step=1, requested=lines.clock(), outcome="rest")
    lines.claim(types(*SIZES), ON_DEMAND)
    story = parse(data, "told")
    found = lines.end()
    assert [one["source"] for one in why(story, found, "short")["shortages"]] == ["fault"]
    assert why(story, found)["shortages"] == []


def test_an_event_of_an_earlier_run_is_as_old_as_the_api_says(scenario: Scenario) -> None:
    """The recorder finds those of the last hour when it begins."""
    for minutes, expected in ((14, []), (2, [-121])):
        lines = told()
        lines.event("NodeClaim", "other", "InsufficientCapacityError", "no m6g.large")
        said = BEGIN - timedelta(minutes=minutes)
        lines.lines[-1]["object"]["metadata"]["creationTimestamp"] = said.isoformat()
        lines.claim(types(*SIZES), ON_DEMAND)
        found = why(scenario, lines.end())["shortages"]
        assert [one["t"] for one in found] == expected


def test_without_facts_only_what_is_recorded_is_told(scenario: Scenario) -> None:
    lines = told()
    lines.claim(types(*SIZES), ON_DEMAND)
    made = make([scenario], lines.end(), Stack("told", {"cloud": "aws", "region": "us-east-1"}))
    found = made["stories"][0]["nodeclaims"][0]["why"]
    assert (found["offered"]["instance_types"], found["offered"]["offerings"], found["price"]) == (3, None, None)
    assert found["no_price"] == "no facts about instance types of this cloud"


def test_three_hundred_nodes_are_worked_out_once(scenario: Scenario) -> None:
    """Karpenter writes the same requirements in any order."""
    pool = [ON_DEMAND, {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m", "r"]}]
    lines = told(*pool)
    labels = ("instance-category", "instance-size", "instance-generation", "instance-hypervisor")
    wanted = [
        types(*sorted(name for name in AWS.types if name.endswith(".large"))),
        ON_DEMAND,
        *({"key": f"karpenter.k8s.aws/{label}", "operator": "Exists"} for label in labels),
    ]
    for number in range(300):
        random.Random(number).shuffle(wanted)  # noqa: S311
        lines.claim(*wanted, name=f"claim-{number}")
    found = lines.end()
    began = time.process_time()
    assert why(scenario, found, "claim-299")["price"]["of"] > 90
    assert time.process_time() - began < 5
