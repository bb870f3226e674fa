"""What a model knows of an object of the API, and which keys it does not know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel

from .formats import models_in

_Known = TypeVar("_Known", bound=BaseModel)


def known_or_none(model: type[_Known], value: Any, unknown: set[str]) -> _Known:
    """What a model knows of a value.

    Args:
        model: The model, whose aliases are the API's names.
        value: A mapping of the API.
        unknown: Gets the names of the keys that the model does not have.

    Raises:
        pydantic.ValidationError: What it knows is not as it has to be.
    """
    return model.model_validate(_part(model, value, unknown), by_alias=True, by_name=False)


def _part(annotation: Any, value: Any, unknown: set[str]) -> Any:
    if isinstance(value, Mapping):
        model = next(models_in(annotation), None)
        if model is None:
            return dict(value)
        fields = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
        unknown.update(key for key in value if key not in fields)
        return {
            key: _part(fields[key], inner, unknown)
            for key, inner in value.items()
            if key in fields and inner is not None
        }
    if isinstance(value, list):
        return [_part(annotation, inner, unknown) for inner in value]
    return value


def differing_keys(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """Return the keys whose values differ between two mappings, sorted. A missing key counts as None."""
    return sorted(key for key in {*first, *second} if first.get(key) != second.get(key))


def mapping(value: Any) -> Mapping[str, Any]:
    """Return a value that is a mapping; an empty one instead of another value."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """Return the mappings of a list; none of another value."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
