"""Calls of AWS's APIs that a table writes as data; types.yaml says how they are written.

Expressions are JMESPath, as in the AWS command line: parameters are found in the words of a resource (its inputs or
outputs, and `id`, `last`, `account`, `region`, `arn`), results in an answer, where `$name` is a word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Self

import jmespath
from botocore import xform_name
from botocore.exceptions import ClientError
from jmespath.functions import Functions, signature

from karpstack.rehearsal.attachment.resource import RefusedError

_GONE = re.compile(r"NotFound|NoSuchEntity|NonExistentQueue|QueueDoesNotExist")
_WORD = re.compile(r"(?<!')\$(\w+)")
Words = Mapping[str, Any]


class AwsRefusalError(RefusedError):
    """AWS would answer the request with this error code and message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"api error {code}: {message}")
        self.code = code


@dataclass(frozen=True, kw_only=True)
class Step:
    """One call, and what is made of its answer.

    Attributes:
        operation: Of the client; empty where only words are judged.
        given: Parameters: expressions, or lists and maps of them. `Filters` may be a map.
        exact: Whether inputs that are called as a parameter are left out of the creation.
        when: Inputs of which one must differ, in an update.
        condition: What must be true of the words (`if` in the table).
        at: Where in the answer the resource is described; nothing there means that it is gone.
        take: Outputs that the description has under other names.
        refuses: What must be nothing in the answer, and the code and text of the refusal otherwise.
        each: Items of the answer; `do` is done for each, which is the word `item` there.
        do: Steps.
    """

    operation: str = ""
    given: Mapping[str, Any] = field(default_factory=dict)
    exact: bool = False
    when: frozenset[str] = frozenset()
    condition: str = ""
    at: str = "@"
    take: Mapping[str, str] = field(default_factory=dict)
    refuses: Sequence[str] = ()
    each: str = ""
    do: Sequence[Step] = ()

    @classmethod
    def of(cls, written: Mapping[str, Any]) -> Self:
        """The step as a table has it: the one key that is none of the others is the operation."""
        rest = {key: value for key, value in written.items() if key in cls.__annotations__}
        called = [key for key in written if key not in rest and key != "if"]
        if called:
            (rest["operation"],) = called
            rest["given"] = written[called[0]] or {}
        rest |= {"condition": written.get("if", ""), "when": frozenset(written.get("when", ()))}
        return cls(**{**rest, "do": steps(written.get("do", ()))})

    def applies(self, words: Words, differs: Collection[str] | None = None) -> bool:
        """Whether it is done at all."""
        needed = differs is None or not self.when or bool(self.when & set(differs))
        return needed and (not self.condition or bool(search(self.condition, words, words)))

    def send(self, client: Any, words: Words, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Make the call; the answer without its metadata.

        Args:
            client: The boto3 client of the service.
            words: What expressions find.
            more: Further parameters.

        Raises:
            AwsRefusalError: The row refuses what is answered.
        """
        answer: dict[str, Any] = {}
        if self.operation:
            parameters = {**evaluated(self.given, words), **(more or {})}
            if client.can_paginate(self.operation):
                answer = client.get_paginator(self.operation).paginate(**parameters).build_full_result()
            else:
                answer = getattr(client, self.operation)(**parameters)
        if self.refuses:
            expression, code, text = self.refuses
            if found := search(expression, answer if self.operation else words, words):
                named = {**words, "found": found}
                raise AwsRefusalError(code.format(**named), text.format(**named))
        return answer

    def run(self, client: Any, words: Words, differs: Collection[str] | None = None) -> None:
        """Make the call, and do what follows from its answer."""
        if not self.applies(words, differs):
            return
        answer = self.send(client, words)
        for item in search(self.each, answer, words) or () if self.each else ():
            for step in self.do:
                step.run(client, {**words, "item": item})


def is_gone(error: ClientError) -> bool:
    """Whether AWS says that the thing does not exist."""
    return bool(_GONE.search(error.response["Error"]["Code"]))


def steps(written: Any) -> tuple[Step, ...]:
    """The steps as a table has them: a list, or a single one."""
    return tuple(map(Step.of, [written] if isinstance(written, Mapping) else written))


def search(expression: str, of: Any, words: Words) -> Any:
    """What an expression finds."""
    written = _WORD.sub(lambda word: f"`{json.dumps(words.get(word[1]))}`", expression)
    return _compiled(written).search(of, _OPTIONS)


def evaluated(form: Any, words: Words) -> Any:
    """Parameters with the values of their expressions; what has none is left out."""
    if isinstance(form, str):
        return _pruned(search(form, words, words))
    if isinstance(form, list):
        return [evaluated(item, words) for item in form]
    if not isinstance(form, Mapping):
        return form
    found = {key: evaluated(item, words) for key, item in form.items()}
    if isinstance(form.get("Filters"), Mapping):
        found["Filters"] = [{"Name": key, "Values": [value]} for key, value in found["Filters"].items()]
    return _pruned(found)


def members(client: Any, operation: str) -> Mapping[str, Any]:
    """The parameters of an operation, as botocore describes them."""
    model = client.meta.service_model
    name = next(name for name in model.operation_names if xform_name(name) == operation)
    found: Mapping[str, Any] = model.operation_model(name).input_shape.members
    return found


def matching_properties(names: Collection[str], described: Any) -> Iterator[tuple[str, Any]]:
    """Yield name and value of the properties whose names are equal but for upper and lower case."""
    there = {key.lower(): value for key, value in described.items()} if isinstance(described, Mapping) else {}
    return ((name, there[name.lower()]) for name in names if name.lower() in there)


def _pruned(value: Any) -> Any:
    if isinstance(value, list):
        return [_pruned(item) for item in value]
    if isinstance(value, dict):
        return {key: _pruned(item) for key, item in value.items() if item is not None}
    return value


class _Functions(Functions):  # type: ignore[misc]
    """What JMESPath lacks."""

    @signature({"types": ["string"]}, {"types": ["string"]}, {"types": ["string"]})  # type: ignore[untyped-decorator]
    def _func_replace(self, text: str, old: str, new: str) -> str:
        return text.replace(old, new)

    @signature({"types": ["array"]}, {"types": ["expref"]})  # type: ignore[untyped-decorator]
    def _func_repeated(self, items: list[Any], key: Any) -> list[Any]:
        """The items whose key another one has, too."""
        keys = [key.visit(key.expression, item) for item in items]
        return [item for item, own in zip(items, keys, strict=True) if keys.count(own) > 1]


_OPTIONS = jmespath.Options(custom_functions=_Functions())


@cache
def _compiled(expression: str) -> Any:
    return jmespath.compile(expression)
