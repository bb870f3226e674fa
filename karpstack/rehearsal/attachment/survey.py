"""Records unsupported resources during a preview, which continues as if the rehearsal had them.

Without a survey, a preview ends at the first unsupported resource. With one, the user gets the whole list.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from karpstack.rehearsal.attachment.package import Configuration, Provider
from karpstack.rehearsal.attachment.resource import Created, Properties, RefusedError, Resource

#: Of a package without a simulated provider: it supports nothing.
NOTHING = Configuration(frozenset(), lambda settings, cancelled: Provider())


class Survey:
    """A file to which all providers write. A survey is under way while the process lives that started it."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file

    @property
    def under_way(self) -> bool:
        """Whether a survey is under way."""
        starter = next(iter(self._lines()), "")
        return starter.isdecimal() and psutil.pid_exists(int(starter))

    def note(self, type: str, name: str, part: str = "") -> None:
        """Record an unsupported type, or an unsupported part of a resource; do nothing without a survey."""
        if self._file is not None and self.under_way:
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps([type, name, part]) + "\n")

    def begin(self) -> None:
        """Start a survey."""
        if self._file is not None:
            self._file.write_text(f"{os.getpid()}\n", encoding="utf-8")

    def end(self) -> list[str]:
        """End the survey; return a line for each unsupported thing."""
        noted = self._lines()[1:]
        if self._file is not None:
            self._file.unlink(missing_ok=True)
        return list(dict.fromkeys(_shown(noted)))

    def _lines(self) -> list[str]:
        try:
            return self._file.read_text(encoding="utf-8").splitlines() if self._file else []
        except FileNotFoundError:
            return []


def _shown(noted: list[str]) -> Iterator[str]:
    for line in noted:
        with suppress(ValueError):  # the last one, of a provider that was ended
            type, name, part = json.loads(line)
            yield f"{type} {name}: {part}" if part else f"{type} {name}".rstrip()


class Unsupported(Resource):
    """An unsupported type during a survey: it accepts every input and creates nothing."""

    def __init__(self, token: str) -> None:
        self.token = token

    def unknown(self, inputs: Properties) -> list[str]:
        """Return nothing: the type itself was recorded."""
        return []

    def create(self, inputs: Properties, *, timeout: float) -> Created:
        """Refuse it: a survey only previews."""
        raise RefusedError(f"the rehearsal has no stand-in for {self.token}")

    def read(self, id: str, state: Mapping[str, Any]) -> Properties | None:
        """Return the state unchanged."""
        return dict(state)

    def delete(self, id: str, state: Properties, *, timeout: float) -> None:
        """Do nothing: it was never created."""
