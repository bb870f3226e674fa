"""What the tests of every cloud's resource types share: a resource's life as the engine leads it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from typing import Any

import grpc

from karpstack.rehearsal.attachment.resource import AUTOMATIC, Created, Properties, Resource


class AbortedError(Exception):
    """What a real context raises to end the call."""

    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        super().__init__(text)
        self.code = code.name


class Context:
    """The part of a gRPC context that the server uses."""

    def __init__(self, peer: str = "ipv4:127.0.0.1:1") -> None:
        self.address = peer
        self.code: grpc.StatusCode | None = None
        self.text = ""
        self.metadata: dict[str, bytes] = {}
        self.callbacks: list[Callable[[], None]] = []

    def peer(self) -> str:
        return self.address

    def abort(self, code: grpc.StatusCode, text: str) -> None:
        self.code, self.text = code, text
        raise AbortedError(code, text)

    def set_trailing_metadata(self, pairs: tuple[tuple[str, bytes], ...]) -> None:
        self.metadata = dict(pairs)

    def add_callback(self, callback: Callable[[], None]) -> bool:
        self.callbacks.append(callback)
        return True


class ResourceWorld(ABC):
    """The resource types over one simulated account."""

    #: The physical name that the engine proposes for a resource without one.
    proposed_name: str

    @abstractmethod
    def type(self, token: str) -> Resource:
        """The resource type of a token."""

    def check(self, token: str, /, **inputs: Any) -> Properties:
        """Inputs as the engine hands them to `create`; every failure is an error of the test."""
        resource = self.type(token)
        assert not resource.unknown(inputs)
        named = resource.autoname(inputs, {}, self.proposed_name)
        named.pop(AUTOMATIC, None)
        checked, failures = resource.check(named, name="thing")
        assert not failures
        return checked

    def failures(self, token: str, /, **inputs: Any) -> dict[str, str]:
        """What the check refuses: reason by property."""
        named = self.type(token).autoname(inputs, {}, self.proposed_name)
        return {failure.property: failure.reason for failure in self.type(token).check(named, name="thing")[1]}

    def create(self, token: str, /, **inputs: Any) -> Created:
        return self.type(token).create(self.check(token, **inputs), timeout=5.0)

    def update(self, token: str, created: Created, /, **inputs: Any) -> Properties:
        return self.type(token).update(created.id, created.outputs, self.check(token, **inputs), timeout=5.0)

    def read(self, token: str, created: Created) -> Properties | None:
        return self.type(token).read(created.id, created.outputs)

    def delete(self, token: str, created: Created) -> None:
        self.type(token).delete(created.id, created.outputs, timeout=5.0)


class RecordingPlane:
    """A control plane that records what is applied to it, and which nodes join."""

    def __init__(self) -> None:
        self.manifests: dict[tuple[str, str], Mapping[str, Any]] = {}
        self.nodes: dict[str, dict[str, Any]] = {}
        #: Whether nodes that join stay NotReady.
        self.never_ready = False

    def apply(self, manifests: Iterable[Mapping[str, Any]]) -> None:
        for manifest in manifests:
            self.manifests[manifest["kind"], manifest["metadata"]["name"]] = manifest

    def delete(self, manifests: Iterable[Mapping[str, Any]]) -> None:
        for manifest in manifests:
            self.manifests.pop((manifest["kind"], manifest["metadata"]["name"]), None)

    def join(
        self,
        machines: Iterable[Any],
        *,
        taints: Iterable[Mapping[str, str]] = (),
        labels: Mapping[str, str] | None = None,
        timeout: float,
    ) -> list[str]:
        names = []
        for machine in machines:
            self.nodes[machine.node_name] = {"taints": [*taints], "labels": {**machine.labels, **(labels or {})}}
            names.append(machine.node_name)
        return names if self.never_ready else []

    def remove_nodes(self, names: Iterable[str]) -> None:
        for name in names:
            del self.nodes[name]


Change = Callable[[dict[str, Any]], object]


def changed(file: dict[str, Any], row: Mapping[str, Any] | Change) -> dict[str, Any]:
    """A copy of a file, changed as a row says: `set` values at dotted paths, `add` items to lists, `without` paths."""
    copied = deepcopy(file)
    if not isinstance(row, Mapping):
        row(copied)
        return copied
    for path, value in row.get("set", {}).items():
        where, last = _place(copied, path)
        where[last] = value
    for path, item in row.get("add", {}).items():
        where, last = _place(copied, path)
        where[last].append(item)
    for path in row.get("without", ()):
        where, last = _place(copied, path)
        del where[last]
    return copied


def _place(file: Any, path: str) -> tuple[Any, Any]:
    *parents, last = (int(step) if step.isdigit() else step for step in path.split("."))
    for step in parents:
        file = file[step]
    return file, last
