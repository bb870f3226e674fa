"""Counts what of a cluster does not get into its snapshot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from .model import LeftOut

#: How it begins if it is all objects of a kind.
OF_KIND: Final = "kind "
#: How it begins, and ends, if it is some objects of a kind.
OBJECTS, NOT_UNDERSTOOD = "objects of kind ", " that are not understood"
_NOT_SCHEDULING = "no scheduling depends on it, and it may be secret"


class Ledger:
    """What is left out so far."""

    def __init__(self) -> None:
        self._counted: Counter[tuple[str, str]] = Counter()

    def add(self, what: str, why: str, count: int = 1) -> None:
        """Something is left out, so many times."""
        if count:
            self._counted[what, why] += count

    def add_of_pod(self, spec: Mapping[str, Any]) -> None:
        """What of every pod is left out."""
        containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
        for what, keys in {
            "images": ("image",),
            "commands and arguments": ("command", "args"),
            "environment variables": ("env", "envFrom"),
            "probes and hooks of containers": ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle"),
        }.items():
            self.add(what, _NOT_SCHEDULING, sum(_size(one.get(key)) for one in containers for key in keys))
        others = [
            one for one in spec.get("volumes") or () if not ("persistentVolumeClaim" in one or "ephemeral" in one)
        ]
        self.add("volumes of other kinds than claims (ConfigMap, Secret, emptyDir)", _NOT_SCHEDULING, len(others))
        self.add(
            "claims of devices (resourceClaims)",
            "the format does not have them, so its pods ask for less than they did",
            len(spec.get("resourceClaims") or ()),
        )

    def add_annotations(self, annotations: Mapping[str, Any], kept: int) -> None:
        """Annotations of an object, of which some are kept."""
        self.add("annotations", _NOT_SCHEDULING, len(annotations) - kept)

    def all(self) -> list[LeftOut]:
        """Everything, in the order of its names."""
        return [LeftOut(what=what, why=why, count=count) for (what, why), count in sorted(self._counted.items())]


def _size(value: Any) -> int:
    if value is None:
        return 0
    return len(value) if isinstance(value, list) and value and isinstance(value[0], dict) else 1
