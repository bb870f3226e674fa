"""The recorder against a server that knows its version and a controller's metrics."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from playbooks.plugins.module_utils.scale_test import recorder
from playbooks.plugins.module_utils.scale_test.timeline import Line, Reader, Writer

VERSION = dict.fromkeys(
    (
        "major",
        "minor",
        "gitVersion",
        "gitCommit",
        "gitTreeState",
        "buildDate",
        "goVersion",
        "compiler",
        "platform",
    ),
    "v1.36.3",
)
METRICS = """\
controller_runtime_active_workers{controller="interruption"} 0
controller_runtime_reconcile_errors_total{controller="interruption"} 4
"""


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/metrics" and self.server.refusals:  # type: ignore[attr-defined]
            self.server.refusals -= 1  # type: ignore[attr-defined]
            return
        body = METRICS if self.path == "/metrics" else json.dumps(VERSION)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    """Serves both, after it has refused to tell metrics a few times."""

    refusals = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


def record(folder: Path, url: str, metrics_url: str, until: str) -> list[Line]:
    """What is recorded until a type of line comes."""
    kubeconfig = folder / "kubeconfig"
    named = {
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    }
    kubeconfig.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "x", **named}))
    path = folder / "timeline.jsonl"
    reader = Reader(path)
    lines: list[Line] = []
    with Writer(path) as writer:
        recording = recorder.Recorder(writer, (), kubeconfig, metrics_url)
        running = threading.Thread(target=recording.run)
        running.start()
        deadline = time.monotonic() + 10
        while until not in {line["type"] for line in lines} and time.monotonic() < deadline:
            lines += reader.new_lines()
            time.sleep(0.01)
        recording.stop()
        running.join()
    return [*lines, *reader.new_lines()]


def test_what_the_metrics_say_of_the_queue_is_written(tmp_path: Path, server: Server) -> None:
    _, line = record(tmp_path, server.url, f"{server.url}/metrics", until="QUEUE")
    assert (line["type"], line["errors"], line["reading"]) == ("QUEUE", 4, False)


def test_metrics_that_do_not_answer_are_asked_again(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "_METRICS_SECONDS", 0.01)
    server.refusals = 2
    lines = record(tmp_path, server.url, f"{server.url}/metrics", until="QUEUE")
    assert "QUEUE" in {line["type"] for line in lines}
