"""Following a resource without an API server: lists, watches that end, watches that expired, heartbeats."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import pytest

from karpstack.scale_test.recording.following import BrokenError, Follower, Resource, pages
from karpstack.scale_test.recording.timeline import Line


def pod(name: str, version: int, phase: str = "Pending") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version)},
        "status": {"phase": phase},
    }


def listing(version: int, *pods: dict[str, Any], more: str = "") -> list[dict[str, Any]]:
    return [{"metadata": {"resourceVersion": str(version), "continue": more}, "items": list(pods)}]


def event(type_: str, found: dict[str, Any]) -> dict[str, Any]:
    return {"type": type_, "object": found}


class Server:
    """Gives prepared answers, keeps the queries, and stops the follower when it has no more."""

    def __init__(self, *answers: list[Any] | Exception) -> None:
        self.answers = list(answers)
        self.queries: list[dict[str, str]] = []
        self.seen: list[str] = []
        self.stopping = threading.Event()

    @contextmanager
    def fetch(self, resource: Resource, query: dict[str, str]) -> Iterator[Iterator[bytes]]:
        self.queries.append(dict(query))
        if not self.answers:
            self.stopping.set()
            raise BrokenError("no more")
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        yield self.lines(answer)

    def lines(self, answer: list[Any]) -> Iterator[bytes]:
        """What comes; an exception among it breaks it off there, and text comes as it is."""
        for line in answer:
            if isinstance(line, Exception):
                raise line
            if isinstance(line, float):
                time.sleep(line)
                continue
            yield line.encode() if isinstance(line, str) else json.dumps(line).encode()

    def changed(self, type_: str, kind: str, kept: Line) -> None:
        self.seen.append(f"{type_} {kept['metadata']['name']} {kept.get('phase', '')}".strip())

    def listed(self, kind: str) -> None:
        self.seen.append("listed")

    def broke_off(self, kind: str, reason: str) -> None:
        self.seen.append(f"gap: {reason}")


def follow(
    *answers: list[Any] | Exception, patience: float = 60, retry: float = 0, quiet: tuple[float, float] = (10, 300)
) -> Server:
    server = Server(*answers)
    pods = Resource("Pod", "/api/v1/pods")
    Follower(
        pods, server.fetch, server, server.stopping, retry=retry, unexpected=0, patience=patience, quiet=quiet
    ).run()
    return server


def test_the_list_is_told_and_then_what_changes() -> None:
    server = follow(
        listing(5, pod("a", 1)),
        [event("MODIFIED", pod("a", 6, "Running")), event("DELETED", pod("a", 7, "Running"))],
    )
    assert server.seen == ["ADDED a Pending", "listed", "MODIFIED a Running", "DELETED a Running"]


def test_long_lists_come_in_pages() -> None:
    server = follow(listing(5, pod("a", 1), more="token"), listing(5, pod("b", 2)))
    assert server.seen == ["ADDED a Pending", "ADDED b Pending", "listed"]
    assert server.queries[1]["continue"] == "token"


def test_a_watch_that_ended_is_resumed_where_it_ended() -> None:
    server = follow(listing(5), [event("ADDED", pod("a", 8))], [event("BOOKMARK", pod("", 11))], [])
    assert [query.get("resourceVersion") for query in server.queries] == [None, "5", "8", "11", "11"]
    began = time.monotonic()
    follow(listing(5), [], [], retry=0.1)  # they end at once
    assert time.monotonic() - began >= 0.2
    assert server.seen == ["listed", "ADDED a Pending"]


def test_an_expired_watch_is_marked_and_what_was_missed_is_found() -> None:
    expired = event("ERROR", {"code": 410, "message": "too old resource version"})
    server = follow(listing(5, pod("a", 1), pod("b", 2)), [expired], listing(90, pod("b", 2), pod("c", 80)))
    assert server.seen == [
        "ADDED a Pending",
        "ADDED b Pending",
        "listed",
        "gap: too old resource version",
        "ADDED c Pending",
        "DELETED a",
        "listed",
    ]
    assert server.queries[-1]["resourceVersion"] == "90"


def test_an_expired_answer_to_the_request_itself_counts_too() -> None:
    server = follow(listing(5), BrokenError("expired", 410), listing(6))
    assert server.seen == ["listed", "gap: expired", "listed"]


def test_a_broken_connection_is_no_gap() -> None:
    server = follow(listing(5), BrokenError("refused"), [event("ADDED", pod("a", 6))])
    assert server.seen == ["listed", "ADDED a Pending"]


REFUSED = event("ERROR", {"code": 500, "message": "etcd has no leader"})


@pytest.mark.parametrize("failure", [BrokenError("Unauthorized", 401), BrokenError("the login failed"), [REFUSED]])
def test_no_answer_for_long_is_told_once_and_nothing_is_lost(failure: BrokenError | list[Any]) -> None:
    """For example, the token has ended. Without the gap, nobody would know that the recorder sees nothing."""
    server = follow(listing(5), *[failure] * 3, [event("ADDED", pod("a", 6))], *[failure] * 2, patience=0)
    gap = f"gap: no answer for long: {failure if isinstance(failure, BrokenError) else 'etcd has no leader'}"
    assert server.seen == ["listed", gap, "ADDED a Pending", gap]
    assert server.queries[3]["resourceVersion"] == "5"
    patient = follow(listing(5), *[failure] * 3, [event("ADDED", pod("a", 6))])
    assert patient.seen == ["listed", "ADDED a Pending"]


def test_a_quiet_watch_that_something_between_ends_is_no_silence() -> None:
    """A load balancer may end what has no data for a minute. The API server has answered each watch."""
    broken = BrokenError("IncompleteRead")
    server = follow(listing(5), *[[0.02, broken]] * 3, [event("ADDED", pod("a", 6))], patience=0, quiet=(0.01, 10))
    assert server.seen == ["listed", "ADDED a Pending", "gap: no answer for long: no more"]
    # What breaks off at once, or after the API server should have ended it, is no answer; nor is half a list.
    for answer in ([broken], [0.2, broken]):
        silent = follow(listing(5), *[answer] * 3, patience=0, quiet=(0.01, 0.1))
        assert silent.seen == ["listed", "gap: no answer for long: IncompleteRead"]
    listless = follow(*[[0.02, broken]] * 2, listing(5), patience=0, quiet=(0.01, 10))
    assert listless.seen[:2] == ["gap: no answer for long: IncompleteRead", "listed"]


def test_a_list_without_an_end_is_not_read_to_it() -> None:
    def endless(resource: Resource, query: dict[str, str]) -> AbstractContextManager[Iterator[bytes]]:
        return nullcontext(itertools.repeat(b" " * 2**20))

    with pytest.raises(BrokenError, match="a page of a list has more than 64 MiB"):
        next(pages(Resource("Pod", "/api/v1/pods"), endless))


def test_a_heartbeat_is_not_told() -> None:
    assert follow(listing(5, pod("a", 1)), [event("MODIFIED", pod("a", 6))]).seen == [
        "ADDED a Pending",
        "listed",
    ]


def test_a_restart_of_the_api_server_loses_nothing() -> None:
    """The watch breaks off, nobody answers for a while, then only 'not ready', then it goes on where it was."""
    server = follow(
        listing(5, pod("a", 1)),
        [event("MODIFIED", pod("a", 6, "Running")), BrokenError("Connection broken: IncompleteRead")],
        BrokenError("Connection refused"),
        BrokenError("Connection refused"),
        BrokenError("apiserver not ready", 503),
        [event("ADDED", pod("b", 7)), event("DELETED", pod("a", 8, "Running"))],
    )
    assert server.seen == ["ADDED a Pending", "listed", "MODIFIED a Running", "ADDED b Pending", "DELETED a Running"]
    assert [query.get("resourceVersion") for query in server.queries] == [None, "5", "6", "6", "6", "6", "8"]


def test_a_restart_in_the_middle_of_the_list_reads_it_anew() -> None:
    server = follow(
        listing(5, pod("a", 1), more="token"),
        BrokenError("Connection refused"),
        listing(9, pod("a", 1), pod("b", 2)),
    )
    assert server.seen == ["ADDED a Pending", "ADDED b Pending", "listed"]


@pytest.mark.parametrize("half", ['{"type": "MODIF', ""])
def test_half_a_line_is_a_broken_connection(half: str) -> None:
    server = follow(listing(5), [event("ADDED", pod("a", 6)), half], [event("MODIFIED", pod("a", 7, "Running"))])
    assert server.seen == ["listed", "ADDED a Pending", "MODIFIED a Running"]
    assert [query.get("resourceVersion") for query in server.queries][2] == "6"


UNEXPECTED: dict[str, Any] = {
    "a list": [],
    "no items": {"metadata": {"resourceVersion": "1"}},
    "no version": {"items": [], "metadata": {}},
    "an object of another shape": {"items": [{"metadata": "x"}], "metadata": {"resourceVersion": "1"}},
    "a time that is none": {
        "items": [{"metadata": {"name": "a", "uid": "a", "creationTimestamp": []}}],
        "metadata": {"resourceVersion": "1"},
    },
    "deep": "[" * 100_000,
}


@pytest.mark.parametrize("answer", UNEXPECTED.values(), ids=UNEXPECTED)
@pytest.mark.parametrize("watched", [False, True])
def test_an_unexpected_answer_ends_nothing(answer: Any, watched: bool) -> None:
    """Once the thread ended there, and the rest of the run was judged by what had been seen before."""
    begun = [listing(1)] if watched else []
    server = follow(*begun, [answer], listing(5, pod("a", 4)), listing(6, pod("a", 4)))
    assert "ADDED a Pending" in server.seen


def test_what_cannot_change_is_told_once() -> None:
    """A NodeClaim's instance types are kilobytes, and it changes a dozen times."""

    def claim(version: int, **status: Any) -> dict[str, Any]:
        many = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large"] * 600}]
        metadata = {"name": "a", "uid": "a", "resourceVersion": str(version)}
        return {"metadata": metadata, "spec": {"requirements": many}, "status": status}

    told: list[tuple[str, bool]] = []

    class Listener(Server):
        def changed(self, type_: str, kind: str, kept: Line) -> None:
            told.append((type_, "requirements" in kept))

    server = Listener(
        listing(5, claim(1)),
        [event("MODIFIED", claim(6)), event("MODIFIED", claim(7, nodeName="n")), event("DELETED", claim(8))],
        [event("ADDED", claim(9))],
    )
    Follower(Resource("NodeClaim", "/nodeclaims"), server.fetch, server, server.stopping).run()
    assert told == [("ADDED", True), ("MODIFIED", False), ("DELETED", False), ("ADDED", True)]
