"""The offerings that a NodeClaim could have had, which of them were unavailable, and the price rank of its choice.

What it could have been is in the NodeClaim itself: Karpenter writes the instance types that fit into its requirements,
up to 600, the cheapest first. What was short is what was said before it was made: by the controller's metrics, by its
events, or by the playbook that broke it on purpose.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from karpstack.karpenter.instance_types import CAPACITY_TYPE, INSTANCE_TYPE, ZONE, InstanceType
from karpstack.karpenter.requirements import (
    Requirement,
    RequirementError,
    UnknownLabelError,
    admitted,
    allows,
    requirement,
    requirements,
)

from ..judging.replay import NodeClaim, Replay
from ..market.prices import ASKED_OF_AWS, Offering
from ..market.quantities import amount
from ..market.requirements import SOLD
from ..recording.timeline import parse_time
from .cost import Market
from .shortages import REFUSED, Shortages
from .story import Story

# Of names in a list.
_NAMED = 10
# The controller renews what is unavailable once a minute, and the recorder asks twice a minute.
_LEARNT_SECONDS = 100.0
_ACCELERATED = ("karpenter.k8s.aws/instance-gpu-count", "karpenter.k8s.aws/instance-accelerator-count")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*[A-Za-z0-9]")
_LAUNCHING = re.compile(r"Launching NodeClaim: (\w+)")


@dataclass(frozen=True)
class _Choice:
    """What a NodeClaim's requirements leave.

    Attributes:
        types: The instance types that it names.
        kinds: The capacity types that it leaves.
        zones: Those that it names, or in which its node class has subnets; None where neither is known.
        prices: Instance type -> (USD an hour in the cheapest of the zones, that zone); of those that are known.
        source: Where the prices are from: `facts`, or `controller` in the cheapest zone of the region.
        no_prices: Why there are none.
        offerings: Instance types, capacity types and zones that are on sale, as far as is known.
    """

    types: tuple[str, ...]
    kinds: tuple[str, ...]
    zones: tuple[str, ...] | None
    prices: Mapping[str, float]
    source: str | None
    no_prices: str | None
    offerings: frozenset[Offering]


class Offers:
    """Tells it of the NodeClaims of a replayed timeline; what many of them have in common is worked out once.

    Args:
        replay: The whole timeline.
        market: What could be bought; None where nothing is known of it.
        cloud: `aws` or `azure`.

    Attributes:
        shortages: What the controller had met of shortages by a moment.
    """

    def __init__(self, replay: Replay, market: Market | None, cloud: str) -> None:
        self._replay = replay
        self._market = market
        self._cloud = cloud
        self._choices: dict[tuple[Requirement, ...], dict[tuple[Any, ...], _Choice]] = {}
        self._left_out: dict[tuple[Any, ...], dict[str, int] | None] = {}
        self._parsed: dict[str, tuple[Requirement, ...] | None] = {}
        self.shortages = Shortages(replay, cloud, self._asked_for)

    def replaces(self, claim: NodeClaim) -> str | None:
        """For which reason of a disruption it was made, as a replacement; None where it was made for waiting pods."""
        for _, event in self._replay.events_by_object.get(("NodeClaim", claim.name), ()):
            said = _LAUNCHING.match(event.get("message", "")) if event.get("reason") == "DisruptionLaunching" else None
            if said:
                return said[1]
        return None

    def offered(self, story: Story, claim: NodeClaim) -> dict[str, Any]:
        """`offered`, `price`, `no_price`, `availability` and `shortages` of a node of the report."""
        wanted = self._wanted(claim)
        if wanted is None:
            return {
                "offered": None,
                "price": None,
                "no_price": None,
                "availability": self.shortages.availability(claim.first_seen),
                "shortages": list(self._own_events(story, claim)),
            }
        choice = self._choice(claim, wanted)
        price = _position(choice, claim, self._market, self._cloud)
        availability = self.shortages.availability(claim.first_seen)
        _, unavailable = self.shortages.metrics(claim.first_seen)
        return {
            "offered": {
                "instance_types": len(choice.types),
                "capacity_types": list(choice.kinds),
                "zones": list(choice.zones) if choice.zones is not None else None,
                "min_values": {one.key: one.min_values for one in wanted if one.min_values},
                "min_values_relaxed": claim.min_values_relaxed,
                "offerings": len(choice.offerings) if choice.offerings else None,
                "unavailable": len(choice.offerings & unavailable) if availability == "recorded" else None,
                "left_out": self._left_out_of(claim, wanted, choice, unavailable),
            },
            "price": price,
            "no_price": choice.no_prices if price is None and claim.offering else None,
            "availability": availability,
            "shortages": list(self._shortages(story, claim, wanted, choice)),
        }

    def _asked_for(self, claim: NodeClaim) -> frozenset[Offering]:
        """What AWS was certainly asked for to launch a NodeClaim; empty where that is not known.

        Its provider asks for one capacity type, for no more than so many types, and leaves out GPUs and bare metal
        where there are others (pkg/providers/instance/filter of 1.15; also spot that is dearer than on demand, where
        both may be). Azure's controller asks for one size at a time, and which it was is not recorded.
        """
        wanted = self._wanted(claim)
        if wanted is None or self._cloud != "aws":
            return frozenset()
        choice = self._choice(claim, wanted)
        if len(choice.types) > ASKED_OF_AWS or len(choice.kinds) > 1 or self._market is None:
            return frozenset()
        known = self._market.facts.types
        plain = {name for name in choice.types if name in known and not _exotic(known[name])}
        return frozenset(one for one in choice.offerings if not plain or one.instance_type in plain)

    def _wanted(self, claim: NodeClaim) -> tuple[Requirement, ...] | None:
        """A NodeClaim's requirements, if it names instance types."""
        if claim.requirements is None:
            return None
        try:
            found = [
                requirement(
                    entry["key"], entry["operator"], entry.get("values") or (), min_values=entry.get("minValues") or 0
                )
                for entry in claim.requirements
            ]
        except RequirementError:
            return None
        # Karpenter writes them in any order, and those of a burst are the same.
        wanted = tuple(sorted(found, key=lambda one: (one.key, one.operator, one.values)))
        return wanted if any(one.key == INSTANCE_TYPE and one.operator == "In" for one in wanted) else None

    def _choice(self, claim: NodeClaim, wanted: tuple[Requirement, ...]) -> _Choice:
        reference = self._node_class(claim)
        zones = self._replay.node_class_zones(reference.get("kind", ""), reference.get("name", ""))
        # AWS's provider asks for one capacity type, spot before on-demand; Azure's for the cheapest of both.
        kinds = [claim.offering.capacity_type] if claim.offering and self._cloud == "aws" else []
        key = (zones, tuple(kinds))
        known = self._choices.setdefault(wanted, {})
        if key not in known:
            known[key] = self._worked_out(wanted, zones, kinds)
        return known[key]

    def _node_class(self, claim: NodeClaim) -> Mapping[str, str]:
        """The reference to its node class, as its NodePool has it."""
        template = (self._replay.node_pool_spec(claim.node_pool) or {}).get("template") or {}
        reference: Mapping[str, str] = (template.get("spec") or {}).get("nodeClassRef") or {}
        return reference

    def _worked_out(
        self, wanted: tuple[Requirement, ...], class_zones: tuple[str, ...] | None, bought: Sequence[str]
    ) -> _Choice:
        types = tuple(
            value
            for one in wanted
            if one.key == INSTANCE_TYPE and one.operator == "In"
            for value in one.values
            if allows(wanted, INSTANCE_TYPE, value)
        )
        kinds = tuple(kind for kind in (*SOLD, "reserved") if allows(wanted, CAPACITY_TYPE, kind))
        named = [value for one in wanted if one.key == ZONE and one.operator == "In" for value in one.values]
        zones = tuple(zone for zone in named or class_zones or () if allows(wanted, ZONE, zone))
        zones = tuple(zone for zone in zones if class_zones is None or zone in class_zones)
        restricted = zones if named or class_zones is not None else None
        prices, source, why = self._prices(
            types, [kind for kind in bought or kinds if kind in SOLD], wanted, restricted
        )
        return _Choice(
            types,
            kinds,
            restricted,
            prices,
            source,
            why,
            frozenset(self._on_sale(types, bought or kinds, wanted, restricted)),
        )

    def _on_sale(
        self,
        types: Iterable[str],
        kinds: Sequence[str],
        wanted: tuple[Requirement, ...],
        zones: tuple[str, ...] | None,
    ) -> Iterator[Offering]:
        if self._market is None:
            return
        for name in types:
            if known := self._market.facts.types.get(name):
                for zone in _zones_of(known, self._market.region, wanted, zones):
                    yield from (Offering(name, kind, zone) for kind in kinds if kind in known.capacity_types)

    def _prices(
        self,
        types: Iterable[str],
        kinds: Sequence[str],
        wanted: tuple[Requirement, ...],
        zones: tuple[str, ...] | None,
    ) -> tuple[dict[str, float], str | None, str | None]:
        """Prices by the facts, or if those have none by the controller; where they are from, or why there are none."""
        market = self._market
        if market is None:
            return {}, None, "no facts about instance types of this cloud"
        by_zone = self._cloud == "aws" and "spot" in kinds
        prices: dict[str, float] = {}
        if not by_zone or zones is not None:
            for name in types:
                known = market.facts.types.get(name)
                # On Azure the price is the same in all zones, and a region may have none.
                places = _zones_of(known, market.region, wanted, zones) if known and self._cloud == "aws" else [""]
                found = (
                    market.facts.price(name, kind, market.region, zone, simulated=market.simulated)
                    for kind in kinds
                    for zone in places
                )
                if (least := min((price for price in found if price is not None), default=None)) is not None:
                    prices[name] = least
        if prices:
            return prices, "facts", None
        for name in types:
            found_there = (market.cheapest.get(kind, {}).get(name) for kind in kinds)
            if (least := min((price for price in found_there if price is not None), default=None)) is not None:
                prices[name] = least
        if prices:
            return prices, "controller", None
        return {}, None, f"no {' or '.join(kinds) or 'reserved'} price in {market.region} is known"

    def _left_out_of(
        self, claim: NodeClaim, wanted: tuple[Requirement, ...], choice: _Choice, unavailable: frozenset[Offering]
    ) -> dict[str, int] | None:
        """Instance types that NodePool and pods admit and it does not name, by the cause."""
        market, spec = self._market, (self._replay.node_pool_at(claim.node_pool, claim.first_seen) or {}).get("spec")
        if market is None or spec is None or market.region not in market.facts.regions:
            return None
        cpu, memory = claim.requests.get("cpu", 0.0), claim.requests.get("memory", 0.0)
        room = self._room(claim, spec)
        met = self.shortages.met(claim.first_seen)
        key = (wanted, json.dumps(spec, sort_keys=True), cpu, memory, room, id(unavailable), met)
        if key not in self._left_out:
            reference = self._node_class(claim)
            # A label that Karpenter gives to each node of the class narrows nothing.
            of_class = f"{reference.get('group', '')}/{reference.get('kind', '').lower()}"
            rest = tuple(one for one in wanted if one.key not in (INSTANCE_TYPE, of_class))
            try:
                found = admitted([*requirements(spec), *rest], market.facts.region(market.region))
            except (RequirementError, UnknownLabelError):
                self._left_out[key] = None
            else:
                others = [known for known in found if known.name not in set(choice.types)]
                small = sum(known.vcpus < cpu or known.memory < memory for known in others)
                large = [known for known in others if cpu <= known.vcpus <= room and known.memory >= memory]
                sold = [{*self._on_sale([known.name], choice.kinds, rest, choice.zones)} for known in large]
                by_metrics = sum(bool(offerings) and offerings <= unavailable for offerings in sold)
                short = sum(bool(offerings) and offerings <= unavailable | met for offerings in sold)
                self._left_out[key] = {
                    "too_small": small,
                    "beyond_limit": len(others) - small - len(large),
                    "unavailable": by_metrics,
                    "short": short - by_metrics,
                    "others": len(large) - short,
                }
        return self._left_out[key]

    def _room(self, claim: NodeClaim, spec: Mapping[str, Any]) -> float:
        """CPUs that its NodePool's limit left at most, by the nodes that were certainly there before it."""
        limit = (spec.get("limits") or {}).get("cpu")
        if limit is None:
            return math.inf
        used = sum(
            float(other.cpus or 0)
            for other in self._replay.claims.values()
            if other.node_pool == claim.node_pool
            and other.first_seen < claim.first_seen
            and other.created < claim.created
            and other.staying_at(claim.first_seen)
        )
        return amount(limit) - used

    def _shortages(
        self, story: Story, claim: NodeClaim, wanted: tuple[Requirement, ...], choice: _Choice
    ) -> Iterator[dict[str, Any]]:
        """What of the offer was said to be short: on purpose, by the metrics, by interruptions, by events."""
        at = claim.first_seen
        faults = [(time, fault) for time, fault in self._replay.faults if fault["kind"] == "out-of-capacity"]
        for time, fault in faults:
            ours = fault["scenario"] == story.scenario.name
            if ours and time <= at and not _cleared(story, time, at):
                yield _shortage(story, "fault", time, _meant(fault["detail"], choice.offerings))
        asked, unavailable = self.shortages.metrics(at)
        if asked and (short := choice.offerings & unavailable):
            yield _shortage(story, "metrics", asked, short)
        if learnt := self.shortages.later(at, min(story.end, at + timedelta(seconds=_LEARNT_SECONDS))):
            time, became = learnt
            became &= choice.offerings
            if launched := claim.reached.get("Launched"):
                # Its launch cannot have met what came after it.
                for since, fault in faults:
                    if launched < since <= time:
                        became -= _meant(fault["detail"], became)
                before = {offering for _, offering in self.shortages.interruptions(launched)}
                became -= {offering for _, offering in self.shortages.interruptions(time)} - before
            if became:
                yield _shortage(story, "metrics, later", time, became)
        yield from self._own_events(story, claim)
        # It is left out of what the NodeClaim names, so what would be possible there counts.
        for time, offering in self.shortages.interruptions(at):
            if all(allows(wanted, key, value) for key, value in ((CAPACITY_TYPE, "spot"), (ZONE, offering.zone))):
                yield _shortage(story, "interruption", time, frozenset([offering]))
        for time, event in self.shortages.refusals(at):
            if event["involvedObject"].get("name") != claim.name:
                told = {name for name in _NAME.findall(event.get("message", "")) if name in choice.types}
                if told:
                    short = frozenset(one for one in choice.offerings if one.instance_type in told)
                    yield _shortage(story, "event", time, short, str(event.get("message", "")))

    def _own_events(self, story: Story, claim: NodeClaim) -> Iterator[dict[str, Any]]:
        for time, event in self._replay.events_by_object.get(("NodeClaim", claim.name), ()):
            if event.get("reason") in REFUSED:
                yield _shortage(story, "own event", time, frozenset(), str(event.get("message", "")))


def _exotic(known: InstanceType) -> bool:
    """Whether AWS's provider takes it only where there is nothing else: bare metal, or what has an accelerator."""
    return "metal" in known.name or any(label in known.labels for label in _ACCELERATED)


def _zones_of(
    known: InstanceType, region: str, wanted: Sequence[Requirement], zones: Sequence[str] | None
) -> list[str]:
    return [
        zone for zone in known.zones.get(region, ()) if (zones is None or zone in zones) and allows(wanted, ZONE, zone)
    ]


def _position(choice: _Choice, claim: NodeClaim, market: Market | None, cloud: str) -> dict[str, Any] | None:
    """Where the instance type that was bought stands among those that were offered, each in its cheapest zone."""
    bought = claim.offering
    if market is None or bought is None or bought.instance_type not in choice.prices:
        return None
    own = choice.prices[bought.instance_type]
    paid = market.facts.price(*bought[:2], market.region, bought.zone, simulated=market.simulated)
    cheaper = sorted((price, name) for name, price in choice.prices.items() if price < own)
    # Of what it could have been on AWS, one capacity type is asked for.
    compared = [bought.capacity_type] if cloud == "aws" else choice.kinds
    least, cheapest = min((price, name) for name, price in choice.prices.items())
    return {
        "rank": len(cheaper) + 1,
        "of": len(choice.prices),
        "unpriced": len(choice.types) - len(choice.prices),
        # In the zone that it was bought in, which need not be the cheapest one.
        "usd_per_hour": paid if paid is not None and choice.source == "facts" else own,
        "least_usd_per_hour": least,
        "cheapest": bought.instance_type if own == least else cheapest,
        "cheaper": [name for _, name in cheaper[:_NAMED]],
        "source": choice.source,
        "simulated": market.simulated and "spot" in compared,
    }


def _shortage(
    story: Story, source: str, time: datetime, short: frozenset[Offering], message: str | None = None
) -> dict[str, Any]:
    types = sorted({offering.instance_type for offering in short})
    return {
        "source": source,
        "t": story.after(time),
        "offerings": len(short),
        "instance_types": types[:_NAMED],
        "more": max(0, len(types) - _NAMED),
        "message": message,
    }


def _meant(detail: Mapping[str, Any], offerings: frozenset[Offering]) -> frozenset[Offering]:
    """Those of the offerings that a fault took; where it names no types, zones or capacity types, it took all."""
    types, kinds, zones = (detail.get(key) for key in ("instanceTypes", "capacityTypes", "zones"))
    return frozenset(
        one
        for one in offerings
        if (not types or one.instance_type in types)
        and (not kinds or one.capacity_type in kinds)
        and (not zones or one.zone in zones)
    )


def _cleared(story: Story, since: datetime, until: datetime) -> bool:
    """Whether a step ended the faults between two moments."""
    steps = story.scenario.steps
    return any(
        mark["type"] == "STEP"
        and mark["scenario"] == story.scenario.name
        and mark["step"] < len(steps)
        and steps[mark["step"]].clear_faults
        and since <= parse_time(mark["requested"]) <= until
        for mark in story.replay.marks
    )
