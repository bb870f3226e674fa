"""Limits of a what-if: the section `whatif` of the thresholds' file.

What is left out has its default: pods without a node, workloads that no NodePool could hold, drifted nodes that nothing
replaces and pods that are killed are allowed none, as far as the change is why. `null` switches a limit off. Other
limits are off.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from karpstack.scale_test.numbers.thresholds import DEFAULT, WHATIF, ThresholdsError, explained
from karpstack.text import shown
from karpstack.text.yaml_file import YamlError, read

from .accuracy import REQUESTS
from .answer import Accuracy, BlastRadius, Inventory, Limit, Moment, RemainingNode

#: How figures are written, where it is not as a plain number.
_FORMATS = {"max_hourly_increase": "+g", "max_difference_from_cluster": ".1%"}
_SHARE = re.compile(r"(\d{1,4}(?:\.\d{1,3})?)\s?%")


def _amount(value: float | str) -> float | str:
    if isinstance(value, str) and not _SHARE.fullmatch(value):
        raise ValueError("write a number, or a share such as 10%")
    return value


Amount = Annotated[Annotated[float, Field(ge=0)] | str, AfterValidator(_amount)]
Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0)]


class Limits(BaseModel):
    """Limits of a what-if.

    Attributes:
        max_hourly_increase: Maximum increase of the nodes' price: USD an hour, or a share.
        max_hourly: Maximum price of the nodes after the change, in USD an hour.
        max_times_lower_bound: The same, as a multiple of the lower bound.
        max_nodes: Maximum number of nodes after the change.
        max_nodes_replaced: Nodes that may be removed: a number, or a share of the existing ones.
        max_nodes_at_once: Nodes that may be disrupted at the same time.
        max_pods_moved: Pods that may have to move.
        max_pods_without_node: Pods that may be unschedulable for a time.
        max_seconds_without_node: Longest time that one of them may be.
        max_pods_unschedulable: Pods that may be without a node at the end, more than before.
        max_workloads_without_node_pool: Running workloads that no NodePool may be able to schedule again.
        max_nodes_never_replaced: Drifted nodes that nothing replaces, and deleted nodes that drain, as long as nobody
            changes something.
        max_pods_killed: Pods that may be deleted although a PodDisruptionBudget or do-not-disrupt forbids it.
        max_node_pools_over_limits: NodePools that may be over their own limits since the change.
        max_difference_from_cluster: How far the rehearsed base may be from the real cluster in nodes, in dollars and in
            what pods request.
        must_settle: Whether base and change must settle.
    """

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True, allow_inf_nan=False, strict=True
    )

    max_hourly_increase: Amount | None = None
    max_hourly: Annotated[float, Field(gt=0)] | None = None
    max_times_lower_bound: Annotated[float, Field(ge=1)] | None = None
    max_nodes: Count | None = None
    max_nodes_replaced: Amount | None = None
    max_nodes_at_once: Count | None = None
    max_pods_moved: Count | None = None
    max_pods_without_node: Count | None = None
    max_seconds_without_node: Seconds | None = None
    max_pods_unschedulable: Count | None = 0
    max_workloads_without_node_pool: Count | None = 0
    max_nodes_never_replaced: Count | None = 0
    max_pods_killed: Count | None = 0
    max_node_pools_over_limits: Count | None = None
    max_difference_from_cluster: Amount | None = None
    must_settle: bool = True

    @classmethod
    def load(cls, path: Path, scenarios: Collection[str]) -> Limits:
        """Read the section of a thresholds' file.

        Args:
            path: The file.
            scenarios: Names of the scenarios of which it may have sections, too.

        Raises:
            ThresholdsError: It cannot be read, has no such section or is wrong; all that is wrong is named at once.
        """
        try:
            data = read(path)
        except YamlError as error:
            raise ThresholdsError(f"{path}: {error}: no limit could be judged; mend it, or name another") from error
        if data is not None and not isinstance(data, dict):
            return cls.parse(data, path.name)
        sections = data or {}
        problems = list(_unknown(sections, path.name, scenarios))
        if sections.get(WHATIF) is None:
            problems.append(
                f"{path.name}: {WHATIF}: there is no such section, or nothing in it, so that it would limit nothing; "
                f"write limits under `{WHATIF}:`, or `{WHATIF}: {{}}` if nothing is to be limited"
            )
        if problems:
            raise ThresholdsError(shown.message(problems))
        return cls.parse(sections[WHATIF], path.name)

    @classmethod
    def parse(cls, section: object, source: str) -> Limits:
        """Check the section.

        Args:
            section: What it holds.
            source: Name of the file, for messages.

        Raises:
            ThresholdsError: All that is wrong is named at once.
        """
        if section is not None and not isinstance(section, dict):
            raise ThresholdsError(
                f"{source}: {WHATIF}: {shown.value(section)} limits nothing; write limits such as maxPodsWithoutNode: 0"
            )
        try:
            return cls.model_validate(section or {})
        except ValidationError as error:
            raise ThresholdsError(shown.message(explained(source, WHATIF, error, cls))) from error

    def judge(
        self,
        before: Inventory,
        after: Inventory,
        radius: BlastRadius,
        stayed: Sequence[RemainingNode],
        accuracy: Accuracy,
        moments: list[Moment],
    ) -> Iterator[Limit]:
        """Hold an answer against them, in the order of their keys."""
        if self.must_settle:
            yield _rest(moments, changed=radius.applied != [])
        increase = None
        if before.usd_per_hour is not None and after.usd_per_hour is not None:
            increase = round(after.usd_per_hour - before.usd_per_hour, 6)
        never = sum(one.never and not one.drifted_before for one in stayed)
        never += sum(one.never for one in radius.replaced)
        known = {figure.what: figure.difference for figure in accuracy.figures}
        far = [known.get("nodes"), known.get("dollars an hour")]
        far += [distance for name in REQUESTS if (distance := known.get(name)) is not None]
        worst = max((one for one in far if one is not None), default=None) if None not in far else None
        best = _best(before, after)
        seen: dict[str, tuple[float | None, str]] = {
            "max_hourly_increase": (increase, " USD an hour"),
            "max_hourly": (after.usd_per_hour, " USD an hour"),
            "max_times_lower_bound": (times_bound(after), " times the lower bound"),
            "max_nodes": (after.nodes, " nodes"),
            "max_nodes_replaced": (len(radius.replaced), " nodes"),
            "max_nodes_at_once": (radius.disrupted_at_once, " nodes"),
            "max_pods_moved": (radius.pods_moved, " pods"),
            "max_pods_without_node": (radius.pods_without_node, " pods"),
            "max_seconds_without_node": (radius.longest_without_node, " s"),
            "max_pods_unschedulable": (radius.unschedulable, " pods"),
            "max_workloads_without_node_pool": (len(radius.not_schedulable_again), " workloads"),
            "max_nodes_never_replaced": (never, " nodes"),
            "max_pods_killed": (radius.pods_killed, " pods"),
            "max_node_pools_over_limits": (sum(one.over and not one.before for one in radius.full_pools), " NodePools"),
            "max_difference_from_cluster": (worst, ""),
        }
        whole = {
            "max_hourly_increase": before.usd_per_hour,
            "max_nodes_replaced": before.nodes,
            "max_difference_from_cluster": 1.0,
        }
        for name, (figure, unit) in seen.items():
            yield from self._most(name, figure, whole.get(name), unit, best.get(name))

    def _most(
        self, name: str, seen: float | None, whole: float | None, unit: str, best: float | None
    ) -> Iterator[Limit]:
        limit: Any = getattr(self, name)
        if limit is None:
            return
        share = _SHARE.fullmatch(limit) if isinstance(limit, str) else None
        most = float(share[1]) / 100 * (whole if whole is not None else 0.0) if share else float(limit)
        known = seen is not None and not (share and whole is None)
        number = _FORMATS.get(name, "g")
        told = _counted(seen, number, unit) if seen is not None else "not known"
        yield Limit(
            name=to_camel(name),
            limit=f"at most {limit if share else _counted(limit, 'g', unit)}",
            measured=f"{told} at worst, which is judged; {_counted(best, number, unit)} at best"
            if best is not None
            else told,
            within_limit=known and seen is not None and seen <= most + 1e-9,
        )


def _counted(number: float, form: str, unit: str) -> str:
    """A figure with its unit, which is in the plural where it is of things."""
    one = number == 1 and unit in (" nodes", " pods", " workloads", " NodePools")
    return f"{number:{form}}{unit.removesuffix('s') if one else unit}"


def _best(before: Inventory, after: Inventory) -> dict[str, float]:
    """The figures of the bill if Karpenter removes the empty nodes that it may not remove yet."""
    ends = after.open_end
    if not ends or not ends.empty:
        return {}
    least = after.model_copy(update={"usd_per_hour": ends.usd_per_hour})
    known = before.usd_per_hour is not None and ends.usd_per_hour is not None
    found = {
        "max_hourly_increase": round((ends.usd_per_hour or 0) - (before.usd_per_hour or 0), 6) if known else None,
        "max_hourly": ends.usd_per_hour,
        "max_times_lower_bound": times_bound(least),
        "max_nodes": ends.nodes,
    }
    return {name: figure for name, figure in found.items() if figure is not None}


def _rest(moments: Sequence[Moment], *, changed: bool) -> Limit:
    """Whether both sides came to rest, with how much quiet there was of that which was needed.

    A change of nothing keeps it in any case: what the cluster does meanwhile, it does without the change.
    """
    gave_up = [moment for moment in moments if moment.gave_up]
    told = [] if changed else ["the change updates no resource"]
    if changed and not gave_up:
        told.append("settled")
    for moment in gave_up or moments:
        if words := "; ".join(filter(None, (moment.gave_up, _quiet(moment)))):
            told.append(f"{moment.phase}: {words}")
    return Limit(name="mustSettle", limit="settles", measured="; ".join(told), within_limit=not (changed and gave_up))


def _quiet(moment: Moment) -> str:
    if moment.quiet is None or moment.needed is None:
        return ""
    return f"no change for {moment.quiet:.0f} s, {moment.needed:.0f} s are needed"


def _unknown(sections: dict[str, Any], source: str, scenarios: Collection[str]) -> Iterator[str]:
    """Keys of a file that are sections of no thresholds' file."""
    own = {field.alias or name for name, field in Limits.model_fields.items()}
    for name, value in sections.items():
        if name in (DEFAULT, WHATIF) or name in scenarios:
            continue
        if name in own:
            fix = f"write it under `{WHATIF}:`"
        elif close := difflib.get_close_matches(name, (WHATIF, DEFAULT, *scenarios), n=1):
            fix = f"did you mean {close[0]}?"
        else:
            fix = f"use of {WHATIF}, {DEFAULT} and the names of scenarios that ship"
        yield f"{source}: {shown.key([name])}: {shown.value(value)}: no such section, so it would limit nothing; {fix}"


def times_bound(inventory: Inventory) -> float | None:
    """What nodes cost as a multiple of the lower bound; None where either is not known, or nothing is needed."""
    usd, least = inventory.usd_per_hour, inventory.lower_bound_usd_per_hour
    return round(usd / least, 3) if usd is not None and least else None
