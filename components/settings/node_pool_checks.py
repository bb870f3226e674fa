"""What is checked of a NodePool on either cloud: that its node class exists here, and that its nodes can go."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from karpstack.karpenter.findings import Finding

from ..documents import manifests
from ..problems import Shown, finding


def node_class_reference(
    name: str, spec: Mapping[str, Any], kind: manifests.NodeClassKind, node_classes: Collection[str] | None
) -> Iterator[Finding]:
    """Problems of a NodePool's nodeClassRef.

    Args:
        name: Name of the NodePool.
        spec: Its spec.
        kind: The cloud's node class.
        node_classes: Names that exist, or None when the section that holds them is not valid.
    """
    reference = manifests.node_template(spec).get("nodeClassRef") or {}
    at = ("nodePools", name, "template", "spec", "nodeClassRef")
    for part, right in {"group": kind.group, "kind": kind.kind}.items():
        if reference.get(part, right) != right:
            yield finding("node-class-of-other-cloud", (*at, part), reference[part], right=right)
    chosen = manifests.node_class_name(spec)
    if node_classes is not None and chosen not in node_classes:
        yield finding(
            "node-class-unknown",
            (*at, "name"),
            chosen if "name" in reference else None,
            default="" if "name" in reference else " (not set means default)",
            known=", ".join(sorted(node_classes)) or "(there is none)",
        )


def overlays_without_gate(node_overlays: Mapping[str, Any], valid: Mapping[str, Any]) -> Iterator[Finding]:
    """NodeOverlays that Karpenter does not read, and that never become ready. In mode nap AKS runs it, without them."""
    if not node_overlays or "karpenter" not in valid:
        return
    karpenter = valid["karpenter"]
    if karpenter is None or not karpenter.feature_gates.node_overlay:
        yield finding("overlay-without-gate", "nodeOverlays", Shown(", ".join(node_overlays)))


def endless_drain(name: str, spec: Mapping[str, Any]) -> Iterator[Finding]:
    """A warning about nodes that a single pod may keep for ever."""
    if manifests.node_template(spec).get("terminationGracePeriod") is None:
        yield finding("drain-without-end", ("nodePools", name, "template", "spec", "terminationGracePeriod"), None)


def negative_limits(name: str, spec: Mapping[str, Any]) -> Iterator[Finding]:
    """Limits below zero, which the API server takes."""
    limits = spec.get("limits")
    for resource, amount in (limits if isinstance(limits, Mapping) else {}).items():
        if str(amount).startswith("-"):
            yield finding("limit-negative", ("nodePools", name, "limits", resource), amount)
