"""The report's files: made from a timeline, as often as one likes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from karpenter.instance_types import Facts

from ..numbers.thresholds import Thresholds
from ..recording.timeline import Reader, TimelineError
from ..scenarios.environments import Stack
from ..scenarios.scenario import Scenario
from ..text.files import replace
from . import page, report
from .junit import junit


def recorded_stack(timeline: Path) -> Stack:
    """The stack that a timeline is about.

    Raises:
        TimelineError: It has no beginning, or one of an older version, which does not say.
    """
    start = next((line for line in Reader(timeline).new_lines() if line["type"] == "START"), {})
    if not isinstance(start.get("stack"), dict):
        raise TimelineError(
            f"{timeline}: its START line names no stack, so it is not known what its stories ran on; give it with "
            "--stack NAME --outputs FILE"
        )
    return Stack(str(start["stack"].get("name")), start["stack"].get("outputs") or {})


def judged(
    timeline: Path,
    scenarios: Sequence[Scenario],
    stack: Stack,
    *,
    facts: Facts | None = None,
    thresholds: Thresholds | None = None,
    version: str | None = None,
) -> dict[str, Any]:
    """The report of a timeline; the arguments are those of `report.make`.

    Raises:
        TimelineError: A line of the timeline cannot be read.
    """
    return report.make(
        scenarios,
        Reader(timeline).new_lines(),
        stack.name,
        stack.outputs,
        facts=facts,
        thresholds=thresholds,
        version=version,
    )


def write(made: Mapping[str, Any], timeline: Path, folder: Path) -> None:
    """Write report.json, junit.xml and report.html; what is there is replaced as a whole.

    Args:
        made: The report.
        timeline: The timeline that it was made from, of which the page shows lines.
        folder: Where to; it exists.
    """
    lines = page.read_lines(timeline, page.wanted_lines(made))
    replace(folder / "report.json", json.dumps(made, indent=2) + "\n")
    replace(folder / "report.html", page.render(made, lines))
    suites = folder / "junit.xml"
    suites.unlink(missing_ok=True)
    junit(made).write(str(suites), pretty=True)
