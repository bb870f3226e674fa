"""Refuses updates that would destroy a cluster, its network or its workload: at preview, unless the settings consent.

Rules on settings compare them with the last state and name the setting; each cloud has its own (`settings/*_identity`).
For what no rule knows, hooks refuse the replacement of single resources, by the engine's own decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pulumi

from karpstack.karpenter.findings import Finding

from . import last_state
from .last_state import LastState
from .problems import OTHER_WAYS, finding, replacing

#: The cloud of each kind of environment.
_CLOUDS: Final = {
    "karpstack:eks:Environment": "aws",
    "karpstack:aks:Environment": "azure",
    "karpstack:aks:ExistingEnvironment": "azure",
}


class ReplacementError(pulumi.RunError):
    """The update would destroy what the stack has. The engine prints its text, without a traceback."""

    def __init__(self, problems: Sequence[Finding]) -> None:
        self.problems = tuple(problems)
        count = f"{len(self.problems)} change{'s' * (len(self.problems) != 1)}"
        parts = [f"{count} of the configuration would destroy what the stack has; nothing was changed"]
        super().__init__("\n\n".join([*parts, *map(str, self.problems)]))


@dataclass(frozen=True)
class Keeper:
    """Keeps what the stack has.

    Attributes:
        last: The stack's last state.
        allowed: Whether karpstack:allowReplacement consents to a replacement.
        environment: Type of the environment. It is part of the hooks' names: environments of two types may have one
            name, and the engine takes each name of a hook once.
    """

    last: LastState
    allowed: bool
    environment: str = ""

    def refuse(self, problems: Iterable[Finding]) -> None:
        """Refuse changes that destroy something; with consent, warn of them.

        Raises:
            ReplacementError: There are some, and no consent.
        """
        found = list(problems)
        if found and not self.allowed:
            raise ReplacementError(found)
        for problem in found:
            pulumi.log.warn(str(problem))
        if self.allowed and self.last.resources:
            pulumi.log.warn(str(finding("replacement-allowed", "allowReplacement", ["cluster"])))

    def hooks(
        self, name: str, *, lost: str, before_create: Sequence[pulumi.ResourceHook] = (), **others: Any
    ) -> pulumi.ResourceHookBinding:
        """Return the hooks of a resource, one of which refuses its replacement at preview.

        Args:
            name: Of the resource; unique in the environment.
            lost: What would be lost with the resource.
            before_create: Further hooks of the resource.
            others: The same, of other kinds.
        """
        options = pulumi.ResourceHookOptions(on_dry_run=True)
        kept = f"{self.environment}:{name}-kept"
        own = [] if self.allowed else [pulumi.ResourceHook(kept, self._refusal(lost), options)]
        return pulumi.ResourceHookBinding(before_create=[*own, *before_create], **others)

    def _refusal(self, lost: str) -> Callable[[pulumi.ResourceHookArgs], None]:
        def refuse(created: pulumi.ResourceHookArgs) -> None:
            # The engine creates what the stack has already for one reason: to replace it.
            if (old := self.last.resources.get(created.urn)) is not None:
                raise pulumi.RunError(
                    f"{created.name} ({created.type}) would be replaced, and {lost} would be lost. What changes: "
                    f"{changed(old.outputs, created.new_inputs or {})}\n"
                    f"    fix: take the change back; or {OTHER_WAYS}"
                )

        return refuse


def keep_cloud(cloud: str, *, allowed: bool) -> None:
    """Refuse settings of another cloud than that of the stack: all that the stack has would be deleted.

    Args:
        cloud: That of the settings, as karpstack:cloud has it.
        allowed: As `Keeper` has it.

    Raises:
        ReplacementError: The last state has an environment in the other cloud, and none in this one.
    """
    keeper = Keeper(last_state.read(), allowed=allowed)
    found = {_CLOUDS[each.type] for each in keeper.last.resources.values() if each.type in _CLOUDS}
    if found and cloud not in found:
        keeper.refuse([replacing("cloud-changed", "cloud", min(found), cloud)])


def changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return the names of the inputs that differ from the outputs of the last state."""
    return ", ".join(sorted(key for key, value in new.items() if not _same(old.get(key), value))) or "not known"


def _same(old: Any, new: Any) -> bool:
    """Whether an input is what the last state has; outputs hold more keys than inputs."""
    if isinstance(new, Mapping) and isinstance(old, Mapping):
        return all(_same(old.get(key), value) for key, value in new.items())
    return new is None or bool(old == new)
