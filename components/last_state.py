"""The stack's own last state: what an update would change or replace.

A hook gets the old inputs of in-place updates alone. But the engine answers questions about the resources of stacks, on
every backend and at preview too (pulumi/pkg/resource/deploy/builtins.go), and the stack itself is one of them. No cloud
is asked, and the answer does not depend on the settings. `replacement` refuses by it what would destroy.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pulumi

# How the engine begins what it says of a state that it cannot read.
_BEING_WRITTEN: Final = "failed to load checkpoint"
_TRIES: Final = 10
_PAUSE: Final = 0.2  # seconds


@dataclass(frozen=True)
class Resource:
    """A resource that the stack has.

    Attributes:
        urn: Its URN.
        type: Its type, as `aws:eks/cluster:Cluster`.
        name: Its name in the program.
        outputs: Its outputs, and for most types its inputs among them; secrets in plain text.
    """

    urn: str
    type: str
    name: str
    outputs: Mapping[str, Any]


@dataclass(frozen=True)
class LastState:
    """Resources that the stack has, by URN; none before the first `up` that ended well."""

    resources: Mapping[str, Resource]

    def find(self, type_: str, name: str = "") -> Resource | None:
        """Return the resource of a type and, if given, of a name; None without one."""
        return next(iter(self.of(type_, name)), None)

    def of(self, type_: str, name: str = "") -> Sequence[Resource]:
        """Return all resources of a type and, if given, of a name."""
        return [each for each in self.resources.values() if each.type == type_ and name in ("", each.name)]


def read(environment: pulumi.Resource | None = None) -> LastState:
    """Return the last state of the stack that the engine runs.

    Args:
        environment: An environment that was just registered. Without it, a stack whose program exports nothing counts
            as one without a state.
    """
    stack = f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}"
    # The engine crashes if it is asked for the resources of a stack that has no state yet (v3.259,
    # pkg/backend/backend.go, GetStackResourceOutputs). Such a stack has no outputs, and its environment has none:
    # the engine answers with those of the last state until the environment registers its own (step.go, SameStep).
    # An update without a preview writes its first state at the same moment: a backend of files moves the last one away
    # before it writes the next (pulumi/pkg/backend/diy/state.go, saveCheckpoint), so no state is asked for twice.
    if not (
        _ask("readStackOutputs", name=stack)
        or _ask("readStackOutputs", name=stack, after=_PAUSE)
        or (environment and _ask("getResource", "state", urn=environment.urn))
    ):
        return LastState({})
    return LastState(
        {urn: _resource(urn, found) for urn, found in _ask("readStackResourceOutputs", stackName=stack).items()}
    )


def _ask(
    function: str, part: str = "outputs", *, after: float = 0.0, tries: int = _TRIES, **arguments: pulumi.Input[str]
) -> Mapping[str, Any]:
    """Return a part of the engine's answer; a state that is being written is read again a moment later."""
    time.sleep(after)
    try:
        answer = pulumi.runtime.invoke(f"pulumi:pulumi:{function}", arguments).value or {}
    except Exception as error:  # the SDK raises no other
        if _BEING_WRITTEN not in str(error) or tries == 1:
            raise
        return _ask(function, part, after=_PAUSE, tries=tries - 1, **arguments)
    return answer.get(part) or {}


def _resource(urn: str, found: Mapping[str, Any]) -> Resource:
    return Resource(urn, str(found["type"]), urn.split("::", 3)[3], found.get("outputs") or {})
