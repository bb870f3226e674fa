"""What the API server takes as specs of Karpenter's objects: the CRDs' own schemas and rules, in schemas/.

The schemas are Kubernetes' dialect of JSON Schema: fields that are not named are refused, nulls stand for nothing, and
`x-kubernetes-validations` are rules in CEL. A spec is judged as the API server judges a new object: defaults are filled
in, then the structure is checked, then the rules of those parts whose structure is right. Rules that compare with the
object before an update are left out.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal, NamedTuple

from jsonschema import Draft4Validator, ValidationError, validators

# The library imports its own command line with itself, and three libraries for terminals with that, which is a tenth of
# what a program without changes takes. Nobody here asks for it.
sys.modules.setdefault("cel.cli", ModuleType("cel.cli"))
import cel  # noqa: E402

from .patterns import WORDS  # noqa: E402

#: The schemas that come with this package: `<cloud>.json` holds kind -> schema of the spec; and `kubelet.json`.
FOLDER: Final = Path(__file__).resolve().parent / "schemas"

#: What rules may call beside CEL's own: Kubernetes' extensions, of which a test says whether all are here.
FUNCTIONS: Final = {
    "find": lambda text, pattern: match[0] if (match := re.search(pattern, text)) else "",
    "split": lambda text, separator: text.split(separator),
}

#: Our own name for what JSON Schema calls additionalProperties: a field that the schema does not name.
_UNKNOWN: Final = "unknown field"
_CHOICES: Final = {"enum": "is none of", _UNKNOWN: "is no field here; there are"}

#: Where the fields of a kind are documented.
REFERENCES: Final = {
    "NodePool": "https://karpenter.sh/docs/concepts/nodepools/",
    "NodeOverlay": "https://karpenter.sh/docs/concepts/nodeoverlays/",
    "EC2NodeClass": "https://karpenter.sh/docs/concepts/nodeclasses/",
    "AKSNodeClass": "https://learn.microsoft.com/azure/aks/node-auto-provisioning-aksnodeclass",
}

Schema = Mapping[str, Any]
#: What is wrong; `invalid` is everything that the others are not.
Code = Literal["unknown-field", "not-a-choice", "missing", "not-text", "invalid"]


class Problem(NamedTuple):
    """Why the API server would refuse a spec.

    Attributes:
        path: Steps from the spec to what is wrong.
        value: What is there; None where nothing is.
        message: What is wrong with it, in the words of the schema's rule where there is one.
        choices: What could stand there instead, where that is a list.
        code: What kind of mistake it is.
    """

    path: tuple[str | int, ...]
    value: Any
    message: str
    choices: tuple[str, ...] = ()
    code: Code = "invalid"

    @property
    def is_unquoted(self) -> bool:
        """Whether a number or a truth value stands where a text belongs: quotes are missing."""
        return self.code == "not-text" and isinstance(self.value, (bool, int, float))


def kinds(cloud: str) -> tuple[str, ...]:
    """The kinds that there are schemas of, for `aws` or `azure`."""
    return tuple(_schemas(cloud))


def fields(cloud: str, kind: str) -> Mapping[str, Schema]:
    """Return the schemas of the fields of a kind's spec, by name."""
    properties: Mapping[str, Schema] = _schemas(cloud)[kind]["properties"]
    return properties


def kubelet_problems(configuration: Mapping[str, Any]) -> list[Problem]:
    """Fields and types in an EC2NodeClass's `kubelet` that the kubelet's configuration does not have.

    The API server takes anything there since Karpenter 1.15; Karpenter refuses the node class in its status.

    Args:
        configuration: What stands below `kubelet`.
    """
    return _judged(_schemas("kubelet")["KubeletConfiguration"], configuration)


def problems(cloud: str, kind: str, spec: Mapping[str, Any]) -> list[Problem]:
    """All that the API server would refuse in the spec of a new object; empty where it would take it.

    Args:
        cloud: `aws` or `azure`: each has rules of its own on NodePools.
        kind: NodePool, NodeOverlay, EC2NodeClass or AKSNodeClass.
        spec: The whole spec, as YAML or JSON has it.

    Raises:
        KeyError: The cloud has no such kind.
    """
    return _judged(_schemas(cloud)[kind], spec)


def completed(cloud: str, kind: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec as the API server stores it: with the schema's defaults.

    Raises:
        KeyError: The cloud has no such kind.
    """
    made: dict[str, Any] = _completed(spec, _schemas(cloud)[kind])
    return made


def _judged(schema: Schema, value: Mapping[str, Any]) -> list[Problem]:
    errors = _WITH_RULES(schema).iter_errors(_completed(value, schema))
    return sorted(map(_problem, errors), key=lambda problem: [str(step) for step in problem.path])


@cache
def _schemas(name: str) -> dict[str, Schema]:
    schemas: dict[str, Schema] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))["kinds"]
    return schemas


def _completed(value: Any, schema: Schema) -> Any:
    """A value as the API server judges it: without nulls that stand for nothing, and with the schema's defaults."""
    if isinstance(value, Mapping):
        fields, others = schema.get("properties", {}), schema.get("additionalProperties")
        others = others if isinstance(others, Mapping) else {}
        kept = {key: item for key, item in value.items() if item is not None or fields.get(key, others).get("nullable")}
        defaults = {key: field["default"] for key, field in fields.items() if "default" in field}
        return {key: _completed(item, fields.get(key, others)) for key, item in (defaults | kept).items()}
    if isinstance(value, list):
        return [_completed(item, schema.get("items", {})) for item in value]
    return value


def _problem(error: ValidationError) -> Problem:
    path, value, message = tuple(error.absolute_path), error.instance, error.message
    if error.validator in ("enum", _UNKNOWN):
        choices = tuple(map(str, error.validator_value))
        code: Code = "unknown-field" if error.validator == _UNKNOWN else "not-a-choice"
        return Problem(path, value, f"{_CHOICES[error.validator]} {', '.join(choices)}", choices, code)
    if error.validator == "required":
        return Problem((*path, error.message.split("'")[1]), None, "is required", code="missing")
    if error.validator == "type" and error.validator_value == "string":
        return Problem(path, value, message, code="not-text")
    if error.validator == "anyOf" and error.schema.get("x-kubernetes-int-or-string"):
        message = "is neither a whole number nor a text"
    return Problem(path, value, message)


def _fields(validator: Any, fields: Schema, value: Any, schema: Schema) -> Iterator[ValidationError]:
    yield from Draft4Validator.VALIDATORS["properties"](validator, fields, value, schema)
    if validator.is_type(value, "object") and "additionalProperties" not in schema:
        for unknown in sorted(value.keys() - fields.keys()):
            yield ValidationError(
                _UNKNOWN,
                validator=_UNKNOWN,
                validator_value=sorted(fields),
                path=[unknown],
                instance=value[unknown],
                schema=schema,
            )


def _pattern(validator: Any, pattern: str, value: Any, schema: Schema) -> Iterator[ValidationError]:
    # CEL's regular expressions are the API server's; Python's take a line feed before the end, for one.
    if validator.is_type(value, "string") and _broken("text.matches(pattern)", text=value, pattern=pattern):
        words = WORDS.get(pattern)
        yield ValidationError(f"is not {words}" if words else f"does not match {pattern}")


def _list_type(validator: Any, kind: str, value: Any, schema: Schema) -> Iterator[ValidationError]:
    if validator.is_type(value, "array") and kind in ("set", "map"):
        keys = schema.get("x-kubernetes-list-map-keys")
        seen: list[Any] = []
        for index, item in enumerate(value):
            identity = [item.get(key) for key in keys] if keys and isinstance(item, Mapping) else item
            if identity in seen:
                yield ValidationError("is there twice", path=[index], instance=item)
            seen.append(identity)


def _rules(validator: Any, rules: list[dict[str, str]], value: Any, schema: Schema) -> Iterator[ValidationError]:
    if not _STRUCTURE(schema).is_valid(value):
        return
    for rule in rules:
        if why := _broken(rule["rule"], self=value):
            yield ValidationError(rule.get("message") or f"{why}: {rule['rule']}")


def _broken(expression: str, **variables: Any) -> str:
    """Why a rule does not hold for these values; empty where it does."""
    context = cel.Context()
    try:
        for name, value in variables.items():
            context.add_variable(name, value)
        for name, function in FUNCTIONS.items():
            context.add_function(name, function)
        return "" if _program(expression).execute(context) is True else "breaks the rule"
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        # As the API server does: what a rule can't judge has not passed it.
        return f"can't be judged by the rule ({error})"


@cache
def _program(expression: str) -> cel.Program:
    return cel.compile(expression)


_STRUCTURE: Final = validators.extend(
    Draft4Validator, {"properties": _fields, "pattern": _pattern, "x-kubernetes-list-type": _list_type}
)
_WITH_RULES: Final = validators.extend(_STRUCTURE, {"x-kubernetes-validations": _rules})
