"""Facts about instance types: what they say, and that they say nothing where nothing is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scale_test.market.facts import Facts, FactsError
from scale_test.recording.timeline import Line

FACTS = Path(__file__).resolve().parents[3] / "facts"


@pytest.fixture(scope="module")
def aws() -> Facts:
    return Facts.load(FACTS, "aws")


@pytest.fixture(scope="module")
def azure() -> Facts:
    return Facts.load(FACTS, "azure")


def test_an_instance_type_has_size_labels_and_price(aws: Facts, azure: Facts) -> None:
    found = aws.types["m5.large"]
    assert (found.vcpus, found.memory, found.max_pods) == (2, 8 * 2**30, 29)
    assert found.labels["karpenter.k8s.aws/instance-category"] == "m"
    assert found.on_demand == {"us-east-1": 0.096}
    size = azure.types["Standard_E16as_v5"]
    assert (size.vcpus, size.memory, size.max_pods) == (16, 128 * 2**30, None)
    assert size.labels["karpenter.azure.com/sku-version"] == "5"
    assert "westus2" in size.on_demand


def test_the_labels_are_those_that_the_controller_gave(aws: Facts, timeline: list[Line]) -> None:
    """Of the nodes in the recorded run."""
    nodes = [line["object"] for line in timeline if line.get("kind") == "Node" and line["type"] == "MODIFIED"]
    assert nodes
    for node in nodes:
        labels = node["metadata"]["labels"]
        known = aws.types[labels["node.kubernetes.io/instance-type"]].labels
        assert {key: labels.get(key) for key in aws.known_labels} == {key: known.get(key) for key in aws.known_labels}


def test_azures_labels_are_those_that_the_controller_gave(azure: Facts) -> None:
    lines = [json.loads(line) for line in Path(__file__).with_name("aks-nap.timeline.jsonl").read_text().splitlines()]
    claims = [
        line["object"]["metadata"]["labels"]
        for line in lines
        if line.get("kind") == "NodeClaim"
        and "node.kubernetes.io/instance-type" in line["object"]["metadata"]["labels"]
    ]
    assert claims
    for labels in claims:
        known = azure.types[labels["node.kubernetes.io/instance-type"]].labels
        for key in azure.known_labels:
            assert labels.get(key) == known.get(key), key


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
        Facts.load(tmp_path, "aws")
