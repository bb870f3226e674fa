"""Whether recordings are of the whole soak: what a scenario alone uses looks unused until that scenario has run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import yaml

from karpstack.rehearsal.recorded_rights import Cloud, Recording
from karpstack.text import files

#: The kind of environment, as scenarios call it, whose controller has rights of the stack's.
_KINDS: Final[Mapping[Cloud, str]] = {"aws": "eks", "azure": "aks-self-hosted"}


def lacking(recording: Recording, scenarios: Path) -> list[str]:
    """Names of the soak's scenarios that a recording is not of; all of them where it does not say which it is of.

    Args:
        recording: The recording.
        scenarios: Folder of all scenarios.
    """
    return sorted(_all(scenarios, _KINDS[recording.cloud]) - (recording.scenarios or frozenset()))


def ended(report: Path) -> list[str]:
    """Names of the scenarios that passed in a report (`report.json`); none where there is no report.

    One that failed may have ended before all that it would have had the controller ask.
    """
    try:
        stories = json.loads(report.read_text(encoding="utf-8"))["stories"]
        return [str(story["name"]) for story in stories if story["passed"]]
    except (OSError, ValueError, LookupError, TypeError):
        return []


def note(path: Path, names: Iterable[str]) -> None:
    """Add scenarios that have run to the list beside a recording."""
    files.write(path, json.dumps(sorted({*noted(path), *names})), private=True)


def noted(path: Path) -> frozenset[str]:
    """The scenarios of that list; none where it is missing or no list."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return frozenset()
    return frozenset(map(str, found)) if isinstance(found, list) else frozenset()


def _all(folder: Path, kind: str) -> set[str]:
    found = [yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader) for path in sorted(folder.glob("*.yml"))]
    return {scenario["name"] for scenario in found if kind in scenario["stacks"]}
