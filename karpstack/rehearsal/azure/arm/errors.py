"""Errors as Azure Resource Manager gives them: a code, a text and an HTTP status.

Their codes and texts are rows of refusals.yaml.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

_REFUSALS: Final = yaml.load((Path(__file__).parents[1] / "refusals.yaml").read_bytes(), yaml.CSafeLoader)


class ArmError(Exception):
    """A request that ARM, or a resource provider behind it, refuses.

    Attributes:
        code: Azure's error code, for example `ResourceNotFound`.
        message: Azure's text.
        status: HTTP status.
        headers: Headers of the answer (`Retry-After` of a throttled call).
    """

    def __init__(self, code: str, message: str, status: int = 400, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f"Code={code!r} Message={message!r}")
        self.code = code
        self.message = message
        self.status = status
        self.headers = dict(headers or {})

    @property
    def body(self) -> dict[str, Any]:
        """The answer's JSON body."""
        return {"error": {"code": self.code, "message": self.message}}


def refused(name: str, /, **words: Any) -> ArmError:
    """Return the refusal of a name in refusals.yaml, with words in its text."""
    text, *status = _REFUSALS[name]
    return ArmError(name.partition("/")[0], text.format(**words), *status)


def invalid_reference(referenced: str, by: str) -> ArmError:
    """A network resource names another one that does not exist."""
    return refused("InvalidResourceReference", referenced=referenced, by=by)
