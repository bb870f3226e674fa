"""rules/inputs.py: rules about the whole stack know what was declared, before a provider can be asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from example_resources import STACKS, resources
from judging import UNKNOWN, Resource, judge
from pulumi_policy.proxy import UnknownValueError, unknown_checking_proxy
from reference import rules
from rules.inputs import Inputs
from rules.rule import StackRule

STACK_RULES = [rule for rule in rules() if isinstance(rule, StackRule)]


def completed(outputs: Mapping[str, Any], inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    noted = Inputs()
    noted.note("urn", unknown_checking_proxy(dict(inputs)))
    return noted.completing("urn", unknown_checking_proxy(dict(outputs)))


def test_an_input_stands_in_for_an_output_that_is_unknown_or_not_there() -> None:
    found = completed({"a": "made", "b": UNKNOWN}, {"a": "declared", "b": "declared", "c": "declared"})
    assert dict(found) == {"a": "made", "b": "declared", "c": "declared"}
    assert len(found) == 3


def test_what_is_unknown_in_both_stays_unknown() -> None:
    for outputs, inputs in (({"a": UNKNOWN}, {"a": UNKNOWN}), ({"a": UNKNOWN}, {}), ({}, {"a": UNKNOWN})):
        with pytest.raises(UnknownValueError):
            completed(outputs, inputs)["a"]
    with pytest.raises(KeyError):
        completed({}, {})["a"]


def test_a_resource_that_was_not_shown_has_its_outputs_only() -> None:
    assert dict(Inputs().completing("urn", unknown_checking_proxy({"a": 1}))) == {"a": 1}


@cache
def declared(name: str) -> tuple[Resource, ...]:
    return tuple(resources(name))


def first_preview(name: str) -> list[Resource]:
    """The stack as it is before there is a cluster: what lives in that has no outputs."""
    return [
        replace(one, properties={}, inputs=one.properties) if one.token.startswith("kubernetes:") else one
        for one in declared(name)
    ]


@pytest.mark.parametrize("name", STACKS)
def test_a_first_preview_is_judged_as_an_update_is(name: str) -> None:
    before, after = first_preview(name), list(declared(name))
    assert any(one.inputs for one in before)
    for rule in STACK_RULES:
        assert judge(rule, before) == judge(rule, after), rule.name


def test_a_first_preview_is_refused_for_what_does_not_fit_together() -> None:
    before = first_preview("eks")
    (node_pool,) = [one for one in before if one.name.endswith("pool-default")]
    assert node_pool.inputs
    spec = {"template": {"spec": {"nodeClassRef": {"kind": "EC2NodeClass", "name": "other"}}}}
    bad = replace(node_pool, inputs={**node_pool.inputs, "spec": spec})
    given = [bad if one.urn == bad.urn else one for one in before]
    (rule,) = [rule for rule in STACK_RULES if rule.name == "node-class-resolves"]
    ((message, urn),) = judge(rule, given).violations
    assert "is EC2NodeClass other" in message
    assert urn == bad.urn
