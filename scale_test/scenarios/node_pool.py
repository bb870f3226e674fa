"""What the scale test itself reads of a NodePool's `spec`. All else is Karpenter's matter, and left to it."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from .formats import Quantity

_Count = Annotated[int, Field(ge=0, le=2**31)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, coerce_numbers_to_str=True)


class _Requirement(_Part):
    key: str
    operator: str
    values: list[str] | None = None


class _NodeClassReference(_Part):
    kind: str = ""
    name: Annotated[str, Field(min_length=1)]


class _Taint(_Part):
    key: str
    value: str = ""
    effect: str


class _Nodes(_Part):
    node_class: _NodeClassReference = Field(alias="nodeClassRef")
    requirements: list[_Requirement] | None = None
    taints: list[_Taint] | None = None


class _Metadata(_Part):
    labels: dict[str, str] | None = None


class _Template(_Part):
    metadata: _Metadata | None = None
    spec: _Nodes


class NodePoolSpec(_Part):
    """The form of those parts.

    Attributes:
        template: Requirements, labels, taints and node class of its nodes.
        limits: Resource -> quantity.
        weight: Karpenter asks the heavier ones first.
        replicas: How many nodes it has for ever; without, as many as pods need.
    """

    template: _Template
    limits: dict[str, Quantity] | None = None
    weight: _Count | None = None
    replicas: _Count | None = None
