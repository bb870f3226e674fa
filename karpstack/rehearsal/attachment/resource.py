"""One resource type of a Pulumi package, as its provider stand-in treats it.

`karpstack.rehearsal.attachment.server` turns the engine's gRPC calls into calls of these; a resource knows no gRPC.
Property names are Pulumi's (camelCase). Values are plain Python: dict, list, str, int, float, bool, None,
`UNKNOWN`; secrets arrive unwrapped and are wrapped again by the server.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

Properties = dict[str, Any]


class Unknown:
    """A value that is not known before the deployment."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown()


def has_unknowns(value: Any) -> bool:
    """Whether `UNKNOWN` is anywhere in it."""
    if isinstance(value, dict):
        value = list(value.values())
    return any(map(has_unknowns, value)) if isinstance(value, list) else isinstance(value, Unknown)


def without_unknowns(value: Any) -> Any:
    """Return the value with None in place of each `UNKNOWN`."""
    if isinstance(value, dict):
        return {name: without_unknowns(item) for name, item in value.items()}
    if isinstance(value, list):
        return [without_unknowns(item) for item in value]
    return None if isinstance(value, Unknown) else value


class RefusedError(Exception):
    """The cloud would refuse the request; the text is what the user sees (the cloud's own where there is one)."""


@dataclass(frozen=True)
class Failure:
    """An input that the check refuses.

    Attributes:
        property: Its name.
        reason: Value, consequence and fix.
        unsupported: Whether the rehearsal refuses it, and not the cloud.
    """

    property: str
    reason: str
    unsupported: bool = False


@dataclass(frozen=True)
class Created:
    """A new resource: its cloud ID and all its output properties, inputs included."""

    id: str
    outputs: Properties


class IncompleteError(Exception):
    """The resource exists, but not as it was asked for (a node group without nodes, a failed release).

    The engine records it, so that the next deployment updates it and `destroy` deletes it.

    Attributes:
        created: What exists.
    """

    def __init__(self, reason: str, created: Created) -> None:
        super().__init__(reason)
        self.created = created


class Resource(ABC):
    """Stand-in for one resource type.

    A property that is not in `accepts` is refused by name before `check`; a change to one in `replace_on`
    replaces the resource, to any other accepted one updates it.
    """

    token: str
    accepts: frozenset[str] = frozenset()
    #: Properties, or dotted paths into them such as `metadata.name`.
    replace_on: frozenset[str] = frozenset()
    #: Outputs that are secrets whatever the inputs were.
    secret_outputs: frozenset[str] = frozenset()
    #: Whether a replacement must delete first because two cannot exist under one name.
    delete_before_replace: bool = False
    #: The property that gets a name of the form `<logical name>-<hex digits>` when the program gives none, and
    #: keeps it from one deployment to the next. Empty for types without a name.
    name_property: str = ""
    #: How many hex digits an automatic name has; with none, the separator goes too.
    name_digits: int = 7
    #: What stands between the logical name and the digits.
    name_separator: str = "-"
    #: Seconds that an operation may take when the program sets no customTimeouts.
    default_timeout: float = 600.0

    def unknown(self, inputs: Properties) -> list[str]:
        """The names in `inputs` that this stand-in does not know."""
        return [name for name, value in inputs.items() if value is not None and name not in self.accepts]

    def autoname(self, inputs: Properties, old: Mapping[str, Any], proposed: str | None) -> Properties:
        """Give the resource its physical name when the program gave none.

        Args:
            inputs: The new inputs, plain values or `UNKNOWN`.
            old: The checked inputs of the last deployment, empty for a new resource.
            proposed: The name to take; None when the stack's configuration switches automatic names off.
        """
        if not self.name_property or inputs.get(self.name_property) is not None:
            return inputs
        kept = old.get(self.name_property) if self.name_property in old.get(AUTOMATIC, []) else None
        if (kept or proposed) is None:
            return inputs
        return {**inputs, self.name_property: kept or proposed, AUTOMATIC: [self.name_property]}

    def check(self, inputs: Mapping[str, Any], *, name: str) -> tuple[Properties, list[Failure]]:
        """Fill defaults and validate; `name` is the logical name.

        May meet `UNKNOWN` anywhere; must not call out.
        """
        return dict(inputs), []

    def deletes_first(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
        """Whether a replacement of inputs `old` by `new` must delete before it creates.

        So it must where both have the name that the program gave; an automatic one is drawn again.
        """
        name = self.name_property
        given = bool(name) and name not in new.get(AUTOMATIC, [])
        return self.delete_before_replace or (given and old.get(name) == new.get(name))

    def replacing(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> frozenset[str]:
        """The properties, or dotted paths into them, whose change from `old` to `new` replaces the resource."""
        return self.replace_on

    def before(self, inputs: Properties, state: Properties, new: Properties) -> Properties:
        """What new inputs are compared with, to find what changed: the inputs of the last deployment.

        Args:
            inputs: These.
            state: All outputs before.
            new: The new inputs, with `UNKNOWN` where they depend on what does not exist yet.
        """
        return inputs

    def preview(self, inputs: Properties, *, id: str, state: Properties) -> Properties:
        """Outputs as far as they are known before the deployment; what is left out is unknown.

        Args:
            inputs: The new inputs, with `UNKNOWN` where they depend on what does not exist yet.
            id: The existing resource's ID, empty when it will be created.
            state: Its outputs that are no inputs.

        Raises:
            RefusedError: The cloud is known to refuse it.
        """
        return {**state, **inputs}

    @abstractmethod
    def create(self, inputs: Properties, *, timeout: float) -> Created:
        """Create it.

        Args:
            inputs: The checked inputs.
            timeout: Seconds, from customTimeouts or `default_timeout`.

        Raises:
            RefusedError: The cloud's answer; nothing was created.
            IncompleteError: It was created and is not well.
        """

    @abstractmethod
    def read(self, id: str, state: Properties) -> Properties | None:
        """All current outputs, or None when it is gone. `state` is empty when it is imported or looked up."""

    def imported(self, id: str) -> tuple[str, Properties]:
        """Its own ID, and what is known of it, from the ID by which it is imported or looked up: mostly the same.

        Raises:
            RefusedError: The provider imports it by an ID of another form.
        """
        return id, {}

    def inputs_of(self, outputs: Properties, old: Mapping[str, Any]) -> Properties:
        """The inputs that would have made `outputs`, to find drift.

        Only what the program had set (`old`) is compared, so that a default of the cloud's is no drift; for an
        import, where `old` is empty, they are the accepted properties that have a value.
        """
        if not old:
            return {name: value for name, value in outputs.items() if value is not None and name in self.accepts}
        return {name: _shaped_like(value, outputs[name]) if name in outputs else value for name, value in old.items()}

    def refreshed(self, outputs: Properties, old: Mapping[str, Any], before: Mapping[str, Any]) -> Properties:
        """The inputs after a refresh: those of `inputs_of`, unless the provider goes by what was answered `before`."""
        return self.inputs_of(outputs, old)

    def update(self, id: str, old: Properties, new: Properties, *, timeout: float) -> Properties:
        """Change it in place and return all outputs.

        Args:
            id: Its cloud ID.
            old: All its outputs before.
            new: The checked new inputs.
            timeout: Seconds.
        """
        raise RefusedError(f"{self.token} {id} cannot be changed in place by this stand-in: {sorted(new)}")

    @abstractmethod
    def delete(self, id: str, state: Properties, *, timeout: float) -> None:
        """Delete it and wait until it is gone; deleting what is gone already succeeds."""


#: The input property in which the server notes which names were given automatically, as bridged providers do.
AUTOMATIC: Final = "__defaults"


def _shaped_like(pattern: Any, value: Any) -> Any:
    if isinstance(pattern, dict) and isinstance(value, dict):
        return {name: _shaped_like(pattern[name], value[name]) for name in pattern if name in value}
    if isinstance(pattern, list) and isinstance(value, list) and len(pattern) == len(value):
        return [_shaped_like(*pair) for pair in zip(pattern, value, strict=True)]
    return value
