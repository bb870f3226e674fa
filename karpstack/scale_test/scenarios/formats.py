"""What all parts of a scenario's format share: how its models behave, and checks of single values."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic.alias_generators import to_camel

from karpstack.karpenter.quantities import exact
from karpstack.text.shown import visible

from .problems import refuse

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_LABEL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_DNS_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_IMAGE = re.compile(
    r"(?=.{1,512}$)"
    r"([A-Za-z0-9][-A-Za-z0-9.]*(:\d{1,5})?/)?"  # registry
    r"[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*"
    r"(:\w[-\w.]{0,127})?(@sha256:[0-9a-f]{64})?",
    re.ASCII,
)
_WORD = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_.]{0,127}")
_REASON = re.compile(r"[A-Za-z]{1,128}")
_TEXT = 500  # characters
_DIGITS = 40  # of a quantity

DAY = 24 * 60 * 60.0  # seconds; the recorder's longest life
LONGEST_LIFE = 14 * DAY  # of a cluster in a rehearsal, whose time may jump
MOST_PODS = 100_000  # of a workload: ten times what a cluster of 5,000 nodes is known to hold well

Pods = Annotated[int, Field(ge=0, le=MOST_PODS)]


class Model(BaseModel):
    """A mapping of a scenario file: unknown keys fail, and nothing changes it afterwards."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=to_camel, coerce_numbers_to_str=True, allow_inf_nan=False
    )


class Nothing(Model):
    """The value of a key that says all by itself: `{}`."""


class Range(Model):
    """How many there may be: at least `min`, and at most `max` if it is said."""

    min: Pods = 0
    max: Pods | None = None

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if self.max is not None and self.max < self.min:
            raise refuse("range-empty")
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
Count = Annotated[Range, BeforeValidator(_range, json_schema_input_type=Pods | Range)]


def _dns_label(value: str) -> str:
    if not _DNS_LABEL.fullmatch(value):
        raise refuse("dns-label")
    return value


def _dns_name(value: str) -> str:
    if not _DNS_NAME.fullmatch(value):
        raise refuse("dns-name")
    return value


def _label_key(value: str) -> str:
    prefix, _, name = value.rpartition("/")
    if not _LABEL_NAME.fullmatch(name) or ("/" in value and not _DNS_NAME.fullmatch(prefix)):
        raise refuse("label-key")
    return value


def _label_value(value: str) -> str:
    if value and not _LABEL_NAME.fullmatch(value):
        raise refuse("label-value")
    return value


def _no_decimal(value: object) -> object:
    if isinstance(value, float):
        raise refuse("decimal")
    return value


def _quantity(value: str) -> str:
    try:
        if len(value) <= _DIGITS and not value.startswith("-"):
            exact(value)
            return value
    except ValueError:
        pass
    raise refuse("quantity")


def _image(value: str) -> str:
    if not _IMAGE.fullmatch(value):
        raise refuse("image")
    return value


def _word(value: str) -> str:
    if not _WORD.fullmatch(value):
        raise refuse("word")
    return value


def _reason(value: str) -> str:
    if not _REASON.fullmatch(value):
        raise refuse("reason")
    return value


def _text(value: str) -> str:
    if len(value) > _TEXT or visible(value) != value:
        raise refuse("text", most=_TEXT)
    return value


DnsLabel = Annotated[str, AfterValidator(_dns_label)]
DnsName = Annotated[str, AfterValidator(_dns_name)]
LabelKey = Annotated[str, AfterValidator(_label_key)]
# Numbers are taken for what is written the same way in quotes, and editors are told so. Decimals are none: a label's
# value is compared as text, and a version 1.10 would be 1.1.
LabelValue = Annotated[
    str,
    BeforeValidator(_no_decimal),
    AfterValidator(_label_value),
    WithJsonSchema({"type": ["string", "integer"]}),
]
Quantity = Annotated[str, AfterValidator(_quantity), WithJsonSchema({"type": ["string", "number"]})]
Image = Annotated[str, AfterValidator(_image)]
Word = Annotated[str, AfterValidator(_word)]  # an instance type or a zone
Reason = Annotated[str, AfterValidator(_reason)]
Text = Annotated[str, AfterValidator(_text)]
Sentence = Annotated[str, Field(min_length=1), AfterValidator(_text)]


def instead(name: str, known: Iterable[str]) -> str:
    """What to write instead of a name that is not known: the end of a message."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {close[0]}?" if close else f"use of {', '.join(names) or '(there are none)'}"


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
