"""Evidence of a failed story: all kinds, page by page, without secrets; what cannot be read is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from karpstack.scale_test.recording.snapshot import HIDDEN, kinds, save
from tests.serving import serving

NODE_CLASS = {"kind": "EC2NodeClass", "path": "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"}
WORKLOADS = {"deployment", "statefulset", "daemonset", "job", "poddisruptionbudget", "persistentvolumeclaim", "pod"}
FILES = {*WORKLOADS, "nodepool", "nodeclaim", "node", "ec2nodeclass", "event"}
SECRET = "hunter2"


def named(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "managedFields": [{"manager": "kubelet"}]}, **more}


class Handler(BaseHTTPRequestHandler):
    """An API server with 700 pods and a few other objects."""

    server: Server

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        query = parse_qs(address.query)
        self.server.asked.append(address.path)
        self.server.selectors += query.get("fieldSelector", [])
        plural = address.path.rsplit("/", 1)[-1]
        status = self.server.statuses.get(plural, 200)
        items: list[dict[str, Any]] = [named(plural)]
        more = ""
        if plural == "pods":
            container = {"name": "pause", "env": [{"name": "TOKEN", "value": SECRET}, {"name": "NODE"}]}
            pods = [named(f"pod-{i:03}", spec={"containers": [container]}) for i in range(700)]
            start, size = int(query.get("continue", ["0"])[0]), int(query["limit"][0])
            items, more = pods[start : start + size], str(start + size) if start + size < len(pods) else ""
        elif plural == "ec2nodeclasses":
            items = [named("default", spec={"role": "node", "userData": SECRET})]
        elif plural == "deployments":
            items = [named("inflate")]
            items[0]["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": SECRET, "a": "b"}
        body = json.dumps({"apiVersion": "v1", "kind": "List", "metadata": {"continue": more}, "items": items}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    """Notes what it was asked for; answers with other statuses by plural."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str] = []
        self.selectors: list[str] = []
        self.statuses: dict[str, int] = {}


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(Server()) as running:
        yield running


@pytest.fixture
def kubeconfig(server: Server, tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    content = {
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    }
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "x", **content}))
    return path


def saved(folder: Path) -> dict[str, list[dict[str, Any]]]:
    return {path.stem: yaml.safe_load(path.read_text()) for path in folder.glob("*.yml")}


WANTED = kinds("other", NODE_CLASS["kind"], NODE_CLASS["path"])


def test_every_kind_has_a_file_with_all_its_objects(server: Server, kubeconfig: Path, tmp_path: Path) -> None:
    folder = tmp_path / "evidence" / "a-story"
    assert save(folder, WANTED, kubeconfig) == []
    found = saved(folder)
    assert set(found) == FILES
    assert [pod["metadata"]["name"] for pod in found["pod"]] == [f"pod-{i:03}" for i in range(700)]
    assert found["nodepool"] == [{"apiVersion": "v1", "kind": "NodePool", "metadata": {"name": "nodepools"}}]
    assert "/api/v1/namespaces/other/pods" in server.asked


def test_no_events_of_other_peoples_namespaces_are_saved(server: Server, kubeconfig: Path, tmp_path: Path) -> None:
    save(tmp_path / "evidence", WANTED, kubeconfig)
    assert len(saved(tmp_path / "evidence")["event"]) == 3
    asked = [path for path in server.asked if path.endswith("events")]
    assert asked == [
        "/api/v1/namespaces/other/events",
        "/api/v1/namespaces/kube-system/events",
        "/api/v1/events",
    ]
    assert server.selectors == ["involvedObject.namespace="]


def test_no_secret_is_read_or_written(server: Server, kubeconfig: Path, tmp_path: Path) -> None:
    save(tmp_path / "evidence", WANTED, kubeconfig)
    assert not [path for path in server.asked if "secret" in path or "configmap" in path]
    text = "".join(path.read_text() for path in (tmp_path / "evidence").iterdir())
    assert SECRET not in text
    found = saved(tmp_path / "evidence")
    assert found["pod"][0]["spec"]["containers"][0]["env"] == [{"name": "TOKEN", "value": HIDDEN}, {"name": "NODE"}]
    assert found["ec2nodeclass"][0]["spec"] == {"role": "node", "userData": HIDDEN}
    assert found["deployment"][0]["metadata"]["annotations"]["a"] == "b"


def test_what_cannot_be_read_is_told_and_the_rest_saved(server: Server, kubeconfig: Path, tmp_path: Path) -> None:
    server.statuses = {"nodes": 403, "ec2nodeclasses": 404}
    (said,) = save(tmp_path / "evidence", WANTED, kubeconfig)
    assert said.startswith("Node: 403 ")
    found = saved(tmp_path / "evidence")
    assert set(found) == FILES - {"node"}
    assert found["ec2nodeclass"] == []


def test_where_nobody_answers_only_one_is_asked(kubeconfig: Path, tmp_path: Path, server: Server) -> None:
    server.shutdown()
    server.server_close()
    (said,) = save(tmp_path / "evidence", WANTED, kubeconfig)
    assert said.startswith("Deployment, StatefulSet, DaemonSet, Job, PodDisruptionBudget, PersistentVolumeClaim, Pod, ")
    assert "refused" in said
