"""The shapes of Karpenter's specs, of those parts that the environment reads or completes.

A spec is Karpenter's own and free otherwise: whatever is not named here goes through unchanged, if it passes the CRDs'
schemas (schema_checks.py). What is named here has its shape before that and once the settings are loaded, so that rules
and documents need not ask; each of it may be left out, and what holds other values may be null.
"""

from __future__ import annotations

from typing import Any, Final

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict  # pydantic asks for this one below Python 3.12

# Strict, for the API server is: it takes neither the text "110" for a number nor the number 2 for a text.
_FREE: Final = ConfigDict(extra="allow", strict=True)


@with_config(_FREE)
class NodeClassReference(TypedDict, total=False):
    """`template.spec.nodeClassRef` of a NodePool."""

    group: str
    kind: str
    name: str


@with_config(_FREE)
class Requirement(TypedDict, total=False):
    """One of `template.spec.requirements` of a NodePool."""

    key: str
    operator: str
    values: list[str] | None


@with_config(_FREE)
class Taint(TypedDict, total=False):
    """One of `template.spec.startupTaints` of a NodePool."""

    key: str


@with_config(_FREE)
class NodeTemplate(TypedDict, total=False):
    """`template.spec` of a NodePool."""

    nodeClassRef: NodeClassReference | None
    requirements: list[Requirement] | None
    startupTaints: list[Taint] | None


@with_config(_FREE)
class Metadata(TypedDict, total=False):
    """`template.metadata` of a NodePool."""

    labels: dict[str, str] | None


@with_config(_FREE)
class Template(TypedDict, total=False):
    """`template` of a NodePool."""

    metadata: Metadata | None
    spec: NodeTemplate | None


@with_config(_FREE)
class NodePoolSpec(TypedDict, total=False):
    """A NodePool's spec (karpenter.sh/v1)."""

    template: Template | None


@with_config(_FREE)
class NodeClassSpec(TypedDict, total=False):
    """The spec of a node class, of either cloud."""

    kubelet: dict[str, Any] | None
    tags: dict[str, str] | None
