"""What a node could have been launched as, where its choice stands by price, and what was short."""

from __future__ import annotations

import random
import time
from datetime import timedelta
from typing import Any

import pytest

from karpenter.instance_types import Facts
from scale_test.recording.timeline import Line
from scale_test.reports.report import make
from scale_test.scenarios.environments import Stack
from scale_test.scenarios.scenario import Scenario, parse
from tests.unit.scale_test.told_choices import BEGIN, ON_DEMAND, SPOT, STORY, TAKEN, Choices, types

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


def test_instance_types_capacity_types_and_zones_are_those_of_the_nodeclaim(scenario: Scenario) -> None:
    lines = told()
    lines.claim(types(*SIZES), ON_DEMAND)
    offered = why(scenario, lines.end())["offered"]
    assert (offered["instance_types"], offered["capacity_types"]) == (3, ["on-demand"])
    assert (offered["zones"], offered["offerings"]) == (["us-east-1a", "us-east-1b"], 6)


def test_a_zone_that_the_nodeclaim_names_goes_before_those_of_the_subnets(scenario: Scenario) -> None:
    lines = told()
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1b", "us-east-1f"]}
    lines.claim(types(*SIZES), ON_DEMAND, zone)
    offered = why(scenario, lines.end())["offered"]
    assert (offered["zones"], offered["offerings"]) == (["us-east-1b"], 3)


def test_min_values_and_that_karpenter_went_below_them(scenario: Scenario) -> None:
    lines = told()
    lines.claim(types(*SIZES, least=5), ON_DEMAND, minValuesRelaxed=True)
    offered = why(scenario, lines.end())["offered"]
    assert offered["min_values"] == {"node.kubernetes.io/instance-type": 5}
    assert offered["min_values_relaxed"]


def test_what_the_pool_admits_and_was_not_offered_is_too_small_or_left_out_for_another_reason(
    scenario: Scenario,
) -> None:
    lines = told(types("m5.large", "m5.xlarge", "m5.2xlarge", "m5.4xlarge", "m5.8xlarge"))
    for zone in ("us-east-1a", "us-east-1b"):
        lines.unavailable("m5.4xlarge", zone=zone)
    # In one of two zones.
    lines.unavailable("m5.8xlarge")
    lines.claim(types("m5.2xlarge"), ON_DEMAND, requests={"cpu": 3.0, "memory": 2.0**30})
    left_out = why(scenario, lines.end())["offered"]["left_out"]
    assert left_out == {"too_small": 1, "beyond_limit": 0, "unavailable": 1, "short": 0, "others": 2}


def test_what_has_more_cpus_than_the_limit_had_room_for_is_counted(scenario: Scenario) -> None:
    lines = Choices()
    lines.pool(TAKEN, types("m5.large", "m5.xlarge", "m5.2xlarge", "m5.4xlarge", "m5.8xlarge"), limits={"cpu": "18"})
    lines.pod()
    lines.claim(types("m5.large"), ON_DEMAND, name="before")
    lines.claim(types("m5.2xlarge"), ON_DEMAND, requests={"cpu": 3.0, "memory": 2.0**30})
    # Its limit is another one later on.
    lines.pool(TAKEN, types("m5.large"), type_="MODIFIED", limits={"cpu": "1"})
    left_out = why(scenario, lines.end())["offered"]["left_out"]
    assert left_out == {"too_small": 1, "beyond_limit": 1, "unavailable": 0, "short": 0, "others": 2}


@pytest.mark.parametrize(
    ("bought", "rank", "cheapest", "cheaper"),
    [
        ("m6g.large", 1, "m6g.large", []),
        ("m7g.large", 2, "m6g.large", ["m6g.large"]),
        ("m5.large", 3, "m6g.large", ["m6g.large", "m7g.large"]),
    ],
)
def test_where_the_choice_stands_by_price(
    scenario: Scenario, bought: str, rank: int, cheapest: str, cheaper: list[str]
) -> None:
    lines = told()
    lines.claim(types(*SIZES, "x1.unheard"), ON_DEMAND, bought=(bought, "on-demand", "us-east-1a"))
    price = why(scenario, lines.end())["price"]
    assert (price["rank"], price["of"], price["unpriced"]) == (rank, 3, 1)
    assert (price["cheapest"], price["cheaper"], price["source"]) == (cheapest, cheaper, "facts")
    assert price["usd_per_hour"] == AWS.types[bought].on_demand["us-east-1"]
    assert price["least_usd_per_hour"] == AWS.types["m6g.large"].on_demand["us-east-1"]
    assert not price["simulated"]


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


def test_prices_of_a_real_clouds_spot_are_the_controllers_or_not_known(scenario: Scenario) -> None:
    for prices, source in (({}, None), ({"m5.large": 0.04, "m6g.large": 0.03}, "controller")):
        lines = told(simulated=False)
        lines.add("PRICES", cheapest={"spot": prices} if prices else {})
        lines.claim(types(*SIZES), SPOT, bought=("m5.large", "spot", "us-east-1a"))
        found = why(scenario, lines.end())
        if source:
            assert (found["price"]["rank"], found["price"]["of"], found["price"]["unpriced"]) == (2, 2, 1)
            assert (found["price"]["source"], found["no_price"]) == ("controller", None)
            assert not found["price"]["simulated"]
        else:
            assert (found["price"], found["no_price"]) == (None, "no spot price in us-east-1 is known")


def test_where_subnets_are_is_not_guessed(scenario: Scenario) -> None:
    """Spot prices differ by zone; a recorder of 0.1 did not tell in which zones the node class has subnets."""
    lines = told(zones=())
    lines.claim(types(*SIZES), SPOT, bought=("m5.large", "spot", "us-east-1a"))
    found = why(scenario, lines.end())
    assert (found["offered"]["zones"], found["price"]) == (None, None)


@pytest.mark.parametrize("cloud", ["aws", "azure"])
def test_an_old_timeline_does_not_tell_what_was_offered(scenario: Scenario, cloud: str) -> None:
    lines = told()
    lines.claim(old=True)
    found = why(scenario, lines.end(), cloud=cloud, region="westus2" if cloud == "azure" else "us-east-1")
    assert (found["offered"], found["price"], found["no_price"]) == (None, None, None)
    assert found["availability"] == ("not recorded" if cloud == "aws" else "not published")


def test_azure_compares_spot_and_on_demand(scenario: Scenario) -> None:
    """Its controller ranks all offerings by price; AWS's asks for spot alone if that may be."""
    lines = told()
    sizes = ("Standard_D2pls_v6", "Standard_D2pls_v5")
    lines.claim(types(*sizes), bought=("Standard_D2pls_v6", "on-demand", "westus2-1"))
    price = why(scenario, lines.end(), cloud="azure", region="westus2")["price"]
    assert price["usd_per_hour"] == 0.062
    assert price["least_usd_per_hour"] < 0.03
    assert price["simulated"]


def test_what_the_metrics_said_before_counts_and_what_they_said_later_is_told_as_such(scenario: Scenario) -> None:
    lines = told()
    lines.unavailable("m5.large", "c5.large")
    lines.unavailable("m6g.large")
    lines.unavailable("m5.large", key="ceased")
    lines.claim(types(*SIZES), ON_DEMAND, bought=("m7g.large", "on-demand", "us-east-1b"))
    lines.wait(30)
    lines.unavailable("m7g.large")
    lines.wait(120)
    lines.unavailable("m7g.large", zone="us-east-1b")
    found = why(scenario, lines.end())
    assert (found["availability"], found["offered"]["offerings"], found["offered"]["unavailable"]) == ("recorded", 6, 1)
    assert [(one["source"], one["instance_types"], one["offerings"]) for one in found["shortages"]] == [
        ("metrics", ["m6g.large"], 1),
        ("metrics, later", ["m7g.large"], 1),
    ]


def test_metrics_that_were_asked_later_say_nothing_of_before(scenario: Scenario) -> None:
    lines = told()
    lines.claim(types(*SIZES), ON_DEMAND)
    lines.unavailable()
    found = why(scenario, lines.end())
    assert (found["availability"], found["offered"]["unavailable"], found["shortages"]) == ("not recorded", None, [])


@pytest.mark.parametrize(
    ("detail", "short"),
    [
        ({"instanceTypes": ["m6g.large", "c5.large"]}, (["m6g.large"], 2)),
        ({"instanceTypes": ["m6g.large"], "zones": ["us-east-1b"]}, (["m6g.large"], 1)),
        ({"zones": ["us-east-1b"]}, (sorted(SIZES), 3)),
        ({"capacityTypes": ["spot"], "zones": ["us-east-1b"]}, ([], 0)),
    ],
)
def test_what_the_playbook_took_is_told(scenario: Scenario, detail: dict[str, Any], short: tuple[Any, ...]) -> None:
    lines = told()
    lines.add("FAULT", scenario=STORY, step=0, kind="out-of-capacity", detail=detail)
    lines.claim(types(*SIZES), ON_DEMAND)
    (told_of,) = why(scenario, lines.end())["shortages"]
    assert (told_of["source"], told_of["t"]) == ("fault", 5)
    assert (told_of["instance_types"], told_of["offerings"]) == short


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


def test_events_that_name_an_instance_type_that_was_offered_and_its_own_are_told(scenario: Scenario) -> None:
    lines = told()
    for name, size in (("other", "m6g.large"), ("elsewhere", "c5.large")):
        lines.claim(types(size), name=name, bought=None)
        lines.event("NodeClaim", name, "AsyncProvisioningError", f"unable to allocate VM size ({size}). (another)")
    lines.claim(types(*SIZES), ON_DEMAND)
    lines.event("NodeClaim", "claim", "InsufficientCapacityError", "UnfulfillableCapacity")
    lines.event("NodeClaim", "claim", "Launched", "m5.large")
    shortages = why(scenario, lines.end())["shortages"]
    assert [(one["source"], one["instance_types"], one["message"]) for one in shortages] == [
        ("own event", [], "UnfulfillableCapacity"),
        ("event", ["m6g.large"], "unable to allocate VM size (m6g.large). (another)"),
    ]


@pytest.mark.parametrize(
    ("cloud", "region", "reason", "seconds", "told_of"),
    [
        ("aws", "us-east-1", "InsufficientCapacityError", 170, True),
        ("aws", "us-east-1", "InsufficientCapacityError", 190, False),
        ("azure", "westus2", "AsyncProvisioningError", 3500, True),
        ("azure", "westus2", "AsyncProvisioningError", 3700, False),
    ],
)
def test_what_was_said_longer_ago_than_a_controller_remembers_is_left_out(
    scenario: Scenario, cloud: str, region: str, reason: str, seconds: float, told_of: bool
) -> None:
    lines = told()
    lines.claim(types("m6g.large"), name="other", bought=None)
    lines.event("NodeClaim", "other", reason, "no m6g.large")
    lines.wait(seconds)
    lines.claim(types(*SIZES), ON_DEMAND)
    found = why(scenario, lines.end(), cloud=cloud, region=region)["shortages"]
    assert [one["source"] for one in found] == (["event"] if told_of else [])


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


LAUNCHED = [{"type": "Launched", "status": "True", "lastTransitionTime": "2026-11-22T20:00:00Z"}]


@pytest.mark.parametrize(("launched", "sources"), [(LAUNCHED, []), ([], ["metrics, later"])])
def test_a_launch_that_was_before_a_fault_did_not_meet_it(
    scenario: Scenario, launched: list[Line], sources: list[str]
) -> None:
    lines = told()
    lines.unavailable()
    lines.claim(types(*SIZES), ON_DEMAND, conditions=launched)
    lines.add("FAULT", scenario=STORY, step=0, kind="out-of-capacity", detail={"instanceTypes": ["m6g.large"]})
    lines.wait(30)
    lines.unavailable("m6g.large")
    assert [one["source"] for one in why(scenario, lines.end())["shortages"]] == sources


def test_what_the_metrics_say_after_the_story_is_none_of_it(scenario: Scenario) -> None:
    lines = told()
    lines.unavailable()
    lines.claim(types(*SIZES), ON_DEMAND)
    lines.end()
    lines.unavailable("m6g.large")
    assert why(scenario, lines.lines)["shortages"] == []


@pytest.mark.parametrize(("seconds", "short"), [(60, True), (190, False)])
def test_what_was_interrupted_is_named_and_counted_while_the_controller_remembers(
    scenario: Scenario, seconds: float, short: bool
) -> None:
    """Karpenter leaves it out of what the next NodeClaim may be."""
    lines = told(types("m5.large", "m6g.large"), zones=("us-east-1a",))
    lines.unavailable()
    lines.claim(types("m5.large", "m6g.large"), SPOT, name="first", bought=("m6g.large", "spot", "us-east-1a"))
    lines.event("NodeClaim", "first", "SpotInterrupted", "Spot interruption warning was triggered")
    lines.wait(seconds)
    lines.claim(types("m5.large"), SPOT, bought=("m5.large", "spot", "us-east-1a"))
    found = why(scenario, lines.end())
    said = [(one["source"], one["instance_types"]) for one in found["shortages"]]
    assert said == ([("interruption", ["m6g.large"])] if short else [])
    assert (found["offered"]["left_out"]["short"], found["offered"]["left_out"]["others"]) == (short, not short)
    # On demand has nothing to do with it.
    lines = told(types("m5.large", "m6g.large"), zones=("us-east-1a",))
    lines.claim(types("m5.large", "m6g.large"), SPOT, name="first", bought=("m6g.large", "spot", "us-east-1a"))
    lines.event("NodeClaim", "first", "SpotInterrupted", "Spot interruption warning was triggered")
    lines.claim(types("m5.large"), ON_DEMAND)
    assert why(scenario, lines.end())["shortages"] == []


def test_a_replacement_says_for_what(scenario: Scenario) -> None:
    lines = told()
    lines.claim(types(*SIZES), ON_DEMAND)
    lines.event("NodeClaim", "claim", "DisruptionLaunching", "Launching NodeClaim: Underutilized")
    assert why(scenario, lines.end())["replaces"] == "Underutilized"


@pytest.mark.parametrize("wrong", [{"operator": "Between"}, {"operator": "Gt", "values": ["many"]}])
def test_requirements_that_karpenter_would_not_take_are_not_judged(scenario: Scenario, wrong: Line) -> None:
    lines = told()
    lines.claim(types(*SIZES), {"key": "karpenter.k8s.aws/instance-cpu", **wrong})
    assert why(scenario, lines.end())["offered"] is None


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
