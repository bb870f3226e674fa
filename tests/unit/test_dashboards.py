"""The dashboard asks for metrics that the pinned Karpenter publishes, as what they are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from karpstack.components import versions

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = json.loads((ROOT / "dashboards" / "karpenter.json").read_text())
KNOWN = json.loads((ROOT / "karpstack" / "karpenter" / "facts" / "metrics-aws.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def names(expression: str) -> Iterator[tuple[str, str]]:
    """Metrics that an expression asks for, and what it takes each for: a counter, a histogram, a summary or a gauge."""
    for name in re.findall(r"\bkarpenter_[a-z_]+", expression):
        if name.endswith("_bucket"):
            yield name.removesuffix("_bucket"), "histogram"
        elif re.search(rf"(rate|increase)\({name}", expression):
            yield name, "counter"
        elif re.search(rf"{name}{{[^}}]*quantile=", expression):
            yield name, "summary"
        else:
            yield name, "gauge"


def expressions(panel: dict[str, Any]) -> list[str]:
    return [target["expr"] for target in panel["targets"]]


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_each_metric_is_there_and_what_it_is_taken_for(panel: dict[str, Any]) -> None:
    asked = [found for expression in expressions(panel) for found in names(expression)]
    assert asked, "it asks for nothing of Karpenter's"
    for name, kind in asked:
        assert KNOWN["metrics"].get(name) == kind, f"{name} is {KNOWN['metrics'].get(name, 'no metric')}, not {kind}"


def test_its_variables_too() -> None:
    queries = [one["query"]["query"] for one in DASHBOARD["templating"]["list"] if one["type"] == "query"]
    assert {name for query in queries for name, _ in names(query)} <= set(KNOWN["metrics"])


def test_the_names_are_those_of_the_pinned_release() -> None:
    assert KNOWN["release"] == versions.KARPENTER_AWS, "run: make facts"


def test_panels_have_ids_places_and_a_sentence_of_their_own() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len({(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}) == len(panels)
    assert all(panel["description"].endswith(".") for panel in PANELS)
