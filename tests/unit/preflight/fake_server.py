"""A server on this machine that gives the answers of a test. If it is asked as a proxy, it opens no tunnel."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


class FakeServer:
    """Answers by path, or by path and query: a status, and a body. All else gets `otherwise`."""

    def __init__(self) -> None:
        self.said: dict[str, tuple[int, str]] = {}
        self.otherwise = (404, "no")
        self.headers: dict[str, str] = {}
        self.lengths: dict[str, int] = {}  # that are said instead of the real ones
        self.asked: list[str] = []
        self.sent: list[str] = []
        self.logins: set[str | None] = set()
        self.tokens: set[str | None] = set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.port = self._server.server_port

    def __enter__(self) -> FakeServer:
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                fake.sent.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
                self.do_GET()

            def do_GET(self) -> None:
                fake.asked.append(self.path)
                fake.logins.add(self.headers["Proxy-Authorization"])
                fake.tokens.add(self.headers["Authorization"])
                status, content = fake.said.get(self.path) or fake.said.get(self.path.partition("?")[0], fake.otherwise)
                body = content.encode()
                self.send_response(status)
                for name, value in {
                    **fake.headers,
                    "Content-Length": str(fake.lengths.get(self.path.partition("?")[0], len(body))),
                }.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def do_DELETE(self) -> None:
                self.do_GET()

            def do_CONNECT(self) -> None:
                self.do_GET()

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler
