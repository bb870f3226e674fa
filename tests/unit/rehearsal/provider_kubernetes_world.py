"""The cluster, its connection, API server and charts, as the kubernetes provider sees them; no process is there."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from karpstack.rehearsal.attachment.resource import Properties
from karpstack.rehearsal.cluster.charts import ChartNotFoundError
from karpstack.rehearsal.cluster.provider.api import Kind, NoKindError
from karpstack.rehearsal.cluster.provider.connection import UnreachableError
from karpstack.rehearsal.timing import Timing

ENDPOINT = "https://127.0.0.1:6443"


def certificate(text: bytes) -> str:
    body = base64.b64encode(text).decode()
    return f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n"


class FakeCluster:
    name = "karpstack"
    endpoint = ENDPOINT
    certificate_authority = certificate(b"ours").encode()
    token = "administrator's"
    timing = Timing()
    knows_deployer = True
    releases: Any = None

    def __init__(self, deployer: Mapping[str, str] | None = None) -> None:
        self.deployer = deployer or {}
        self.asked_to_define: list[tuple[str, str]] = []

    def define_policy(self, api_version: str, kind: str) -> None:
        self.asked_to_define.append((api_version, kind))


class FakeClusters:
    def __init__(self, *clusters: FakeCluster) -> None:
        self.clusters = clusters

    def by_endpoint(self, endpoint: str) -> FakeCluster | None:
        return next((cluster for cluster in self.clusters if cluster.endpoint == endpoint), None)


@dataclass
class FakeApi:
    """An API server of one kind that remembers what it was asked."""

    objects: dict[str, Properties] = field(default_factory=dict)
    namespaced: bool = True
    missing: int = 0
    problem: Exception | None = None
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    client: Any = None

    def cancellation(self) -> str:
        return ""

    def kind(self, api_version: str, kind: str) -> Kind:
        if self.missing:
            self.missing -= 1
            raise NoKindError(f'no matches for kind "{kind}" in version "{api_version}"')
        return Kind(f"/apis/{api_version}", f"{kind.lower()}s", self.namespaced)

    def get(self, path: str) -> Properties | None:
        return self.objects.get(path)

    def apply(self, path: str, body: Properties, manager: str, *, force: bool, dry_run: bool = False) -> Properties:
        self.calls.append(("apply", path, body, force, dry_run))
        if self.problem:
            raise self.problem
        metadata = {**body["metadata"], "uid": "u", "resourceVersion": "7", "managedFields": [{}]}
        seen = {**body, "metadata": metadata, "status": {}}
        if not dry_run:
            self.objects[path] = seen
        return seen

    def delete(self, path: str, propagation: str) -> bool:
        self.calls.append(("delete", path, propagation))
        return path in self.objects

    def wait(
        self, path: str, done: Callable[[Properties | None], bool], timeout: float, what: str
    ) -> Properties | None:
        self.calls.append(("wait", timeout))
        if self.problem:
            raise self.problem
        return None

    def pause(self, seconds: float, what: str) -> None:
        self.calls.append(("pause", seconds))


class FakeConnection:
    namespace = "default"
    deletes_unreachable = False

    def __init__(self, api: FakeApi | None = None, cluster: FakeCluster | None = None) -> None:
        self._api = api
        self._cluster = cluster or FakeCluster()

    def api(self) -> FakeApi:
        if self._api is None:
            raise UnreachableError("connection refused")
        return self._api

    def cluster(self) -> FakeCluster:
        if self._api is None:
            raise UnreachableError("connection refused")
        return self._cluster


def manifest(name: str = "x", *, namespace: str = "", **annotations: str) -> Properties:
    metadata: Properties = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    if annotations:
        metadata["annotations"] = {f"pulumi.com/{key}": value for key, value in annotations.items()}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": {"replicas": 1}}


@dataclass(frozen=True)
class FakeChart:
    name: str
    version: str


class FakeCharts:
    def find(self, chart: str, version: str | None, repository: str | None) -> FakeChart:
        if chart != "cilium" or repository != "https://helm.cilium.io":
            raise ChartNotFoundError(f"chart {chart!r} is not known; known are cilium 1.20.2")
        return FakeChart("cilium", "1.20.2")

    def unknown_values(self, chart: FakeChart, values: Mapping[str, Any]) -> list[str]:
        return sorted(values.keys() - {"ipam", "routingMode"})
