"""Which taints keep pods off the nodes of a NodePool, as Karpenter evaluates them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

# PreferNoSchedule keeps nobody off: Karpenter lets go of it as of any preference.
_HARD: Final = ("NoSchedule", "NoExecute")


def untolerated(taints: Iterable[Mapping[str, Any]], tolerations: Iterable[Mapping[str, Any]]) -> list[str]:
    """The taints that certainly keep a pod off, as `key=value:effect`.

    Args:
        taints: Those of a NodePool's template; startup taints keep no pod off.
        tolerations: The pod's. One with an operator that is not known here may tolerate anything of its key.
    """
    given = list(tolerations)
    return [
        shown(taint)
        for taint in taints
        if taint.get("effect") in _HARD and not any(_tolerates(toleration, taint) for toleration in given)
    ]


def shown(taint: Mapping[str, Any]) -> str:
    """A taint as kubectl writes it: `key=value:effect`, or `key:effect`."""
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    """As ToleratesTaint of k8s.io/component-helpers: what a toleration leaves out matches anything."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if (toleration.get("operator") or "Equal") == "Equal":
        return bool(toleration.get("value", "") == taint.get("value", ""))
    return True
