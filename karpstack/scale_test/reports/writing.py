"""The report's files: made from a timeline, any number of times."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from karpstack.text.files import check_output, page_begins
from karpstack.text.files import write as write_file

from ..recording.timeline import Reader
from ..scenarios.environments import Stack
from . import page
from .junit import junit

# Name -> what it is, and how every one begins.
_DOCUMENTS: Final = {
    "report.json": ("report of a scale test", re.compile(rb'\{\s*"schema": *\d+,\s*"stack":')),
    "report.html": (
        "page of a scale test",
        page_begins(rb"[^<]*: (passed|failed) %b scale test</title>" % "·".encode()),
    ),
    "junit.xml": (
        "JUnit file of a scale test",
        re.compile(rb'<\?xml version="1\.0"[^>]*\?>\s*<testsuites name="scale test of '),
    ),
}


class TimelineInfo(NamedTuple):
    """What a timeline is about.

    Attributes:
        stack: The stack; None where its START line, of an older version, names none.
        scenarios: Names of the scenarios that were to run, where its START line says, and of those that began; each in
            its order.
    """

    stack: Stack | None
    scenarios: list[str]


def read_timeline_info(timeline: Path) -> TimelineInfo:
    """Read what a timeline is about.

    Raises:
        TimelineError: A line cannot be read.
    """
    stack, scenarios = None, dict[str, None]()
    for line in Reader(timeline).new_lines():
        if line.get("type") == "START":
            if stack is None and isinstance(line.get("stack"), dict):
                outputs = line["stack"].get("outputs")
                stack = Stack(str(line["stack"].get("name")), outputs if isinstance(outputs, dict) else {})
            if isinstance(line.get("scenarios"), list):
                scenarios |= dict.fromkeys(map(str, line["scenarios"]))
        elif line.get("type") == "STORY":
            scenarios[str(line.get("scenario"))] = None
    return TimelineInfo(stack, list(scenarios))


def with_evidence_in(folder: Path, made: dict[str, Any]) -> dict[str, Any]:
    """The report, in which nobody is sent to evidence that is not there: a timeline can come without it."""
    for story in made["stories"]:
        evidence = f"evidence/{story['name']}/"
        if not (folder / evidence).is_dir():
            for assertion in story["assertions"]:
                where = assertion["where_to_look"].split(", ")
                assertion["where_to_look"] = ", ".join(part for part in where if part != evidence)
    return made


def write(made: Mapping[str, Any], timeline: Path, folder: Path) -> None:
    """Write report.json, junit.xml and report.html; those of an older report are replaced, each as a whole.

    Args:
        made: The report.
        timeline: The timeline that it was made from, of which the page shows lines.
        folder: Where to; it exists.

    Raises:
        OutputError: Somebody else's file has one of the names; nothing is written then.
    """
    for name, (what, beginning) in _DOCUMENTS.items():
        check_output(folder / name, "the report", what, beginning.match)
    lines = page.read_lines(timeline, page.wanted_lines(made))
    suites = io.BytesIO()
    junit(made).write(suites, pretty=True)
    write_file(folder / "report.json", json.dumps(made, indent=2) + "\n")
    write_file(folder / "report.html", page.render(made, lines))
    write_file(folder / "junit.xml", suites.getvalue())
