"""A page of somebody else's, in a real browser, that tries to reach what listens on this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests import chromium
from tests.chromium import Tab

# The page's own host, and one whose name leads to this machine once the page is there (DNS rebinding).
_RESOLVED = "--host-resolver-rules=MAP *.test 127.0.0.1"
_FAULT = '{"kind": "throttle", "calls": 5}'
_PATHS = ("/faults", "/resources", "/moto-api/data.json", "/?Action=DescribeVpcs", "/metrics", "/v3/kv/range")
_REQUESTS: tuple[dict[str, Any], ...] = (
    {},
    {"mode": "no-cors"},
    {"mode": "no-cors", "method": "POST", "body": _FAULT},
    {"method": "POST", "body": _FAULT, "headers": {"Content-Type": "application/json", "Authorization": "Bearer x"}},
    {"method": "DELETE"},
)
#: What each request came to: the answer, as far as the page may read it.
_FETCH = """
Promise.all(PATHS.flatMap(path => REQUESTS.map(async request => {
  try {
    const answer = await fetch(BASE + path, {...request, signal: AbortSignal.timeout(5000)});
    return await answer.text();
  } catch (error) { return ''; }
})))
"""
_FORM = """
(() => {
  const form = document.createElement('form');
  Object.assign(form, {action: BASE + '/faults', method: 'POST', enctype: 'text/plain'});
  const field = document.createElement('input');
  Object.assign(field, {name: '{"kind": "throttle", "calls": 5, "x": "', value: '"}'});
  form.append(field); document.body.append(form); form.submit();
})()
"""


class Attack:
    """The page in its tab.

    Attributes:
        statuses: Of every answer of the addresses that were attacked.
        read: What the page could read of them.
    """

    def __init__(self, tab: Tab, page: str) -> None:
        self._tab = tab
        self._page = page
        self.statuses: set[int] = set()
        self.read: set[str] = set()

    def attack(self, port: int) -> None:
        """Try a port by fetch, by a form, by a link, and as a page of the same origin after DNS rebinding."""
        address = f"http://127.0.0.1:{port}"
        self._open(self._page)
        self._fetch(address)
        self._load(lambda: self._tab.evaluate(_FORM.replace("BASE", json.dumps(address))))
        self._open(f"{address}/faults")
        self._open(f"http://rebound.test:{port}/faults")
        self._fetch(f"http://rebound.test:{port}")
        self.statuses |= {
            event["response"]["status"]
            for event in self._tab.of("Network.responseReceived")
            if urlsplit(event["response"]["url"]).port == port
        }

    def _fetch(self, base: str) -> None:
        script = _FETCH.replace("PATHS", json.dumps(_PATHS)).replace("REQUESTS", json.dumps(_REQUESTS))
        found = self._tab.call(
            "Runtime.evaluate",
            expression=script.replace("BASE", json.dumps(base)),
            awaitPromise=True,
            returnByValue=True,
        )
        self.read |= set(found["result"]["value"]) - {""}

    def _open(self, url: str) -> None:
        self._load(lambda: self._tab.call("Page.navigate", url=url))

    def _load(self, go: Any) -> None:
        self._tab.events = [event for event in self._tab.events if event["method"] != "Page.loadEventFired"]
        go()
        self._tab.wait("Page.loadEventFired")


@contextmanager
def attack(profile: Path) -> Iterator[Attack]:
    """A browser with the page in it."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>Somebody else's</title>")

        def log_message(self, template: str, *args: Any) -> None:
            """Nobody reads it."""

    with (
        ThreadingHTTPServer(("127.0.0.1", 0), Page) as server,
        chromium.browser(profile, _RESOLVED) as browser,
        chromium.tab(browser) as tab,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for domain in ("Page", "Network", "Runtime"):
            tab.call(f"{domain}.enable")
        yield Attack(tab, f"http://attacker.test:{server.server_port}/")
        server.shutdown()
