"""Recorded stories, told as what-ifs: what a step of one changed is the change, what was before it is the base.

The production controller made the decisions; only the PHASE lines are put in between, and the workload's label is that
of a what-if.
"""

from __future__ import annotations

import gzip
import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from karpstack.karpenter.instance_types import Facts
from karpstack.scale_test.labels import SCENARIO_LABEL
from karpstack.scale_test.recording.timeline import Line, parse_time
from karpstack.whatif.accuracy import RealNode
from karpstack.whatif.answer import Answer
from karpstack.whatif.judge import answer
from karpstack.whatif.labels import SCENARIO
from karpstack.whatif.limits import Limits
from karpstack.whatif.phases import WhatifTimeline, read
from karpstack.whatif.prices import PriceFile

STORIES = Path(__file__).resolve().parents[1] / "scale_test" / "told"
STACK = {"name": "eks", "outputs": {"cloud": "aws", "region": "us-east-1", "karpenterVersion": "1.15.1"}}


def lines(recorded: str, step: int, **phases: dict[str, Any]) -> list[Line]:
    """A story as a what-if.

    Args:
        recorded: The story, such as `eks.drift`.
        step: The step that is the change, from 0.
        phases: What PHASE lines say besides, by phase, with `_` for `-`; `settings` is only there if it is given.
    """
    text = gzip.decompress((STORIES / f"{recorded}.timeline.jsonl.gz").read_bytes()).decode()
    told = [as_whatif(json.loads(line)) for line in text.splitlines()]
    steps = {line["step"]: line for line in told if line["type"] == "STEP"}
    begins, ends = parse_time(steps[step]["requested"]), parse_time(steps[step]["received"])
    times = {
        "settings": begins - timedelta(milliseconds=3),
        "loaded": begins - timedelta(milliseconds=2),
        "base-settled": begins - timedelta(milliseconds=1),
        "change-begins": begins,
        "change-applied": begins + timedelta(milliseconds=1),
        "change-settled": ends,
    }
    said = {name.replace("_", "-"): content for name, content in phases.items()}
    marks = [
        {"type": "PHASE", "received": time.isoformat(), "phase": name, **said.get(name, {})}
        for name, time in times.items()
        if name != "settings" or name in said
    ]
    # Processes write side by side, so that lines are in order within each, and nearly so together.
    return sorted([line for line in told if line["type"] != "STEP"] + marks, key=_received)


def as_whatif(line: Line) -> Line:
    """A line whose scenario is the what-if."""
    if line["type"] == "START":
        return {**line, "stack": STACK}
    if "scenario" in line:
        return {**line, "scenario": SCENARIO}
    if line.get("kind") == "Pod":
        line["object"]["metadata"]["labels"][SCENARIO_LABEL] = SCENARIO
    return line


def told(recorded: str, step: int, **phases: dict[str, Any]) -> WhatifTimeline:
    """The same, read."""
    return read(lines(recorded, step, **phases))


def judged(
    found: WhatifTimeline,
    limits: Limits | None = None,
    given: PriceFile | None = None,
    real: list[RealNode] | None = None,
    *,
    made_up: bool = False,
) -> Answer:
    """The answer to a what-if."""
    return answer(found, facts=Facts.load("aws"), limits=limits or Limits(), given=given, real=real, made_up=made_up)


def _received(line: Line) -> datetime:
    return parse_time(line["received"])
