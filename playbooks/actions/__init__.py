"""What the module `karpstack_action` can do: functions of typed arguments, by subject.

A function returns the result of its task, with `changed`. Modules of this folder have their errors in `ERRORS`.
"""

from __future__ import annotations

from typing import Any

Result = dict[str, Any]


class FailedError(Exception):
    """An action has failed, and its task returns something all the same."""

    def __init__(self, message: str, **told: Any) -> None:
        super().__init__(message)
        self.told = told
