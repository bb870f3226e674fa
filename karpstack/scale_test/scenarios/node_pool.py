"""What the scale test itself reads of a NodePool's `spec`. All else is Karpenter's matter, and left to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from .formats import Quantity

#: Taints that a node may have whatever its NodePool says: Karpenter's own, and those of Kubernetes (which has more).
UNASKED: Final = (
    "karpenter.sh/disrupted",
    "karpenter.sh/unregistered",
    "node.cloudprovider.kubernetes.io/uninitialized",
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/network-unavailable",
    "node.kubernetes.io/out-of-service",
    "node.kubernetes.io/pid-pressure",
)

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


def taint_keys(spec: Mapping[str, Any]) -> Iterator[str]:
    """Keys of the taints that a NodePool's `spec`, or a patch of it, gives nodes."""
    inner: Any = spec
    for key in ("template", "spec"):
        inner = inner.get(key) if isinstance(inner, Mapping) else None
    for key in ("taints", "startupTaints"):
        taints = inner.get(key) if isinstance(inner, Mapping) else None
        for taint in taints if isinstance(taints, list) else ():
            if isinstance(taint, Mapping) and isinstance(taint.get("key"), str):
                yield taint["key"]
