"""The pages in headless Chromium: nothing is loaded, nothing complains, and a phone's page does not scroll sideways.

Skipped where there is no Chromium on PATH.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from websocket import WebSocket, create_connection

from playbooks.plugins.module_utils.scale_test.reports import comparison, comparison_page, page
from tests.unit.playbooks.example_report import Example, timeline

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
CHROMIUM = next((found for name in NAMES if (found := shutil.which(name))), None)
RULES = Path(__file__).resolve().parents[3] / "playbooks" / "vars" / "comparison.yml"
LIMIT = 60.0

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=f"no Chromium on PATH: none of {', '.join(NAMES)}")


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


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a browser's DevTools."""
    assert CHROMIUM
    profile = tmp_path_factory.mktemp("chromium")
    command = [CHROMIUM, "--headless", "--disable-gpu", "--remote-debugging-port=0", f"--user-data-dir={profile}"]
    command += ["--remote-allow-origins=*", "--no-first-run", "--disable-dev-shm-usage", "about:blank"]
    if os.geteuid() == 0:
        command.append("--no-sandbox")  # its sandbox refuses to run as root
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
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


@pytest.fixture
def tab(browser: str) -> Iterator[Tab]:
    connection = create_connection(browser, timeout=LIMIT, suppress_origin=True)
    found = Tab(connection)
    target = found.call("Target.createTarget", url="about:blank")["targetId"]
    connection.close()
    connection = create_connection(
        f"{browser.split('/devtools')[0]}/devtools/page/{target}", timeout=LIMIT, suppress_origin=True
    )
    try:
        yield Tab(connection)
    finally:
        connection.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages to look at, by name."""
    folder = tmp_path_factory.mktemp("pages")
    before = Example().report()
    after = Example(slower=1.5, failing=("eks-interruption",)).report()
    long_name = "x" * 120
    after["stories"][0]["assertions"][0] |= {"seen": long_name, "passed": False}
    after["environment"]["clusterName"] = long_name
    rules = comparison.parse_rules(yaml.safe_load(RULES.read_text())["comparison_rules"])
    content = {
        "report": page.render(before, timeline()),
        "failed": page.render(after, timeline()),
        "many-nodes": page.render(Example(pods=1000, nodes=120, stories=("eks-burst",)).report()),
        "slow": page.render(Example(slower=20, stories=("eks-burst",)).report()),
        "comparison": comparison_page.render(comparison.compare(before, after, rules), before, after, rules),
    }
    found = {name: folder / f"{name}.html" for name in content}
    for name, html in content.items():
        found[name].write_text(html, encoding="utf-8")
    return found


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1280, "dark")])
@pytest.mark.parametrize("name", ["report", "failed", "many-nodes", "comparison"])
def test_a_page_stands_alone_and_fits(tab: Tab, pages: dict[str, Path], name: str, width: int, scheme: str) -> None:
    tab.open(pages[name], width, scheme)
    requested = {found["request"]["url"] for found in tab.of("Network.requestWillBeSent")}
    assert requested <= {pages[name].as_uri(), "data:,"}
    assert tab.of("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown") == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate("document.querySelectorAll('svg').length") > 4
    background = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(17, 23, 29)")
    unseen = tab.evaluate(
        "[...document.querySelectorAll('svg [style*=\"var(\"]')]"
        ".filter(e => getComputedStyle(e).fill === '' || getComputedStyle(e).stroke === '').length"
    )
    assert unseen == 0


@pytest.mark.parametrize("name", ["failed", "comparison"])
def test_text_of_charts_stays_inside_the_page_and_can_be_read(tab: Tab, pages: dict[str, Path], name: str) -> None:
    tab.open(pages[name], 360, "light")
    outside = tab.evaluate(
        "[...document.querySelectorAll('figure svg text')].filter(e => e.getClientRects().length)"
        ".map(e => [e.textContent, e.getBoundingClientRect()])"
        ".filter(([_, r]) => r.left < -0.5 || r.right > innerWidth + 0.5 || r.height < 9).map(([text]) => text)"
    )
    assert outside == []


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", ["report", "slow", "many-nodes", "comparison"])
def test_labels_of_charts_are_free_of_each_other_and_of_bars(
    tab: Tab, pages: dict[str, Path], name: str, width: int
) -> None:
    tab.open(pages[name], width, "light")
    overlapping = tab.evaluate("""
        [...document.querySelectorAll('figure svg')].filter(e => e.getClientRects().length).flatMap(svg => {
          const texts = [...svg.querySelectorAll('text')].filter(e => e.textContent.trim());
          const drawn = [...svg.querySelectorAll('[data-series]:not([data-series^=fault])')]
            .flatMap(e => [...e.querySelectorAll('path, use')].filter(e => !e.closest('defs')));
          const beside = (a, b) => a.right <= b.left + 1 || b.right <= a.left + 1;
          const above = (a, b) => a.bottom <= b.top + 2 || b.bottom <= a.top + 2;
          const apart = (a, b) => beside(a, b) || above(a, b);
          const box = e => e.getBoundingClientRect();
          return texts.flatMap((text, i) => [...texts.slice(i + 1), ...drawn]
            .filter(other => !apart(box(text), box(other)))
            .map(other => [svg.querySelector('title').textContent, text.textContent, other.textContent || 'a bar']));
        })
    """)
    assert overlapping == []


@pytest.mark.parametrize("name", ["report", "failed", "comparison"])
def test_what_is_judged_needs_no_scrolling_on_a_phone(tab: Tab, pages: dict[str, Path], name: str) -> None:
    tab.open(pages[name], 390, "light")
    assert tab.evaluate(
        "[...document.querySelectorAll('.cards')].map(e => e.parentElement).every(e => e.scrollWidth <= e.clientWidth)"
    )
    labels = tab.evaluate(
        "[...document.querySelectorAll('.cards td[data-label]')].map(e => getComputedStyle(e, '::before').content)"
    )
    assert labels
    assert "none" not in labels, "a value without its column's heading"


def test_a_link_unfolds_the_line_of_the_timeline_that_it_leads_to(tab: Tab, pages: dict[str, Path]) -> None:
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    tab.open(pages["report"], 1280, "light")
    shown = "document.getElementById('eks-burst.27').closest('li').querySelector('pre').checkVisibility()"
    assert tab.evaluate(shown) is False
    at = tab.evaluate(
        "(link => {link.scrollIntoView({block: 'center', behavior: 'instant'});"
        "const r = link.getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2]})"
        "(document.querySelector('a[href=\"#eks-burst.27\"]'))"
    )
    for kind in ("mousePressed", "mouseReleased"):
        tab.call("Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], button="left", clickCount=1)
    tab.wait("Page.navigatedWithinDocument")
    assert tab.evaluate("location.hash") == "#eks-burst.27"
    assert tab.evaluate(shown) is True


def test_a_report_prints(tab: Tab, pages: dict[str, Path]) -> None:
    tab.open(pages["report"], 1280, "dark")
    tab.call("Emulation.setEmulatedMedia", media="print")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    printed = base64.b64decode(tab.call("Page.printToPDF", preferCSSPageSize=True)["data"])
    assert printed.startswith(b"%PDF")
