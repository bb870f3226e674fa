"""Facts about instance types: what they say, and that they say nothing where nothing is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from karpstack.karpenter.instance_types import OPERATING_SYSTEM, Facts, FactsError, UnknownRegionError

RECORDED = Path(__file__).resolve().parents[1] / "scale_test"


@pytest.fixture(scope="module")
def aws() -> Facts:
    return Facts.load("aws")


@pytest.fixture(scope="module")
def azure() -> Facts:
    return Facts.load("azure")


def test_an_instance_type_has_size_labels_and_price(aws: Facts, azure: Facts) -> None:
    found = aws.types["m5.large"]
    assert (found.vcpus, found.memory, found.max_pods) == (2, 8 * 2**30, 29)
    assert found.labels["karpenter.k8s.aws/instance-category"] == "m"
    assert found.on_demand == {"us-east-1": 0.096}
    size = azure.types["Standard_E16as_v5"]
    assert (size.vcpus, size.memory, size.max_pods) == (16, 128 * 2**30, None)
    assert size.labels["karpenter.azure.com/sku-version"] == "5"
    assert "westus2" in size.on_demand


def recorded(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (RECORDED / name).read_text().splitlines()]


def assert_known(facts: Facts, labels: dict[str, str], region: str) -> None:
    known = facts.types[labels["node.kubernetes.io/instance-type"]]
    for key in facts.labels:
        assert labels.get(key) in known.values(key, region), key


def test_the_labels_are_those_that_the_controller_gave(aws: Facts) -> None:
    """Of the nodes in the recorded run."""
    lines = recorded("eks.timeline.jsonl")
    nodes = [line["object"] for line in lines if line.get("kind") == "Node" and line["type"] == "MODIFIED"]
    assert nodes
    for node in nodes:
        assert_known(aws, node["metadata"]["labels"], "us-east-1")


def test_azures_labels_are_those_that_the_controller_gave(azure: Facts) -> None:
    lines = recorded("aks-nap.timeline.jsonl")
    claims = [
        line["object"]["metadata"]["labels"]
        for line in lines
        if line.get("kind") == "NodeClaim"
        and "node.kubernetes.io/instance-type" in line["object"]["metadata"]["labels"]
    ]
    assert claims
    for labels in claims:
        assert_known(azure, labels, "westus2")


@pytest.mark.parametrize(
    ("instance_type", "capacity_type", "region", "simulated"),
    [
        ("m5.large", "on-demand", "eu-west-1", False),  # a region that the table lacks
        ("m99.large", "on-demand", "us-east-1", False),  # a type that it lacks
        ("m5.large", "spot", "us-east-1", False),  # of a real cloud, no file can hold spot prices
        ("m5.large", "reserved", "us-east-1", True),
    ],
)
def test_what_is_not_known_has_no_price(
    aws: Facts, instance_type: str, capacity_type: str, region: str, simulated: bool
) -> None:
    assert aws.price(instance_type, capacity_type, region, "us-east-1a", simulated=simulated) is None


@pytest.mark.parametrize("content", [None, "{", "{}", "[]"])
def test_a_file_that_cannot_be_read_says_how_to_write_it(tmp_path: Path, content: Any) -> None:
    if content is not None:
        (tmp_path / "aws.json").write_text(content)
    with pytest.raises(FactsError, match="make facts"):
        Facts.load("aws", tmp_path)


def test_a_region_sells_what_has_a_price_there(aws: Facts) -> None:
    region = aws.region("us-east-1")
    assert "m5.large" in {found.name for found in region.types}
    assert aws.region("us-east-1") is region
    with pytest.raises(UnknownRegionError, match=r"has no prices and zones of eu-west-1; it has us-east-1"):
        aws.region("eu-west-1")


def test_an_operating_system_follows_from_the_architecture(aws: Facts) -> None:
    assert aws.types["m5.large"].values(OPERATING_SYSTEM, "us-east-1") == ("linux", "windows")
    assert aws.types["m6g.large"].values(OPERATING_SYSTEM, "us-east-1") == ("linux",)
