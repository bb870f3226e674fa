"""What is no snapshot, or not a whole one, is refused in words, and nothing of it is loaded."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from karpstack.snapshot.reading import SnapshotError, as_data, checked, load, write
from tests.unit.snapshot.made import data, snapshot, workload

WHOLE = "(the whole file)"


def refused(content: Any) -> SnapshotError:
    with pytest.raises(SnapshotError) as error:
        checked(content)
    return error.value


def node_pool(spec: dict[str, Any]) -> dict[str, Any]:
    return data(nodePools=[{"name": "a", "spec": spec}])


def node_overlay(spec: dict[str, Any]) -> dict[str, Any]:
    return data(nodeOverlays=[{"name": "a", "spec": spec}])


def test_nulls_of_a_node_pool_are_not_there() -> None:
    """An API server drops them, and they were refused."""
    spec: dict[str, Any] = {
        "limits": None,
        "disruption": {"budgets": None},
        "template": {"spec": {"taints": None, "requirements": []}},
    }
    assert checked(node_pool(spec)).snapshot.node_pools[0].spec == {
        "disruption": {},
        "template": {"spec": {"requirements": []}},
    }


@pytest.mark.parametrize("name", ["one.json", "one.json.gz"])
def test_what_is_written_is_read_again(tmp_path: Path, name: str) -> None:
    made = snapshot(
        workloads=[workload(nodes={"node-1": 2}, volumes=[{"size": "1Gi", "places": [{"zones": ["a"], "pods": 1}]}])],
        nodePools=[{"name": "default", "spec": {"weight": 1, "template": {"spec": {"requirements": []}}}}],
        nodes=[{"name": "node-1", "created": "2026-11-21T10:00:00Z", "pricePerHour": 0.1}],
        leftOut=[{"what": "images", "count": 3, "why": "nothing depends on them"}],
    )
    write(made, tmp_path / name)
    first = (tmp_path / name).read_bytes()
    assert load(tmp_path / name).snapshot == made
    write(made, tmp_path / name)
    assert (tmp_path / name).read_bytes() == first
    assert (first[:2] == b"\x1f\x8b") == name.endswith(".gz")


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("kept")
    (tmp_path / "one.json").symlink_to(tmp_path / "other")
    write(snapshot(), tmp_path / "one.json")
    assert (tmp_path / "other").read_text() == "kept"


def test_defaults_are_not_written() -> None:
    assert as_data(snapshot()) == data()


@pytest.mark.parametrize(
    ("content", "code", "key"),
    [
        ([], "kind", "kind"),
        ({"kind": "List", "items": []}, "kind", "kind"),
        ({"cluster": "x", "captured": "now", "events": []}, "kind", "kind"),
        (data(version=2), "version-newer", "version"),
        (data(version=0), "value-invalid", "version"),
        (data(version="1"), "value-invalid", "version"),
        (data(taken="yesterday"), "value-invalid", "taken"),
        ({key: value for key, value in data().items() if key != "taken"}, "key-missing", "taken"),
        (data(flavour=1), "key-unknown", "flavour"),
        (data(workloads=[workload(replicas="3")]), "value-invalid", "workloads.0.replicas"),
        (data(workloads=[workload(replicas=-1)]), "value-invalid", "workloads.0.replicas"),
        (data(workloads=[workload(replicas=True)]), "value-invalid", "workloads.0.replicas"),
        (data(workloads=[workload("Web")]), "pattern", "workloads.0.name"),
        (data(workloads=[workload("web\n")]), "pattern", "workloads.0.name"),
        (data(workloads=[workload(namespace="a.b")]), "pattern", "workloads.0.namespace"),
        (data(workloads=[workload(), workload()]), "named-twice", WHOLE),
        (data(workloads=[workload(nodes={"a": 4})]), "more-on-nodes", "workloads.0"),
        (data(workloads=[workload(str(n), replicas=60_000) for n in range(2)]), "too-many-pods", WHOLE),
        (data(workloads=[workload(pod={"requests": {"cpu": "lots"}})]), "quantity", "workloads.0.pod.requests.cpu"),
        (data(workloads=[workload(pod={"requests": {"cpu": "-1"}})]), "quantity", "workloads.0.pod.requests.cpu"),
        (data(workloads=[workload(pod={"node_selector": {}})]), "key-unknown", "workloads.0.pod.node_selector"),
        (data(workloads=[workload(pod={"labels": {"a b": "c"}})]), "pattern", "workloads.0.pod.labels.a b.[key]"),
        (
            data(workloads=[workload(pod={"nodeSelector": {"a": "x" * 64}})]),
            "value-invalid",
            "workloads.0.pod.nodeSelector.a",
        ),
        (
            data(podDisruptionBudgets=[{"namespace": "a", "name": "b", "minAvailable": 1, "maxUnavailable": 1}]),
            "budget-both",
            "podDisruptionBudgets.0",
        ),
        (data(nodes=[{"name": "a", "pricePerHour": -1}]), "value-invalid", "nodes.0.pricePerHour"),
        (
            data(nodes=[{"name": "a", "created": "2026-01-01T00:00:00"}]),
            "value-invalid",
            "nodes.0.created",
        ),  # no time zone
        (data(leftOut=[{"what": "\x1b[31m", "count": 1, "why": ""}]), "text", "leftOut.0.what"),
        (node_pool({"template": {"spec": {"requirements": 5}}}), "node-pool", "nodePools.0.spec"),
        (node_pool({"template": {"metadata": {"labels": {"a": 5}}}}), "node-pool", "nodePools.0.spec"),
        (node_pool({"template": {"spec": {"nodeClassRef": {"name": None}}}}), "node-pool", "nodePools.0.spec"),
        (node_pool({"limits": {"cpu": "lots"}}), "node-pool", "nodePools.0.spec"),
        (node_pool({"disruption": {"budgets": [5]}}), "node-pool", "nodePools.0.spec"),
        (node_pool({"template": {"metadata": {"annotations": 5}}}), "node-pool", "nodePools.0.spec"),
        (node_overlay({"requirements": [5]}), "node-overlay", "nodeOverlays.0.spec"),
        (node_overlay({"capacity": 5}), "node-overlay", "nodeOverlays.0.spec"),
    ],
)
def test_a_bad_file_is_refused_at_its_key(content: Any, code: str, key: str) -> None:
    assert (f"snapshot-{code}", key) in {(one.code, one.key) for one in refused(content).findings}


def test_a_finding_is_one_line_with_file_key_value_and_fix(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(data(flavour=1, workloads=[workload("Web")])))
    with pytest.raises(SnapshotError) as error:
        load(tmp_path / "a.json")
    first, second = str(error.value).splitlines()
    assert first == (
        f"{tmp_path}/a.json: workloads.0.name: 'Web': Kubernetes would refuse this value, because it is not a name of "
        "at most 253 of a-z, 0-9, - and .; write such a value"
    )
    assert second.startswith(f"{tmp_path}/a.json: flavour: 1: unknown key, so it would have no effect; use one of kind")


@pytest.mark.parametrize(
    ("other", "tool"),
    [({"items": []}, "export of kubectl"), ({"captured": ""}, "kubereplay's"), ({"pod_lifecycles": {}}, "SimKube's")],
)
def test_another_tools_file_is_called_so(other: dict[str, Any], tool: str) -> None:
    assert f"{tool}; read it with `karpstack snapshot convert`" in str(refused(other)).replace("a trace of ", "")


def test_every_key_that_is_wrong_is_named() -> None:
    found = refused(data(flavour=1, cluster={"cloud": "a b", "shape": {}})).findings
    assert [one.key for one in found] == ["cluster.cloud", "cluster.shape", "flavour"]


def test_what_is_known_of_a_newer_file_can_be_read() -> None:
    newer = data(version=7, flavour="new", workloads=[workload(colour=1), workload("other")])
    read = checked(newer, known_only=True)
    assert read.snapshot == snapshot(workloads=[workload(), workload("other")])
    assert read.passed_over == (
        "version: 7: read as if it were 1",
        "workloads.0.colour: not known, so it is skipped",
        "flavour: not known, so it is skipped",
    )


def test_what_cannot_be_is_refused_also_where_only_the_known_is_read() -> None:
    with pytest.raises(SnapshotError, match=r"workloads\.0\.replicas"):
        checked(data(version=7, flavour=1, workloads=[workload(replicas="3")]), known_only=True)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{", "not JSON"),
        (b"\xff\xfe{}", "not JSON"),
        (b"kind: List\n", "not JSON"),
        (b'{"kind": "a", "kind": "b"}', "the key 'kind' is there twice"),
        (b'{"a": NaN}', "NaN is no number of JSON"),
        (b'{"a": 1e999}', "a number that is too large"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not JSON"),
        (b"[" * 100_000, "levels deep"),
        (b"[" * 41 + b"1" + b"]" * 41, "more than 40 levels deep"),
        (gzip.compress(b"{}", mtime=0)[:-9], "half a compressed file"),
        (b"\x1f\x8bnothing", "half a compressed file"),
        (b"\x1f\x8b\x07nothing at all", "cannot be read"),
    ],
)
def test_a_hostile_file_is_refused_in_words(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "bad.json").write_bytes(content)
    with pytest.raises(SnapshotError) as error:
        load(tmp_path / "bad.json")
    assert words in str(error.value)
    assert "bad.json" in str(error.value)


def test_a_file_that_is_not_there_and_one_that_is_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.json"):
        with pytest.raises(SnapshotError, match="cannot be read") as error:
            load(path)
        assert ("karpstack snapshot convert" in str(error.value)) == path.is_dir()


def test_more_than_is_ever_written_is_not_unpacked(tmp_path: Path) -> None:
    (tmp_path / "bomb.json.gz").write_bytes(gzip.compress(b" " * (2**26 + 1)))
    with pytest.raises(SnapshotError, match="has more than 64 MiB"):
        load(tmp_path / "bomb.json.gz")


def test_an_error_shows_nothing_that_acts(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text(json.dumps(data(**{"\x1b[31m": 1})))
    with pytest.raises(SnapshotError) as error:
        load(tmp_path / "bad.json")
    assert "\x1b" not in str(error.value)
