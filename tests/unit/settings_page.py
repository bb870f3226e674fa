"""Write the reference of settings: each key of a stack file with its type, default, meaning and findings.

Types, defaults and meanings come from the models in `karpstack.components.settings`; the codes come from the tests'
tables of stack files that are refused or cause a warning.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from karpstack.components.settings import AksSettings, EksSettings, ExistingAksSettings, ExistingEksSettings
from tests.unit.example_stack import ROOT

FOLDER: Final = ROOT / "docs" / "reference" / "settings"
_MODELS: Final[Mapping[str, tuple[str, type[BaseModel], type[BaseModel]]]] = {
    "eks": ("EKS", EksSettings, ExistingEksSettings),
    "aks": ("AKS", AksSettings, ExistingAksSettings),
}
_HEAD: Final = """\
# Settings for {cloud}

<!-- Written by `make goldens` from components/settings; do not edit. -->

Keys of `Pulumi.<stack>.yaml`. A key without a namespace in this page begins with `karpstack:`. An unknown key, a
missing required key and a value of another type are errors: `setting-unknown`, `setting-missing` and
`setting-invalid`. The last column links the other [findings](../findings/README.md) about a key. All findings are
reported at once, before anything is created.
"""
#: Findings that every key can have.
_GENERAL: Final = {"setting-invalid", "setting-unknown", "setting-missing"}
#: More codes than this stand below the table.
_MOST_CODES: Final = 4
_LONGEST_CHOICE: Final = 160
_TYPES: Final[Mapping[object, str]] = {
    str: "text",
    int: "number",
    float: "number",
    bool: "`true` or `false`",
    IPv4Network: "CIDR range",
    Any: "any value",
}


def page(cloud: str) -> str:
    """Return the page of one cloud."""
    title, new, existing = _MODELS[cloud]
    parts = [_HEAD.format(cloud=title)]
    for heading, model in (("A new cluster", new), ("An existing cluster", existing)):
        there = "An existing cluster is one that `karpstack:cluster.existing` names.\n"
        parts += [f"## {heading}\n", *([there] if model is existing else []), *_sections(cloud, model)]
    return "\n".join(parts)


def _sections(cloud: str, model: type[BaseModel]) -> Iterator[str]:
    kind = "existing" if model.__name__.startswith("Existing") else "new"
    codes = _codes()[f"{cloud}-{kind}"]
    sections = {name: section for name, field in model.model_fields.items() if (section := _section(field.annotation))}
    top = [row for name, field in model.model_fields.items() if name not in sections for row in _rows(field, name, "")]
    yield from _table("Top level", top, codes, kind, model)
    for name, section in sections.items():
        field = model.model_fields[name]
        heading = f"karpstack:{field.alias or name}"
        said = f"{field.description[0].upper()}{field.description[1:]}.\n" if field.description else ""
        optional = "Required.\n" if field.is_required() else ""
        rows = list(_of_section(section, f"{field.alias or name}."))
        yield from _table(heading, rows, codes, kind, section, said, optional)


def _table(
    heading: str, rows: list[tuple[str, str, str, str]], codes: Mapping[str, set[str]], kind: str,
    model: type[BaseModel], *said: str,
) -> Iterator[str]:  # fmt: skip
    """Return a section's heading, its table, and what does not fit into a cell."""
    yield f"### {heading}{' (existing cluster)' if kind == 'existing' else ''}\n"
    yield from filter(None, said)
    yield "| key | type | default | meaning | findings |\n| --- | --- | --- | --- | --- |"
    below = []
    for key, shape, default, meaning in rows:
        own = sorted(_found(key, [row[0] for row in rows], codes))
        links = ", ".join(f"[`{code}`](../findings/settings.md#{code})" for code in own)
        if len(own) > _MOST_CODES:
            below.append(f"Findings about `{key}`: {links}.\n")
            links = f"{len(own)}, below"
        yield f"| `{key}` | {shape} | {default} | {meaning} | {links} |"
    yield ""
    yield from below
    refused = defaultdict[str, list[str]](list)
    for key, code in getattr(model, "REFUSED", {}).items():
        refused[code].append(key)
    for code, keys in sorted(refused.items()):
        names = ", ".join(f"`{key}`" for key in sorted(keys))
        yield f"These keys are refused ([`{code}`](../findings/settings.md#{code})), in upper or lower case: {names}.\n"


def _of_section(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, str, str, str]]:
    for name, field in model.model_fields.items():
        yield from _rows(field, name, prefix)


def _rows(field: FieldInfo, name: str, prefix: str) -> Iterator[tuple[str, str, str, str]]:
    """Return the row of a field, or the rows of the section that it holds."""
    key = f"{prefix}{field.validation_alias or field.alias or name}"
    inner = _section(field.annotation)
    if inner is not None:
        yield from _of_section(inner, f"{key}.")
        return
    meaning = (field.description or "Karpenter's feature gate of this name").replace("|", "\\|")
    yield key, _shape(field.annotation, field.metadata), _default(field), meaning
    for inner in _sections_in_list(field.annotation):
        yield from _of_section(inner, f"{key}[].")


def _section(annotation: Any) -> type[BaseModel] | None:
    """Return the model if a field is a section, or a section that may be left out."""
    found = [each for each in (get_args(annotation) or (annotation,)) if each is not NoneType]
    single = found[0] if len(found) == 1 else None
    is_list = get_origin(annotation) in (list, dict)
    return single if not is_list and isinstance(single, type) and issubclass(single, BaseModel) else None


def _sections_in_list(annotation: Any) -> Iterator[type[BaseModel]]:
    if get_origin(annotation) is list:
        yield from filter(None, map(_section, get_args(annotation)))


def _shape(annotation: Any, metadata: list[Any]) -> str:
    """Return the type of a field in words, with its bounds."""
    bounds = []
    for one in metadata:
        bounds += [f"at least {one.ge}"] if getattr(one, "ge", None) is not None else []
        bounds += [f"at most {one.le}"] if getattr(one, "le", None) is not None else []
        if getattr(one, "max_length", None) is not None and get_origin(annotation) is list:
            bounds.append(f"at most {one.max_length}")
    return ", ".join([_type(annotation), *bounds])


def _type(annotation: Any) -> str:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type(inner[0])
    if origin is Literal:
        values = " or ".join(f"`{value}`" for value in inner)
        return values if len(values) < _LONGEST_CHOICE else "one of a list"
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(_type(each) for each in inner if each is not NoneType))
    if origin is list:
        one = _type(inner[0])
        return f"list of {one}" if one.startswith(("`", "one")) else f"list of {one}s".replace("texts", "text")
    if origin is dict:
        return "object by name" if get_origin(inner[1]) is Annotated and "dict" in str(inner[1]) else "object"
    return "object" if isinstance(annotation, type) and issubclass(annotation, BaseModel) else _TYPES[annotation]


def _default(field: FieldInfo) -> str:
    default = field.get_default(call_default_factory=True)
    if default is PydanticUndefined:
        return "required"
    if default in (None, "", [], {}):
        return ""
    return f"`{default if isinstance(default, str) else json.dumps(default)}`".replace("|", "\\|")


def _found(key: str, keys: list[str], codes: Mapping[str, set[str]]) -> set[str]:
    """Return the codes about a key, and about what stands below it and has no row of its own."""
    found: set[str] = set()
    for named, some in codes.items():
        nearest = max((one for one in keys if f"{named}.".startswith(f"{one}.")), key=len, default="")
        found |= some if nearest == key else set()
    return found


def _codes() -> Mapping[str, Mapping[str, set[str]]]:
    """Return the kind of stack file -> key -> codes of the tests' tables."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for table in ("refused.yaml", "warned.yaml"):
        text = (ROOT / "tests" / "unit" / "stacks" / table).read_text(encoding="utf-8")
        for stack, _, keys, codes, *_ in yaml.safe_load(text):
            kind = f"{stack[:3]}-{'existing' if stack.endswith('existing-cluster') else 'new'}"
            each = zip(keys, codes, strict=True) if isinstance(keys, list) else [(keys, codes)]
            for key, code in each:
                if isinstance(code, str) and code not in _GENERAL:
                    found[kind][re.sub(r"\[.*?\]", "", key).removeprefix("karpstack:")].add(code)
    return found


def write() -> None:
    """Write the page of each cloud."""
    for cloud in _MODELS:
        (FOLDER / f"{cloud}.md").write_text(page(cloud), encoding="utf-8")
