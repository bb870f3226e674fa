"""Which lines of the timeline an assertion is about, so that a report can lead there."""

from __future__ import annotations

from collections.abc import Iterable

from ..labels import SCENARIO_LABEL
from ..recording.timeline import Line
from .assertion import Assertion

MOST = 20


class Lines:
    """Where in the timeline what was said. Numbers start at 1."""

    def __init__(self) -> None:
        self._by_name: dict[str, list[int]] = {}
        self._by_kind: dict[tuple[str, str], list[int]] = {}
        self.last = 0

    def add(self, number: int, line: Line) -> None:
        """Take note of a line."""
        self.last = number
        if "object" not in line:
            return
        excerpt = line["object"]
        metadata, kind = excerpt["metadata"], line["kind"]
        about = excerpt.get("involvedObject", {}).get("name")
        for name in filter(None, (metadata["name"], about)):
            self._by_name.setdefault(name, []).append(number)
        # Pods tell which scenario they are of; what has no such label may be anybody's.
        scenario = metadata.get("labels", {}).get(SCENARIO_LABEL, "") if kind == "Pod" else ""
        self._by_kind.setdefault((kind, scenario), []).append(number)

    def of(self, assertion: Assertion, scenario: str, begin: int, end: int, mark: int | None = None) -> list[int]:
        """The lines that an assertion is about.

        Those of the objects that it names; where it names none, the last ones of the kinds that it names.

        Args:
            assertion: The assertion.
            scenario: Name of its scenario.
            begin: First line that can belong to it.
            end: Last line that can.
            mark: The line with which the playbook ended the step, if it did.
        """
        lines = {number for name in assertion.about for number in self._by_name.get(name, ()) if begin <= number <= end}
        if not lines:
            lines = {
                number
                for kind in assertion.kinds
                for number in self._by_kind.get((kind, scenario if kind == "Pod" else ""), ())
                if begin <= number <= end
            }
        return _latest(lines, mark)


def _latest(numbers: Iterable[int], mark: int | None) -> list[int]:
    marks = [mark] if mark is not None else []
    return [*sorted(set(numbers) - set(marks))[-(MOST - len(marks)) :], *marks]
