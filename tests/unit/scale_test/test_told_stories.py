"""Every story as it was run once with the production controller: it passed, and it fails with a false expectation.

The timelines in `told` were recorded in rehearsals, one a story and environment; `tell` took them from there.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.scale_test.recording.timeline import Line
from karpstack.scale_test.reports import report
from karpstack.scale_test.scenarios.environments import Stack
from karpstack.scale_test.scenarios.scenario import Scenario, parse

STACK = Stack("told", {"cloud": "aws", "karpenterVersion": "1.14.1"})
TOLD = Path(__file__).with_name("told")
RECORDED = sorted(path.name.removesuffix(".timeline.jsonl.gz") for path in TOLD.glob("*.timeline.jsonl.gz"))


#: Recordings of several stories, with what the metrics told.
PLAIN = {"aks-nap": ["nap-default"], "eks": ["eks-cheapest-fit", "eks-spot-consolidation"]}


def told(recorded: str) -> list[Line]:
    if recorded in PLAIN:
        text = TOLD.with_name(f"{recorded}.timeline.jsonl").read_text(encoding="utf-8")
    else:
        text = gzip.decompress((TOLD / f"{recorded}.timeline.jsonl.gz").read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()]


def stories_of(recorded: str) -> list[str]:
    """Names of the scenarios that a recording has."""
    return PLAIN.get(recorded) or recorded.split(".")[1:]


def as_data(recorded: str, shipped: dict[str, Scenario]) -> list[dict[str, Any]]:
    kind = recorded.split(".")[0]
    chosen = [shipped[name].in_environment(kind) for name in stories_of(recorded)]
    return [one.model_dump(by_alias=True, mode="json", exclude_none=True) for one in chosen]


def failures(data: list[dict[str, Any]], lines: list[Line]) -> list[str]:
    return report.failures(report.make([parse(one, "told") for one in data], lines, STACK))


@pytest.mark.parametrize("recorded", [*PLAIN, *RECORDED])
def test_the_story_passed(recorded: str, shipped: dict[str, Scenario]) -> None:
    assert failures(as_data(recorded, shipped), told(recorded)) == []


def test_every_story_that_is_not_a_walk_through_was_told(shipped: dict[str, Scenario]) -> None:
    wanted = {name for name, scenario in shipped.items() if "walk-through" not in scenario.tags}
    assert {recorded.split(".")[1] for recorded in RECORDED} >= wanted


def rows(name: str) -> list[Any]:
    """The rows of a table beside the recordings, each with the recordings that have its story."""
    table = yaml.safe_load((TOLD / name).read_text(encoding="utf-8"))
    return [
        pytest.param(recorded, row, id=f"{recorded}-{index}")
        for index, row in enumerate(table)
        for recorded in [*PLAIN, *RECORDED]
        if row["story"] in stories_of(recorded)
    ]


@pytest.mark.parametrize(("recorded", "row"), rows("false.yaml"))
def test_a_false_expectation_fails_the_story(shipped: dict[str, Scenario], recorded: str, row: dict[str, Any]) -> None:
    data = as_data(recorded, shipped)
    step = next(one for one in data if one["name"] == row["story"])["steps"][row["step"]]
    wanted = step["expect"] | row["expect"]
    step["expect"] = {key: value for key, value in wanted.items() if value is not None}
    found = failures(data, told(recorded))
    assert any(row["says"] in failure for failure in found), found
    assert all(f"{row['story']}: step {row['step'] + 1} (" in failure for failure in found), found


def test_each_story_is_falsified() -> None:
    falsified = {row.values[1]["story"] for row in rows("false.yaml")}
    assert falsified == {story for recorded in [*PLAIN, *RECORDED] for story in stories_of(recorded)}


def has(line: Line, values: dict[str, Any]) -> bool:
    """Whether a line has all of some values, each by its path."""
    for path, value in values.items():
        at: Any = line
        for key in path.split("."):
            at = at.get(key) if isinstance(at, dict) else None
        if at is None or value not in ("any", at):
            return False
    return True


def differently(lines: list[Line], row: dict[str, Any]) -> list[Line]:
    """The lines as a row of `otherwise.yaml` has them."""
    chosen = [line for line in lines if has(line, row.get("drop") or row["where"])]
    assert chosen
    if "drop" in row:
        return [line for line in lines if line not in chosen]
    for line in chosen:
        for path, value in row["to"].items():
            *parents, last = path.split(".")
            at = line
            for key in parents:
                at = at[key]
            at[last] = value
    return lines


@pytest.mark.parametrize(("recorded", "row"), rows("otherwise.yaml"))
def test_a_story_that_went_otherwise_fails(shipped: dict[str, Scenario], recorded: str, row: dict[str, Any]) -> None:
    found = failures(as_data(recorded, shipped), differently(told(recorded), row))
    assert any(row["says"] in failure for failure in found), found


def test_the_type_that_ran_short_must_not_come_again(shipped: dict[str, Scenario]) -> None:
    lines = told("eks.capacity-shortage")
    claims = [line for line in lines if line.get("kind") == "NodeClaim"]
    newest = [line["object"]["metadata"]["name"] for line in claims if line["type"] == "ADDED"][-1]
    second = [line for line in claims if line["object"]["metadata"]["name"] == newest][-1]
    (fault,) = [line for line in lines if line["type"] == "FAULT"]
    fault["detail"]["instanceTypes"] = [second["object"]["metadata"]["labels"]["node.kubernetes.io/instance-type"]]
    (failure,) = failures(as_data("eks.capacity-shortage", shipped), lines)
    (short,) = fault["detail"]["instanceTypes"]
    assert f"step 3 (scale to 2), other instance type: expected none of {short}; seen {short}" in failure


@pytest.mark.parametrize("terminating", [False, True])
def test_more_nodes_at_once_than_the_budget_allows_fail(shipped: dict[str, Scenario], *, terminating: bool) -> None:
    """As if the first node had gone only with the last one: its instance too, or its NodeClaim alone."""
    lines = told("eks.drift")
    gone = next(line for line in lines if (line["type"], line.get("kind")) == ("DELETED", "NodeClaim"))
    end = next(line for line in lines if line["type"] == "STEP" and line["step"] == 1)
    lines.remove(gone)
    lines.insert(lines.index(end), gone | {"received": end["received"]})
    for line in lines:
        if (
            not terminating
            and line.get("object", {}).get("metadata", {}).get("uid") == gone["object"]["metadata"]["uid"]
        ):
            conditions = line["object"].get("conditions", ())
            line["object"]["conditions"] = [one for one in conditions if one["type"] != "InstanceTerminating"]
    found = failures(as_data("eks.drift", shipped), lines)
    # Karpenter's budget counts it no longer once its instance is going.
    said = any("disrupted at once: expected at most 1; seen 2" in failure for failure in found)
    assert said is not terminating, found


def test_what_was_said_of_a_node_is_not_said_of_the_next_one_with_its_name(shipped: dict[str, Scenario]) -> None:
    # Machines that are gone leave their addresses, and so their names, to later ones.
    made = report.make([shipped["drift"]], told("eks.drift"), STACK)
    claims = made["stories"][0]["nodeclaims"]
    assert len({claim["node"] for claim in claims}) < len(claims)
    assert [claim["disruption"] for claim in claims] == ["Drifted"] * 3 + [None] * 3


def test_a_pod_that_moves_is_not_nominated_late(shipped: dict[str, Scenario]) -> None:
    # Consolidation nominates pods that have had a node for minutes.
    churn = shipped["churn"].in_environment("eks")
    made = report.make([churn], told("eks.churn"), STACK)
    phase = made["stories"][0]["durations"][0]
    assert phase["phase"] == "pod_pending_to_nominated"
    assert phase["n"] > 50
    assert phase["max"] < 5
