"""Questions to Azure: what is no answer of its, and what would have no end."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from azure.core.credentials import AccessToken

from karpstack.preflight.azure import asking
from karpstack.preflight.azure.asking import Azure
from karpstack.preflight.azure.credentials import Login
from karpstack.preflight.finding import NotAskedError
from tests.unit.preflight.fake_server import FakeServer

PATH = "/subscriptions/a/locks"


class Token:
    """A token that opens nothing."""

    def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        return AccessToken("x", int(time.time()) + 3600)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as made:
        yield made


def azure(server: FakeServer) -> Azure:
    return Azure("a", Login(Token(), "a test", f"http://127.0.0.1:{server.port}", "x/.default"))


@pytest.mark.parametrize(
    "said", ["<html>", "[]", '"text"', "[" * 100_000, "{}", '{"value": null}', '{"value": [1]}', '{"value": {"a": 1}}']
)
def test_an_answer_of_another_shape_is_none(server: FakeServer, said: str) -> None:
    server.said[PATH] = 200, said
    with pytest.raises(NotAskedError) as caught:
        azure(server).all("x/read", PATH, "1")
    assert (caught.value.call, caught.value.refused) == ("x/read", False)


@pytest.mark.parametrize(
    ("status", "said", "refused"),
    [(403, "<html>Forbidden</html>", True), (403, "[]", True), (404, "<html>", False), (400, '{"error": "x"}', False)],
)
def test_the_status_counts_whatever_the_body_is(server: FakeServer, status: int, said: str, refused: bool) -> None:
    server.said[PATH] = status, said
    with pytest.raises(NotAskedError, match=str(status)) as caught:
        azure(server).find("x/read", PATH, "1")
    assert caught.value.refused == refused


def test_what_is_not_there_is_none(server: FakeServer) -> None:
    server.said[PATH] = 404, json.dumps({"error": {"code": "ResourceNotFound", "message": "no"}})
    assert azure(server).find("x/read", PATH, "1") is None
    assert azure(server).all("x/read", PATH, "1") == []


def test_pages_in_a_circle(server: FakeServer) -> None:
    here = f"http://127.0.0.1:{server.port}{PATH}"
    server.said[PATH] = 200, json.dumps({"value": [{}], "nextLink": f"{here}?page=2"})
    with pytest.raises(NotAskedError, match="its pages have no end"):
        azure(server).all("x/read", PATH, "1")
    assert len(server.asked) == 2


def test_nobody_waits_for_as_long_as_a_server_likes(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_PATIENCE", 0.01)
    server.headers["Retry-After"] = "86400"
    server.said[PATH] = 429, "{}"
    began = time.monotonic()
    with pytest.raises(NotAskedError, match="429"):
        azure(server).find("x/read", PATH, "1")
    assert (len(server.asked), time.monotonic() - began < 10) == (4, True)


def test_no_proxy_gets_a_token_for_this_machine(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    server.said[PATH] = 200, "{}"
    assert azure(server).find("x/read", PATH, "1") == {}
