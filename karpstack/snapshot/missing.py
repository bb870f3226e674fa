"""What is wrong with kubectl's exports together: kinds that they lack, and objects that are in them twice.

It writes a whole list although one of several kinds was refused, or not asked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from .api_fields import mapping, mappings
from .controller import karpenter_of

Item = Mapping[str, Any]

_SYSTEM: Final = "kube-system"
_GATE: Final = "nodeOverlay"
_POOL: Final = "karpenter.sh/nodepool"
_OWNERS: Final = ("ReplicaSet", "StatefulSet", "DaemonSet", "Job", "Deployment")
#: Every cluster has some.
_ALWAYS: Final = ("Namespace", "PriorityClass")


def missing(items: Collection[Item]) -> Iterator[tuple[str, str]]:
    """Yield each kind of which there should be some, and why. Of an export without pods, nothing is known."""
    kinds = {str(item.get("kind")) for item in items}
    if "Pod" not in kinds:
        return
    for kind in _ALWAYS:
        if kind not in kinds:
            yield kind, "the export has none, and every cluster has some"
    named = set(_named(items))
    for kind in sorted(named - kinds):
        yield kind, "the export has none, and others of its objects name one"
    if not any(
        mapping(item.get("metadata")).get("namespace") == _SYSTEM for item in items if item.get("kind") == "Pod"
    ):
        yield "Pod", f"the export has none of {_SYSTEM}, as of one namespace alone; give kubectl --all-namespaces"
    for kind in ("PodDisruptionBudget", *(["NodeOverlay"] if any(map(_has_overlays, items)) else [])):
        if kind not in kinds:
            yield kind, "the export has none; if the cluster has none either, `snapshot take` tells"


def differing(items: Iterable[Item]) -> str:
    """Return kind and name of an object with two different versions; empty if there is none.

    Then the exports are of two clusters, or of two times, and pods would count twice.
    """
    seen: dict[tuple[str, ...], tuple[str, ...]] = {}
    for item in items:
        metadata = mapping(item.get("metadata"))
        key = tuple(str(one) for one in (item.get("kind"), metadata.get("namespace"), metadata.get("name")))
        version = tuple(str(metadata.get(one)) for one in ("uid", "resourceVersion"))
        if seen.setdefault(key, version) != version:
            return f"{key[0]} {key[2]}"
    return ""


def _has_overlays(item: Item) -> bool:
    """Whether it is a controller that takes NodeOverlays."""
    try:
        made = karpenter_of(item) if item.get("kind") == "Deployment" else None
    except (AttributeError, LookupError, TypeError, ValueError):  # malformed objects are counted elsewhere
        return False
    return made is not None and made.feature_gates.get(_GATE, False)


def _named(items: Iterable[Item]) -> Iterator[str]:
    for item in items:
        metadata, spec = mapping(item.get("metadata")), mapping(item.get("spec"))
        for owner in mappings(metadata.get("ownerReferences")):
            if owner.get("kind") in _OWNERS:
                yield str(owner["kind"])
        match item.get("kind"):
            case "Pod":
                if spec.get("nodeName"):
                    yield "Node"
                if any("persistentVolumeClaim" in volume for volume in mappings(spec.get("volumes"))):
                    yield "PersistentVolumeClaim"
            case "PersistentVolumeClaim" if spec.get("volumeName"):
                yield "PersistentVolume"
            case "Node" if _POOL in mapping(metadata.get("labels")):
                yield from ("NodeClaim", "NodePool")
            case "NodePool":
                template = mapping(mapping(spec.get("template")).get("spec"))
                if kind := mapping(template.get("nodeClassRef")).get("kind"):
                    yield str(kind)
