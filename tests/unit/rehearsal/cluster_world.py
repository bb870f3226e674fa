"""An API server for tests of the stand-ins: a dictionary, watches that are queues, and a record of what was sent."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from karpstack.rehearsal.cluster.cloud import Machine
from karpstack.rehearsal.cluster.objects import ApiError, Object, Objects


class UnaskedCloud:
    """A cloud that a cluster runs in, and that is not asked for anything; a test's own answers what it is about."""

    controller_engine = "karpenter-aws"
    controller_needs_pod_files = False
    control_plane_reaches_pods = False
    load_balancers = None

    def machine(self, provider_id: str) -> Machine | None:
        raise NotImplementedError

    def has_machine(self, provider_id: str) -> bool:
        raise NotImplementedError

    def network_refusal(
        self, provider_id: str, namespace: str, service_account: str, annotations: Mapping[str, str]
    ) -> str:
        raise NotImplementedError

    def controller_environment(
        self,
        namespace: str,
        service_account: str,
        annotations: Mapping[str, str],
        token_folder: Path,
        labels: Mapping[str, str],
        admitted: datetime | None = None,
    ) -> dict[str, str]:
        raise NotImplementedError


class World:
    """Stands in for `Objects`."""

    def __init__(self) -> None:
        self.closed = threading.Event()
        #: How many of the next requests to create or patch something meet an API server that is starting.
        self.away = 0
        self.created: queue.Queue[Object] = queue.Queue()
        self.patched: queue.Queue[tuple[str, Any]] = queue.Queue()
        self.present: dict[str, Object] = {}
        #: What a collection has, by its path and selector: `/api/v1/pods?spec.nodeName=ip-1`.
        self.listed: dict[str, list[Object]] = {}
        self.deleted: queue.Queue[str] = queue.Queue()
        self._watches: dict[str, _Watch] = {}
        self._lock = threading.Condition()

    def objects(self) -> Objects:
        return cast(Objects, self)

    def happen(self, path: str, kind: str, item: Object | None) -> None:
        """Let a watch of `path` tell something, once it is there; an item of None ends it with 404."""
        with self._lock:
            if not self._lock.wait_for(lambda: path in self._watches, timeout=5):
                raise TimeoutError(f"nobody watches {path}")
            self._watches[path].events.put((kind, item))

    def watch(self, path: str, *, labels: str = "", fields: str = "") -> _Watch:
        with self._lock:
            watch = self._watches[_selected(path, labels, fields)] = _Watch()
            self._lock.notify_all()
        return watch

    def create(self, path: str, body: Mapping[str, Any]) -> Object:
        self._see_that_it_answers()
        if path.endswith("/token"):
            return {"status": {"token": "token"}}
        if f"{path}/{body['metadata'].get('name')}" in self.present:
            raise ApiError(409, "AlreadyExists", "there is one of that name")
        self.created.put({**body, "path": path})
        return dict(body)

    def _see_that_it_answers(self) -> None:
        if self.away > 0:
            self.away -= 1
            raise ApiError(503, "ServiceUnavailable", "the API server is starting")

    def get(self, path: str) -> Object | None:
        return self.present.get(path)

    def list(self, path: str, *, labels: str = "", fields: str = "") -> list[Object]:
        return self.listed.get(_selected(path, labels, fields), [])

    def patch(self, path: str, body: Any, content_type: str = "") -> Object:
        self._see_that_it_answers()
        self.patched.put((path, body))
        return {
            "metadata": {"name": path.rsplit("/", 1)[-1], "resourceVersion": "9", **body.get("metadata", {})},
            "spec": body.get("spec", {}),
        }

    def delete(self, path: str, *, grace: int | None = None) -> bool:
        self.deleted.put(path)
        return True


def _selected(path: str, labels: str, fields: str) -> str:
    return f"{path}?{labels or fields}".rstrip("?")


class _Watch:
    def __init__(self) -> None:
        self.events: queue.Queue[tuple[str, Object | None] | None] = queue.Queue()

    def close(self) -> None:
        self.events.put(None)

    def __iter__(self) -> Iterator[tuple[str, Object]]:
        while (event := self.events.get()) is not None:
            if event[1] is None:
                raise ApiError(404, "NotFound", "the server could not find the requested resource")
            yield event[0], event[1]
