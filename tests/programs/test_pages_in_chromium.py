"""The pages in headless Chromium: nothing is loaded, nothing complains, and a phone's page does not scroll sideways.

Skipped where there is no Chromium on PATH.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from karpstack.scale_test.reports import comparison, comparison_page, page
from karpstack.whatif import page as whatif_page
from tests import chromium
from tests.chromium import Tab, needs_chromium
from tests.unit.scale_test.example_report import Example, timeline
from tests.unit.whatif.told import judged, told

RULES = Path(__file__).resolve().parents[2] / "playbooks" / "vars" / "comparison.yml"

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a browser's DevTools."""
    with chromium.browser(tmp_path_factory.mktemp("chromium")) as address:
        yield address


@pytest.fixture
def tab(browser: str) -> Iterator[Tab]:
    with chromium.tab(browser) as found:
        yield found


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
        "whatif": whatif_page.render(judged(told("eks.consolidation-policies", 3))),
    }
    found = {name: folder / f"{name}.html" for name in content}
    for name, html in content.items():
        found[name].write_text(html, encoding="utf-8")
    return found


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1280, "dark")])
@pytest.mark.parametrize("name", ["report", "failed", "many-nodes", "comparison", "whatif"])
def test_a_page_stands_alone_and_fits(tab: Tab, pages: dict[str, Path], name: str, width: int, scheme: str) -> None:
    tab.open(pages[name], width, scheme)
    requested = {found["request"]["url"] for found in tab.of("Network.requestWillBeSent")}
    assert requested <= {pages[name].as_uri(), "data:,"}
    assert tab.of("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown") == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate("document.querySelectorAll('svg').length") > (1 if name == "whatif" else 4)
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
