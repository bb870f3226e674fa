"""report.html: the report as one page that needs nothing but itself.

A pure function of report.json and, for the lines that assertions point at, of the timeline. The templates are data
beside this module; who calls says where they are, because Ansible runs modules from an archive without them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from karpstack.text.shown import visible

from . import charts, units
from .reasons import reasons
from .schema import SCHEMA

_TEMPLATES = Path(__file__).parent / "templates"
_CAPTIONS = 400  # characters of a timeline line in its caption
_LONGEST = 4000  # characters of a timeline line that are shown
_STEPS_SHOWN = 4
_ENDS = 3  # lines at each end to which an assertion that passed leads


@dataclass(frozen=True)
class TimelineLine:
    """A line of timeline.jsonl for the page.

    Attributes:
        number: From 1.
        caption: What it is about, in short.
        text: The line as text of an element, where quotes, of which it is full, need no escape.
    """

    number: int
    caption: str
    text: Markup


def render(report: Mapping[str, Any], timeline: Mapping[int, str] | None = None) -> str:
    """The page of a report.

    Args:
        report: The content of report.json, schema 2.
        timeline: Lines of timeline.jsonl by number, from 1; those of `wanted_lines` at least, to be shown.

    Returns:
        HTML.

    Raises:
        ValueError: The report has another schema; the message has the fix.
    """
    if report.get("schema") != SCHEMA:
        raise ValueError(
            f"the report has schema {report.get('schema')!r}, the page is drawn from schema {SCHEMA}: run the scale "
            "test again, or make the report again from its timeline"
        )
    lines = timeline or {}
    stories = [_story(story, lines, report["environment"]) for story in report["stories"]]
    return template("report.html.j2").render(
        report=report,
        stories=stories,
        failed=[story for story in report["stories"] if not story["passed"]],
        assertions=sum(len(story["assertions"]) for story in report["stories"]),
        controller_charts=charts.controller(report),
        simulated=bool(report["environment"].get("simulated")),
    )


@cache
def template(name: str, folder: Path = _TEMPLATES) -> Template:
    """A template, read and compiled once a process, with the filters that write numbers.

    Args:
        name: Its file.
        folder: Where it is; what it is made of may also be beside this module.
    """
    environment = Environment(
        loader=FileSystemLoader([folder, _TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Markup is what this project made itself, of text that was cleaned before.
        finalize=lambda value: visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value,
    )
    for made in (
        units.brief,
        units.clock,
        units.count,
        units.dollars,
        units.duration,
        units.memory,
        units.moment,
        units.share,
        units.times,
    ):
        environment.filters[made.__name__] = made
    environment.filters["yaml"] = _yaml
    environment.filters["slug"] = slug
    environment.filters["phase_name"] = charts.phase_name
    environment.globals["dash"] = units.NONE
    environment.globals["stylesheet"] = (_TEMPLATES / "style.css").read_text(encoding="utf-8")
    return environment.get_template(name)


def wanted_lines(report: Mapping[str, Any]) -> set[int]:
    """Numbers of the timeline's lines that the page shows."""
    return {number for story in report["stories"] for number in _wanted(story)}


def _wanted(story: Mapping[str, Any]) -> set[int]:
    return {number for assertion in story["assertions"] for end in _ends(assertion) for number in end}


def read_lines(path: Path, numbers: Iterable[int]) -> dict[int, str]:
    """Lines of a file by number, from 1; those that are not there, and all if there is no file, are left out."""
    wanted = set(numbers)
    if not wanted or not path.is_file():
        return {}
    last = max(wanted)
    lines = {}
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, text in enumerate(file, 1):
            if number in wanted:
                lines[number] = text.rstrip("\n")
            if number >= last:
                break
    return lines


def slug(text: str) -> str:
    """A name that is safe in an address: `eks-spot`; what is not a letter, digit or dash becomes a dash."""
    return "".join(character if character.isalnum() and character.isascii() else "-" for character in text)


@dataclass(frozen=True)
class _Row:
    assertion: Mapping[str, Any]
    name: str
    heading: str  # the step's title where a step's assertions begin
    first: tuple[int, ...]  # lines that it is about
    more: int  # so many after those are not linked
    last: tuple[int, ...]


def _assertions(story: Mapping[str, Any]) -> Iterator[_Row]:
    """Assertions under the titles of their steps, which their names then need not repeat."""
    titles = {step["index"]: step for step in story["steps"]}
    before: int | None = None
    for assertion in story["assertions"]:
        step = assertion.get("step")
        heading = ""
        if step != before:
            heading = charts.step_title(titles[step]) if step in titles else f"Step {step}" if step else "The story"
        before = step
        prefix = f"{titles[step]['title']}, " if step in titles else ""
        first, last = _ends(assertion)
        more = len(assertion.get("lines") or ()) - len(first) - len(last)
        yield _Row(assertion, assertion["name"].removeprefix(prefix), heading, first, more, last)


def _ends(assertion: Mapping[str, Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The first and the last of an assertion's lines; all are among the first if they are few, or if it failed."""
    numbers = tuple(assertion.get("lines") or ())
    if not assertion["passed"] or len(numbers) <= 2 * _ENDS:
        return numbers, ()
    return numbers[:_ENDS], numbers[-_ENDS:]


def _lines(story: Mapping[str, Any], lines: Mapping[int, str]) -> dict[int, TimelineLine]:
    """The lines that a story's assertions lead to, by number, each once: most are wanted by many assertions."""
    return {number: _line(number, lines[number]) for number in sorted(_wanted(story) & lines.keys())}


def _story(story: Mapping[str, Any], lines: Mapping[int, str], environment: Mapping[str, Any]) -> dict[str, Any]:
    """A story and what is drawn of it."""
    waterfalls = [chart for step in story["steps"] if (chart := charts.waterfall(story, step))]
    return {
        "data": story,
        "assertions": list(_assertions(story)),
        "lines": _lines(story, lines),
        "waterfalls": waterfalls[:_STEPS_SHOWN],
        "more_waterfalls": waterfalls[_STEPS_SHOWN:],
        "distributions": list(charts.distributions(story)),
        "over_time": list(charts.over_time(story)),
        "gantt": charts.gantt(story),
        "simulated": bool(charts.simulated_phases(story)),
        "reached": _reached(story),
        "judged": " ".join(assertion["name"] for assertion in story["assertions"] if not assertion.get("step")),
        "peak_pods": max((row[2] for row in story["series"]["pods"]), default=None),
        "instance_types": _instance_types(story),
        "reasons": reasons(story, environment.get("cloud"), environment.get("prices_of")),
    }


def _reached(story: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row for each step and kind: seconds by percent."""
    rows: dict[tuple[int, str], dict[int, float | None]] = {}
    for level in story["reached"]:
        rows.setdefault((level["step"], level["kind"]), {})[level["percent"]] = level["seconds"]
    return [{"step": step, "kind": kind, "seconds": seconds} for (step, kind), seconds in rows.items()]


def _instance_types(story: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Kinds of nodes, the most frequent first: how many, and their price."""
    kinds: dict[tuple[str, str, str], dict[str, Any]] = {}
    for claim in story["nodeclaims"]:
        key = (claim["instance_type"] or "not launched", claim["capacity_type"] or "", claim["nodepool"] or "")
        row = kinds.setdefault(
            key, {"type": key[0], "capacity": key[1], "nodepool": key[2], "n": 0, "prices": set(), "claim": claim}
        )
        row["n"] += 1
        if claim["price_per_hour"] is not None:
            row["prices"].add(claim["price_per_hour"])
    for row in kinds.values():
        row["simulated"] = row["claim"].get("price_simulated", False)
        row["low"], row["high"] = (min(row["prices"]), max(row["prices"])) if row["prices"] else (None, None)
    return sorted(kinds.values(), key=lambda row: -row["n"])


def _line(number: int, text: str) -> TimelineLine:
    """A line with a caption made of what most people look for in it."""
    try:
        line = json.loads(text)
        content = line.get("object") or {}
        about = content.get("metadata", {}).get("name") or content.get("involvedObject", {}).get("name")
        parts = (line.get("received", "")[11:23], line["type"], line.get("kind"), about, content.get("reason"))
        caption = " ".join(str(part) for part in parts if part)[:_CAPTIONS]
    except (ValueError, KeyError, AttributeError, TypeError):
        caption = "not read"
    cut = f"{text[:_LONGEST]} … ({len(text):,} characters in all)" if len(text) > _LONGEST else text
    return TimelineLine(number, caption, Markup(escape(visible(cut), quote=False)))  # noqa: S704


def _yaml(data: object) -> str:
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)
