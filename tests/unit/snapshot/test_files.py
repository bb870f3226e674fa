"""What others write: kubectl's exports, kubereplay's and SimKube's files."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgpack
import pytest

from karpstack.snapshot.conversion import convert
from karpstack.snapshot.from_api import snapshot_of
from karpstack.snapshot.left_out import OF_KIND, Ledger
from karpstack.snapshot.model import Snapshot
from karpstack.snapshot.objects import LACKING, UNREAD, objects
from karpstack.snapshot.reading import SnapshotError, as_data, write
from karpstack.snapshot.simkube import unpacked
from tests.unit.snapshot import api
from tests.unit.snapshot.made import snapshot

HERE = Path(__file__).parent


def put(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content))
    return path


def pods(taken: Snapshot) -> dict[str, int]:
    return {one.name: one.replicas for one in taken.workloads}


def same(one: Snapshot, other: Snapshot) -> bool:
    return one.model_copy(update={"taken": other.taken}) == other


LEDGER = Ledger()
for named in ("DaemonSet", "StatefulSet"):  # which pods of the cluster name as their owners
    LEDGER.add(f"{OF_KIND}{named}", "the export has none, and others of its objects name one")
WHOLE = snapshot_of(api.cluster(), datetime(2026, 11, 22, tzinfo=UTC), "exports", LEDGER)


@pytest.mark.parametrize(
    "kind",
    [
        "PodDisruptionBudget",
        "PriorityClass",
        "Namespace",
        "ReplicaSet",
        "Node",
        "NodePool",
        "NodeClaim",
        "EC2NodeClass",
        "PersistentVolume",
        "PersistentVolumeClaim",
    ],
)
def test_a_kind_that_an_export_lacks_is_told(kind: str, tmp_path: Path) -> None:
    """kubectl wrote all but the kind that it was refused, and an answer without disruption budgets was called safe."""
    items = [one for one in api.cluster() if one["kind"] != kind]
    assert len(items) < len(api.cluster())
    taken = convert([put(tmp_path / "all.json", api.exported(items))])
    assert any(one.what == f"{OF_KIND}{kind}" for one in taken.left_out)
    notes = objects(taken, {}).notes
    assert any(one.startswith(f"{UNREAD} {kind} (") for one in notes)


@pytest.mark.parametrize("gate", ["true", "false"])
def test_an_export_without_overlays_of_a_controller_that_takes_them_is_told(gate: str, tmp_path: Path) -> None:
    env = [{"name": "FEATURE_GATES", "value": f"NodeOverlay={gate}"}, {"name": "CLUSTER_NAME", "value": "a"}]
    container = {"name": "controller", "image": "karpenter/controller:1.15.0", "env": env}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": api.metadata("karpenter", "kube-system"),
        "spec": {"template": {"spec": {"containers": [container]}}},
    }
    taken = convert([put(tmp_path / "all.json", api.exported([*api.cluster(), deployment]))])
    assert any(one.what == f"{OF_KIND}NodeOverlay" for one in taken.left_out) == (gate == "true")


def test_an_export_of_one_namespace_is_told(tmp_path: Path) -> None:
    shop = [one for one in api.cluster() if one["kind"] != "Pod" or one["metadata"]["namespace"] == "shop"]
    taken = convert([put(tmp_path / "all.json", api.exported(shop))])
    assert any(one.what == f"{OF_KIND}Pod" for one in taken.left_out)


@pytest.mark.parametrize("key", ["uid", "resourceVersion"])
def test_exports_of_two_clusters_or_times_are_refused(key: str, tmp_path: Path) -> None:
    """Pods were added up, and one cluster's budgets and limits replaced the other's."""
    pool = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", key: "1"}}
    other = {**pool, "metadata": {"name": "kube-system", key: "2"}}
    for name, content in (("a", pool), ("b", other)):
        put(tmp_path / f"{name}.json", content)
    with pytest.raises(SnapshotError, match=r"Namespace kube-system.* there twice, and differs"):
        convert([tmp_path])
    put(tmp_path / "b.json", pool)
    assert convert([tmp_path]).namespaces == []


def test_objects_that_are_not_understood_are_told(tmp_path: Path) -> None:
    """A budget that lets no pod go became none."""
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": "shop"}}
    never, odd = ({**budget, "spec": {"minAvailable": wanted}} for wanted in (2**31 - 1, "soon"))
    for one, is_lost in ((never, False), (odd, True)):
        taken = convert([put(tmp_path / "all.json", api.exported([*api.cluster(), one]))])
        notes = objects(taken, {}).notes
        assert any(note.startswith(f"{LACKING} PodDisruptionBudget (1 not understood: ") for note in notes) == is_lost


def test_an_export_of_all_kinds(tmp_path: Path) -> None:
    path = put(tmp_path / "all.json", api.exported(api.cluster()))
    taken = convert([path])
    assert same(taken, WHOLE)
    assert taken.taken.timestamp() == int(path.stat().st_mtime)


def test_several_files_a_folder_and_compressed_ones(tmp_path: Path) -> None:
    kinds = {one["kind"] for one in api.cluster()}
    for kind in kinds:
        items = [one for one in api.cluster() if one["kind"] == kind]
        content = json.dumps(api.exported(items)).encode()
        (tmp_path / f"{kind}.json.gz").write_bytes(gzip.compress(content))
    (tmp_path / "notes.txt").write_text("not read")
    assert same(convert([tmp_path]), WHOLE)
    assert same(convert(sorted(tmp_path.glob("*.gz"))), WHOLE)
    (tmp_path / "shop" / "pods").mkdir(parents=True)
    (tmp_path / "Pod.json.gz").rename(tmp_path / "shop" / "pods" / "Pod.JSON.GZ")
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "one.json").write_text("not read")
    assert same(convert([tmp_path]), WHOLE)


def test_a_folder_whose_folders_cannot_all_be_read_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "all.json", api.exported(api.cluster()))
    (tmp_path / "shop").symlink_to(tmp_path.parent)
    with pytest.raises(SnapshotError, match="is a link to another or a hidden folder"):
        convert([tmp_path])
    (tmp_path / "shop").unlink()
    (tmp_path / "2026").mkdir()
    (tmp_path / "latest").symlink_to("2026")  # is read already
    assert same(convert([tmp_path]), WHOLE)
    # As `git-sync` and mounted ConfigMaps have it: the folder itself is not read.
    (tmp_path / ".worktrees").mkdir()
    (tmp_path / "current").symlink_to(".worktrees")
    with pytest.raises(SnapshotError, match="current: is a link to another or a hidden folder"):
        convert([tmp_path])


@pytest.mark.parametrize("name", ["pods.yaml", "shop/pods.YML", "pods.yaml.gz"])
def test_a_folder_with_yaml_is_refused_and_not_read_in_part(tmp_path: Path, name: str) -> None:
    """Of `kubectl get -o yaml`, a what-if would have lacked the workloads without a word."""
    put(tmp_path / "all.json", api.exported(api.cluster()))
    (tmp_path / "shop").mkdir()
    (tmp_path / name).write_text("apiVersion: v1\nkind: List\nitems: []\n")
    with pytest.raises(SnapshotError, match=Path(name).name):
        convert([tmp_path])


def test_a_list_as_the_api_gives_it_says_its_kind_once(tmp_path: Path) -> None:
    items = [one for one in api.cluster() if one["kind"] == "Node"]
    bare = [{key: value for key, value in one.items() if key not in ("kind", "apiVersion")} for one in items]
    path = put(tmp_path / "nodes.json", {"kind": "NodeList", "apiVersion": "v1", "metadata": {}, "items": bare})
    assert len(convert([path]).nodes) == api.NODES


def test_a_single_object(tmp_path: Path) -> None:
    path = put(tmp_path / "one.json", next(api.web()))
    assert pods(convert([path])) == {"payroll": 3}


def test_a_snapshot_is_one_already(tmp_path: Path) -> None:
    write(snapshot(), tmp_path / "one.json")
    assert convert([tmp_path / "one.json"]) == snapshot()


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("[]", "no-object"),
        ("{}", "no-object"),
        ('{"kind": "List", "items": 5}', "no-list"),
        ('{"kind": "List", "items": [5]}', "no-list"),
        ('{"kind": "PodList", "metadata": {"continue": "x"}, "items": []}', "not-whole"),
        ('{"kind": "Status", "code": 403, "message": "forbidden"}', "not-whole"),
        ("apiVersion: v1\nkind: List\n", "file-unreadable"),
        ("[" * 201 + "1" + "]" * 201, "file-unreadable"),
        ('{"captured": "now", "events": []}', "not-kubereplay"),
        ('{"captured": "2026-01-01T00:00:00", "events": []}', "not-kubereplay"),
        ('{"captured": "2026-01-01T00:00:00Z", "events": [{"type": "create"}]}', "not-kubereplay"),
        ('{"captured": "2026-01-01T00:00:00Z", "events": [5]}', "not-kubereplay"),
        ('{"version": 1, "config": {}, "events": []}', "simkube-version"),
        ('{"version": 2, "config": {}, "events": [{}]}', "not-simkube"),
        ('{"version": 2, "config": [], "events": []}', "not-simkube"),
        (
            '{"version": 2, "config": {"trackedObjects": {"a/v1.X": {"podSpecTemplatePaths": ["/spec/a/7"]}}}, '
            '"events": [{"ts": 1, "applied_objs": [{"apiVersion": "a/v1", "kind": "X", "metadata": {"name": "x"}, '
            '"spec": {"a": []}}], "deleted_objs": []}]}',
            "not-simkube",
        ),
        (
            '{"version": 2, "config": {}, "events": [{"ts": 1e30, "applied_objs": [], "deleted_objs": []}]}',
            "not-simkube",
        ),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, content: str, code: str) -> None:
    (tmp_path / "bad.json").write_text(content)
    with pytest.raises(SnapshotError) as error:
        convert([tmp_path / "bad.json"])
    assert [(one.code, one.file) for one in error.value.findings] == [(f"snapshot-{code}", str(tmp_path / "bad.json"))]


def test_of_several_files_one_bad_one_is_enough(tmp_path: Path) -> None:
    put(tmp_path / "a.json", api.exported(api.cluster()))
    (tmp_path / "b.json").write_text("{")
    with pytest.raises(SnapshotError, match=r"b\.json"):
        convert([tmp_path])


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="cannot be read"):
        convert([tmp_path / "missing.json"])
    with pytest.raises(SnapshotError, match="there is nothing to read"):
        convert([tmp_path])


def event(type_: str, seconds: int, key: str = "shop/web", **more: Any) -> dict[str, Any]:
    return {"type": type_, "kind": "Deployment", "key": key, "timestamp": f"2026-11-22T10:00:{seconds:02}Z", **more}


def deployment(name: str = "web", replicas: int = 1) -> dict[str, Any]:
    """As Go writes one that has no kind of its own, sanitised as kubereplay does it."""
    container = {"name": "container-0", "image": "registry.k8s.io/pause:3.9", "resources": {"requests": {"cpu": "1"}}}
    return {
        "metadata": {"name": name, "namespace": "shop", "creationTimestamp": None},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "app-0"}},
            "template": {
                "metadata": {"creationTimestamp": None, "labels": {"app": "app-0"}},
                "spec": {"containers": [container], "nodeSelector": {"kubernetes.io/arch": "arm64"}},
            },
            "strategy": {},
        },
        "status": {},
    }


def test_kubereplay_as_it_is_at_its_end(tmp_path: Path) -> None:
    job = {**deployment("nightly"), "spec": {**deployment()["spec"], "parallelism": 2}}
    events = [
        event("scale", 3, replicas=7),
        event("create", 1, deployment=deployment()),
        event("create", 1, "shop/gone", deployment=deployment("gone")),
        event("delete", 2, "shop/gone"),
        event("create", 4, "shop/nightly", kind="Job", job=job),
        event("scale", 5, "shop/never", replicas=3),
        event("paint", 6),
    ]
    content = {"cluster": "secret-cluster", "captured": "2026-11-22T11:00:00.123456789Z", "events": events}
    taken = convert([put(tmp_path / "replay.json", content)])
    assert taken.source == "kubereplay"
    assert taken.taken == datetime(2026, 11, 22, 11, tzinfo=UTC)
    assert pods(taken) == {"nightly": 2, "web": 7}
    assert taken.workloads[1].pod.requests == {"cpu": "1"}
    assert taken.workloads[1].pod.node_selector == {"kubernetes.io/arch": "arm64"}
    left = {one.what: one.count for one in taken.left_out}
    assert left["ends of Jobs"] == left["events of what was never made"] == left["events of another kind"] == 1
    assert "secret-cluster" not in json.dumps(as_data(taken))


def test_kubereplay_of_no_events(tmp_path: Path) -> None:
    content = {"cluster": "a", "captured": "2026-11-22T11:00:00Z", "events": None}
    assert convert([put(tmp_path / "replay.json", content)]).workloads == []


def test_a_trace_of_simkubes_own_tests() -> None:
    """testutils/data/trace.json of https://github.com/acrlabs/simkube (MIT), at 4ff5124."""
    taken = convert([HERE / "data" / "simkube-trace.json"])
    assert taken.source == "simkube"
    assert pods(taken) == {"nginx-deployment": 2}
    assert taken.workloads[0].namespace == "default"


@pytest.mark.parametrize(
    ("name", "expected", "kind"),
    [
        # examples/traces of the same repository and commit.
        ("cronjob", {}, None),
        (
            "bare-pods",
            {f"bare-pod-{started}": 1 for started in (1781282449, 1781282509, 1781282570, 1781282630)},
            "Pod",
        ),
    ],
)
def test_traces_that_simkube_ships(name: str, expected: dict[str, int], kind: str | None) -> None:
    taken = convert([HERE / "data" / f"simkube-{name}.sktrace"])
    assert pods(taken) == expected
    assert [one.controller.kind for one in taken.workloads] == [kind] * len(expected)
    text = json.dumps(as_data(taken))
    assert "busybox" not in text


@pytest.mark.parametrize(
    "content",
    [
        msgpack.packb({"version": 2}),
        msgpack.packb({"version": 2, "config": {}, "events": [b"\xff"]}),
        msgpack.packb({"version": 2, "config": {}, "events": {(1, 2): 3}}),
        msgpack.packb({"version": 2, "config": {}, "events": float("nan")}),
        msgpack.packb({"version": 2, "config": {}, "events": 5}),
        msgpack.packb({"version": 2, "config": {}, "events": []})[:-1],
        msgpack.packb({"version": 2, "config": {}, "events": []}) + b"x",
        b"\x81" * 3000,
        b"\xdf\xff\xff\xff\xff",
        b"\x83\xa7version\x02\xa6config\x80\xa6events" + b"\x91" * 900 + b"\x01",
    ],
)
def test_msgpack_that_is_no_trace(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.sktrace").write_bytes(content)
    with pytest.raises(SnapshotError, match=r"bad\.sktrace"):
        convert([tmp_path / "bad.sktrace"])


def test_a_trace_of_many_small_collections_is_refused_before_they_are_all_made(tmp_path: Path) -> None:
    content = msgpack.packb({"version": 2, "config": {}, "events": [[{}] * 8, [{}] * 8]})
    assert unpacked(content, tmp_path, depth=9, values=40)
    with pytest.raises(SnapshotError, match="more than 20 values"):
        unpacked(content, tmp_path, depth=9, values=20)


def test_a_trace_as_it_is_at_its_end(tmp_path: Path) -> None:
    def item(name: str, replicas: int) -> dict[str, Any]:
        return {"apiVersion": "apps/v1", "kind": "Deployment", **deployment(name, replicas)}

    rollout = {**item("canary", 4), "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}
    cron = {**item("cron", 1), "apiVersion": "batch/v1", "kind": "CronJob"}
    trace = {
        "version": 2,
        "config": {
            "trackedObjects": {
                "apps/v1.Deployment": {},
                "argoproj.io/v1alpha1.Rollout": {"podSpecTemplatePaths": ["/spec/template"]},
            }
        },
        "events": [
            {"ts": 1, "applied_objs": [item("web", 1), item("gone", 1), rollout, cron], "deleted_objs": []},
            {"ts": 1790000000, "applied_objs": [item("web", 5)], "deleted_objs": [item("gone", 1)]},
        ],
        "index": {},
        "pod_lifecycles": {"x": {}},
    }
    taken = convert([put(tmp_path / "trace.json", trace)])
    assert pods(taken) == {"canary": 4, "web": 5}
    assert taken.workloads[0].controller.kind == "Rollout"
    assert taken.taken == datetime.fromtimestamp(1790000000, UTC)
    assert {one.what: one.count for one in taken.left_out}["objects of kind CronJob"] == 1


def test_others_than_exports_come_alone(tmp_path: Path) -> None:
    put(tmp_path / "a.json", api.exported(api.cluster()))
    put(tmp_path / "b.json", {"cluster": "a", "captured": "2026-11-22T11:00:00Z", "events": None})
    with pytest.raises(SnapshotError, match="give only this file"):
        convert([tmp_path])
