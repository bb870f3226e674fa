"""What the API server takes as specs: a table, of which tests/rehearsal asks the API server too."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import cel
import pytest

from karpstack.karpenter import crds
from karpstack.karpenter.patterns import WORDS
from tests.karpenter_specs import CASES, Case

# What the validator understands; of `format`, the numbers' are bounds that no field comes near.
KEYWORDS = {
    "additionalProperties",
    "anyOf",
    "default",
    "enum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "nullable",
    "pattern",
    "properties",
    "required",
    "type",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",  # how appliers merge
    "x-kubernetes-preserve-unknown-fields",  # only where there are no properties, and so nothing is unknown
    "x-kubernetes-validations",
}
# Operators, macros and functions that are CEL's own.
STANDARD = {"int", "size", "matches", "contains", "startsWith", "endsWith"}


def schemas(schema: Any = None) -> Iterator[Any]:
    """Every schema, with those inside it."""
    if schema is None:
        for name in ("aws", "azure", "kubelet"):
            for kind in crds.kinds(name):
                yield from schemas(crds._schemas(name)[kind])
        return
    yield schema
    inside = [schema.get("items"), schema.get("additionalProperties"), *schema.get("properties", {}).values()]
    for one in filter(None, inside):
        yield from schemas(one)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.cloud}-{case.name}")
def test_a_spec_is_taken_or_refused(case: Case) -> None:
    given = deepcopy(case.spec)
    found = crds.problems(case.cloud, case.kind, case.spec)
    assert case.spec == given
    if case.wrong is None:
        assert found == []
        return
    path, why = case.wrong
    assert {"/".join(map(str, one.path)) for one in found} == {path}, found
    assert any(why in one.message for one in found), found


def test_everything_that_is_wrong_is_said_at_once() -> None:
    (case,) = (case for case in CASES if case.name == "everything")
    spec = deepcopy(case.spec)
    spec["weight"] = 101
    spec["disruption"]["budgets"] = [{"nodes": "10%", "schedule": "@daily"}]
    spec["template"]["spec"]["requirements"][0] = {"key": "kubernetes.io/hostname", "operator": "In", "values": []}
    found = crds.problems("aws", "NodePool", spec)
    assert {"/".join(map(str, one.path)) for one in found} == {
        "disruption/budgets",
        "template/spec/requirements",
        "template/spec/requirements/0/key",
        "weight",
    }
    assert {one.value for one in found if one.path == ("weight",)} == {101}


@pytest.mark.parametrize("value", [None, [], 7, "word", {"a": [None]}, "\ud800", 10**30])
def test_whatever_is_there_ends_in_problems(value: Any) -> None:
    for cloud in ("aws", "azure"):
        for kind in crds.kinds(cloud):
            crds.problems(cloud, kind, {"template": value, "kubelet": value, "tags": {"a": value}, "weight": value})
            crds.problems(cloud, kind, {"template": {"spec": {"requirements": [value], "expireAfter": value}}})


@pytest.mark.parametrize(
    ("given", "path", "why"),
    [
        ({"maxPod": 110}, "maxPod", "is no field here"),
        ({"registerWithTaints": []}, "registerWithTaints", "is no field here"),
        ({"podsPerCore": "ten"}, "podsPerCore", "is not of type 'integer'"),
        ({"clusterDNS": "10.0.0.10"}, "clusterDNS", "is not of type 'array'"),
        ({"featureGates": {"A": "yes"}}, "featureGates/A", "is not of type 'boolean'"),
        ({"evictionHard": {"disk.available": "5%"}}, "evictionHard", "memory.available"),
        ({"kubeReserved": {"gpu": "1"}}, "kubeReserved", "ephemeral-storage"),
        ({"evictionSoft": {"memory.available": "5%"}}, "", "evictionSoftGracePeriod"),
        ({"imageGCHighThresholdPercent": 80, "imageGCLowThresholdPercent": 90}, "", "imageGCLowThresholdPercent"),
    ],
)
def test_what_karpenter_refuses_of_a_kubelets_configuration(given: dict[str, Any], path: str, why: str) -> None:
    (found,) = crds.kubelet_problems(given)
    assert "/".join(map(str, found.path)) == path
    assert why in found.message


def test_a_kubelets_configuration_may_be_more_than_karpenter_reads() -> None:
    given = {
        "maxPods": 110,
        "evictionSoft": {"memory.available": "5%"},
        "evictionSoftGracePeriod": {"memory.available": "1m"},
        "shutdownGracePeriod": "30s",
        "logging": {"format": "json"},
        "kubeReserved": {"cpu": "80m"},
    }
    assert crds.kubelet_problems(given) == []


def test_a_null_is_nothing() -> None:
    (case,) = (case for case in CASES if case.name == "everything")
    assert crds.problems("aws", "NodePool", {**case.spec, "weight": None, "limits": None}) == []


def test_the_validator_knows_every_keyword_of_the_schemas() -> None:
    assert {keyword for schema in schemas() for keyword in schema} <= KEYWORDS
    assert {key for schema in schemas() for rule in schema.get("x-kubernetes-validations", ()) for key in rule} == {
        "message",
        "rule",
    }
    # Nothing here would say that a value is neither.
    assert all("anyOf" in schema for schema in schemas() if "x-kubernetes-int-or-string" in schema)


def test_the_library_can_evaluate_every_rule() -> None:
    rules = [rule["rule"] for schema in schemas() for rule in schema.get("x-kubernetes-validations", ())]
    assert len(rules) > 100
    for rule in rules:
        called = {name for name in cel.compile(rule).functions() if name.isidentifier() and not name.startswith("_")}
        assert called <= STANDARD | crds.FUNCTIONS.keys(), rule


def test_every_regular_expression_is_said_in_words() -> None:
    patterns = {schema["pattern"] for schema in schemas() if "pattern" in schema}
    assert patterns == {*WORDS}
