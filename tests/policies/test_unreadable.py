"""Values of another shape, and whatever else a rule did not expect: always findings that say where and what."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from example_resources import STACKS, resources
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis.strategies import DataObject, data, sampled_from
from judging import UNKNOWN, Resource, judge
from pulumi_policy.proxy import UnknownValueError, unknown_checking_proxy
from reference import rules
from rules import tokens
from rules.pod_addresses import NODE_MAX_PODS
from rules.rule import Judgement, Properties, ResourceRule, Rule
from rules.shapes import shaped
from rules.values import Either, Kind, Shape, UnreadableError, parsed, read, readable
from rules.wiring import EVENT_RULES_COMPLETE

from tests.mutations import mutations

RULES = {rule.name: rule for rule in rules()}
TEXT = Kind("a text", lambda value: isinstance(value, str))


@cache
def stack(name: str) -> tuple[Resource, ...]:
    """The resources of an example stack that some rule knows."""
    known = {value for value in vars(tokens).values() if isinstance(value, str)}
    return tuple(resource for resource in resources(name) if resource.token in known)


def one(name: str, token: str) -> Resource:
    return next(resource for resource in stack(name) if resource.token == token)


def findings(rule: Rule, given: Any) -> list[tuple[str, str | None]]:
    return [(message.split("\n")[0], urn) for message, urn in judge(rule, given).violations]


#: Token, path, value, a rule that reads it, and what is said.
UNREADABLE: list[tuple[str, tuple[str | int, ...], Any, str, str]] = [
    (tokens.NODE_POOL, ("spec",), "word", "node-pool-limits", 'spec is not an object and can\'t be judged: "word".'),
    (
        tokens.NODE_POOL,
        ("spec", "limits", "cpu"),
        "lots",
        "node-pool-cost-ceiling",
        'spec.limits.cpu is not a quantity such as 100, 500m or 4000Gi and can\'t be judged: "lots".',
    ),
    (
        tokens.NODE_POOL,
        ("spec", "template", "spec", "requirements", 0, "values"),
        "amd64",
        "node-pool-architecture",
        'spec.template.spec.requirements[0].values is not a list and can\'t be judged: "amd64".',
    ),
    (
        tokens.NODE_POOL,
        ("spec", "template", "spec", "requirements", 0),
        {"operator": "In", "values": ["amd64"]},
        "node-pool-matches-types",
        "spec.template.spec.requirements[0] is not a requirement with key and operator and can't be judged",
    ),
    (
        tokens.NODE_POOL,
        ("spec", "template", "spec", "requirements", 0),
        {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gt", "values": ["four"]},
        "node-pool-min-values",
        "spec.template.spec.requirements[0] is not a requirement with one number in its values",
    ),
    (
        tokens.NODE_POOL,
        ("spec", "template", "spec", "startupTaints", 0),
        None,
        "node-pool-cilium-startup-taint",
        "spec.template.spec.startupTaints[0] is not an object and can't be judged: nothing.",
    ),
    (
        tokens.NODE_POOL,
        ("spec", "disruption", "budgets", 0, "nodes"),
        "many",
        "node-pool-disruption-budgets",
        "spec.disruption.budgets[0].nodes is not a number of nodes, or a share such as 10% and can't be judged",
    ),
    (
        tokens.EC2_NODE_CLASS,
        ("spec", "metadataOptions", "httpPutResponseHopLimit"),
        1.5,
        "node-imdsv2",
        "spec.metadataOptions.httpPutResponseHopLimit is not a whole number from 0 to 2147483647 and can't be judged",
    ),
    (tokens.CLUSTER, ("vpcConfig",), ["word"], "cluster-endpoint-allow-list", "vpcConfig is not an object"),
    (tokens.IAM_ROLE, ("assumeRolePolicy",), "{", "iam-trust-bound", "assumeRolePolicy is not a policy document"),
    *(
        (
            tokens.IAM_ROLE,
            ("assumeRolePolicy",),
            json.dumps({"Statement": [{"Action": "sts:AssumeRole", **part}]}),
            "iam-trust-bound",
            "assumeRolePolicy, statement 0 is not a statement of Action",
        )
        for part in ({"effect": "Allow"}, {"Effect": "allow"}, {"Effect": "Allow", "principal": "*"})
    ),
    (tokens.HELM_RELEASE, ("version",), 1.2, "charts-pinned", "version is not a text and can't be judged: 1.2."),
]


@pytest.mark.parametrize(("token", "path", "value", "rule", "said"), UNREADABLE, ids=lambda part: str(part)[:40])
def test_an_unreadable_value_is_a_finding_of_each_rule_that_reads_it(
    token: str, path: tuple[str | int, ...], value: Any, rule: str, said: str
) -> None:
    ((found, _),) = findings(RULES[rule], one("eks", token).change(*path, to=value))
    assert found.startswith(said)


def test_a_rule_over_the_stack_names_the_resource() -> None:
    bad = one("eks", tokens.EC2_NODE_CLASS).change("spec", "kubelet", "maxPods", to="many")
    given = [bad if resource.urn == bad.urn else resource for resource in stack("eks")]
    assert findings(NODE_MAX_PODS, given) == [
        (
            f"spec.kubelet.maxPods of {bad.name} is not a whole number from 0 to 2147483647 and can't be judged: "
            '"many".',
            bad.urn,
        )
    ]
    pattern = one("eks", tokens.EVENT_RULE).change("eventPattern", to="[]")
    given = [pattern if resource.urn == pattern.urn else resource for resource in stack("eks")]
    said = f'eventPattern of {pattern.name} is not an event pattern and can\'t be judged: "[]".'
    assert (said, pattern.urn) in findings(EVENT_RULES_COMPLETE, given)


def test_the_other_parts_are_judged() -> None:
    bad = one("eks", tokens.EC2_NODE_CLASS).change("spec", "metadataOptions", "httpTokens", to=["required"])
    found = findings(RULES["node-imdsv2"], bad.change("spec", "metadataOptions", "httpPutResponseHopLimit", to=2))
    assert ["not a text" in found[0][0], "is 2, more than 1" in found[1][0]] == [True, True]


def test_nothing_is_concluded_from_what_could_not_be_read() -> None:
    bad = one("eks", tokens.NODE_POOL).change("spec", "template", "spec", "startupTaints", to=[{"key": 7}])
    ((found, _),) = findings(RULES["node-pool-cilium-startup-taint"], bad)
    assert "startupTaints[0].key is not a text" in found


def failing(error: Exception) -> Callable[[Properties, Judgement], None]:
    def check(properties: Properties, judgement: Judgement) -> None:
        with judgement.part():
            raise error
        judgement.violation("the part after it")

    return check


def test_whatever_a_rule_raises_is_its_finding_and_names_both() -> None:
    given = one("eks", tokens.NODE_POOL)
    broken = replace(RULES["node-pool-limits"], checks={tokens.NODE_POOL: failing(KeyError("x"))})  # type: ignore[call-arg]
    (first, _), (second, _) = findings(broken, given)
    assert first == (
        f"{given.name} can't be judged: KeyError('x'). That is a fault of the rule node-pool-limits, or an unexpected "
        "value."
    )
    assert second == "the part after it"


def test_what_is_found_is_said_in_characters_that_can_be_shown() -> None:
    strange = "\x1b[31m\u202e\ud800" + "x" * 10_000
    ((found, _),) = findings(
        RULES["node-image-pinned"],
        one("eks", tokens.EC2_NODE_CLASS).change("spec", "amiSelectorTerms", to=[{"alias": strange}]),
    )
    assert "\\x1b[31m\\u202e\\ud800" in found
    assert len(found) < 3_000


def test_an_excused_rule_is_excused_for_what_it_could_not_read_too() -> None:
    pool = one("eks", tokens.NODE_POOL).change("spec", to="word")
    entry = {"rule": "node-pool-limits", "resource": pool.name, "reason": "x", "until": "9999-12-31"}
    assert not judge(RULES["node-pool-limits"], pool, granted=[entry]).violations


@pytest.mark.parametrize("name", STACKS)
@examples(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(draw=data())
def test_no_rule_raises_whatever_a_resource_holds(name: str, draw: DataObject) -> None:
    found = stack(name)
    resource = draw.draw(sampled_from(found))
    properties = draw.draw(mutations(resource.properties))
    bad = replace(resource, properties=properties if isinstance(properties, dict) else {})
    given = [bad if one is resource else one for one in found]
    for rule in RULES.values():
        if isinstance(rule, ResourceRule) and bad.token not in rule.checks:
            continue
        started = time.process_time()
        said = judge(rule, bad if isinstance(rule, ResourceRule) else given)
        assert time.process_time() - started < 1
        assert not [message for message, _ in said.violations if "a fault of the rule" in message]
        assert all(message.encode() and len(message) < 5_000 for message, _ in said.violations)


def test_each_part_is_read_in_its_shape() -> None:
    shape: Shape = {"a": TEXT, "b": [TEXT], "c": Either((TEXT, [TEXT])), "*": {}}
    found = read({"a": "x", "b": ["y"], "c": "z", "d": {"e": [1]}, "f": None}, shape)
    assert (found["a"], found["b"][0], found["c"], found["d"]["e"][0], found["f"]) == ("x", "y", "z", 1, None)
    assert (len(found), list(found), len(found["b"])) == (5, ["a", "b", "c", "d", "f"], 1)
    for key, value, words in (
        ("a", 7, "a is not a text and can't be judged: 7."),
        ("b", "y", 'b is not a list and can\'t be judged: "y".'),
        ("c", {}, "c is not a text or a list and can't be judged: an object."),
        ("d", ["x"], "d is not an object and can't be judged: a list."),
    ):
        with pytest.raises(UnreadableError) as caught:
            read({key: value}, shape)[key]
        assert str(caught.value) == words


def test_an_unknown_value_stays_unknown() -> None:
    with pytest.raises(UnknownValueError) as caught:
        shaped(tokens.NODE_POOL, unknown_checking_proxy({"spec": {"limits": UNKNOWN}}))["spec"]["limits"]
    assert caught.value.props == ["spec", "limits"]


@pytest.mark.parametrize("text", ["word", "[" * 100_000, "[]", 7, json.dumps("x")])
def test_what_is_no_object_is_not_parsed(text: Any) -> None:
    with pytest.raises(UnreadableError, match="policy is not a document"):
        parsed(text, {}, "a document", "policy")


def test_readable_keeps_lines_and_escapes_the_rest() -> None:
    assert readable("a\nb\x00\u2066ä") == "a\nb\\x00\\u2066ä"
