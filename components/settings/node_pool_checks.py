"""What is checked of a NodePool on either cloud: that its node class exists here, and that its nodes can go."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ..documents import manifests
from ..problems import Problem, key_of, shown


def node_class_reference(
    name: str, spec: Mapping[str, Any], kind: manifests.NodeClassKind, node_classes: Collection[str] | None
) -> Iterator[Problem]:
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
            yield Problem(
                key_of(*at, part),
                shown(reference[part]),
                "is not this cloud's: no such node class exists here and the NodePool never gets ready",
                f"write {right}, or leave it out",
            )
    chosen = manifests.node_class_name(spec)
    if node_classes is not None and chosen not in node_classes:
        yield Problem(
            key_of(*at, "name"),
            shown(chosen) if "name" in reference else "(not set)",
            f"names no node class of this stack{'' if 'name' in reference else ' (not set means default)'}: the "
            "NodePool never gets ready and launches nothing",
            f"choose one of karpstack:nodeClasses: {', '.join(sorted(node_classes)) or '(there is none)'}",
        )


def endless_drain(name: str, spec: Mapping[str, Any]) -> Iterator[Problem]:
    """A warning about nodes that a single pod may keep for ever."""
    node = manifests.node_template(spec)
    if node.get("terminationGracePeriod") is None:
        yield Problem(
            key_of("nodePools", name, "template", "spec", "terminationGracePeriod"),
            "(not set)",
            "lets a pod that will not go hold its node for ever, and `pulumi destroy` with it",
            "set it, for example to 1h",
            warning=True,
        )


def negative_limits(name: str, spec: Mapping[str, Any]) -> Iterator[Problem]:
    """Limits below zero, which the API server takes."""
    limits = spec.get("limits")
    for resource, amount in (limits if isinstance(limits, Mapping) else {}).items():
        if str(amount).startswith("-"):
            yield Problem(
                key_of("nodePools", name, "limits", resource),
                shown(amount),
                "is less than nothing: the NodePool launches no node, and says so in no status",
                "write what all of its nodes may have together, for example 1000; 0 is for none",
            )
