"""What a run of a stack costs: what stands all the time by list prices, and the stories' nodes as rehearsed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from karpstack.components.settings import AksSettings, EksSettings, Settings
from karpstack.karpenter import fact_dates, releases
from karpstack.karpenter.instance_types import Facts
from karpstack.preflight.finding import InputError, UnknowableError
from karpstack.scale_test.scenarios.actions import FAULTS
from karpstack.text.shown import listed

from .stages import GRACE

#: USD an hour: list prices of us-east-1 and West US 2, read in November 2026. Elsewhere some are a half higher.
_EKS: Final = {"standard": 0.10, "extended": 0.60}
_AKS: Final = {"Free": 0.0, "Standard": 0.10, "Premium": 0.60}
_NAT_GATEWAY, _ADDRESS, _ENDPOINT, _BALANCER = 0.045, 0.005, 0.01, 0.025
_MOST_ENDPOINTS: Final = 12
#: Disks, traffic, logs, and prices of another region.
_MARGIN: Final = 1.5
#: Machines of a real cloud boot longer than simulated ones: the stories' nodes live so many times as long.
_LONGER: Final = 3
#: Minutes: to create everything, to run the walk-throughs, and to destroy everything.
_UP, _DOWN = 25, 25
_NAMED: Final = 5
#: Faults that only a rehearsal can cause.
_SIMULATED: Final = {fault.kind for fault in FAULTS.values() if fault.needs == "rehearsal"}
#: Names of scenarios.
_NAME: Final = re.compile("[a-z0-9]([-a-z0-9]*[a-z0-9])?")


@dataclass(frozen=True)
class Bill:
    """What a run costs.

    Attributes:
        rows: What stands all the time, with USD an hour.
        stories: USD of the stories' nodes.
        peak: USD an hour of the stories' nodes at most.
        minutes: How long the run takes.
    """

    rows: tuple[tuple[str, float], ...]
    stories: float
    peak: float
    minutes: float

    @property
    def hourly(self) -> float:
        """USD an hour of what stands all the time."""
        return sum(usd for _, usd in self.rows) * _MARGIN

    @property
    def usd(self) -> float:
        """What the run is expected to cost."""
        return self.hourly * self.minutes / 60 + self.stories

    def minutes_until(self, ceiling: float) -> float:
        """Return after how many minutes `destroy` must begin, so that no run costs more than the ceiling in USD."""
        return ceiling / (self.hourly + self.peak) * 60 - GRACE / 60 - _DOWN


def chosen(
    report: Mapping[str, Any], stack: str, scenarios: Collection[str], labels: Collection[str]
) -> list[Mapping[str, Any]]:
    """The rehearsed stories that a run will have: those of some names, or else of some labels, or else all.

    Of the others than those of names, a real cluster skips those with faults that only a rehearsal can cause.

    Raises:
        InputError: The rehearsal is another stack's, has failed, or lacks a story, or the name of a story
            is none of a scenario: it would be evaluated as a template.
    """
    stories = {str(story["name"]): story for story in report["stories"]}
    found = [
        story
        for name, story in stories.items()
        if (name in scenarios if scenarios else _is_for_real(story) and (not labels or {*labels} & {*story["tags"]}))
    ]
    for why in _problems(report, stack, sorted({*scenarios} - stories.keys()), found):
        raise InputError(
            f"the report of the rehearsal {why}, so the cost of the run is not known; rehearse what is to be run: "
            f"make rehearsal STACK={stack}"
        )
    return found


def _problems(
    report: Mapping[str, Any], stack: str, missing: Sequence[str], found: Collection[Mapping[str, Any]]
) -> Iterator[str]:
    """What is wrong with a rehearsal, the gravest first."""
    if report["stack"] != stack:
        yield f"is of the stack {report['stack']}"
    if not report["passed"]:
        yield "has not passed"
    if odd := [name for story in report["stories"] if not _NAME.fullmatch(name := str(story["name"]))]:
        yield f"has stories with the names {listed(odd, _NAMED)}, which no scenario can have"
    if missing:
        yield f"lacks {listed(missing, _NAMED)}"
    if not found:
        yield "has no story that is to be run"


def _is_for_real(story: Mapping[str, Any]) -> bool:
    return not _SIMULATED & {fault["kind"] for fault in story["faults"]}


def bill(settings: Settings, stories: Collection[Mapping[str, Any]]) -> Bill:
    """Return what a run of a stack costs; `stories` are those of its rehearsal.

    Raises:
        UnknowableError: The stack is on an existing cluster, or a price is not known.
    """
    seconds = sum(story["seconds"] for story in stories)
    return Bill(
        tuple(_standing(settings)),
        _LONGER * sum(story["cost"]["usd"] for story in stories),
        max((story["cost"]["peak_usd_per_hour"] for story in stories), default=0.0),
        _UP + _LONGER * seconds / 60 + _DOWN,
    )


def _standing(settings: Settings) -> Iterator[tuple[str, float]]:
    if isinstance(settings, EksSettings):
        support = (
            "extended"
            if releases.status("aws", settings.cluster.version, fact_dates.today()) == "extended"
            else "standard"
        )
        yield "control plane", _EKS[support]
        nodes, network = settings.system_nodes, settings.network
        yield (
            f"{nodes.desired_size} {nodes.instance_type}",
            nodes.desired_size * _price("aws", settings, nodes.instance_type),
        )
        zones = network.zones if isinstance(network.zones, int) else len(network.zones)
        if network.vpc_id is None:
            gateways = {"single": 1, "per-zone": zones, "none": 0}[network.nat_gateways]
            yield f"{gateways} NAT gateways", gateways * (_NAT_GATEWAY + _ADDRESS)
        if network.endpoints:
            count = _MOST_ENDPOINTS if network.endpoints is True else len(network.endpoints)
            yield f"{count} endpoints in {zones} zones", count * zones * _ENDPOINT
    elif isinstance(settings, AksSettings):
        yield "control plane", _AKS[settings.cluster.tier]
        machines = settings.system_nodes
        yield f"{machines.count} {machines.vm_size}", machines.count * _price("azure", settings, machines.vm_size)
        yield "load balancer or NAT gateway, with its address", max(_BALANCER, _NAT_GATEWAY) + _ADDRESS
    else:
        raise InputError(
            "the stack is on an existing cluster, of which a run must leave everything; run a stack of its own: "
            "docs/how-to/first-real-run.md"
        )


def _price(cloud: str, settings: EksSettings | AksSettings, name: str) -> float:
    known = Facts.load(cloud).types.get(name)
    if known is None or settings.region not in known.on_demand:
        raise UnknowableError(
            f"the facts have no price of {name} in {settings.region}, so the cost cannot be said before; get it with "
            f"`karpstack facts {cloud} {settings.region}`"
        )
    return known.on_demand[settings.region]
