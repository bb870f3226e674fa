"""Which instance types requirements admit, quantities, and facts that are missing."""

from pathlib import Path

import pytest
from pulumi_policy import PolicyProviderResource
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE, unknown_checking_proxy
from rules import facts, quantities, tokens
from rules.cidrs import Range, overlaps, parse
from rules.regions import Regions
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
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    with pytest.raises(NotKnownError) as raised:
        facts.facts("aws")
    assert "has no prices and zones of eu-west-1; it has us-east-1" in raised.value.message


def test_a_region_that_nothing_says_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_REGION")
    with pytest.raises(NotKnownError) as raised:
        facts.region_of("aws")
    assert "nothing says the region" in raised.value.message


def provider(kind: str, **properties: str) -> PolicyProviderResource:
    return PolicyProviderResource(f"pulumi:providers:{kind}", unknown_checking_proxy(properties), "urn", "default")


def noted(*seen: tuple[str, dict[str, str], PolicyProviderResource | None]) -> Regions:
    regions = Regions()
    for token, properties, of in seen:
        regions.note(token, unknown_checking_proxy(properties), of)
    return regions


EAST, WEST = provider("aws", region="us-east-1"), provider("aws", region="us-west-2")


def test_the_region_is_the_cluster_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert noted((tokens.VPC, {}, EAST)).of("aws") == {"us-east-1"}
    assert noted((tokens.VPC, {}, EAST), (tokens.CLUSTER, {}, WEST)).of("aws") == {"us-west-2"}
    assert noted((tokens.CLUSTER, {"region": "us-east-2"}, WEST)).of("aws") == {"us-east-2"}
    azure = noted((tokens.AKS_CLUSTER, {"location": "West US 2"}, provider("azure-native")))
    assert azure.of("azure") == {"westus2"}
    assert azure.of("aws") == {"eu-west-1"}


def test_what_says_no_region_is_passed_over() -> None:
    kubernetes = provider("kubernetes", region="us-east-1")
    regions = noted((tokens.CLUSTER, {}, None), (tokens.CLUSTER, {}, kubernetes), (tokens.CLUSTER, {}, provider("aws")))
    regions.note(tokens.CLUSTER, {}, provider("aws", region=UNKNOWN_STRING_VALUE))
    assert regions.of("azure") == {"westus2"}
    assert regions.of("aws") == {"us-east-1"}


def test_clusters_in_two_regions_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "REGIONS", noted((tokens.CLUSTER, {}, EAST), (tokens.CLUSTER, {}, WEST)))
    with pytest.raises(NotKnownError) as raised:
        facts.region_of("aws")
    assert "there are clusters in us-east-1, us-west-2" in raised.value.message


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
