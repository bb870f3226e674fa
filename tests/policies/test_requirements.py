"""Which instance types requirements admit, quantities, and facts that are missing."""

import json
from pathlib import Path

import pytest
from rules import facts, quantities
from rules.cidrs import Range, overlaps, parse
from rules.requirements import Requirement, admitted, contradiction, values_of
from rules.rule import NotKnownError

CPU = "karpenter.k8s.aws/instance-cpu"
GPU = "karpenter.k8s.aws/instance-gpu-name"
TYPE = "node.kubernetes.io/instance-type"


def names(*wanted: Requirement) -> set[str]:
    return {instance_type.name for instance_type in admitted(wanted, facts.facts("aws"))}


def need(key: str, operator: str, *values: str) -> Requirement:
    return Requirement(key, operator, values)


M5 = need("karpenter.k8s.aws/instance-family", "In", "m5")


@pytest.mark.parametrize(
    ("requirement", "vcpus"),
    [
        (need(CPU, "In", "2", "8"), {2, 8}),
        (need(CPU, "NotIn", "2", "4", "8", "16", "32", "48", "64"), {96}),
        (need(CPU, "Gt", "64"), {96}),
        (need(CPU, "Gte", "64"), {64, 96}),
        (need(CPU, "Lt", "4"), {2}),
        (need(CPU, "Lte", "4"), {2, 4}),
        (need(CPU, "Exists"), {2, 4, 8, 16, 32, 48, 64, 96}),
        (need(CPU, "DoesNotExist"), set()),
        (need(GPU, "Exists"), set()),
        (need(GPU, "DoesNotExist"), {2, 4, 8, 16, 32, 48, 64, 96}),
        (need(GPU, "NotIn", "a100"), {2, 4, 8, 16, 32, 48, 64, 96}),
        (need(GPU, "Gt", "1"), set()),
    ],
    ids=str,
)
def test_operators(requirement: Requirement, vcpus: set[int]) -> None:
    assert {found.vcpus for found in admitted([M5, requirement], facts.facts("aws"))} == vcpus


def test_all_requirements_hold_together() -> None:
    assert names(M5, need(CPU, "In", "2")) == {"m5.large"}


@pytest.mark.parametrize(
    "wanted",
    [
        [need("a", "In", "x"), need("a", "In", "y")],
        [need("a", "In", "x"), need("a", "NotIn", "x")],
        [need("a", "Exists"), need("a", "DoesNotExist")],
        [need("a", "In", "x"), need("a", "DoesNotExist")],
        [need("a", "Gt", "4"), need("a", "Lt", "5")],
        [need("a", "Gte", "5"), need("a", "Lte", "5"), need("a", "NotIn", "5")],
        [need("a", "In", "3"), need("a", "Gt", "3")],
    ],
)
def test_contradictions(wanted: list[Requirement]) -> None:
    assert contradiction(wanted) == wanted


@pytest.mark.parametrize(
    "wanted",
    [
        [need("a", "In", "x", "y"), need("a", "NotIn", "x")],
        [need("a", "NotIn", "x"), need("a", "DoesNotExist")],
        [need("a", "Gt", "4"), need("a", "Lt", "6")],
        [need("a", "Gt", "4"), need("a", "NotIn", "5", "6")],
        [need("a", "In", "x"), need("b", "In", "y")],
        [need("a", "Exists"), need("a", "NotIn", "x")],
    ],
)
def test_no_contradictions(wanted: list[Requirement]) -> None:
    assert contradiction(wanted) == []


def test_values_are_those_that_are_left() -> None:
    types = admitted([M5], facts.facts("aws"))
    assert values_of(CPU, [M5, need(CPU, "Lt", "8")], types) == {"2", "4"}


def test_a_region_without_prices_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps({"aws:region": "eu-west-1"}))
    with pytest.raises(NotKnownError) as raised:
        facts.facts("aws")
    assert "has no prices and zones of eu-west-1; it has us-east-1" in raised.value.message


def test_a_region_that_is_nowhere_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_CONFIG", "{}")
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(NotKnownError) as raised:
        facts.region_of("aws")
    assert "neither in the stack's configuration (aws:region)" in raised.value.message


def test_facts_that_are_not_there_are_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(facts, "_FOLDER", tmp_path)
    facts._content.cache_clear()
    with pytest.raises(NotKnownError) as raised:
        facts._content("aws")
    assert "make facts" in raised.value.message


@pytest.mark.parametrize(
    ("text", "number"),
    [("100", 100), (100.0, 100), ("500m", 0.5), ("4Gi", 4 * 2**30), ("1k", 1000), ("1e3", 1000), ("1.5M", 1.5e6)],
)
def test_quantities(text: object, number: float) -> None:
    assert quantities.quantity(text) == number


@pytest.mark.parametrize("text", ["", "many", "4GiB", "1 Gi", True])
def test_no_quantities(text: object) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        quantities.quantity(text)


def test_ranges_of_two_families_do_not_overlap() -> None:
    ranges = [Range(parse(cidr), cidr, "") for cidr in ("10.0.0.0/8", "::/0", "10.1.2.3/16")]
    assert [(one.what, other.what) for one, other in overlaps(ranges)] == [("10.0.0.0/8", "10.1.2.3/16")]
