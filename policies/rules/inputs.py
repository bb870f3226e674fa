"""The inputs of a stack's resources, noted while they are judged one by one, for the rules about all of them.

A rule over the stack gets outputs. In a first preview many have none: the provider of a cluster's objects can't be
asked before there is the cluster. But what the program declares was shown to the pack when each resource was judged by
itself. Kept for the life of the pack's process, which is one run of the engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pulumi_policy.proxy import UnknownValueError

from .tokens import plain


class Inputs:
    """Inputs by URN."""

    def __init__(self) -> None:
        """Nothing was shown yet."""
        self._shown: dict[str, Mapping[str, Any]] = {}

    def note(self, urn: str, properties: Mapping[str, Any]) -> None:
        """Take the inputs of a resource; an update's follow those of its preview."""
        self._shown[urn] = properties

    def of(self, token: str) -> Iterator[Mapping[str, Any]]:
        """The inputs of the resources of a type that were shown so far."""
        return (shown for urn, shown in self._shown.items() if plain(urn.split("::")[2].rpartition("$")[2]) == token)

    def completing(self, urn: str, outputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """A resource's outputs, with its input where an output is unknown or not there."""
        return Completed(outputs, self._shown.get(urn, {}))

    def clear(self) -> None:
        """Forget everything."""
        self._shown.clear()


class Completed(Mapping[str, Any]):
    """Properties, with those of another mapping where theirs are unknown or not there."""

    def __init__(self, outputs: Mapping[str, Any], inputs: Mapping[str, Any]) -> None:
        self._outputs = outputs
        self._inputs = inputs

    def __getitem__(self, key: str) -> Any:
        if key not in set(self._outputs):  # `in` alone would read the value
            return self._inputs[key]
        try:
            return self._outputs[key]
        except UnknownValueError:
            if key in set(self._inputs):
                return self._inputs[key]
            raise

    def __iter__(self) -> Iterator[str]:
        return iter({**dict.fromkeys(self._outputs), **dict.fromkeys(self._inputs)})

    def __len__(self) -> int:
        return len(set(self._outputs) | set(self._inputs))


#: What the pack's process has seen.
INPUTS: Final = Inputs()
