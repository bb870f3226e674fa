"""What is said of one thing that was checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

#: What the report says of an assertion.
TOLD: Final = ("name", "expected", "seen", "passed", "where_to_look")


@dataclass(frozen=True)
class Assertion:
    """One thing that was checked.

    Attributes:
        name: What.
        expected: What was expected.
        seen: What was seen.
        passed: Whether that is the same.
        where_to_look: Where people find out why not.
        about: Names of the objects that it is about.
        kinds: Where it names none, the kinds that it is about.
    """

    name: str
    expected: str
    seen: str
    passed: bool
    where_to_look: str
    about: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()

    @property
    def report_fields(self) -> dict[str, Any]:
        """What the report says of it."""
        return {field: getattr(self, field) for field in TOLD}

    @property
    def message(self) -> str:
        """What people read when it failed."""
        return f"{self.name}: expected {self.expected}; seen {self.seen}; look at {self.where_to_look}"
