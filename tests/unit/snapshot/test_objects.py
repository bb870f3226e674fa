"""A snapshot as objects of a cluster, from objects.yml: pods that ask for the same, and what is not loaded is said.

A case has what differs from the snapshot and the workload of `made`, the `place` where it is loaded, and what the
cluster there runs by itself (`own`, `onPools`, `namespaces`). `objects` are JMESPath expressions over the objects that
are made, and `notes` a part of each sentence of what is made otherwise.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jmespath
import pytest
import yaml

from karpstack.scale_test import labels
from karpstack.snapshot.manifests import WORKLOAD_LABEL
from karpstack.snapshot.objects import Loaded, objects
from karpstack.snapshot.portability import Place
from karpstack.snapshot.system_workloads import NAMESPACES, Existing
from tests.unit.snapshot.made import snapshot, workload

LABELS = {"app.kubernetes.io/part-of": "karpstack-scale-test", "app.kubernetes.io/instance": "whatif"}
CASES: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("objects.yml").read_text())


def loaded_of(case: dict[str, Any]) -> Loaded:
    more = dict(case.get("snapshot", {}))
    if "workloads" in case:
        more["workloads"] = [workload(**_controlled(one)) for one in case["workloads"]]
    existing = Existing(
        {tuple(key.split("/")): value for key, value in case.get("own", {}).items()},
        namespaces=NAMESPACES | set(case.get("namespaces", [])),
        on_pools=frozenset(("kube-system", name) for name in case.get("onPools", [])),
    )
    return objects(snapshot(**more), LABELS, Place(*case.get("place", [])), existing)


def _controlled(one: dict[str, Any]) -> dict[str, Any]:
    """A workload whose controller is `API version Kind`; of apps/v1 without the version."""
    version, _, kind = one.get("controller", "Deployment").rpartition(" ")
    return {**one, "controller": {"apiVersion": version or "apps/v1", "kind": kind}}


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_objects(case: dict[str, Any]) -> None:
    loaded = loaded_of(case)
    wanted = case.get("objects", {})
    assert {path: jmespath.search(path, list(loaded.objects)) for path in wanted} == wanted
    notes = case.get("notes", [])
    assert len(loaded.notes) == len(notes), loaded.notes
    for words, note in zip(notes, loaded.notes, strict=True):
        assert words in note


def test_the_scale_test_knows_pods_by_the_same_label() -> None:
    assert WORKLOAD_LABEL == labels.WORKLOAD_LABEL


def test_long_names_are_cut_and_stay_apart() -> None:
    long = "a" * 80
    loaded = objects(snapshot(workloads=[workload(long), workload(f"{long}b")]), LABELS)
    names = [one["metadata"]["name"] for one in loaded.objects if one["kind"] == "Deployment"]
    assert len(set(names)) == len(loaded.workloads) == 2
    assert all(len(name) <= 52 for name in names)
    assert all(len(value) <= 63 for value in loaded.workloads)
