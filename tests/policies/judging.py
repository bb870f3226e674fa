"""Runs a rule on inputs as pulumi-policy would, and states what it must find. No engine and no process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from pulumi_policy import (
    PolicyCustomTimeouts,
    PolicyResource,
    PolicyResourceOptions,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE, UnknownValueError, unknown_checking_proxy
from rules.exceptions import GRANTED
from rules.inputs import INPUTS
from rules.rule import Rule

UNKNOWN = UNKNOWN_STRING_VALUE


@dataclass(frozen=True)
class Resource:
    """A resource as a rule sees it: its token and its properties."""

    token: str
    properties: dict[str, Any]
    name: str = "resource"
    #: Names of the resources from which a property comes, as the engine tells it.
    comes_from: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: Its inputs, where they were shown to the pack before and its properties are outputs.
    inputs: Mapping[str, Any] | None = None

    @property
    def urn(self) -> str:
        return f"urn:pulumi:test::test::{self.token}::{self.name}"

    def change(self, *path: str | int, to: Any) -> Resource:
        """A copy with the value at `path` set."""
        properties, parent = self._copy(path)
        parent[path[-1]] = to
        return replace(self, properties=properties)

    def without(self, *path: str | int) -> Resource:
        """A copy with the value at `path` taken away."""
        properties, parent = self._copy(path)
        del parent[path[-1]]
        return replace(self, properties=properties)

    def _copy(self, path: Sequence[str | int]) -> tuple[dict[str, Any], Any]:
        properties = deepcopy(self.properties)
        parent: Any = properties
        for step in path[:-1]:
            parent = parent[step]
        return properties, parent


@dataclass(frozen=True)
class Verdict:
    """What a rule said: violations as (message, urn), and the path of the value that it called unknown."""

    violations: list[tuple[str, str | None]]
    unknown: str | None


@dataclass(frozen=True, kw_only=True)
class Case:
    """One input of one rule, and exactly what the rule must find in it.

    `violations` has a part of each message in order; `unknown` is the path that the preview must name.
    """

    name: str
    rule: Rule
    given: Resource | list[Resource]
    violations: tuple[str, ...] = ()
    unknown: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    granted: tuple[Mapping[str, str], ...] = ()
    #: Resources of which the pack was shown the inputs before.
    shown: tuple[Resource, ...] = ()

    def __str__(self) -> str:
        return f"{self.rule.name}: {self.name}"

    def verdict(self) -> Verdict:
        """What the rule says, with the exceptions of this case."""
        return judge(self.rule, self.given, self.settings, self.granted, self.shown)

    def check(self) -> None:
        verdict = self.verdict()
        messages = [message for message, _ in verdict.violations]
        assert len(messages) == len(self.violations), messages
        for message, expected in zip(messages, self.violations, strict=True):
            assert expected in message
            assert self.rule.consequence in message
            assert self.rule.remediation in message
        assert verdict.unknown == self.unknown


def judge(
    rule: Rule,
    given: Resource | list[Resource],
    settings: Mapping[str, Any] | None = None,
    granted: Sequence[Mapping[str, str]] = (),
    shown: Sequence[Resource] = (),
) -> Verdict:
    """Run the policy of a rule on one resource, or, for a stack rule, on a list of them."""
    GRANTED.read(granted, [entry["rule"] for entry in granted])
    GRANTED.excused.clear()
    INPUTS.clear()
    for resource in shown:
        INPUTS.note(resource.urn, unknown_checking_proxy(resource.properties))
    violations: list[tuple[str, str | None]] = []

    def report(message: str, urn: str | None = None) -> None:
        violations.append((message, urn))

    options = PolicyResourceOptions(False, [], None, [], PolicyCustomTimeouts(0, 0, 0), [])
    policy = rule.policy()
    try:
        if isinstance(policy, ResourceValidationPolicy):
            assert isinstance(given, Resource)
            policy.validate(
                ResourceValidationArgs(
                    given.token,
                    unknown_checking_proxy(given.properties),
                    given.urn,
                    given.name,
                    options,
                    None,
                    settings,
                ),
                report,
            )
        else:
            assert isinstance(policy, StackValidationPolicy)
            assert isinstance(given, list)
            for resource in given:
                if resource.inputs is not None:
                    INPUTS.note(resource.urn, unknown_checking_proxy(dict(resource.inputs)))
            policy.validate(StackValidationArgs(_stack(given, options), settings), report)
    except UnknownValueError as unknown:
        return Verdict(violations, ".".join(unknown.props))
    return Verdict(violations, None)


def _stack(given: Sequence[Resource], options: PolicyResourceOptions) -> list[PolicyResource]:
    found = {
        resource.urn: PolicyResource(
            resource.token,
            unknown_checking_proxy(resource.properties),
            resource.urn,
            resource.name,
            options,
            None,
            None,
            [],
            {},
        )
        for resource in given
    }
    by_name = {resource.name: found[resource.urn] for resource in given}
    for resource in given:
        for key, names in resource.comes_from.items():
            found[resource.urn].property_dependencies[key] = [by_name[name] for name in names]
    return list(found.values())
