"""What earlier stories of a run left short: Karpenter takes it for unavailable for minutes after the cloud has it.

It does so on any cluster, and only a start of the controller makes it forget. So it is told in the stories after it,
where another node may have come for that reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from karpstack.text.shown import listed

from ..market.prices import REMEMBERED, Offering, offerings_of
from ..recording.timeline import Line, parse_time
from ..scenarios.environments import environment_of_kind
from ..scenarios.scenario import Scenario
from .assertion import Assertion
from .replay import Replay

#: What the report calls it.
NAME: Final = "earlier shortages"

# The controller renews the metric once a minute, and the recorder asks twice a minute.
_RENEWED, _LEARNT = timedelta(seconds=60), timedelta(seconds=100)
_SHORTAGE, _INTERRUPTION, _KILLED = "out-of-capacity", "interruption", "kill-controller"
_NAMED = 10


def earlier_shortages(replay: Replay, scenario: Scenario) -> Assertion | None:
    """That earlier stories took something which Karpenter may not have tried again yet; None where none did.

    It always holds: it is there to be read where the story fails.

    Args:
        replay: The whole timeline.
        scenario: The story, as it is in the environment.
    """
    begun = replay.begun(scenario)
    cloud = environment_of_kind(scenario.stacks[0]).cloud
    if begun is None:
        return None
    taken: dict[str, list[Line]] = {}
    for time, fault in replay.faults:
        ended = _ended(replay, fault["scenario"]) or time
        another = fault["kind"] in (_SHORTAGE, _INTERRUPTION) and fault["scenario"] != scenario.name
        if another and time < begun <= ended + REMEMBERED[cloud] and not _forgotten(replay, time, ended):
            taken.setdefault(fault["scenario"], []).append(fault | {"at": time})
    said = [words for name, faults in taken.items() if (words := _said(replay, scenario, begun, name, faults))]
    if not said:
        return None
    minutes = REMEMBERED[cloud] / timedelta(minutes=1)
    return Assertion(
        NAME,
        "to be told what Karpenter may still take for unavailable",
        f"{'; '.join(said)}. For {minutes:g} min after a shortage Karpenter does not ask for it again, so another node "
        "may have come",
        passed=True,
        where_to_look="docs/reference/scenarios.md (What a story leaves short)",
    )


def _said(replay: Replay, scenario: Scenario, begun: datetime, name: str, faults: list[Line]) -> str:
    """What one story left short; empty where the metrics say that there is nothing."""
    ended = _ended(replay, name) or faults[-1]["at"]
    when = f"{name}, which ended {max(0.0, (begun - ended).total_seconds()):.0f} s before,"
    known = _unavailable(replay, scenario, faults[0]["at"], ended, begun)
    if known is None:
        return f"{when} took {', '.join(dict.fromkeys(_meant(replay, fault) for fault in faults))}"
    found = {one for one in known if any(_takes(replay, fault, one) for fault in faults)}
    return f"{when} left {_listed(found)}, which the controller's metrics say to be unavailable" if found else ""


def _unavailable(
    replay: Replay, scenario: Scenario, since: datetime, ended: datetime, begun: datetime
) -> set[Offering] | None:
    """What became unavailable after a moment and was so when the story began; None where the metrics do not say."""
    own = (time for time, fault in replay.faults if fault["scenario"] == scenario.name and time >= begun)
    until = min([begun + _LEARNT, *own])
    found: set[Offering] = set()
    told = False
    for time, line in replay.unavailable:
        if since <= time <= until:
            found |= offerings_of(line["became"])
            if time <= begun:
                found -= offerings_of(line["ceased"])
            told = told or time >= ended + _RENEWED
    return found if told else None


def _takes(replay: Replay, fault: Line, offering: Offering) -> bool:
    """Whether a fault makes Karpenter take an offering for unavailable, once it meets it."""
    detail: Mapping[str, Any] = fault["detail"]
    if fault["kind"] == _INTERRUPTION:
        return _interrupted(replay, fault) == offering
    return all(
        value in detail.get(key, (value,))
        for key, value in (
            ("instanceTypes", offering.instance_type),
            ("capacityTypes", offering.capacity_type),
            ("zones", offering.zone),
        )
    )


def _meant(replay: Replay, fault: Line) -> str:
    """What a fault takes, in words."""
    detail = fault["detail"]
    if fault["kind"] == _INTERRUPTION:
        interrupted = _interrupted(replay, fault)
        return _listed({interrupted}) if interrupted else "a node by an interruption"
    types = detail.get("instanceTypes") or ["everything"]
    where = ", ".join([*detail.get("capacityTypes", ()), *detail.get("zones", ())])
    return f"{listed(types, _NAMED)}{f' ({where})' * bool(where)}"


def _interrupted(replay: Replay, fault: Line) -> Offering | None:
    """What a notice of interruption makes unavailable: markUnavailableOfferings, pkg/controllers/interruption, 1.15."""
    claim = replay.claims.get(str(fault["detail"].get("nodeClaim")))
    return claim.offering._replace(capacity_type="spot") if claim and claim.offering else None


def _listed(offerings: set[Offering]) -> str:
    types = {one.instance_type for one in offerings}
    where = [*sorted({one.capacity_type for one in offerings}), *sorted({one.zone for one in offerings})]
    return f"{listed(sorted(types), _NAMED)} ({', '.join(where)})"


def _ended(replay: Replay, name: str) -> datetime | None:
    """When a story came to its end; until then its shortage could be met."""
    ends = (mark for mark in replay.marks if mark["type"] == "END" and mark["scenario"] == name)
    return max((parse_time(mark["received"]) for mark in ends), default=None)


def _forgotten(replay: Replay, time: datetime, ended: datetime) -> bool:
    """Whether the controller was started again after a fault and launched nothing more: it remembers in memory only."""
    return any(
        time < killed <= ended and not any(killed < claim.first_seen <= ended for claim in replay.claims.values())
        for killed, fault in replay.faults
        if fault["kind"] == _KILLED
    )
