"""A headless Chromium, spoken to by the DevTools protocol, for tests of what a browser does."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from websocket import WebSocket, create_connection

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
CHROMIUM = next((found for name in NAMES if (found := shutil.which(name))), None)
LIMIT = 60.0

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason=f"no Chromium on PATH: none of {', '.join(NAMES)}")


class Tab:
    """A page in the browser, spoken to by the DevTools protocol."""

    def __init__(self, connection: WebSocket) -> None:
        self._connection = connection
        self._numbers = itertools.count(1)
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        self._connection.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = self._receive()
            if message.get("id") == number:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result

    def open(self, path: Path, width: int, scheme: str) -> None:
        """Load a file at a width and wait until it is there."""
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 600
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url=path.as_uri())
        self.wait("Page.loadEventFired")

    def wait(self, method: str) -> None:
        """Until there was such an event."""
        while not any(event["method"] == method for event in self.events):
            self._receive()

    def evaluate(self, expression: str) -> Any:
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def of(self, *methods: str) -> list[dict[str, Any]]:
        return [event["params"] for event in self.events if event["method"] in methods]

    def _receive(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self._connection.recv())
        if "method" in message:
            self.events.append(message)
        return message


@contextmanager
def browser(profile: Path, *arguments: str) -> Iterator[str]:
    """Run a browser with a profile of its own; the address of its DevTools."""
    assert CHROMIUM
    command = [CHROMIUM, "--headless", "--disable-gpu", "--remote-debugging-port=0", f"--user-data-dir={profile}"]
    command += ["--remote-allow-origins=*", "--no-first-run", "--disable-dev-shm-usage", *arguments, "about:blank"]
    if os.geteuid() == 0:
        command.append("--no-sandbox")  # its sandbox refuses to run as root
    # Its crash reports and settings go to the home, whatever the profile.
    environment = os.environ | {"HOME": str(profile)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        port, deadline = profile / "DevToolsActivePort", time.monotonic() + LIMIT
        while not port.is_file() or len(port.read_text().splitlines()) < 2:
            assert process.poll() is None, f"{CHROMIUM} ended with {process.returncode}"
            assert time.monotonic() < deadline, f"{CHROMIUM} opened no port in {LIMIT:g} s"
            time.sleep(0.05)
        number, path = port.read_text().splitlines()[:2]
        yield f"ws://127.0.0.1:{number}{path}"
    finally:
        process.terminate()
        process.wait(LIMIT)


@contextmanager
def tab(address: str) -> Iterator[Tab]:
    """A new tab of the browser whose DevTools have this address."""
    with closing(create_connection(address, timeout=LIMIT, suppress_origin=True)) as connection:
        target = Tab(connection).call("Target.createTarget", url="about:blank")["targetId"]
    page = f"{address.split('/devtools')[0]}/devtools/page/{target}"
    with closing(create_connection(page, timeout=LIMIT, suppress_origin=True)) as connection:
        yield Tab(connection)
