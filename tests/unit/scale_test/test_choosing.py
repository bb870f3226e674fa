"""Which scenarios are chosen on a stack, and why others are not: the cases are rows of `choosing.yaml`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.scale_test.scenarios.choosing import choose
from karpstack.scale_test.scenarios.environments import StackError, environment_of
from karpstack.scale_test.scenarios.scenario import Scenario, ScenarioError, parse
from tests.unit.scale_test.full_scenario import SMALL, with_value

ROWS = yaml.safe_load(Path(__file__).with_name("choosing.yaml").read_text(encoding="utf-8"))
AZURE = {"cloud": "azure", "region": "westus2"}
STACKS: dict[str, dict[str, Any]] = {
    "eks": {},
    "aks-self-hosted": AZURE
    | {"karpenterVersion": "1.14.0", "nodePools": ["general-purpose"], "nodeClasses": ["default"]}
    | {"defaultNodePools": []},
    "aks-nap": AZURE
    | {"karpenterVersion": "managed", "nodePools": ["batch"], "nodeClasses": ["batch"]}
    | {"defaultNodePools": ["default", "system-surge"]},
}


def scenarios(row: dict[str, Any], shipped: dict[str, Scenario]) -> list[Scenario]:
    """Those that a row is about; without any, all that do not take days."""
    if "small" in row:
        data = SMALL
        for path, value in row["small"].items():
            data = with_value(data, path, value)
        return [parse(data, "small.yml")]
    return [shipped[name] for name in row.get("of", ())] or [one for one in shipped.values() if "days" not in one.tags]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_row_of_choices(row: dict[str, Any], shipped: dict[str, Scenario], outputs: dict[str, Any]) -> None:
    kind, all_of_them = row.get("stack", "eks"), scenarios(row, shipped)
    stack = outputs | STACKS[kind] | row.get("set", {})
    stack = {key: value for key, value in stack.items() if value is not None}
    given = {"names": row.get("names", ()), "labels": row.get("labels", ()), "rehearsed": row.get("rehearsed", False)}
    if "says" in row:
        with pytest.raises((ScenarioError, StackError), match=row["says"]):
            choose(all_of_them, stack, **given)
        return
    choice = choose(all_of_them, stack, **given)
    skipped = dict(choice.skipped)
    if "chosen" in row:
        assert [one.name for one in choice.scenarios] == row["chosen"]
    if "skipped" in row:
        assert skipped.keys() == row["skipped"].keys()
        assert all(reason in skipped[name] for name, reason in row["skipped"].items())
    assert not skipped.keys() & {one.name for one in choice.scenarios}
    assert environment_of(stack).kind == kind
    # Each is as it is in the environment, with nothing left to choose.
    named = {one.name: one for one in all_of_them}
    assert all(one == named[one.name].in_environment(kind) for one in choice.scenarios)
    if not (row.get("names") or row.get("labels")):
        suiting = {name for name, one in named.items() if kind in one.stacks}
        assert suiting == {*skipped, *(one.name for one in choice.scenarios)}
