"""What a model's docstring says of its fields, for the documents and schemas that are written from models."""

from __future__ import annotations

import inspect
import re
from typing import Any, Final

from pydantic import BaseModel

_ATTRIBUTE: Final = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def field_meanings(model: type[BaseModel]) -> dict[str, str]:
    """Name of each field -> what it means, from the docstrings of a model and of those that it builds on."""
    found: dict[str, str] = {}
    for owner in reversed(model.__mro__):
        if issubclass(owner, BaseModel) and owner is not BaseModel:
            _, _, attributes = inspect.cleandoc(owner.__doc__ or "").partition("Attributes:\n")
            found |= {name: " ".join(text.split()) for name, text in _ATTRIBUTE.findall(attributes)}
    return found


def describe(definition: dict[str, Any], model: type[BaseModel]) -> None:
    """Write into a model's JSON schema what it is, and what each of its keys means where that is said."""
    definition["description"] = inspect.cleandoc(model.__doc__ or "").partition("\n")[0]
    found = field_meanings(model)
    for field, info in model.model_fields.items():
        if field in found:
            definition["properties"][info.alias or field]["description"] = found[field]
