"""What is wrong with a configuration, in words: key, value, consequence, fix.

Also the way from pydantic's errors to these. Rules themselves are in `settings`. What is shown has come from a file
that anybody may have written: it is cut where it gets too long to read, and has no characters that a terminal obeys.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Final, NamedTuple, NoReturn, get_args

import pulumi
from pydantic import BaseModel
from pydantic_core import ErrorDetails, PydanticCustomError

NAMESPACE: Final = "karpstack"
_REFUSED: Final = "karpstack"
_SECRET: Final = "(secret)"  # noqa: S105  it is none
_NOT_SET: Final = "(not set)"
#: Shorter texts inside a secret value are no secrets, and are parts of other words.
_SHORTEST_SECRET: Final = 4
_LONGEST_VALUE: Final = 120
_LONGEST_SENTENCE: Final = 1_000
_MOST_PROBLEMS: Final = 100
_MOST_CHOICES: Final = 30
_CONSENT: Final = 'pulumi config set --path "karpstack:allowReplacement[0]" cluster'
#: What to do where a change would destroy something, beside taking it back.
OTHER_WAYS: Final = (
    "make another stack and move over; or, if the loss is meant, consent to it for one `pulumi up`, and take the "
    f"consent back afterwards: {_CONSENT}"
)
#: What to write where something of another shape was found, by pydantic's name of the error.
_SHAPES: Final[Mapping[str, str]] = {
    "dict_type": "an object: keys with values",
    "list_type": "a list",
    "string_type": "a text; one that looks like a number or a truth value needs quotes",
}


@dataclass(frozen=True)
class Problem:
    """One reason why the configuration cannot work, or why it may not.

    Attributes:
        key: As `pulumi config set --path` takes it, for example `karpstack:network.podCidr`.
        value: What was found, as JSON; `(not set)` or `(secret)` otherwise.
        consequence: What would happen, or what is wrong.
        fix: What to do.
        warning: Whether it may be meant: it is said, and nothing is refused.
    """

    key: str
    value: str
    consequence: str
    fix: str
    warning: bool = False

    def __str__(self) -> str:
        key, value, consequence, fix = map(readable, (self.key, self.value, self.consequence, self.fix))
        return f"{key} = {value}\n    {consequence}\n    fix: {fix}"

    def without(self, secrets: Mapping[str, object]) -> Problem:
        """The same with nothing in it of values that are secret, which are given by their full keys."""
        own = any(re.match(rf"{re.escape(key)}([.\[]|$)", self.key) for key in secrets)
        texts = sorted({text for value in secrets.values() for text in _texts(value)}, key=len, reverse=True)
        said = re.compile("|".join(map(re.escape, texts)) or "(?!)")
        return replace(
            self,
            value=_SECRET if own and self.value != _NOT_SET else self.value,
            consequence=said.sub(_SECRET, self.consequence),
            fix=said.sub(_SECRET, self.fix),
        )


class Reason(NamedTuple):
    """Why a key will never be a setting."""

    consequence: str
    fix: str


class SettingsError(pulumi.RunError):
    """The configuration is refused. The engine prints its text, without a traceback, and creates nothing."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        count = f"{len(self.problems)} error" + ("s" if len(self.problems) != 1 else "")
        parts = [f"the stack's configuration has {count}; nothing was created in the cloud"]
        parts += map(str, self.problems[:_MOST_PROBLEMS])
        if len(self.problems) > _MOST_PROBLEMS:
            parts.append(f"and {len(self.problems) - _MOST_PROBLEMS} more")
        super().__init__("\n\n".join(parts))


def doubts(problems: Iterable[Problem]) -> list[Problem]:
    """The problems, where all of them are warnings.

    Raises:
        SettingsError: Some are not.
    """
    every = list(problems)
    if refused := [problem for problem in every if not problem.warning]:
        raise SettingsError(refused)
    return every


def replacing(key: str, was: object, wanted: object, lost: str, keeping: str) -> Problem:
    """Return the problem of a setting whose change destroys something.

    Args:
        key: Of the setting, as `key_of` returns it.
        was: Its value by the stack's last state; None for none.
        wanted: The value that it has now.
        lost: What would happen, and what would be lost.
        keeping: The way that keeps it, beside the consent.
    """
    before, after = ("(not set)" if value is None else shown(value) for value in (was, wanted))
    return Problem(key, f"{after}, was {before}", lost, f"{keeping}; or {OTHER_WAYS}")


def refuse(consequence: str, fix: str) -> NoReturn:
    """Refuse the value that is being validated."""
    raise PydanticCustomError(_REFUSED, "{consequence}", {"consequence": consequence, "fix": fix})


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """The beginning of a fix: the nearest of the known words as a question; empty where none is near."""
    # In lower case: podCIDR is nearer to podCidr than their letters are.
    lower = {word.lower(): word for word in known}
    # A longer one is near to nothing, and comparing takes its length squared.
    close = get_close_matches(given[:100].lower(), lower, n=1)
    return f"did you mean {lower[close[0]]}? " if close else ""


def one_of(known: Iterable[str]) -> str:
    """The end of a fix: what may be chosen, if that is short enough to be read."""
    words = list(known)
    return f"choose {', '.join(words)}" if len(words) <= _MOST_CHOICES else "choose one that exists"


def key_of(*location: int | str) -> str:
    """`("network", "zones", 0)` -> `karpstack:network.zones[0]`."""
    first, *rest = location
    key = str(first) if ":" in str(first) else f"{NAMESPACE}:{first}"
    for step in rest:
        plain = isinstance(step, str) and re.fullmatch(r"[\w-]+", step)
        key += f".{step}" if plain else f"[{json.dumps(step)}]"
    return key


def shown(value: object) -> str:
    """A value as JSON, cut where it gets too long to read; private keys and passwords of URLs are not shown."""
    text = json.dumps(value, default=str)
    if "PRIVATE KEY-----" in text:
        return _SECRET
    return _cut(re.sub(r"(?<=://)[^/@\"]*@", f"{_SECRET}@", text), _LONGEST_VALUE)


def in_quotes(value: float) -> str:
    """The fix where a text is wanted, and YAML has read a number or a truth value."""
    return f"put it in quotes, '{json.dumps(value)}', so that YAML reads it as a text"


def readable(text: str) -> str:
    """A text in which each character is seen: those that a terminal obeys are escaped. Cut where it gets too long."""
    cut = _cut(text, _LONGEST_SENTENCE)
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in cut)


def from_pydantic(details: ErrorDetails, schema: type[BaseModel]) -> Problem:
    """A pydantic error in this module's terms.

    Args:
        details: One of `ValidationError.errors()`.
        schema: The model that was validated; its fields' descriptions say what a key is.
    """
    location = [step for step in details["loc"] if step != "[key]"]
    owner, description, beyond = _described(location, schema)
    value = shown(details["input"])
    context = details.get("ctx", {})
    match details["type"]:
        case "missing":
            value = _NOT_SET
            consequence, fix = "is required and has no safe default", f"set it: {description}"
        case "extra_forbidden" if reason := getattr(owner, "REFUSED", {}).get(str(location[-1]).lower()):
            consequence, fix = reason
        case "extra_forbidden":
            known = sorted(str(field.validation_alias) for field in owner.model_fields.values())
            consequence = "is not a setting, so it would change nothing and nobody would notice"
            fix = (did_you_mean(str(location[-1]), known) or "remove it; ") + f"known here: {', '.join(known)}"
        case _ if details["type"] == _REFUSED:
            consequence, fix = context["consequence"], context["fix"]
        case _:
            consequence = f"cannot be used: {details['msg'][:1].lower()}{details['msg'][1:]}"
            if details["type"] == "string_pattern_mismatch":
                consequence = "cannot be used: it is not written as such a value is"
            examples = "see the stack files beside Pulumi.yaml for examples"
            fix = f"give {description}" if description else examples
            if details["type"] == "literal_error":
                fix = did_you_mean(str(details["input"]), re.findall("'([^']*)'", context["expected"])) + fix
            if details["type"] == "string_type" and isinstance(details["input"], (bool, int, float)):
                fix = in_quotes(details["input"])
            elif details["type"] == "list_type" and isinstance(details["input"], str) and description:
                fix = f"write a list, of one entry too; {fix}"
            elif beyond > 1 and details["type"] in _SHAPES:
                fix = f"write {_SHAPES[details['type']]}; {examples}"
    return Problem(key_of(*_without_union_branches(location)), value, consequence, fix)


def _described(location: list[int | str], schema: type[BaseModel]) -> tuple[type[BaseModel], str, int]:
    """The section that holds a key, what is said of the key there, and how many steps further the location goes."""
    owner = schema
    description = ""
    described = 0
    for depth, step in enumerate(location, 1):
        field = next((field for field in owner.model_fields.values() if field.validation_alias == step), None)
        if field is None:
            break
        if field.description:
            description, described = field.description, depth
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
    return owner, description, len(location) - described


def _without_union_branches(location: list[int | str]) -> list[int | str]:
    """pydantic adds the branch of a union (`int`, `list[str]`) to a location; it is no part of the key."""
    return [
        step
        for step in location
        if not re.fullmatch(r"int|str|bool|float|list\[.*\]", str(step)) or isinstance(step, int)
    ]


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def _texts(value: object) -> Iterator[str]:
    """Every text in a value that is long enough to be looked for."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for entry in value:
            yield from _texts(entry)
    elif len(text := str(value)) >= _SHORTEST_SECRET:
        yield text


def another_existing(was: str, wanted: str, lost: str) -> Problem:
    """Return the problem of a stack that would move to another existing cluster, or to or from a cluster of its own.

    Args:
        was: The existing cluster of the last state; empty for the stack's own.
        wanted: That of the settings.
        lost: What would be gone.
    """
    keeping = f"set it back to {was}" if was else "remove it"
    return replacing(key_of("cluster", "existing"), was or None, wanted or None, lost, keeping)
