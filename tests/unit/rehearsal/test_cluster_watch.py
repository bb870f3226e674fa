"""A watch goes on over everything that ends one on the wire, and tells nothing twice."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from typing import Any, cast

import pytest
import urllib3

from karpstack.rehearsal.cluster.feed import Event, Feed
from karpstack.rehearsal.cluster.objects import ApiError, Objects
from karpstack.rehearsal.cluster.watch import Object, Watch

Answer = list[Object] | Exception


def item(name: str, version: str) -> Object:
    return {"metadata": {"name": name, "resourceVersion": version}}


def event(kind: str, name: str, version: str) -> Object:
    return {"type": kind, "object": item(name, version)}


class Response:
    def __init__(self, events: list[Object]) -> None:
        self._text = "".join(json.dumps(each) + "\n" for each in events).encode()

    def stream(self, decode_content: bool) -> Iterator[bytes]:
        # Chunks end where they like, not at the ends of lines.
        yield from (self._text[start : start + 7] for start in range(0, len(self._text), 7))

    def close(self) -> None:
        pass

    def shutdown(self) -> None:
        pass


class Server:
    """Answers listings and watches from lists."""

    def __init__(self, listings: list[list[Object]], streams: list[Answer]) -> None:
        self.listings, self.streams, self.versions = listings, streams, list[str]()

    def objects(self) -> Objects:
        return cast(Objects, self)

    def request(self, method: str, path: str, body: Any = None, *, query: Mapping[str, str] | None = None) -> Object:
        return {
            "apiVersion": "v1",
            "kind": "PodList",
            "metadata": {"resourceVersion": "10"},
            "items": self.listings.pop(0),
        }

    def stream(self, path: str, query: Mapping[str, str]) -> Any:
        self.versions.append(query["resourceVersion"])
        answer = self.streams.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Response(answer)

    def forget(self, watch: Watch) -> None:
        pass


def follow(server: Server, count: int) -> list[tuple[str, str]]:
    watch, found = Watch(server.objects(), "/api/v1/pods", {}), list[tuple[str, str]]()
    for kind, each in watch:
        found.append((kind, each["metadata"]["name"]))
        if len(found) == count:
            watch.close()
            break
    return found


def test_what_exists_comes_first_and_says_what_it_is() -> None:
    watch = Watch(Server([[item("a", "1")]], []).objects(), "/api/v1/pods", {})
    kind, found = next(iter(watch))
    assert (kind, found["kind"], found["apiVersion"]) == ("ADDED", "Pod", "v1")


def test_a_watch_that_ends_goes_on_from_the_last_version_it_saw() -> None:
    server = Server([[]], [[event("ADDED", "a", "11"), event("BOOKMARK", "", "15")], [event("MODIFIED", "a", "16")]])
    assert follow(server, 2) == [("ADDED", "a"), ("MODIFIED", "a")]
    assert server.versions == ["10", "15"]


def test_an_expired_watch_tells_what_was_missed() -> None:
    expired = {"type": "ERROR", "object": {"code": 410, "message": "too old resource version"}}
    server = Server(
        [
            [item("same", "1"), item("changed", "2"), item("gone", "3")],
            [item("same", "1"), item("changed", "7"), item("new", "8")],
        ],
        [[expired]],
    )
    found = follow(server, 6)
    assert [kind for kind, _ in found[:3]] == ["ADDED"] * 3
    assert sorted(found[3:]) == [("ADDED", "new"), ("DELETED", "gone"), ("MODIFIED", "changed")]


def test_a_broken_connection_is_made_anew() -> None:
    server = Server([[], [item("a", "11")]], [urllib3.exceptions.ProtocolError("broken")])
    assert follow(server, 1) == [("ADDED", "a")]


def test_what_is_read_after_the_end_is_not_looked_at() -> None:
    class Rubble(Response):
        def stream(self, decode_content: bool) -> Iterator[bytes]:
            yield json.dumps(event("ADDED", "a", "11")).encode() + b"\n"
            yield b"\x9c\n"

    server = Server([[]], [])
    server.stream = lambda path, query: Rubble([])  # type: ignore[method-assign]
    watch = Watch(server.objects(), "/api/v1/pods", {})
    found = []
    for kind, _ in watch:
        found.append(kind)
        watch.close()
    assert found == ["ADDED"]


def test_a_feed_gives_timers_in_their_order_and_ends_at_once_when_it_is_closed() -> None:
    class Closed:
        closed = threading.Event()

    feed = Feed(Closed())  # type: ignore[arg-type]
    feed.after(0.05, "later")
    feed.after(0, "now", {"a": 1})
    first, second = feed.next(), feed.next()
    assert first is not None
    assert second is not None
    assert (first.source, first.object, second.source) == ("now", {"a": 1}, "later")
    assert feed.next(timeout=0.01) is None
    threading.Timer(0.05, feed.close).start()
    assert feed.next(timeout=30) is None


class Unwatched:
    """Stands in for `Objects` where nothing is watched."""

    def __init__(self) -> None:
        self.closed = threading.Event()


@pytest.mark.parametrize(
    "error",
    [
        urllib3.exceptions.ProtocolError("broken"),
        ApiError(503, "ServiceUnavailable", "starting"),
        ApiError(429, "TooManyRequests", "later"),
        # As kube-apiserver passed them on while its etcd was stopped.
        ApiError(500, "", "rpc error: code = Unavailable desc = keepalive ping failed to receive ACK within timeout"),
        ApiError(500, "", "etcdserver: request timed out"),
    ],
)
def test_what_meets_an_api_server_that_is_away_is_handled_again_before_anything_else(error: Exception) -> None:
    handled, over = list[str](), threading.Event()
    answers: list[Exception | None] = [error, error, None, None]

    def handle(event: Event) -> None:
        handled.append(event.source)
        answer = answers.pop(0)
        if answer:
            raise answer
        if not answers:
            over.set()

    feed = Feed(Unwatched())  # type: ignore[arg-type]
    feed.after(0, "first")
    feed.after(0, "second")
    thread = feed.run(handle, "test")
    assert over.wait(5)
    assert handled == ["first", "first", "first", "second"]
    feed.close()
    thread.join(5)
    assert not thread.is_alive()


def test_what_fails_otherwise_is_left(caplog: pytest.LogCaptureFixture) -> None:
    handled, over = list[str](), threading.Event()

    def handle(event: Event) -> None:
        handled.append(event.source)
        if event.source == "first":
            raise ApiError(422, "Invalid", "no such field")
        over.set()

    feed = Feed(Unwatched())  # type: ignore[arg-type]
    feed.after(0, "first")
    feed.after(0, "second")
    feed.run(handle, "test")
    assert over.wait(5)
    feed.close()
    assert handled == ["first", "second"]
    assert "handling TIMER of first failed" in caplog.text


def test_a_reader_that_waits_for_the_api_server_ends_with_it() -> None:
    objects, met = Unwatched(), threading.Event()

    def handle(event: Event) -> None:
        met.set()
        raise ApiError(503, "ServiceUnavailable", "never again")

    feed = Feed(objects)  # type: ignore[arg-type]
    feed.after(0, "first")
    thread = feed.run(handle, "test")
    assert met.wait(5)
    objects.closed.set()
    feed.close()
    thread.join(5)
    assert not thread.is_alive()


def test_a_periodic_timer_goes_on_whatever_becomes_of_its_events() -> None:
    feed = Feed(Unwatched())  # type: ignore[arg-type]
    feed.every(0.01, "look")
    found = [feed.next(timeout=5) for _ in range(3)]
    assert [event.source for event in found if event] == ["look"] * 3
