"""Questions to Azure: what is no answer of its, and what would have no end."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from threading import Event
from typing import Any

import pytest
from azure.core.credentials import AccessToken

from karpstack.preflight.azure import asking
from karpstack.preflight.azure.asking import Azure, is_below
from karpstack.preflight.azure.credentials import Login
from karpstack.preflight.finding import NotAskedError
from tests.unit.preflight.fake_server import FakeServer

PATH = "/subscriptions/a/locks"


class Token:
    """A token that opens nothing."""

    def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        return AccessToken("x", int(time.time()) + 3600)


class Slow(Token):
    """One that never comes."""

    def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        Event().wait()
        return super().get_token()


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


@pytest.mark.parametrize(
    ("url", "endpoint", "is_own"),
    [
        ("https://management.azure.com/subscriptions/a?$skiptoken=b", "https://management.azure.com", True),
        ("https://management.azure.com:443/subscriptions/a", "https://management.azure.com", True),
        ("http://127.0.0.1:8080/subscriptions/a", "http://127.0.0.1:8080", True),
        ("http://127.0.0.1:80801/subscriptions/a", "http://127.0.0.1:8080", False),
        ("http://127.0.0.1:8080@evil.example/subscriptions/a", "http://127.0.0.1:8080", False),
        ("https://management.azure.com:443@evil.example/a", "https://management.azure.com", False),
        ("https://me@management.azure.com/a", "https://management.azure.com", False),
        ("https://management.azure.com:80/a", "https://management.azure.com", False),
        ("http://management.azure.com/a", "https://management.azure.com", False),
        ("https://management.azure.com.evil.example/a", "https://management.azure.com", False),
        ("https://gateway.example/azure/subscriptions/a", "https://gateway.example/azure", True),
        ("https://gateway.example/other/subscriptions/a", "https://gateway.example/azure", False),
        ("/subscriptions/a", "https://management.azure.com", False),
        ("https://[bad/subscriptions/a", "https://management.azure.com", False),
        ("https://Management.azure.com/subscriptions/a", "https://management.azure.com", True),
        ("https://gateway.example/subscriptions/a", "https://gateway.example:443", True),
    ],
)
def test_the_next_page_is_of_the_server_that_was_asked(url: str, endpoint: str, is_own: bool) -> None:
    """Microsoft.Compute names the usual port in its own."""
    assert is_below(url, endpoint) == is_own


def test_a_next_page_that_is_not_there_is_no_end(server: FakeServer) -> None:
    """What is on it would be left out without a word, a lock for example."""
    server.said[PATH] = 200, json.dumps({"value": [{}], "nextLink": f"http://127.0.0.1:{server.port}/next"})
    server.said["/next"] = 404, json.dumps({"error": {"code": "NotFound", "message": "no"}})
    with pytest.raises(NotAskedError, match="/next, where nothing is"):
        azure(server).all("x/read", PATH, "1")


@pytest.mark.parametrize("path", ["0/x", "@evil.example/x", ":1/x", ""])
def test_what_is_no_resource_id_is_not_asked(server: FakeServer, path: str) -> None:
    """Azure's answers name more to ask. Behind its address, it would be that of another server, which got the token."""
    with pytest.raises(NotAskedError, match="is no resource ID"):
        azure(server).find("x/read", path, "1")
    assert not server.asked


def test_a_token_that_does_not_come_is_not_waited_for(server: FakeServer) -> None:
    """azure-identity waits for as long as the server of a managed identity says."""
    asked = azure(server)
    asked._login = replace(asked._login, credential=Slow())
    assert asked.tenant(0.1) == ""


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
