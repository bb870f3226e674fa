"""A cluster is asked for lists and for nothing else, page by page."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from karpstack.snapshot.cluster import COLLECTIONS, ClusterError, read, take
from karpstack.snapshot.from_api import snapshot_of
from karpstack.snapshot.left_out import Ledger
from tests.unit.preflight.fake_server import FakeServer
from tests.unit.snapshot import api


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as running:
        yield running


@pytest.fixture
def kubeconfig(server: FakeServer, tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "a", "cluster": {"server": f"http://127.0.0.1:{server.port}"}}],
                "users": [{"name": "a", "user": {"token": "t"}}],
                "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
                "current-context": "a",
            }
        )
    )
    return path


def serve(server: FakeServer) -> None:
    """The cluster, its pods on two pages."""
    found: defaultdict[str, list[Any]] = defaultdict(list)
    versions = {}
    for item in api.cluster():
        versions[item["kind"]] = item.pop("apiVersion")
        found[item.pop("kind")].append(item)
    for collection in COLLECTIONS:
        items = found[collection.kind]
        if not items and "karpenter" in collection.path:
            continue  # the cluster has no such kind
        common = {"kind": f"{collection.kind}List", "apiVersion": versions.get(collection.kind, "v1")}
        if collection.kind == "Pod":
            server.said[f"{collection.path}?limit=500"] = (
                200,
                json.dumps({**common, "metadata": {"continue": "here"}, "items": items[:5]}),
            )
            server.said[f"{collection.path}?limit=500&continue=here"] = (
                200,
                json.dumps({**common, "metadata": {}, "items": items[5:]}),
            )
        else:
            server.said[collection.path] = 200, json.dumps({**common, "metadata": {}, "items": items})


def test_a_cluster_is_what_an_export_of_it_is(server: FakeServer, kubeconfig: Path) -> None:
    serve(server)
    taken = take(kubeconfig)
    exported = [one for one in api.cluster() if one["kind"] not in ("Secret", "ConfigMap")]
    assert taken == snapshot_of(exported, taken.taken, "cluster")
    assert abs((datetime.now(UTC) - taken.taken).total_seconds()) < 60


def test_nothing_but_lists_is_asked_for_and_no_secret(server: FakeServer, kubeconfig: Path) -> None:
    serve(server)
    take(kubeconfig)
    asked = {path.partition("?")[0] for path in server.asked}
    assert asked == {collection.path for collection in COLLECTIONS}
    assert not any("secret" in path or "configmap" in path for path in asked)


def test_a_kind_that_is_refused_is_counted_and_one_that_is_not_there_is_none(
    server: FakeServer, kubeconfig: Path
) -> None:
    serve(server)
    server.said["/apis/policy/v1/poddisruptionbudgets"] = 403, "forbidden"
    server.said["/apis/batch/v1/jobs"] = 404, "no server of Kubernetes answers so"
    del server.said["/apis/karpenter.sh/v1/nodepools"]
    taken = take(kubeconfig)
    assert [(one.what, one.why) for one in taken.left_out if one.what.startswith("kind ")] == [
        ("kind Job", "the cluster refused the list (404)"),
        ("kind NodePool", "nodes are Karpenter's, but there is no karpenter.sh/v1: before 1.0?"),
        ("kind PodDisruptionBudget", "the cluster refused the list (403)"),
    ]
    assert taken.pod_disruption_budgets == []
    assert taken.node_pools == []
    assert taken.workloads


@pytest.mark.parametrize("label", ["karpenter.sh/nodepool", "example.com/pool"])
def test_nodes_of_a_karpenter_that_is_too_old_are_told(label: str, server: FakeServer, kubeconfig: Path) -> None:
    """Karpenter before 1.0 has no karpenter.sh/v1, so the snapshot has none of its NodePools."""
    serve(server)
    path = "/api/v1/nodes"
    server.said[path] = 200, server.said[path][1].replace("karpenter.sh/nodepool", label)
    del server.said["/apis/karpenter.sh/v1/nodepools"]
    told = [one.why for one in take(kubeconfig).left_out if one.what == "kind NodePool"]
    is_karpenters = label.startswith("karpenter.sh")
    assert told == ["nodes are Karpenter's, but there is no karpenter.sh/v1: before 1.0?"] * is_karpenters


@pytest.mark.parametrize(
    ("status", "content", "code", "words"),
    [
        (401, "Unauthorized", "login-refused", "does not accept the login (Unauthorized)"),
        (503, "starting", "half-answer", "503 starting"),
        (429, "too many", "half-answer", "429 too many"),
        (403, "pods is forbidden", "list-refused", "403 (pods is forbidden); there is no snapshot without Pods"),
        (200, '{"items": [', "half-answer", "GET /api/v1/pods"),
        (200, "[]", "half-answer", "the answer is no object"),
        (200, "[" * 100_000, "half-answer", "the answer is no JSON"),
        (200, "{}", "half-answer", "no list of objects under items"),
        (200, '{"items": null, "metadata": {}}', "half-answer", "no list of objects under items"),
        (
            200,
            '{"items": [{}], "metadata": {}, "apiVersion": "v1", "kind": "PodList"}',
            "half-answer",
            "no list of Kubernetes",
        ),
        (200, '{"kind": "PodList", "items": [], "metadata": {}}', "half-answer", "no list of Kubernetes"),
        (
            200,
            '{"kind": "Status", "items": [], "metadata": {}, "apiVersion": "v1"}',
            "half-answer",
            "no list of Kubernetes",
        ),
        (
            200,
            '{"kind": "PodList", "items": [], "metadata": {"continue": "gone"}, "apiVersion": "v1"}',
            "half-answer",
            "before its last page",
        ),
        (302, "moved", "half-answer", "302 is no answer to it"),
        (404, "no", "half-answer", "404 is no answer to it; the address may be that of another server"),
    ],
)
def test_there_is_no_snapshot_without_pods(
    server: FakeServer, kubeconfig: Path, status: int, content: str, code: str, words: str
) -> None:
    serve(server)
    server.said["/api/v1/pods?limit=500"] = status, content
    with pytest.raises(ClusterError) as error:
        take(kubeconfig)
    assert [one.code for one in error.value.findings] == [f"snapshot-{code}"]
    assert words in str(error.value)


def test_a_list_of_endless_pages_ends(server: FakeServer, kubeconfig: Path) -> None:
    serve(server)
    page = json.dumps({"kind": "PodList", "apiVersion": "v1", "items": [], "metadata": {"continue": "here"}})
    server.said["/api/v1/pods?limit=500"] = server.said["/api/v1/pods?limit=500&continue=here"] = 200, page
    with pytest.raises(ClusterError, match="more than 1,000 pages"):
        take(kubeconfig)


def expired(go_on: str) -> str:
    """What an API server answers if a page comes later than etcd's history reaches (apiserver, handlers/get.go)."""
    metadata = {"continue": go_on} if go_on else {}
    return json.dumps({"kind": "Status", "metadata": metadata, "reason": "Expired", "code": 410})


def test_a_list_whose_pages_expire_goes_on_where_the_api_server_says(server: FakeServer, kubeconfig: Path) -> None:
    serve(server)
    pages = server.said
    pages["/api/v1/pods?limit=500&continue=newer"] = pages["/api/v1/pods?limit=500&continue=here"]
    whole = take(kubeconfig)
    pages["/api/v1/pods?limit=500&continue=here"] = 410, expired("newer")
    assert take(kubeconfig).workloads == whole.workloads


@pytest.mark.parametrize("path", ["/api/v1/pods", "/apis/policy/v1/poddisruptionbudgets"])
@pytest.mark.parametrize("answer", [(410, expired("")), (410, "gone"), (403, "{}"), (400, expired(""))])
def test_half_a_list_is_no_list(answer: tuple[int, str], path: str, server: FakeServer, kubeconfig: Path) -> None:
    serve(server)
    kind = "PodList" if "pods" in path else "PodDisruptionBudgetList"
    page = {"kind": kind, "apiVersion": "v1", "items": [], "metadata": {"continue": "x"}}
    server.said[f"{path}?limit=500"] = 200, json.dumps(page)
    server.said[f"{path}?limit=500&continue=x"] = answer
    with pytest.raises(ClusterError, match=f"the list ended before its last page, with {answer[0]}"):
        take(kubeconfig)


@pytest.mark.parametrize("about", ["?x=1", "#x"])
def test_an_address_that_is_more_than_a_servers_is_refused(about: str, kubeconfig: Path, server: FakeServer) -> None:
    address = f"http://127.0.0.1:{server.port}"
    for other in (address + about, address.replace("//", "//mona:hidden@")):
        kubeconfig.write_text(kubeconfig.read_text().replace(address, other))
        with pytest.raises(ClusterError, match="so another address would be asked") as error:
            take(kubeconfig)
        assert "hidden" not in str(error.value)
        kubeconfig.write_text(kubeconfig.read_text().replace(other, address))
    assert server.asked == []


def test_a_redirect_is_not_followed(server: FakeServer, kubeconfig: Path) -> None:
    serve(server)
    server.headers["Location"] = "/elsewhere"
    server.said["/api/v1/nodes"] = 302, ""
    with pytest.raises(ClusterError):
        take(kubeconfig)
    assert not any("elsewhere" in path for path in server.asked)


@pytest.mark.parametrize("location", ["http://[::1/x", "http://[::zz]/x"])
def test_a_redirect_to_what_is_no_address_is_an_error(location: str, server: FakeServer, kubeconfig: Path) -> None:
    serve(server)
    server.headers["Location"] = location
    server.said["/api/v1/nodes"] = 307, ""
    with pytest.raises(ClusterError, match="the answer cannot be read"):
        take(kubeconfig)


@pytest.mark.parametrize("content", [b"[]", b"hello", b"a: [b", b"\xff\xfea\x00"])
def test_a_kubeconfig_that_is_none(tmp_path: Path, content: bytes) -> None:
    (path := tmp_path / "kubeconfig").write_bytes(content)
    with pytest.raises(ClusterError):
        take(path)


def test_no_cluster(kubeconfig: Path, server: FakeServer, tmp_path: Path) -> None:
    server.__exit__()
    with pytest.raises(ClusterError, match="check that the API server runs"):
        list(read(Ledger(), kubeconfig))
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(ClusterError, match="there is no cluster to read"):
            list(read(Ledger(), path))
    with pytest.raises(ClusterError, match="there is no cluster to read"):
        list(read(Ledger(), kubeconfig, "other"))
