"""The report for a terminal."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from karpstack.karpenter.fact_dates import old_prices, today
from karpstack.text.shown import visible

_HEADINGS = ("story", "result", "assertions", "seconds", "cost : least", "node", "USD/h", "lived")
_NUMBERS = ("assertions", "seconds", "cost : least", "USD/h", "lived")


def table(report: Mapping[str, Any], width: int = 150) -> str:
    """A line for each kind of node at one price, without colours."""
    drawn = Table()
    for heading in _HEADINGS:
        drawn.add_column(heading, justify="right" if heading in _NUMBERS else "left", overflow="fold")
    for story in report["stories"]:
        assertions = story["assertions"]
        ratio = story["cost"]["ratio"]
        first = (
            visible(story["name"]),
            "passed" if story["passed"] else "FAILED",
            f"{sum(assertion['passed'] for assertion in assertions)}/{len(assertions)}",
            f"{story['seconds']:.1f}",
            f"{ratio:.1f}" if ratio is not None else "",
        )
        for cells in _rows(story["nodeclaims"]) or [("none", "", "")]:
            drawn.add_row(*first, *cells)
            first = ("", "", "", "", "")
        drawn.add_section()
    title = f"Scale test of {report['stack']}: {'passed' if report['passed'] else 'FAILED'}"
    captions = [assumed] if (assumed := report["environment"].get("assumed_images")) else []
    if region := report["environment"].get("prices_of"):
        captions.append(f"Prices are those of {region}, not of {report['environment']['region']}.")
    if any(claim.get("price_simulated") for story in report["stories"] for claim in story["nodeclaims"]):
        captions.append("Prices of spot are simulated: a rule of the rehearsal's, and no market's.")
    if old := old_prices(str(report["environment"].get("cloud")), today()):
        captions.append(old)
    output = io.StringIO()
    # What is in brackets is text too.
    Console(file=output, width=width, no_color=True, markup=False, emoji=False).print(drawn)
    # Around the table, for Rich would fold them, also within a word: a line could begin with a command to GitHub.
    return "\n".join([visible(title), output.getvalue().rstrip(), *map(visible, captions)])


def _rows(claims: Iterable[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """Node, price of one, and how long they lived; a burst has a hundred that are alike."""
    kinds: dict[tuple[str, str], list[float | None]] = {}
    for claim in claims:
        price, times = claim["price_per_hour"], claim["t"]
        node = f"{claim['instance_type'] or 'not launched'} {claim['capacity_type'] or ''} {claim['zone'] or ''}"
        kind = visible(node), f"{price:.4f}" if price is not None else "not known"
        kinds.setdefault(kind, []).append(None if times["gone"] is None else times["gone"] - times["created"])
    return [
        (f"{len(lives)} x {node}" if len(lives) > 1 else node, price, _lived(lives))
        for (node, price), lives in kinds.items()
    ]


def _lived(lives: Iterable[float | None]) -> str:
    known = [f"{life:.0f}" for life in sorted(life for life in lives if life is not None)]
    if not known:
        return ""
    return f"{known[0]} s" if known[0] == known[-1] else f"{known[0]} to {known[-1]} s"
