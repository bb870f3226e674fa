"""Logins that `docker login` keeps are used for a registry's tokens, and no other server gets them."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from karpstack.rehearsal.engines.registry import Registry, TransferError, _opener
from tests.serving import serving

BASIC = base64.b64encode(b"user:secret").decode()
CONTENT = b"content"


class _Handler(BaseHTTPRequestHandler):
    """A registry that asks for tokens, what gives them, and in `/elsewhere` a store of blobs."""

    seen: list[tuple[str, str]]
    elsewhere: str
    realm: str
    token = b'{"token": "good"}'

    def do_GET(self) -> None:
        asked, login = urlsplit(self.path), self.headers.get("Authorization", "")
        self.seen.append((asked.path, login))
        if asked.path == "/token":
            good = login == f"Basic {BASIC}" and parse_qs(asked.query)["scope"] == ["repository:r:pull"]
            self._answer(200, self.token if good else b"{}")
        elif asked.path.startswith("/elsewhere/"):
            self._answer(200, CONTENT)
        elif login != "Bearer good":
            self._answer(401, b"", f'Bearer realm="{self.realm}",service="s",scope="repository:r:pull"')
        elif "/blobs/" in asked.path:
            self.send_response(307)
            self.send_header("Location", f"{self.elsewhere}/elsewhere/blob?signature=1")
            self.send_header("Content-Length", str(10**20))  # the client must not read this body
            self.end_headers()
        else:
            self._answer(200, CONTENT)

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.seen.append((self.path, self.headers.get("Authorization", "")))
        good = form["grant_type"] == ["refresh_token"] and form["refresh_token"] == ["refresh"]
        self._answer(200, json.dumps({"access_token": "good"} if good else {}).encode())

    def _answer(self, code: int, content: bytes, challenge: str = "") -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(content)))
        if challenge:
            self.send_header("WWW-Authenticate", challenge)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def server() -> Iterator[tuple[str, type[_Handler]]]:
    handler: type[_Handler] = type("Handler", (_Handler,), {"seen": []})
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), handler)) as started:
        host = f"127.0.0.1:{started.server_address[1]}"
        handler.realm, handler.elsewhere = f"http://{host}/token", f"http://{host}"
        yield host, handler


def read(host: str, kind: Any = "manifests") -> bytes:
    with closing(Registry(host, "r").open(kind, "sha256:0")) as response:
        return response.read()


def helper(user: str, secret: str) -> str:
    return f'test "$1 $(cat)" = "get HOST" || exit 1; echo \'{{"Username": "{user}", "Secret": "{secret}"}}\''


#: The configuration of Docker, and what a credential helper says.
LOGINS: dict[str, tuple[Mapping[str, Any], str]] = {
    "a password": ({"auths": {"HOST": {"auth": BASIC}}}, ""),
    "a password under a URL": ({"auths": {"https://HOST": {"auth": BASIC}}}, ""),
    "an identity token": ({"auths": {"HOST": {"auth": BASIC, "identitytoken": "refresh"}}}, ""),
    "a helper": ({"credHelpers": {"HOST": "test"}}, helper("user", "secret")),
    "a store": ({"auths": {"HOST": {}}, "credsStore": "test"}, helper("user", "secret")),
    "a token of a store": ({"credsStore": "test"}, helper("<token>", "refresh")),
}


@pytest.mark.parametrize("kind", LOGINS)
def test_a_login_gets_a_token(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, says = LOGINS[kind]
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    with server() as (host, _):
        program = tmp_path / "docker-credential-test"
        program.write_text(f"#!/bin/sh\n{says}\n".replace("HOST", host))
        program.chmod(0o755)
        (tmp_path / "config.json").write_text(json.dumps(config).replace("HOST", host))
        assert read(host) == CONTENT


@pytest.mark.parametrize(
    "config",
    ["", "[]", "{}", '{"auths": {"HOST": 3}}', '{"auths": {"HOST": {"auth": "?"}}}', '{"credsStore": "none-of-ours"}'],
)
def test_without_a_login_that_can_be_used_the_fix_is_named(
    config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    with server() as (host, _):
        (tmp_path / "config.json").write_text(config.replace("HOST", host))
        with pytest.raises(TransferError, match=f"docker login {host}"):
            read(host)


def test_the_login_stays_with_the_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    with server() as (host, handler), server() as (other, stranger):
        (tmp_path / "config.json").write_text(json.dumps({"auths": {host: {"auth": BASIC}}}))
        handler.elsewhere = f"http://{other}"
        assert read(host, "blobs") == CONTENT
        assert stranger.seen == [("/elsewhere/blob", "")]
        stranger.seen.clear()
        handler.elsewhere = f"http://{other}/v2"  # where a stranger asks for a login
        registry = Registry(host, "r")
        registry.open("manifests", "sha256:0").close()
        with pytest.raises(TransferError, match="401"):
            registry.open("blobs", "sha256:0")
        assert stranger.seen == [("/v2/elsewhere/blob", "")]
        handler.realm = "http://stranger.example/token"  # a password would go there in plain text
        with pytest.raises(TransferError, match=f"{host} asks for a login"):
            read(host)


def test_a_file_of_the_user_is_no_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    (tmp_path / "own.json").write_text('{"token": "own"}')
    with server() as (host, handler):
        handler.realm = f"file://localhost{tmp_path}/own.json#"
        with pytest.raises(TransferError, match=f"{host} asks for a login"):
            read(host)
        assert "Bearer own" not in {login for _, login in handler.seen}


#: What the server of a stranger answers instead.
ANSWERS: dict[str, dict[str, Any]] = {
    "a realm that is no address": {"realm": "http://["},
    "a redirection to no address": {"elsewhere": "http://["},
    "a token of two lines": {"token": b'{"token": "good\\nX-Other: 1"}'},
    "a token without an end": {"token": b'{"token": ' + b"[" * 200_000},
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_stranger_is_an_error_in_words(answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    with server() as (host, handler):
        (tmp_path / "config.json").write_text(json.dumps({"auths": {host: {"auth": BASIC}}}))
        for name, value in ANSWERS[answer].items():
            setattr(handler, name, value)
        with pytest.raises(TransferError):
            read(host, "blobs")


class _Proxy(BaseHTTPRequestHandler):
    """A proxy with a password, behind which a registry leads to an address of this machine."""

    elsewhere: str

    def do_GET(self) -> None:
        assert self.headers["Proxy-Authorization"]
        self.send_response(307)
        self.send_header("Location", f"{self.elsewhere}/elsewhere/blob")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def test_the_login_of_a_proxy_stays_with_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str | None] = []

    def answer(self: _Handler) -> None:
        seen.append(self.headers["Proxy-Authorization"])
        self._answer(200, b"")

    with server() as (host, handler):
        monkeypatch.setattr(handler, "do_GET", answer)
        proxy: type[_Proxy] = type("Proxy", (_Proxy,), {"elsewhere": f"http://{host}"})
        with serving(ThreadingHTTPServer(("127.0.0.1", 0), proxy)) as started:
            monkeypatch.setenv("http_proxy", f"http://user:secret@127.0.0.1:{started.server_address[1]}")
            monkeypatch.delenv("no_proxy", raising=False)
            monkeypatch.delenv("NO_PROXY", raising=False)
            _opener(secure=False).open("http://registry.example/v2/", timeout=10).close()
    assert seen == [None]
