"""A cluster in memory: what is asked of it, and a Karpenter and controllers of a few lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from karpstack.scale_test.acting.cluster import Cluster

Object = dict[str, Any]


class Clock:
    """Time that passes when somebody waits."""

    def __init__(self, each: Callable[[], None] = lambda: None) -> None:
        self.now = 0.0
        self._each = each

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let time pass, and things happen."""
        self.now += max(seconds, 0.01)
        self._each()


class Live(Cluster):
    """Objects by kind and name."""

    def __init__(self, *objects: Object) -> None:
        self.objects: dict[tuple[str, str], Object] = {}
        self.bound: list[tuple[str, str]] = []
        self.changed: list[tuple[str, str, Mapping[str, Any]]] = []
        for one in objects:
            self.create(one)

    def create(self, wanted: Mapping[str, Any]) -> str | None:
        key = wanted["kind"], wanted["metadata"]["name"]
        if key in self.objects:
            return None
        self.objects[key] = {**wanted, "metadata": {"uid": "/".join(key), **wanted["metadata"]}}
        return "/".join(key)

    def tried(self, wanted: Mapping[str, Any]) -> Object:
        held = ("MutatingAdmissionPolicyBinding", "karpstack-whatif") in self.objects
        return {**wanted, "spec": {"schedulerName": "karpstack-whatif" if held else "default-scheduler"}}

    def bind(self, pod: Mapping[str, Any], node: str) -> bool:
        self.bound.append((pod["metadata"]["name"], node))
        self.objects["Pod", pod["metadata"]["name"]]["spec"]["nodeName"] = node
        return True

    def read(self, wanted: Mapping[str, Any]) -> Object | None:
        return self.objects.get((wanted["kind"], wanted["metadata"]["name"]))

    def labelled(self, api_version: str, kind: str, selector: str, fields: str = "") -> list[Object]:
        return [one for (of, _), one in list(self.objects.items()) if of == kind and _has(one, selector)]

    def delete(self, wanted: Mapping[str, Any], uid: str) -> bool:
        return self.objects.pop((wanted["kind"], wanted["metadata"]["name"]), None) is not None

    def change(self, wanted: Mapping[str, Any], patch: Mapping[str, Any]) -> None:
        self.changed.append((wanted["kind"], wanted["metadata"]["name"], patch))

    def end(self, kind: str) -> None:
        """Delete what there is of a kind."""
        for one in self.all(kind):
            self.delete(one, "")

    def all(self, kind: str) -> list[Object]:
        """What there is of a kind."""
        return self.labelled("", kind, "")


def _has(one: Object, selector: str) -> bool:
    labels = one["metadata"].get("labels") or {}
    wanted = [part.partition("=") for part in selector.split(",") if part]
    return all(labels.get(key) == value if sign else key in labels for key, sign, value in wanted)
