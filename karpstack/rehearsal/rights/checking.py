"""Whether the documents of a recording can be judged: taken apart into rights, and held against what was asked.

The stand-in answers by more than that: by statements of all actions but some (`NotAction`), for example. Such a one is
no list of rights, of each of which could be said whether it was used.
"""

from __future__ import annotations

import reprlib
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from karpstack.rehearsal.aws.iam import policies
from karpstack.rehearsal.recorded_rights import Cloud, Document, Recording, RecordingError


def _known(operator: str) -> str:
    if not policies.evaluates(operator):
        raise ValueError("the rehearsal does not evaluate this condition operator")
    return operator


_Texts = Annotated[
    list[str], BeforeValidator(lambda value: [value] if isinstance(value, str) else value), Field(min_length=1)
]
_Operator = Annotated[str, AfterValidator(_known)]


class _Statement(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    Sid: str = ""
    Effect: Literal["Allow", "Deny"]
    Action: _Texts
    Resource: _Texts
    Condition: dict[_Operator, dict[str, _Texts]] = {}


class _Assignment(BaseModel):
    model_config = ConfigDict(strict=True)

    role: str
    scope: str
    actions: list[str]
    not_actions: list[str] = Field(alias="notActions")


_SCHEMAS: Final[dict[Cloud, type[BaseModel]]] = {"aws": _Statement, "azure": _Assignment}
_FIX: Final[dict[Cloud, str]] = {
    "aws": "write statements of Effect, Action, Resource and Condition, with strings",
    "azure": "give each assignment role, scope, actions and notActions",
}


def checked(recording: Recording) -> Recording:
    """The recording itself, when all of its documents can be judged.

    Raises:
        RecordingError: One of them cannot; the text says which, where and what to do.
    """
    for principal in recording.principals:
        for name, document in principal.documents.items():
            for part in _parts(recording.cloud, document):
                try:
                    _SCHEMAS[recording.cloud].model_validate(part)
                except ValidationError as error:
                    raise RecordingError(
                        f"document {name!r} of {principal.name!r}, {_error_text(part, error)}, so it cannot be read as "
                        f"permissions, and nothing was judged; {_FIX[recording.cloud]}, and rehearse again"
                    ) from error
    return recording


def _parts(cloud: Cloud, document: Document) -> list[Any]:
    is_policy = cloud == "aws" and isinstance(document, dict)
    return list(policies.statements(document)) if is_policy else [document]


def _error_text(part: Any, error: ValidationError) -> str:
    """What is wrong: in which statement, where and what; rather what is there than what is missing."""
    first = min(error.errors(), key=lambda one: one["type"] == "missing")
    sid = part.get("Sid") if isinstance(part, dict) else None
    key = repr(".".join(map(str, first["loc"])))[1:-1] or "the whole"
    return (f"statement {sid!r}, " if sid else "") + f"{key} = {reprlib.repr(first['input'])}: {first['msg']}"
