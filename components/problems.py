"""What is wrong with a configuration, in words: key, value, consequence, fix.

Also the way from pydantic's errors to these. Rules themselves are in `settings`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Set
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, NamedTuple, NoReturn, get_args

import pulumi
from pydantic import BaseModel
from pydantic_core import ErrorDetails, PydanticCustomError

NAMESPACE: Final = "karpstack"
_REFUSED: Final = "karpstack"


@dataclass(frozen=True)
class Problem:
    """One reason why the configuration cannot work.

    Attributes:
        key: As `pulumi config set --path` takes it, for example `karpstack:network.podCidr`.
        value: What was found, as JSON; `(not set)` or `(secret)` otherwise.
        consequence: What would happen, or what is wrong.
        fix: What to do.
    """

    key: str
    value: str
    consequence: str
    fix: str

    def __str__(self) -> str:
        return f"{self.key} = {self.value}\n    {self.consequence}\n    fix: {self.fix}"


class Reason(NamedTuple):
    """Why a key will never be a setting."""

    consequence: str
    fix: str


class SettingsError(pulumi.RunError):
    """The configuration is refused. The engine prints its text, without a traceback, and creates nothing."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        count = f"{len(self.problems)} error" + ("s" if len(self.problems) != 1 else "")
        super().__init__(
            "\n\n".join([f"the stack's configuration has {count}; nothing was created", *map(str, self.problems)])
        )


def refuse(consequence: str, fix: str) -> NoReturn:
    """Refuse the value that is being validated."""
    raise PydanticCustomError(_REFUSED, "{consequence}", {"consequence": consequence, "fix": fix})


def key_of(*location: int | str) -> str:
    """`("network", "zones", 0)` -> `karpstack:network.zones[0]`."""
    first, *rest = location
    key = str(first) if ":" in str(first) else f"{NAMESPACE}:{first}"
    for step in rest:
        plain = isinstance(step, str) and re.fullmatch(r"[\w-]+", step)
        key += f".{step}" if plain else f"[{json.dumps(step)}]"
    return key


def shown(value: object) -> str:
    """A value as JSON, cut where it gets too long to read."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 120 else f"{text[:117]}..."


def from_pydantic(details: ErrorDetails, schema: type[BaseModel], hidden: Set[str]) -> Problem:
    """A pydantic error in this module's terms.

    Args:
        details: One of `ValidationError.errors()`.
        schema: The model that was validated; its fields' descriptions say what a key is.
        hidden: First parts of keys whose values are secret.
    """
    location = [step for step in details["loc"] if step != "[key]"]
    owner, description = _described(location, schema)
    value = "(secret)" if location[0] in hidden else shown(details["input"])
    context = details.get("ctx", {})
    match details["type"]:
        case "missing":
            value = "(not set)"
            consequence, fix = "is required and has no safe default", f"set it: {description}"
        case "extra_forbidden" if reason := getattr(owner, "REFUSED", {}).get(str(location[-1]).lower()):
            consequence, fix = reason
        case "extra_forbidden":
            known = sorted(field.alias or name for name, field in owner.model_fields.items())
            # In lower case: podCIDR is nearer to podCidr than their letters are.
            lower = {key.lower(): key for key in known}
            close = [lower[key] for key in get_close_matches(str(location[-1]).lower(), lower, n=1)]
            consequence = "is not a setting, so it would change nothing and nobody would notice"
            fix = (f"did you mean {close[0]}? " if close else "remove it; ") + f"known here: {', '.join(known)}"
        case _ if details["type"] == _REFUSED:
            consequence, fix = context["consequence"], context["fix"]
        case _:
            consequence = f"cannot be used: {details['msg'][:1].lower()}{details['msg'][1:]}"
            fix = f"give {description}" if description else "see the stack files beside Pulumi.yaml for examples"
    return Problem(key_of(*_without_union_branches(location)), value, consequence, fix)


def _described(location: list[int | str], schema: type[BaseModel]) -> tuple[type[BaseModel], str]:
    """The section that holds a key, and what is said of the key there."""
    owner = schema
    description = ""
    for step in location:
        field = next((field for field in owner.model_fields.values() if field.alias == step), None)
        if field is None:
            break
        description = field.description or description
        section = next(
            (
                branch
                for branch in (field.annotation, *get_args(field.annotation))
                if isinstance(branch, type) and issubclass(branch, BaseModel)
            ),
            None,
        )
        if section is None:
            break
        owner = section
    return owner, description


def _without_union_branches(location: list[int | str]) -> list[int | str]:
    """pydantic adds the branch of a union (`int`, `list[str]`) to a location; it is no part of the key."""
    return [
        step
        for step in location
        if not re.fullmatch(r"int|str|bool|float|list\[.*\]", str(step)) or isinstance(step, int)
    ]
