"""What all parts of a scenario's format share: how its models behave, and checks of single values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class Model(BaseModel):
    """A mapping of a scenario file: unknown keys fail, and nothing changes it afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, coerce_numbers_to_str=True)


class Nothing(Model):
    """The value of a key that says all by itself: `{}`."""


class Range(Model):
    """How many there may be: at least `min`, and at most `max` if it is said."""

    min: int = Field(0, ge=0)
    max: int | None = Field(None, ge=0)

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if self.max is not None and self.max < self.min:
            raise ValueError("no number is at least min and at most max; swap them")
        return self

    @property
    def exactly(self) -> int | None:
        """The only number that it holds; None if it holds several."""
        return self.min if self.min == self.max else None

    def __contains__(self, number: int) -> bool:
        return self.min <= number and (self.max is None or number <= self.max)

    def __str__(self) -> str:
        if self.exactly is not None:
            return str(self.min)
        return f"at least {self.min}" if self.max is None else f"{self.min} to {self.max}"


def _range(value: object) -> object:
    return {"min": value, "max": value} if isinstance(value, int) and not isinstance(value, bool) else value


# Written as a number, or as {min: 2, max: 4}.
Count = Annotated[Range, BeforeValidator(_range)]


def _dns_label(value: str) -> str:
    if not _DNS_LABEL.fullmatch(value):
        raise ValueError("Kubernetes would refuse it as a name; use at most 63 of a-z, 0-9 and -, no - at the ends")
    return value


DnsLabel = Annotated[str, AfterValidator(_dns_label)]


def merge_patch(target: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON merge patch (RFC 7396) of a mapping: lists are replaced, None removes a key."""
    merged = dict(target)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            below = merged.get(key)
            merged[key] = merge_patch(below if isinstance(below, Mapping) else {}, value)
        else:
            merged[key] = value
    return merged
