"""What the kubernetes provider asks of an API server: kinds, errors, waits."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from karpstack.rehearsal.attachment.resource import Properties
from karpstack.rehearsal.cluster import objects
from karpstack.rehearsal.cluster.objects import Objects
from karpstack.rehearsal.cluster.provider.api import Api, ApiError, CancelledError, NoKindError
from tests.unit.rehearsal.cluster_world import World
from tests.unit.rehearsal.provider_kubernetes_world import ENDPOINT


class Client(Objects):
    """A client whose answers are given."""

    def __init__(self, *, served: Any = None, status: int = 200) -> None:
        super().__init__(ENDPOINT, Path("/nowhere"), "token")
        self.served, self.status = served, status

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Properties:
        if self.status >= 400:
            raise objects.ApiError(self.status, "", "is invalid")
        answer: Properties = self.served
        return answer


def test_a_kind_is_found_among_what_is_served() -> None:
    served = {
        "resources": [
            {"name": "pods/log", "kind": "Pod", "namespaced": True},
            {"name": "pods", "kind": "Pod", "namespaced": True},
            {"name": "namespaces", "kind": "Namespace", "namespaced": False},
        ]
    }
    api = Api(Client(served=served), threading.Event())
    assert api.kind("v1", "Pod").path("a", "b") == "/api/v1/namespaces/a/pods/b"
    assert api.kind("v1", "Namespace").path("a", "b") == "/api/v1/namespaces/b"
    with pytest.raises(NoKindError, match=r'no matches for kind "Pood" in version "v1"'):
        api.kind("v1", "Pood")


def test_a_group_that_is_not_served_has_no_kinds() -> None:
    with pytest.raises(NoKindError, match=r'in version "karpenter\.sh/v1"'):
        Api(Client(status=404), threading.Event()).kind("karpenter.sh/v1", "NodePool")


def test_errors_are_in_the_servers_words() -> None:
    api = Api(Client(status=422), threading.Event())
    for call in (
        lambda: api.get("/x"),
        lambda: api.apply("/x", {}, "m", force=False),
        lambda: api.delete("/x", "Orphan"),
    ):
        with pytest.raises(ApiError, match="is invalid"):
            call()
    assert not Api(Client(status=404), threading.Event()).delete("/x", "Orphan")


SEEN = {"metadata": {"name": "x", "resourceVersion": "5"}}
POD = "/api/v1/pods/x"


def gone(seen: objects.Object | None) -> bool:
    return seen is None


@pytest.fixture
def world() -> World:
    world = World()
    world.present[POD] = SEEN
    return world


def test_a_wait_hears_of_it_from_the_watch(world: World) -> None:
    telling = threading.Thread(target=world.happen, args=("/api/v1/pods?metadata.name=x", "DELETED", SEEN))
    telling.start()
    assert Api(world.objects(), threading.Event(), interval=60).wait(POD, gone, 60, "x") is None
    telling.join()


def test_a_wait_sees_what_went_before_the_watch_began(world: World) -> None:
    def goes_unseen(seen: objects.Object | None) -> bool:
        world.present.pop(POD, None)
        return seen is None

    assert Api(world.objects(), threading.Event(), interval=0).wait(POD, goes_unseen, 60, "x") is None


def test_a_wait_ends_in_time_and_when_cancelled(world: World) -> None:
    cancelled = threading.Event()
    api = Api(world.objects(), cancelled, interval=0)
    with pytest.raises(TimeoutError) as over:
        api.wait(POD, gone, 0, "x")
    assert over.value.args == (SEEN,)
    cancelled.set()
    with pytest.raises(CancelledError, match="deletion of x: the deployment was cancelled"):
        api.wait(POD, gone, 60, "deletion of x")
