"""The report for a terminal."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from ..text.shown import visible

_HEADINGS = ("story", "result", "assertions", "seconds", "cost : least", "node", "USD/h", "lived")
_NUMBERS = ("assertions", "seconds", "cost : least", "USD/h", "lived")


def table(report: Mapping[str, Any], width: int = 150) -> str:
    """A line a node, without colours."""
    drawn = Table(
        title=visible(f"Scale test of {report['stack']}: {'passed' if report['passed'] else 'FAILED'}"),
        title_justify="left",
    )
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
        for claim in story["nodeclaims"] or [None]:
            drawn.add_row(*first, *(_cells(claim) if claim else ("none", "", "")))
            first = ("", "", "", "", "")
        drawn.add_section()
    output = io.StringIO()
    # What is in brackets is text too.
    Console(file=output, width=width, no_color=True, markup=False, emoji=False).print(drawn)
    return output.getvalue().rstrip()


def _cells(claim: Mapping[str, Any]) -> tuple[str, str, str]:
    price, times = claim["price_per_hour"], claim["t"]
    lived = f"{times['gone'] - times['created']:.0f} s" if times["gone"] is not None else ""
    return (
        visible(f"{claim['instance_type'] or 'not launched'} {claim['capacity_type'] or ''} {claim['zone'] or ''}"),
        f"{price:.4f}" if price is not None else "not known",
        lived,
    )
