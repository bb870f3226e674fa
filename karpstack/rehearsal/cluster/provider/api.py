"""What the objects of this package ask of an API server, over `rehearsal.cluster.objects`: refusals that a user
can read, and waits that end with the deployment.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

from karpstack.rehearsal.attachment.resource import RefusedError
from karpstack.rehearsal.cluster import objects
from karpstack.rehearsal.cluster.feed import UNSERVED, Feed
from karpstack.rehearsal.cluster.objects import Object, Objects


class ApiError(RefusedError):
    """The API server's refusal, in its own words.

    Attributes:
        code: HTTP status.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class NoKindError(RefusedError):
    """The API server serves no such kind."""


_CANCELLED: Final = "the deployment was cancelled"


class CancelledError(RefusedError):
    """The deployment was cancelled while it waited."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: {_CANCELLED}")


@dataclass(frozen=True)
class Kind:
    """Where the objects of one kind are.

    Attributes:
        prefix: Path of the group and version, for example `/apis/karpenter.sh/v1`.
        plural: For example `nodepools`.
        namespaced: Whether its objects live in namespaces.
    """

    prefix: str
    plural: str
    namespaced: bool

    def path(self, namespace: str, name: str) -> str:
        """Path of an object.

        Raises:
            ApiError: A name is none that an object can have.
        """
        try:
            middle = f"/namespaces/{objects.segment(namespace)}" if self.namespaced else ""
            return f"{self.prefix}{middle}/{self.plural}/{objects.segment(name)}"
        except objects.ApiError as error:
            raise ApiError(error.status, str(error)) from error


class Api:
    """The API server for one provider instance.

    Args:
        cancelled: Set when the deployment is cancelled; waits end then.
    """

    def __init__(self, client: Objects, cancelled: threading.Event, *, interval: float = 1.0) -> None:
        """`interval`: seconds without an event after which a wait reads the object itself."""
        self.client = client
        self._cancelled, self._interval = cancelled, interval

    def kind(self, api_version: str, kind: str) -> Kind:
        """Look a kind up.

        Raises:
            NoKindError: In the words of the Kubernetes client.
        """
        try:
            everywhere = self.client.path(api_version, kind)
            somewhere = self.client.path(api_version, kind, "default")
        except objects.ApiError as error:
            raise NoKindError(str(error)) if error.status == 404 else ApiError(error.status, str(error)) from error
        prefix, plural = everywhere.rsplit("/", 1)
        return Kind(prefix, plural, everywhere != somewhere)

    def get(self, path: str) -> Object | None:
        """An object, or None when there is none."""
        try:
            return self.client.get(path)
        except objects.ApiError as error:
            raise ApiError(error.status, str(error)) from error

    def apply(self, path: str, body: Mapping[str, Any], manager: str, *, force: bool, dry_run: bool = False) -> Object:
        """Server-side apply with strict field validation; gives the object as it is then."""
        query = {
            "fieldManager": manager,
            "fieldValidation": "Strict",
            "force": str(force).lower(),
            **({"dryRun": "All"} if dry_run else {}),
        }
        return self._request("PATCH", path, query, body)

    def delete(self, path: str, propagation: str) -> bool:
        """Ask for a deletion; False when there is nothing to delete."""
        try:
            self._request("DELETE", path, {"propagationPolicy": propagation})
        except ApiError as error:
            if error.code == 404:
                return False
            raise
        return True

    def wait(self, path: str, done: Callable[[Object | None], bool], timeout: float, what: str) -> Object | None:
        """Wait on a watch until `done` says so of the object (None: it does not exist).

        Returns:
            The object as it was seen last.

        Raises:
            TimeoutError: The time is over; the object seen last is its only argument.
            CancelledError: The deployment was cancelled.
        """
        deadline = time.monotonic() + timeout
        seen = self.get(path)
        if done(seen):
            return seen
        collection, name = path.rsplit("/", 1)
        with closing(Feed(self.client)) as feed:
            feed.watch("object", collection, fields=f"metadata.name={name}")
            while not done(seen):
                if self._cancelled.is_set():
                    raise CancelledError(what)
                event = feed.next(self._interval)
                if event is None or event.type == UNSERVED:
                    # What went before the watch began is missing in it; and the API server may refuse by now.
                    seen = self.get(path)
                else:
                    seen = None if event.type == "DELETED" else event.object
                if time.monotonic() >= deadline and not done(seen):
                    raise TimeoutError(seen)
        return seen

    def cancellation(self) -> str:
        """Why a wait has to end; empty while it has not."""
        return _CANCELLED if self._cancelled.is_set() else ""

    def pause(self, seconds: float, what: str) -> None:
        """Wait before another try."""
        if self._cancelled.wait(seconds):
            raise CancelledError(what)

    def _request(self, method: str, path: str, query: Mapping[str, str], body: Any = None) -> Object:
        try:
            return self.client.request(
                method,
                path,
                body,
                query=query,
                content_type="application/apply-patch+yaml" if method == "PATCH" else "application/json",
            )
        except objects.ApiError as error:
            raise ApiError(error.status, str(error)) from error
