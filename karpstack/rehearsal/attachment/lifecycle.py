"""The life of a resource whose type is a row, the same for the clouds: check, preview, create, read, update, delete.

A cloud says how it is called (`make`, `complete`, `look`, `change`, `remove`), and how its errors are told; a type
adds to these only behaviour that its row cannot say. Nothing is kept here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from karpstack.rehearsal.attachment.resource import Created, Failure, Properties, RefusedError, Resource
from karpstack.rehearsal.attachment.rows import Row


class RowResource(Resource):
    """A resource type that a row describes."""

    row: Row
    #: What is said of an input that is missing.
    missing = "Missing required argument: {title} cannot be created without {name}; set it"

    def __init__(self, row: Row) -> None:
        self.row = row
        self.token = row.token
        self.accepts = row.accepts
        self.replace_on = row.replaces
        self.secret_outputs = row.secrets
        self.delete_before_replace = row.deletes_first
        self.name_property = row.name
        self.default_timeout = row.timeout

    # What a cloud says, and a type may add to.

    def examine(self, inputs: Properties) -> Iterator[Failure]:
        """Find what is refused before any call and no row can say; may meet `UNKNOWN`."""
        yield from ()

    @abstractmethod
    def make(self, inputs: Properties) -> str:
        """Send the request that creates the resource and give its ID."""

    def complete(self, id: str, inputs: Properties, timeout: float) -> None:
        """Do what creation takes beyond the first request."""

    @abstractmethod
    def current_outputs(self, id: str, state: Properties) -> Properties | None:
        """All outputs as the cloud has them now; None when it is gone."""

    @abstractmethod
    def change(self, id: str, old: Properties, new: Properties, timeout: float) -> None:
        """Change it in place."""

    @abstractmethod
    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """Delete it and wait."""

    @abstractmethod
    def telling(self, action: str, subject: str) -> AbstractContextManager[None]:
        """Show the cloud's refusals in the words of the provider and of the cloud."""

    def failed(self, id: str, inputs: Properties, timeout: float, error: BaseException) -> None:
        """Called when a creation failed after `make`, before its error goes on."""

    def is_gone(self, error: Exception) -> bool:
        """Whether the cloud says by an error that the resource does not exist."""
        return False

    # The order of calls, the same for all.

    def unknown(self, inputs: Properties) -> list[str]:
        """As for every resource; a value that would be answered anyway changes nothing, so it is taken."""
        usual = self.row.usual
        alone = [name for name in super().unknown(inputs) if name not in usual or inputs[name] != usual[name]]
        return [*alone, *self.row.unknown_in_blocks(inputs)]

    def autoname(self, inputs: Properties, old: Mapping[str, Any], proposed: str | None) -> Properties:
        """As for every resource; a drawn name has the type's prefix, with which the logical name may begin already."""
        prefix = self.row.name_prefix
        return super().autoname(inputs, old, proposed and prefix + proposed.removeprefix(prefix))

    def check(self, inputs: Mapping[str, Any], *, name: str) -> tuple[Properties, list[Failure]]:
        """Fill in the provider's defaults, and find what is missing or outside its limits."""
        checked = {**self.row.defaults, **{key: value for key, value in inputs.items() if value is not None}}
        failures = [
            Failure(key, self.missing.format(title=self.row.title, name=key))
            for key in sorted((self.row.required | {self.row.name} - {""}) - checked.keys())
        ]
        physical = checked.get(self.row.name)
        if isinstance(physical, str) and len(physical) > self.row.name_limit:
            said = f"{physical!r} has {len(physical)} characters, and the limit for the name of an {self.row.title} is "
            failures.append(Failure(self.row.name, f"{said}{self.row.name_limit}; choose a shorter one"))
        failures.extend(Failure(*broken) for broken in self.row.limits_broken(checked))
        if not failures:
            failures.extend(self.examine(checked))
        return checked, failures

    def replacing(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> frozenset[str]:
        """As for every resource, with what cannot be taken out again."""
        gone = (name for name in self.row.replaces_when_gone if old.get(name) and not new.get(name))
        return super().replacing(old, new).union(gone)

    def imported(self, id: str) -> tuple[str, Properties]:
        """As for every resource, with what the provider makes of what the cloud does not tell."""
        return id, dict(self.row.unread)

    def create(self, inputs: Properties, *, timeout: float) -> Created:
        """Make, complete, look."""
        with self.telling("creating", str(inputs.get(self.row.name, ""))):
            id = self.make(inputs)
        with self.telling("creating", id):
            try:
                self.complete(id, inputs, timeout)
                outputs = self._seen(id, inputs)
            except BaseException as error:
                self.failed(id, inputs, timeout, error)
                raise
        if outputs is None:
            raise RefusedError(f"creating {self.row.title} ({id}): it was gone before it could be read")
        return Created(id, outputs)

    def read(self, id: str, state: Properties) -> Properties | None:
        """What the cloud has now."""
        with self.telling("reading", id):
            return self._seen(id, state)

    def update(self, id: str, old: Properties, new: Properties, *, timeout: float) -> Properties:
        """Change, then look."""
        kept = {key: value for key, value in old.items() if key not in self.accepts}
        with self.telling("updating", id):
            self.change(id, old, new, timeout)
            outputs = self._seen(id, {**kept, **new})
        if outputs is None:
            raise RefusedError(f"updating {self.row.title} ({id}): it does not exist any more; run pulumi refresh")
        return outputs

    def delete(self, id: str, state: Properties, *, timeout: float) -> None:
        """Remove it; what is gone already is well."""
        with self.telling("deleting", id):
            try:
                self.remove(id, state, timeout)
            except Exception as error:
                if not self.is_gone(error):
                    raise

    def _seen(self, id: str, state: Properties) -> Properties | None:
        try:
            return self.current_outputs(id, state)
        except Exception as error:
            if self.is_gone(error):
                return None
            raise
