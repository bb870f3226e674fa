"""What all parts of a snapshot's format share: how its models behave, and the types of single values.

The patterns are Kubernetes' own (`k8s.io/apimachinery/pkg/util/validation`): what they refuse, the API server would
refuse when the snapshot is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final, get_args

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

from karpstack.karpenter.quantities import exact
from karpstack.text.shown import visible

from .problems import refuse

MOST_PODS: Final = 100_000  # of a snapshot: ten times what a cluster of 5,000 nodes is known to hold well
_DIGITS: Final = 40  # of a quantity

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_WORD: Final = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"

#: Pattern -> what it takes, to be read after "is not".
WORDS: Final[dict[str, str]] = {
    f"^{_LABEL}$": "a name of at most 63 of a-z, 0-9 and -, without - at the ends",
    f"^{_SUBDOMAIN}$": "a name of at most 253 of a-z, 0-9, - and .",
    rf"^({_SUBDOMAIN}/)?{_WORD}$": "a key like name or example.com/name",
    f"^({_WORD})?$": "a label's value: at most 63 of A-Z, a-z, 0-9, -, _ and .",
    f"^{_WORD}$": "a word of at most 63 of A-Z, a-z, 0-9, -, _ and .",
    rf"^({_SUBDOMAIN}/)?v[0-9][a-z0-9]*$": "an API version like v1 or example.com/v1alpha1",
    "^[A-Za-z][A-Za-z0-9]{0,62}$": "a kind like Deployment",
    "^(100|[0-9]{1,2})%$": "a share from 0% to 100%",
    "^[0-9a-fA-F.:]{0,45}$": "an IP address",
    "^[A-Za-z0-9][-A-Za-z0-9_.+ ]{0,62}$": "a version like v1.34.1",
}


def _pattern(meaning: str, longest: int) -> StringConstraints:
    (pattern,) = (pattern for pattern, words in WORDS.items() if words == meaning)
    return StringConstraints(pattern=pattern, max_length=longest)


def _quantity(value: str) -> str:
    if len(value) > _DIGITS or value.startswith("-"):
        raise refuse("snapshot-quantity")
    try:
        exact(value)
    except ValueError as error:
        raise refuse("snapshot-quantity") from error
    return value


def _text(value: str) -> str:
    if visible(value) != value:
        raise refuse("snapshot-text")
    return value


Namespace = Annotated[str, _pattern("a name of at most 63 of a-z, 0-9 and -, without - at the ends", 63)]
Name = Annotated[str, _pattern("a name of at most 253 of a-z, 0-9, - and .", 253)]
LabelKey = Annotated[str, _pattern("a key like name or example.com/name", 317)]
LabelValue = Annotated[str, _pattern("a label's value: at most 63 of A-Z, a-z, 0-9, -, _ and .", 63)]
Word = Annotated[str, _pattern("a word of at most 63 of A-Z, a-z, 0-9, -, _ and .", 63)]
ApiVersion = Annotated[str, _pattern("an API version like v1 or example.com/v1alpha1", 317)]
Kind = Annotated[str, _pattern("a kind like Deployment", 63)]
Share = Annotated[str, _pattern("a share from 0% to 100%", 4)]
IpAddress = Annotated[str, _pattern("an IP address", 45)]
Version = Annotated[str, _pattern("a version like v1.34.1", 63)]
Quantity = Annotated[str, AfterValidator(_quantity)]
Text = Annotated[str, StringConstraints(max_length=500), AfterValidator(_text)]
Pods = Annotated[int, Field(ge=0, le=MOST_PODS)]
Time = AwareDatetime

Labels = Annotated[dict[LabelKey, LabelValue], Field(max_length=500)]
Resources = Annotated[dict[LabelKey, Quantity], Field(max_length=100)]


class Model(BaseModel):
    """A mapping of a snapshot: unknown keys fail, nothing is converted, and nothing changes it afterwards."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        allow_inf_nan=False,
    )


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models that an annotation is about, such as `list[Toleration]` or `Affinity | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from models_in(inner)
