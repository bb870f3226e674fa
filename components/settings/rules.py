"""Rules between sections: functions whose parameters name what they need, called where all of that is valid.

Parameters are the valid sections by the names of the settings' fields, and what `judged` adds; for NodePools and node
classes also `name` and `spec` of each. A parameter with a default need not be valid.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from functools import cache
from typing import Any

from pydantic.alias_generators import to_camel

from karpstack.karpenter.findings import Finding
from karpstack.karpenter.offers import Offers

from ..problems import Judge

Rule = Callable[..., Iterator[Finding]]


def check_sections(
    cloud: str,
    valid: Mapping[str, Any],
    today: date,
    *,
    rules: tuple[Rule, ...],
    of_node_classes: tuple[Rule, ...],
    of_node_pools: tuple[Rule, ...],
    **known: Any,
) -> Iterator[Finding]:
    """Find what is wrong between sections.

    Args:
        cloud: `aws` or `azure`.
        valid: The valid sections.
        today: The day of judgement.
        rules: Those of the stack.
        of_node_classes: Those of each node class.
        of_node_pools: Those of each NodePool.
        known: Further parameters of rules.
    """
    given = {name: section for name, section in valid.items() if section is not None}
    given |= {"cloud": cloud, "valid": valid, "today": today, **known}
    given["say"] = Judge({to_camel(name): section for name, section in valid.items()})
    region = valid.get("region")
    if region is not None and Offers.load(cloud).region(region) != "wrong":
        given["known_region"] = region
    yield from _called(rules, given)
    for section, of_each in (("node_classes", of_node_classes), ("node_pools", of_node_pools)):
        for name, spec in given.get(section, {}).items():
            yield from _called(of_each, {**given, "name": name, "spec": spec})


def _called(rules: tuple[Rule, ...], given: Mapping[str, Any]) -> Iterator[Finding]:
    for rule in rules:
        parameters = _parameters(rule)
        if all(name in given for name, needed in parameters.items() if needed):
            yield from rule(**{name: given[name] for name in parameters if name in given})


@cache
def _parameters(rule: Rule) -> Mapping[str, bool]:
    """The names of a rule's parameters, and whether it needs each."""
    found = inspect.signature(rule).parameters
    return {name: one.default is inspect.Parameter.empty for name, one in found.items()}
