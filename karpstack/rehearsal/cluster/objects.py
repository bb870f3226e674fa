"""Kubernetes objects as plain dictionaries: read, apply, patch, delete, watch.

A thin client over urllib3, because that is all that the stand-ins need: typed and safe for many threads. It
validates nothing (the API server does) and caches nothing but where the objects of a kind are found.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import urllib3

from karpstack.rehearsal.cluster.watch import Object, Watch, items

__all__ = ["MERGE", "STRATEGIC", "ApiError", "Object", "Objects", "has_condition", "try_patch", "unavailable", "warn"]

FIELD_MANAGER = "rehearsal"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"

_APPLY = "application/apply-patch+yaml"
_REQUEST_TIMEOUT = 60.0
# Too many requests (also: a new kind is about to be served), starting or ending, no answer in time.
_NOT_NOW = (429, 502, 503, 504)
# How errors of etcd begin, which the API server passes on with status 500.
_OF_ETCD = (
    "etcdserver: ",
    "rpc error: code = Unavailable",
    "rpc error: code = DeadlineExceeded",
    "context deadline exceeded",
)
_LOG = logging.getLogger(__name__)


class ApiError(Exception):
    """The API server refused a request.

    Attributes:
        status: The HTTP status.
        reason: Kubernetes' reason, for example `NotFound`.
    """

    def __init__(self, status: int, reason: str, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.reason = reason


def segment(name: str) -> str:
    """Return a name as one segment of a path.

    Raises:
        ApiError: The API server takes no such name, and as a path it would mean another object, or a whole collection.
    """
    if name in ("", ".", "..") or "/" in name or "%" in name:
        raise ApiError(400, "BadRequest", f"{name!r:.200} is no name of an object of Kubernetes, so nothing was done")
    return quote(name, safe=":")


class Objects:
    """A client with one identity.

    Args:
        endpoint: For example `https://127.0.0.1:6443`.
        authority: File with the certificate authority, PEM.
    """

    def __init__(self, endpoint: str, authority: Path, token: str) -> None:
        self._endpoint = endpoint
        self._pool = urllib3.PoolManager(
            ca_certs=str(authority),
            maxsize=32,
            retries=False,
            headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
        )
        self._kinds: dict[tuple[str, str], tuple[str, bool]] = {}
        self._watches: set[Watch] = set()
        self._lock = threading.Lock()
        self.closed = threading.Event()

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Object:
        """Send one request and return the object that is answered.

        Raises:
            ApiError: The API server refused it.
            urllib3.exceptions.HTTPError: It did not answer.
        """
        response = self._pool.request(
            method,
            self._url(path, query),
            body=None if body is None else json.dumps(body),
            headers={**self._pool.headers, "Content-Type": content_type},
            timeout=_REQUEST_TIMEOUT,
        )
        if response.status >= 400:
            raise _error(response.status, response.data)
        answer: Object = json.loads(response.data)
        return answer

    def healthy(self, path: str = "/readyz") -> bool:
        """Whether a health endpoint of the API server says ok."""
        try:
            return self._pool.request("GET", self._url(path), timeout=2.0).status == 200
        except urllib3.exceptions.HTTPError:
            return False

    def path(self, api_version: str, kind: str, namespace: str = "", name: str = "") -> str:
        """Path of an object, or of all objects of its kind without a name.

        Args:
            api_version: For example `karpenter.sh/v1`.
            kind: For example `NodePool`.
            namespace: Counts for kinds in namespaces only; without it, and without a name, all namespaces.

        Raises:
            ApiError: The API server has no such kind (status 404).
        """
        prefix = f"/api/{api_version}" if "/" not in api_version else f"/apis/{api_version}"
        plural, namespaced = self._kind(prefix, api_version, kind)
        if namespaced and (namespace or name):
            prefix += f"/namespaces/{segment(namespace or 'default')}"
        return f"{prefix}/{plural}" + (f"/{segment(name)}" if name else "")

    def get(self, path: str) -> Object | None:
        """The object, or None when there is none."""
        try:
            return self.request("GET", path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def list(self, path: str, *, labels: str = "", fields: str = "") -> list[Object]:
        """All objects below a path that match the selectors."""
        return items(self.request("GET", path, query=_selectors(labels, fields)))

    def create(self, path: str, body: Mapping[str, Any]) -> Object:
        """Create an object in the collection `path`."""
        return self.request("POST", path, body)

    def patch(self, path: str, body: Any, content_type: str = MERGE) -> Object:
        """Patch an object."""
        return self.request("PATCH", path, body, content_type=content_type)

    def apply(self, manifest: Mapping[str, Any]) -> Object:
        """Server-side apply of a whole manifest, taking over fields that others own."""
        return self.request(
            "PATCH",
            self.path_of(manifest),
            manifest,
            content_type=_APPLY,
            query={"fieldManager": FIELD_MANAGER, "force": "true"},
        )

    def delete(self, path: str, *, grace: int | None = None) -> bool:
        """Ask for a deletion, dependents in the background; False when there is nothing to delete."""
        body: Object = {"propagationPolicy": "Background"}
        if grace is not None:
            body["gracePeriodSeconds"] = grace
        try:
            self.request("DELETE", path, body)
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        return True

    def path_of(self, manifest: Mapping[str, Any]) -> str:
        """Path of the object that a manifest describes."""
        metadata = manifest["metadata"]
        return self.path(manifest["apiVersion"], manifest["kind"], metadata.get("namespace", ""), metadata["name"])

    def watch(self, path: str, *, labels: str = "", fields: str = "") -> Watch:
        """Watch a collection; see `Watch`."""
        watch = Watch(self, path, _selectors(labels, fields))
        with self._lock:
            self._watches.add(watch)
        if self.closed.is_set():
            watch.close()
        return watch

    def close(self) -> None:
        """End all watches, now and in future."""
        self.closed.set()
        with self._lock:
            watches = list(self._watches)
        for watch in watches:
            watch.close()

    # -- for Watch

    def stream(self, path: str, query: Mapping[str, str]) -> urllib3.BaseHTTPResponse:
        """Open a streaming request.

        Raises:
            ApiError: The API server refused it.
        """
        response = self._pool.request(
            "GET", self._url(path, query), preload_content=False, timeout=urllib3.Timeout(connect=5.0, read=None)
        )
        if response.status >= 400:
            raise _error(response.status, response.read())
        return response

    def forget(self, watch: Watch) -> None:
        """Drop a watch that has been closed."""
        with self._lock:
            self._watches.discard(watch)

    def _kind(self, prefix: str, api_version: str, kind: str) -> tuple[str, bool]:
        if (api_version, kind) not in self._kinds:
            found = self.get(prefix)
            for resource in (found or {}).get("resources", []):
                if "/" not in resource["name"]:
                    self._kinds[api_version, resource["kind"]] = (resource["name"], resource["namespaced"])
        try:
            return self._kinds[api_version, kind]
        except KeyError:
            raise ApiError(404, "NotFound", f'no matches for kind "{kind}" in version "{api_version}"') from None

    def _url(self, path: str, query: Mapping[str, str] | None = None) -> str:
        return self._endpoint + path + (f"?{urlencode(query)}" if query else "")


def has_condition(item: Mapping[str, Any], kind: str, status: str = "True") -> bool:
    """Whether an object's status has a condition of that type with that status."""
    # Objects written by Go have null where a list was never filled.
    conditions = item.get("status", {}).get("conditions") or []
    return any(each["type"] == kind and each["status"] == status for each in conditions)


def unavailable(error: Exception) -> bool:
    """Whether an error says that the API server, or its etcd, does not answer now; it may, as after a restart."""
    if isinstance(error, ApiError):
        return error.status in _NOT_NOW or (error.status == 500 and str(error).startswith(_OF_ETCD))
    return isinstance(error, urllib3.exceptions.HTTPError)


def try_patch(
    objects: Objects, path: str, body: Any, content_type: str = MERGE, *, tolerated: Collection[int] = (404,)
) -> bool:
    """Patch an object; return False if the answer has one of the tolerated statuses: the object is gone, or changed."""
    try:
        objects.patch(path, body, content_type)
    except ApiError as error:
        if error.status not in tolerated:
            raise
        return False
    return True


def now() -> str:
    """This moment as the API server writes it: `2026-01-31T12:00:00Z`."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def warn(objects: Objects, about: Mapping[str, Any], component: str, reason: str, message: str) -> None:
    """Record a Warning event about an object, as `kubectl get events` and `kubectl describe` show it.

    A failure is logged and nothing else: events are for people, nothing waits for them.
    """
    metadata = about["metadata"]
    namespace = metadata.get("namespace", "default")
    at = now()
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "type": "Warning",
        "reason": reason,
        "message": message[:1024],
        "metadata": {"generateName": f"{metadata['name']}.", "namespace": namespace},
        "involvedObject": {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            "name": metadata["name"],
            "namespace": metadata.get("namespace", ""),
            "uid": metadata.get("uid", ""),
        },
        "source": {"component": component},
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }
    _LOG.warning("%s %s: %s: %s", about["kind"], metadata["name"], reason, message)
    try:
        objects.create(f"/api/v1/namespaces/{namespace}/events", event)
    except (ApiError, urllib3.exceptions.HTTPError) as error:
        _LOG.warning("the event about %s %s was not recorded: %s", about["kind"], metadata["name"], error)


def _selectors(labels: str, fields: str) -> dict[str, str]:
    return {**({"labelSelector": labels} if labels else {}), **({"fieldSelector": fields} if fields else {})}


def _error(status: int, data: bytes) -> ApiError:
    try:
        answer = json.loads(data)
        return ApiError(status, answer.get("reason", ""), answer.get("message", "") or f"HTTP {status}")
    except (ValueError, AttributeError):
        return ApiError(status, "", data.decode(errors="replace").strip() or f"HTTP {status}")
