"""An API server of a few lines: creates, reads and deletes objects of any kind, on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit


class _Handler(BaseHTTPRequestHandler):
    server: ApiServer

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        self.server.asked.append(self.requestline)

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if query:
            self._list(path, parse_qs(query))
            return
        found = self.server.there.get(self.path)
        if found and "deletionTimestamp" in found["metadata"] and self.path not in self.server.stuck:
            del self.server.there[self.path]  # a look sees it going, the next one sees it gone
        self._answer(200 if found else 404, found)

    def _list(self, path: str, query: dict[str, list[str]]) -> None:
        if path in self.server.forbidden:
            self._answer(403)
            return
        items = [found for at, found in self.server.there.items() if at.rpartition("/")[0] == path]
        for selector in query.get("labelSelector", []):
            key, label = selector.split("=")
            items = [found for found in items if (found["metadata"].get("labels") or {}).get(key) == label]
        self._answer(200, {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items})

    def do_POST(self) -> None:
        made = self._body()
        collection, query = self._asked()
        if collection in self.server.too_busy:
            self._send(429, "text/plain; charset=utf-8", b"Too many requests, please try again later.\n")
            return
        if collection in self.server.failing:
            self._answer(*self.server.failing[collection])
            return
        if "dryRun" in query:
            self._answer(201, made)
            return
        path = f"{collection}/{made['metadata']['name']}"
        if path in self.server.refused:
            self._answer(self.server.refused[path]["code"], self.server.refused[path])
            return
        self._answer(
            409 if path in self.server.there else 201, self.server.there.get(path) or self.server.put(path, made)
        )

    def do_DELETE(self) -> None:
        found = self.server.there.get(self.path)
        uid = self._body().get("preconditions", {}).get("uid")
        if found is None or uid not in (None, found["metadata"]["uid"]):
            self._answer(409 if found else 404)
            return
        self.server.deleted.append(self.path)
        found["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:01Z"
        self._answer(200, found)

    def do_PATCH(self) -> None:
        path, _ = self._asked()
        self.server.patched.append(path)
        self.server.after_patch(path)
        self._answer(self.server.refused.get(path, {"code": 500})["code"], self.server.refused.get(path))

    def _asked(self) -> tuple[str, dict[str, list[str]]]:
        """Path and query of a request that makes or changes something."""
        asked = urlsplit(self.path)
        query = parse_qs(asked.query)
        self.server.validated.extend(query.get("fieldValidation", ["Warn"]))  # what a server does unasked
        return asked.path, query

    def _body(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")

    def _answer(self, status: int, found: object = None) -> None:
        body = json.dumps(found or {"kind": "Status", "code": status}).encode()
        self._send(status, "application/json", body)

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class ApiServer(ThreadingHTTPServer):
    """What is there by its path, what was deleted and patched, and the paths of what never goes or is not listed.

    How each object that was sent should be validated is in `validated`. What is made or changed at the paths of
    `refused` gets the Status there. What is asked for at the paths of `failing` is answered with the status and the
    content that stand there. What is asked for at the paths of `too_busy` it sends away in plain text, as an API
    server with too much to do.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.there: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        self.deleted: list[str] = []
        self.patched: list[str] = []
        self.after_patch: Callable[[str], object] = lambda path: None
        self.stuck: set[str] = set()
        self.forbidden: set[str] = set()
        self.too_busy: set[str] = set()
        self.failing: dict[str, tuple[int, dict[str, Any]]] = {}
        self.validated: list[str] = []
        self.refused: dict[str, dict[str, Any]] = {}
        self._uids = count(1)

    def put(self, path: str, found: dict[str, Any]) -> dict[str, Any]:
        """Let an object be there, and return it as the API would."""
        metadata = {"creationTimestamp": "2026-11-21T10:00:00Z", **found["metadata"], "uid": f"uid-{next(self._uids)}"}
        self.there[path] = {**found, "metadata": metadata}
        return self.there[path]

    def write_kubeconfig(self, path: Path) -> Path:
        """Write a kubeconfig that names this server."""
        content = {
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{self.server_port}"}}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        }
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "x", **content}))
        return path
