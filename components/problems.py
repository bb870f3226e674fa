"""Findings about a configuration: how a rule makes one, and the way from pydantic's errors to them.

Rules themselves are in `settings`, their words in `findings.yaml`. What is shown has come from a file that anybody may
have written: it is cut where it gets too long to read, and has no characters that a terminal obeys.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NoReturn, get_args

import pulumi
from pydantic import BaseModel
from pydantic_core import ErrorDetails, PydanticCustomError

from karpstack.karpenter.findings import Catalogue, Finding

NAMESPACE: Final = "karpstack"
_REFUSED: Final = "karpstack"
_SECRET: Final = "(secret)"  # noqa: S105  it is none
_NOT_SET: Final = "(not set)"
#: Shorter texts inside a secret value are no secrets, and are parts of other words.
_SHORTEST_SECRET: Final = 4
_LONGEST_VALUE: Final = 120
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


#: The words of all findings about settings.
CATALOGUE: Final = Catalogue(Path(__file__).with_name("findings.yaml"))


class Shown(str):
    """A value as it is to be read in a finding, and not as JSON."""

    __slots__ = ()


class SettingsError(pulumi.RunError):
    """The configuration is refused. The engine prints its text, without a traceback, and creates nothing."""

    def __init__(self, problems: Iterable[Finding]) -> None:
        self.problems = tuple(problems)
        count = f"{len(self.problems)} error" + ("s" if len(self.problems) != 1 else "")
        parts = [f"the stack's configuration has {count}; nothing was created in the cloud"]
        parts += map(str, self.problems[:_MOST_PROBLEMS])
        if len(self.problems) > _MOST_PROBLEMS:
            parts.append(f"and {len(self.problems) - _MOST_PROBLEMS} more")
        super().__init__("\n\n".join(parts))


def warnings_only(problems: Iterable[Finding]) -> list[Finding]:
    """The problems, where all of them are warnings.

    Raises:
        SettingsError: Some are not.
    """
    every = list(problems)
    if refused := [problem for problem in every if not problem.warning]:
        raise SettingsError(refused)
    return every


def finding(
    code: str, key: str | tuple[int | str, ...], value: object, /, *, warning: bool | None = None, **words: object
) -> Finding:
    """Return a finding about a setting.

    Args:
        code: Of an entry of the catalogue.
        key: The setting, as `key_of` takes it or returns it.
        value: What the setting is, shown as JSON; None if it is not set.
        warning: Whether it is a warning, where that is not the entry's to say.
        words: What the texts of the entry have in braces.
    """
    consequence, fix, severity = CATALOGUE.words(code, words)
    if warning is not None:
        severity = "warning" if warning else "error"
    place = key_of(key) if isinstance(key, str) else key_of(*key)
    text = value if isinstance(value, Shown) else _NOT_SET if value is None else shown(value)
    return Finding(code, place, text, consequence, fix, severity)


class Judge:
    """Makes findings about one stack: a value is the setting's own, and texts know what is given here."""

    def __init__(self, settings: BaseModel | Mapping[str, Any], **known: object) -> None:
        """`known` is what texts have in braces, beside what a finding brings."""
        self._settings, self._known = settings, known

    def __call__(self, code: str, key: str | Sequence[int | str], /, value: object = ..., **words: object) -> Finding:
        """Return a finding, as `finding` does.

        Args:
            code: Of an entry of the catalogue.
            key: The setting: `network.vpcId`, or its steps.
            value: What is shown, where that is not the setting.
            words: What the texts of the entry have in braces, beside what is known.
        """
        path = tuple(key.split(".")) if isinstance(key, str) else tuple(key)
        known: dict[str, Any] = {**self._known, **words}
        return finding(code, path, self._setting(path) if value is ... else value, **known)

    def _setting(self, path: Sequence[int | str]) -> Any:
        found: Any = self._settings
        for step in path:
            if isinstance(found, BaseModel):
                fields = {field.validation_alias: name for name, field in type(found).model_fields.items()}
                found = getattr(found, fields[str(step)])
            else:
                found = found[step]
        return found


def replacing(code: str, key: str | tuple[int | str, ...], was: object, wanted: object, /, **words: Any) -> Finding:
    """Return the finding about a setting whose change destroys something; its fix ends with the consent.

    Args:
        code: Of an entry of the catalogue.
        key: The setting.
        was: Its value by the stack's last state; None for none.
        wanted: The value that it has now.
        words: What the texts of the entry have in braces, beside `was`.
    """
    before, after = (_NOT_SET if value is None else shown(value) for value in (was, wanted))
    found = finding(code, key, Shown(f"{after}, was {before}"), was=was, **words)
    return replace(found, fix=f"{found.fix}; or {OTHER_WAYS}")


def refuse(code: str, /, **words: object) -> NoReturn:
    """Refuse the value that is being validated."""
    consequence, fix, _ = CATALOGUE.words(code, words)
    raise PydanticCustomError(_REFUSED, "{consequence}", {"code": code, "consequence": consequence, "fix": fix})


def without(secrets: Mapping[str, object], said: Finding) -> Finding:
    """Return a finding with nothing in it of values that are secret, which are given by their full keys."""
    own = any(re.match(rf"{re.escape(key)}([.\[]|$)", said.key) for key in secrets)
    texts = sorted({text for value in secrets.values() for text in _texts(value)}, key=len, reverse=True)
    secret = re.compile("|".join(map(re.escape, texts)) or "(?!)")
    return replace(
        said,
        value=_SECRET if own and said.value != _NOT_SET else said.value,
        consequence=secret.sub(_SECRET, said.consequence),
        fix=secret.sub(_SECRET, said.fix),
    )


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


def shown(value: object) -> Shown:
    """A value as JSON, cut where it gets too long to read; private keys and passwords of URLs are not shown."""
    text = json.dumps(value, default=str)
    if "PRIVATE KEY-----" in text:
        return Shown(_SECRET)
    return Shown(_cut(re.sub(r"(?<=://)[^/@\"]*@", f"{_SECRET}@", text), _LONGEST_VALUE))


def in_quotes(value: float) -> str:
    """The fix where a text is wanted, and YAML has read a number or a truth value."""
    return f"put it in quotes, '{json.dumps(value)}', so that YAML reads it as a text"


def from_pydantic(details: ErrorDetails, schema: type[BaseModel]) -> Finding:
    """A pydantic error in this module's terms.

    Args:
        details: One of `ValidationError.errors()`.
        schema: The model that was validated; its fields' descriptions say what a key is.
    """
    location = [step for step in details["loc"] if step != "[key]"]
    owner, description, beyond = _described(location, schema)
    key, value = key_of(*_without_union_branches(location)), shown(details["input"])
    context = details.get("ctx", {})
    words: dict[str, Any] = {"description": description}
    match details["type"]:
        case "missing":
            return finding("setting-missing", key, None, **words)
        case "extra_forbidden" if code := getattr(owner, "REFUSED", {}).get(str(location[-1]).lower()):
            pass
        case "extra_forbidden":
            known = sorted(str(field.validation_alias) for field in owner.model_fields.values())
            code, words = (
                "setting-unknown",
                {"meant": did_you_mean(str(location[-1]), known) or "remove it; ", "known": known},
            )
        case _ if details["type"] == _REFUSED:
            return Finding(context["code"], key, value, context["consequence"], context["fix"])
        case _:
            code, words = "setting-invalid", {"why": _why(details), "fix": _fix(details, description, beyond)}
    return finding(code, key, Shown(value), **words)


def _why(details: ErrorDetails) -> str:
    if details["type"] == "string_pattern_mismatch":
        return "it is not written as such a value is"
    return f"{details['msg'][:1].lower()}{details['msg'][1:]}"


def _fix(details: ErrorDetails, description: str, beyond: int) -> str:
    given, kind = details["input"], details["type"]
    examples = "see the stack files beside Pulumi.yaml for examples"
    if kind == "string_type" and isinstance(given, (bool, int, float)):
        return in_quotes(given)
    fix = f"give {description}" if description else examples
    if kind == "literal_error":
        fix = did_you_mean(str(given), re.findall("'([^']*)'", details["ctx"]["expected"])) + fix
    if kind == "list_type" and isinstance(given, str) and description:
        return f"write a list, of one entry too; {fix}"
    return f"write {_SHAPES[kind]}; {examples}" if beyond > 1 and kind in _SHAPES else fix


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


def another_existing(was: str, wanted: str, lost: str) -> Finding:
    """Return the finding about a stack that would move to another existing cluster, or to or from one of its own.

    Args:
        was: The existing cluster of the last state; empty for the stack's own.
        wanted: That of the settings.
        lost: What would be gone.
    """
    keeping = f"set it back to {was}" if was else "remove it"
    return replacing(
        "existing-cluster-changed", ("cluster", "existing"), was or None, wanted or None, lost=lost, keeping=keeping
    )
