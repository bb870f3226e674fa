"""The numbers of a report: by hand for a small story, of the recorded runs, and of five thousand pods."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from karpstack.karpenter.instance_types import Facts
from karpstack.scale_test.judging.replay import NodeClaim, Replay
from karpstack.scale_test.numbers import disruptions
from karpstack.scale_test.recording.timeline import Line
from karpstack.scale_test.reports import report
from karpstack.scale_test.reports.page import render
from karpstack.scale_test.reports.reading import parse as parse_report
from karpstack.scale_test.reports.schema import Report
from karpstack.scale_test.reports.table import table
from karpstack.scale_test.scenarios.environments import Stack
from karpstack.scale_test.scenarios.scenario import Scenario, parse
from tests import synthetic

FIT, SPOT = "eks-cheapest-fit", "eks-spot-consolidation"
Numbers = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def facts() -> Facts:
    return Facts.load("aws")


@pytest.fixture
def numbers(
    scenarios: dict[str, Scenario], timeline: list[Line], outputs: dict[str, Any], facts: Facts
) -> Callable[..., dict[str, Any]]:
    """Makes a report; of the recorded run if no other timeline is given."""

    def made(lines: list[Line] | None = None, **options: Any) -> dict[str, Any]:
        options = {"facts": facts, **options}
        chosen = [scenarios[FIT], scenarios[SPOT]]
        return report.make(chosen, timeline if lines is None else lines, Stack("eks", outputs), **options)

    return made


def story(made: dict[str, Any], name: str = FIT) -> dict[str, Any]:
    return next(found for found in made["stories"] if found["name"] == name)


def phases(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["phase"]: row for row in found["durations"]}


@pytest.mark.parametrize("change", [{"more": 1}, {"seconds": -1}, {"schema": 1}])
def test_another_form_is_noticed(numbers: Numbers, change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Report.model_validate(numbers() | change)


def test_a_story_that_never_began_has_the_same_form(numbers: Numbers, timeline: list[Line]) -> None:
    made = numbers([line for line in timeline if line.get("scenario") != SPOT])
    Report.model_validate(made)
    assert story(made, SPOT)["durations"] == []
    assert not story(made, SPOT)["passed"]


def test_what_a_fake_had_a_part_in_is_marked(numbers: Numbers, timeline: list[Line]) -> None:
    assert [row["phase"] for row in story(numbers())["durations"] if not row["simulated"]] == [
        "pod_pending_to_nominated"
    ]
    lines = [
        line | {"object": line["object"] | {"simulated": False}} if line.get("kind") == "Node" else line
        for line in timeline
    ]
    made = numbers(lines)
    assert not any(row["simulated"] for row in story(made)["durations"])
    assert not made["environment"]["simulated"]


def marks(found: dict[str, Any]) -> list[bool]:
    """What of a story's money is marked as simulated."""
    cost = found["cost"]
    return [
        cost["simulated"],
        cost["bound_simulated"],
        *(claim["price_simulated"] for claim in found["nodeclaims"]),
        *(claim["why"]["price"]["simulated"] for claim in found["nodeclaims"] if claim["why"]["price"]),
        *([found["consolidation"]["saving_simulated"]] if found["consolidation"] else []),
    ]


def test_prices_of_spot_are_marked_where_a_rehearsal_makes_them_up(numbers: Numbers, timeline: list[Line]) -> None:
    made = numbers()
    assert set(marks(story(made, SPOT))) == {True}
    assert set(marks(story(made))) == {False}
    assert "Prices of spot are simulated" in table(made)
    made["stories"] = [story(made)]
    assert "simulated" not in table(made)
    real = [
        line | {"object": line["object"] | {"simulated": False}} if line.get("kind") == "Node" else line
        for line in timeline
    ]
    assert set(marks(story(numbers(real), SPOT))) == {False}


def test_no_name_is_folded_so_that_a_line_begins_with_a_command(numbers: Numbers) -> None:
    made = numbers()
    for length in range(100, 160):
        name = f"{'x' * length}::error file=a,line=1::pwned"
        made |= {"stack": name, "environment": made["environment"] | {"assumed_images": name, "prices_of": name}}
        shown = table(made)
        assert shown.count(name) == 3
        assert not any(line.lstrip().startswith("::") for line in shown.splitlines())


def test_a_page_marks_prices_of_spot_and_what_follows_from_them(numbers: Numbers) -> None:
    made = numbers()
    for name, marked in ((SPOT, True), (FIT, False)):
        page = render(made | {"stories": [story(made, name)]})
        figures = re.findall(r"<dt>(Cost|Cost against the bound|Consolidation)</dt><dd>(.*?)</dd>", page)
        assert [(figure, "simulated" in said) for figure, said in figures] == [
            ("Cost", marked),
            ("Cost against the bound", marked),
            *([("Consolidation", True)] if marked else []),
        ]
        assert (">cost, simulated<" in page.replace("\n", ""), ">lower bound, simulated<" in page) == (marked, marked)
        (nodes,) = re.findall(r"USD per hour, each</th></tr></thead>(.*?)</table>", page, re.DOTALL)
        assert ("simulated" in nodes) is marked


def test_a_report_from_before_the_marks_can_be_read(numbers: Numbers) -> None:
    made = numbers()
    found = story(made, SPOT)
    for part in (found["cost"], found["consolidation"], *found["nodeclaims"]):
        for mark in ("bound_simulated", "saving_simulated", "price_simulated"):
            part.pop(mark, None)
    del found["cost"]["simulated"]
    made["stories"] = [found]
    page = render(parse_report(json.dumps(made).encode()))
    (cost,) = re.findall(r"<dt>Cost</dt><dd>(.*?)</dd>", page)
    assert "simulated" not in cost


def test_what_was_not_reached_has_no_time(numbers: Numbers, timeline: list[Line]) -> None:
    last = max(
        index
        for index, line in enumerate(timeline[: next(i for i, x in enumerate(timeline) if x["type"] == "STEP")])
        if line.get("kind") == "Pod" and any(c["type"] == "Ready" for c in line["object"]["conditions"])
    )
    made = numbers([*timeline[:last], *timeline[last + 1 :]])
    rows = {row["percent"]: row["seconds"] for row in story(made)["reached"] if row["kind"] == "pods"}
    assert rows[70] is not None
    assert rows[100] is None


def test_without_facts_there_is_no_bound_and_it_says_so(numbers: Numbers) -> None:
    made = numbers(facts=None)
    Report.model_validate(made)
    found = story(made)["cost"]
    assert (found["bound_usd"], found["ratio"]) == (None, None)
    assert "no facts" in found["no_bound"]
    assert found["usd"] > 0


def test_a_region_without_prices_has_no_bound(numbers: Numbers, outputs: dict[str, Any], timeline: list[Line]) -> None:
    outputs["region"] = "eu-west-1"
    lines = [line for line in timeline if line["type"] != "PRICES"]
    assert "price in eu-west-1 is known" in story(numbers(lines))["cost"]["no_bound"]
    # What the controller says of its prices holds anywhere.
    cheapest = {"on-demand": {"c5.large": 0.2, "m5.large": 0.3, "r5.large": 0.4, "m5.xlarge": 0.6}}
    said = {"type": "PRICES", "received": lines[0]["received"], "cheapest": cheapest}
    least = max(row[2] for row in story(numbers([lines[0], said, *lines[1:]]))["series"]["cost"])
    assert 0.2 <= least < 0.3


def test_spot_without_spot_prices_has_no_bound(numbers: Numbers, timeline: list[Line]) -> None:
    """On a real cloud the table has none, and the least of the prices on demand would be no lower bound."""
    lines = [
        line | {"object": line["object"] | {"simulated": False}} if line.get("kind") == "Node" else line
        for line in timeline
        if line["type"] != "PRICES"
    ]
    made = numbers(lines)
    assert "no spot price" in story(made, SPOT)["cost"]["no_bound"]
    assert story(made)["cost"]["bound_usd"] is not None


def test_a_price_that_is_not_known_is_named(numbers: Numbers, timeline: list[Line]) -> None:
    found = story(numbers([line for line in timeline if line.get("instanceType") != "m5.large"]))
    assert found["cost"]["unknown"] == ["m5.large"]
    assert found["cost"]["ratio"] is None
    assert found["nodeclaims"][0]["price_source"] is None


def test_a_controller_that_started_anew_counts_from_nothing(numbers: Numbers) -> None:
    def sample(second: int, cpu: float, errors: int, started: float) -> Line:
        content = {"memory_bytes": 1, "cpu_seconds": cpu, "api_errors": errors, "started": started}
        return {"type": "CONTROLLER", "received": synthetic.time(second), **content}

    start = {"type": "START", "received": synthetic.time(0), "kubernetes": "v1"}
    found = numbers([start, sample(5, 7, 3, 1), sample(10, 9, 3, 1), sample(15, 1, 2, 2)])["controller"]
    assert [row[2:] for row in found["samples"]] == [[0, 0], [2, 0], [3, 2]]
    assert (found["cpu_seconds"], found["api_errors"], found["restarts"]) == (3, 2, 1)


def node_claim(second: int, *, deleting: bool = False, reason: str | None = None, expire: str = "Never") -> Line:
    condition = {"type": "DisruptionReason", "status": "True", "reason": reason, "lastTransitionTime": "x"}
    gone = {"deletionTimestamp": "2026-11-21T10:00:00Z"} if deleting else {}
    found = {
        "metadata": {"name": "claim", "uid": "u", **gone},
        "conditions": [condition] if reason else [],
        "expireAfter": expire,
    }
    return {"type": "MODIFIED", "received": synthetic.time(second), "kind": "NodeClaim", "object": found}


def replayed(*lines: Line) -> tuple[Replay, NodeClaim]:
    replay = Replay()
    replay.apply(lines)
    return replay, replay.claims["claim"]


def test_a_disruption_that_was_taken_back_did_not_happen() -> None:
    replay, claim = replayed(node_claim(1), node_claim(5, reason="Drifted"))
    assert claim.disrupted is not None
    assert disruptions.reason(replay, claim) == "Drifted"
    replay.apply([node_claim(9)])
    assert claim.disrupted is None
    assert disruptions.reason(replay, claim) is None


@pytest.mark.parametrize(
    ("expire", "deleted", "reason"),
    [("1m0s", 61, "Expired"), ("1m0s", 30, None), ("Never", 61, None), ("1h", 61, None)],
)
def test_a_node_that_went_at_the_end_of_its_life_expired(expire: str, deleted: int, reason: str | None) -> None:
    replay, claim = replayed(node_claim(1, expire=expire), node_claim(deleted, deleting=True, expire=expire))
    assert disruptions.reason(replay, claim) == reason


@pytest.mark.parametrize(("factor", "passed"), [(1, False), (50, True)])
def test_the_cost_at_rest_is_held_against_the_bound(
    scenarios: dict[str, Scenario],
    timeline: list[Line],
    outputs: dict[str, Any],
    facts: Facts,
    factor: float,
    passed: bool,
) -> None:
    data = scenarios[FIT].model_dump(by_alias=True, mode="json", exclude_none=True)
    data["steps"][0]["expect"]["costWithin"] = factor
    expected = [parse(data, "told")]
    for known, judged in ((facts, passed), (None, True)):
        made = report.make(expected, timeline, Stack("eks", outputs), facts=known)
        (cost,) = [one for one in made["stories"][0]["assertions"] if one["name"].endswith(", cost")]
        assert (cost["passed"], cost["step"]) == (judged, 1)
        assert cost["expected"] == f"at most {factor} times the lower bound"
        assert cost["seen"].startswith("0.0960 USD an hour" if known else "not judged: no facts")


def test_five_thousand_pods(scenarios: dict[str, Scenario], outputs: dict[str, Any], facts: Facts) -> None:
    """Fifty pods of 0.25 CPU and 0.5 GiB on each node of 15.89 CPUs."""
    made = report.make([scenarios[FIT]], synthetic.timeline(5000), Stack("eks", outputs), facts=facts)
    Report.model_validate(made)
    found = story(made)
    rows = phases(found)
    assert rows["pod_pending_to_running"]["n"] == 5000
    assert (rows["pod_pending_to_nominated"]["p99"], rows["pod_pending_to_running"]["p50"]) == (3, 60)
    assert found["pending_pod_seconds"] == pytest.approx(5000 * 60)
    assert max(row[1] for row in found["series"]["nodes"]) == 100
    assert found["cost"]["peak_usd_per_hour"] == pytest.approx(76.8)
    # 1,250 CPUs and 2,500 GiB, of c5.large at 0.085 for 2 and 4.
    assert max(row[2] for row in found["series"]["cost"]) == pytest.approx(1250 / 2 * 0.085)
    assert 0 < found["packing"]["cpu"] < 50 * 0.25 / 15.89
