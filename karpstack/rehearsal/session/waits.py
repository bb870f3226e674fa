"""What NodePools wait for, shortened for a what-if: nobody watches a rehearsal for half an hour, or until Sunday.

The stack's configuration is changed in Pulumi's copy alone. Karpenter decides as ever; only `consolidateAfter` is a
share of what was asked, and budgets with a schedule are as they are at one moment of the week.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from karpstack.karpenter.budgets import BudgetError, budgets
from karpstack.karpenter.quantities import duration, finite_duration
from karpstack.text.projects import section

_NODE_POOLS: Final = "nodePools"
_CHANGED: Final = ("consolidateAfter", "budgets")
_ALWAYS: Final = {"nodes": "100%"}  # what no active budget means


@dataclass(frozen=True)
class Waits:
    """How they are changed.

    Attributes:
        factor: By which `consolidateAfter` is divided; at least 1.
        at: The moment whose budgets hold all the time, with a time zone; None leaves schedules as they are.
    """

    factor: float = 1.0
    at: datetime | None = None

    def applied(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """A stack's configuration with other waits.

        What cannot be read as NodePools is left as it is: the program refuses it, with better words.
        """
        pools = section(config, _NODE_POOLS)
        if not pools or self == AS_ASKED:
            return dict(config)
        return {**config, f"karpstack:{_NODE_POOLS}": {name: self._of(spec) for name, spec in pools.items()}}

    def changed_settings(self, *configurations: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Name of a NodePool -> what of it was changed: `consolidateAfter` and `budgets`, each as asked and as used.

        Where several configurations have a NodePool, the last of them says: also that nothing of it was changed.
        """
        changed: dict[str, dict[str, Any]] = {}
        for config in configurations:
            before = section(config, _NODE_POOLS) or {}
            after = section(self.applied(config), _NODE_POOLS) or {}
            changed |= {
                name: {
                    key: [_disruption(spec).get(key), _disruption(after[name]).get(key)]
                    for key in _CHANGED
                    if _disruption(spec).get(key) != _disruption(after[name]).get(key)
                }
                for name, spec in before.items()
            }
        return {name: keys for name, keys in changed.items() if keys}

    def hidden(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, str]]:
        """NodePools and settings of them that a change has and its rehearsal does not: both become the same.

        Args:
            before: A stack's configuration, its NodePools with the API server's defaults.
            after: The same after the change.
        """
        asked = [section(one, _NODE_POOLS) or {} for one in (before, after)]
        used = [section(self.applied(one), _NODE_POOLS) or {} for one in (before, after)]

        def same(sides: list[dict[str, Any]], name: str, key: str) -> bool:
            old, new = (_disruption(one[name]).get(key) for one in sides)
            span = finite_duration(str(old))
            return old == new or (span is not None and span == finite_duration(str(new)))

        return [
            (name, key)
            for name in sorted(asked[0].keys() & asked[1].keys())
            for key in _CHANGED
            if same(used, name, key) and not same(asked, name, key)
        ]

    def _of(self, spec: Any) -> Any:
        disruption = _disruption(spec)
        if not disruption:
            return spec
        changed = dict(disruption)
        asked = disruption.get("consolidateAfter")
        if isinstance(asked, str):
            changed["consolidateAfter"] = self._shortened(asked)
        if self.at is not None and disruption.get("budgets"):
            changed["budgets"] = _at(disruption["budgets"], spec, self.at)
        return {**spec, "disruption": changed}

    def _shortened(self, asked: str) -> str:
        try:
            return f"{math.ceil(duration(asked).total_seconds() / self.factor)}s"
        except ValueError:  # `Never`, or what Karpenter will refuse
            return asked


AS_ASKED: Final = Waits()


def longest(*configurations: Mapping[str, Any]) -> timedelta:
    """The longest `consolidateAfter` of the NodePools of several configurations, without what cannot be read."""
    asked = [
        str(_disruption(spec).get("consolidateAfter"))
        for config in configurations
        for spec in (section(config, _NODE_POOLS) or {}).values()
    ]
    return max((finite_duration(one) or timedelta() for one in asked), default=timedelta())


def _at(entries: Any, spec: Mapping[str, Any], moment: datetime) -> Any:
    """The budgets that are active at a moment, for ever."""
    try:
        active = [budget.active(moment) for budget in budgets(spec)]
    except (BudgetError, AttributeError, TypeError):
        return entries
    kept = [
        {key: value for key, value in entry.items() if key not in ("schedule", "duration")}
        for entry, counts in zip(entries, active, strict=True)
        if counts
    ]
    return kept or [_ALWAYS]


def _disruption(spec: Any) -> Mapping[str, Any]:
    found = spec.get("disruption") if isinstance(spec, dict) else None
    return found if isinstance(found, dict) else {}
