"""Calls in a row, as a table lists them: what each is given, what it answers, or the code with which it is refused.

A row has one call, `<root>.<method>`, and what it is given: a mapping by name, a list by place. Besides:

- `refused`: the code of the refusal (`text`: words in its message).
- `gives`: JMESPath into the answer -> what stands there; a text between slashes is a form.
- `as`: a name for the answer, or names for parts of it by JMESPath; `<name>` stands for them in later rows.
- `within`: seconds in which the answer becomes what `gives` says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Set
from pathlib import Path
from typing import Any

import jmespath
import pytest
import yaml

from karpstack.rehearsal.host.processes import wait_until
from tests.unit.rehearsal.recordings import resolved

_OPTIONS = frozenset({"refused", "text", "gives", "as", "within"})
Row = Mapping[str, Any]


def cases(file: str) -> list[Any]:
    """The cases of a table as parameters: its rows with those of the section's `first` before them."""
    table: dict[str, dict[str, list[Row]]] = yaml.safe_load(Path(__file__).with_name(file).read_text())
    return [
        pytest.param([*named.get("first", ()), *rows], id=f"{section}-{name}")
        for section, named in table.items()
        for name, rows in named.items()
        if name != "first"
    ]


class Steps:
    """Takes the rows of one case.

    Attributes:
        known: What `<...>` stands for; a function is called when its name is met.
    """

    def __init__(self, root: Callable[[str], Any], known: Mapping[str, Any]) -> None:
        """`root` gives what the first part of a call names."""
        self._root = root
        self.known = dict(known)

    def run(self, rows: list[Row]) -> None:
        """Take them in order."""
        for row in rows:
            self._take(row)

    def _take(self, row: Row) -> None:
        ((path, arguments),) = ((key, value) for key, value in row.items() if key not in _OPTIONS)
        given = resolved(arguments, self._value)
        if "refused" in row:
            with pytest.raises(Exception) as caught:  # noqa: PT011  the code is looked at
                self._call(path, given)
            assert _code(caught.value) == row["refused"], (row, caught.value)
            assert str(resolved(row.get("text", ""), self._value)) in str(caught.value), row
            return
        wanted = resolved(row.get("gives", {}), self._value)
        if "within" in row:
            wait_until(lambda: not unlike(self._call(path, given), wanted), f"{path}: {wanted}", row["within"])
        answer = self._call(path, given)
        assert not (other := unlike(answer, wanted)), (row, other)
        names = row.get("as", {})
        self.known |= (
            {names: answer} if isinstance(names, str) else {k: jmespath.search(v, answer) for k, v in names.items()}
        )

    def _call(self, path: str, given: Any) -> Any:
        first, *rest = path.split(".")
        found = self._root(first)
        for name in rest:
            found = getattr(found, name)
        if not callable(found):
            return found
        answer = found(**given) if isinstance(given, dict) else found(*given or ())
        # JMESPath knows lists alone.
        return sorted(answer) if isinstance(answer, Set) else [*answer] if isinstance(answer, tuple) else answer

    def _value(self, name: str) -> Any:
        found = self.known[name]
        return found() if callable(found) else found


def unlike(answer: Any, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """What is not as it is wanted, by its path."""
    found = {path: jmespath.search(path, answer) for path in wanted}
    return {path: found[path] for path, value in wanted.items() if not _is(found[path], value)}


def _is(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, list) and isinstance(found, list | tuple):
        return len(found) == len(wanted) and all(map(_is, found, wanted))
    if isinstance(wanted, str) and len(wanted) > 2 and wanted[0] == wanted[-1] == "/":
        return bool(re.search(wanted[1:-1], str(found)))
    return bool(found == wanted)


def _code(error: Exception) -> str:
    """The code of a refusal, whichever cloud's."""
    response = getattr(error, "response", {})
    code = response.get("Error", {}).get("Code") or getattr(error, "code", "") or getattr(error, "number", "")
    code = code or getattr(error, "status", "")
    return str(code or type(error).__name__)
