"""Changing attributes of another package's classes, once and reversibly.

moto offers no extension points for what the rehearsal needs, so methods are replaced. Every replacement goes
through one `Patches`, so that applying twice changes nothing and `undo` leaves moto as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_ABSENT = object()


class Patches:
    """A set of replaced attributes."""

    def __init__(self) -> None:
        #: What the owner itself had, and what it had with inheritance.
        self._originals: dict[tuple[Any, str], tuple[Any, Any]] = {}

    def wrap(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Replace `owner.name` by `make(original)`; the second time the original is still the first one."""
        if (owner, name) not in self._originals:
            own = vars(owner).get(name, _ABSENT)
            self._originals[owner, name] = (own, getattr(owner, name, None) if own is _ABSENT else own)
        _, original = self._originals[owner, name]
        setattr(owner, name, make(original))

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Replace `owner.name` by a value."""
        self.wrap(owner, name, lambda _: value)

    def undo(self) -> None:
        """Put everything back."""
        for (owner, name), (own, _) in self._originals.items():
            if own is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, own)
        self._originals.clear()
