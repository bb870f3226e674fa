"""The schema, the document and the examples say what the models say."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from karpstack.karpenter import crds
from karpstack.snapshot import examples, reference
from karpstack.snapshot.reading import as_data, load
from karpstack.snapshot.unschedulable import unschedulable
from tests.unit.snapshot.made import data, workload


def valid(content: Any) -> bool:
    return bool(jsonschema.Draft202012Validator(reference.schema()).is_valid(content))


def test_the_schema_is_current() -> None:
    assert json.loads(reference.SCHEMA.read_text(encoding="utf-8")) == reference.schema(), (
        "run: python -m karpstack.snapshot.reference"
    )


def test_the_document_is_current() -> None:
    text = reference.DOCUMENT.read_text(encoding="utf-8")
    assert reference.document(text) == text, "run: python -m karpstack.snapshot.reference"
    with pytest.raises(ValueError, match="has no place for the format"):
        reference.document("")


def test_every_key_is_explained() -> None:
    for model in reference.models().values():
        assert all(field.description for field in model.model_fields.values()), model


def test_the_schema_refuses_what_is_refused() -> None:
    assert valid(data())
    for wrong in (
        {"version": 2},
        {"flavour": 1},
        {"workloads": [workload("Web")]},
        {"workloads": [workload(replicas=-1)]},
    ):
        assert not valid(data(**wrong)), wrong


@pytest.mark.parametrize("pods", examples.SIZES)
def test_the_examples_are_what_the_script_makes(pods: int) -> None:
    made = load(examples.FOLDER / f"{pods}-pods.json").snapshot
    assert made == examples.made(pods), "run: python -m karpstack.snapshot.examples"
    assert made.pods == made.cluster.pods == pods
    assert valid(as_data(made))


@pytest.mark.parametrize("pods", examples.SIZES)
def test_the_examples_are_mixed_and_will_go(pods: int) -> None:
    made = load(examples.FOLDER / f"{pods}-pods.json").snapshot
    assert {one.capacity_type for one in made.nodes} == {"spot", "on-demand"}
    assert {one.architecture for one in made.nodes} == {"amd64", "arm64"}
    assert {one.controller.kind for one in made.workloads} == {"Deployment", "StatefulSet", "DaemonSet", "Job"}
    assert made.pod_disruption_budgets
    assert any(one.pod.topology_spread_constraints for one in made.workloads)
    assert any(place for one in made.workloads for volume in one.volumes for place in volume.places)
    assert unschedulable(made) == []
    for pool in made.node_pools:
        assert crds.problems("aws", "NodePool", pool.spec) == []
