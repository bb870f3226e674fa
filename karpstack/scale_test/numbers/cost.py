"""What a story's nodes cost, over time and in all, against the least that its pods could have cost.

A node costs from its launch until it is gone, by the second, at the price of its NodeClaim.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from karpstack.karpenter.instance_types import CAPACITY_TYPE, Facts
from karpstack.karpenter.requirements import RequirementError, allows, node_label_requirement

from ..judging.assertion import Assertion
from ..judging.replay import NODE_POOL_LABEL, NodeClaim, Pod, Replay
from ..judging.steps import StepRun
from ..market.bound import UNLIMITED_PODS, Bound, Demand, Group, Offer
from ..market.bound import lower_bound as least_for
from ..market.prices import HOW_TO_GET_PRICES
from ..market.quantities import amount
from ..market.requirements import Allowed, Pool, allowed
from ..recording.timeline import Line
from ..scenarios.scenario import Scenario
from .figures import Steps, accumulate, integral, merge_steps
from .node_pool_choice import Constraints, affinity_alternatives, constraints, excludes
from .story import Story

_HOUR = 3600.0


@dataclass(frozen=True)
class Market:
    """What could be bought, for the lower bound.

    Attributes:
        facts: What is known of instance types.
        region: Where the stack is.
        cheapest: Capacity type -> instance type -> USD an hour, as the controller says; empty where it does not.
        simulated: Whether a rehearsal sells it.
    """

    facts: Facts
    region: str
    cheapest: Mapping[str, Mapping[str, float]]
    simulated: bool

    @property
    def prices_of(self) -> str | None:
        """The regions whose prices a rehearsed controller has where it has none of the stack's; None where it has."""
        if not self.simulated or not self.region or self.region in self.facts.regions:
            return None
        return " and ".join(self.facts.regions)

    def price(self, choice: Allowed, capacity_type: str) -> float | None:
        """USD an hour in the cheapest zone: by the controller where it says any price, else by the table."""
        if self.cheapest:
            return self.cheapest.get(capacity_type, {}).get(choice.type.name)
        prices = (
            self.facts.price(choice.type.name, capacity_type, self.region, zone, simulated=self.simulated)
            for zone in choice.zones
        )
        return min((price for price in prices if price is not None), default=None)


class NoBoundError(ValueError):
    """Why there is no lower bound."""


def bound_for_pods(pods: Iterable[Pod], pools: Iterable[Pool], market: Market | None) -> Bound:
    """The lower bound for pods, over what NodePools may launch.

    Raises:
        NoBoundError: What could be bought, or its price, is not known.
    """
    if market is None:
        raise NoBoundError("no facts about instance types of this cloud")
    pods = list(pods)
    selectors = [dict(selector) for selector in {tuple(sorted(pod.node_selector.items())) for pod in pods}]
    try:
        offers = _offers({"": allowed(market.facts, market.region, pools, selectors)}, pods, market)
    except ValueError as error:
        raise NoBoundError(str(error)) from error
    if pods and not offers:
        raise NoBoundError(f"no instance type that is known in {market.region} fits the NodePools and pods")
    return Bound(offers)


def least_cost(
    pods: Iterable[Pod], node_pools: Mapping[str, Line], replay: Replay, market: Market | None
) -> float | None:
    """Return the least USD an hour for pods, each on nodes that its selectors, affinity and tolerations allow.

    Args:
        pods: The pods.
        node_pools: Name -> excerpt of each NodePool that may launch nodes.
        replay: The timeline, for what node classes say.
        market: What could be bought.

    Raises:
        NoBoundError: What could be bought, or its price, is not known, or some pods could have no node.
    """
    if market is None:
        raise NoBoundError("no facts about instance types of this cloud")
    alike: dict[Constraints, list[Pod]] = {}
    for pod in pods:
        alike.setdefault(constraints(pod), []).append(pod)
    groups: dict[frozenset[Offer], list[Pod]] = {}
    for asked, found in alike.items():
        choices: dict[str, list[Allowed]] = {}
        for name, excerpt in node_pools.items():
            if (excludes(name, excerpt, asked) or ("unknown",))[0] in ("unknown", "not recorded"):
                (pool,) = pools_of(replay, [excerpt["spec"]])
                narrowed = (
                    pool.narrowed([node_label_requirement(NODE_POOL_LABEL, name), *way])
                    for way in affinity_alternatives(asked)
                )
                choices[name] = allowed(market.facts, market.region, filter(None, narrowed), ())
        offers = frozenset(_offers(choices, found, market))
        without = (
            one for one in found if not any(one.cpu <= offer.cpu and one.memory <= offer.memory for offer in offers)
        )
        if one := next(without, None):
            raise NoBoundError(f"no NodePool could have a node for pods such as {one.namespace}/{one.name}")
        groups.setdefault(offers, []).extend(found)
    return least_for([Group(demand_of(found), offers) for offers, found in groups.items()])


def demand_of(pods: Sequence[Pod]) -> Demand:
    """Return what pods ask for together, rounded so that their order does not matter."""
    return Demand(round(sum(pod.cpu for pod in pods), 6), round(sum(pod.memory for pod in pods)), len(pods))


def _offers(choices: Mapping[str, Iterable[Allowed]], pods: Sequence[Pod], market: Market) -> list[Offer]:
    """What may be bought of each NodePool for pods: types that hold the smallest of them, in each capacity type.

    Raises:
        NoBoundError: A capacity type has no price.
    """
    smallest_cpu = min((pod.cpu for pod in pods), default=0.0)
    smallest_memory = min((pod.memory for pod in pods), default=0.0)
    offers: list[Offer] = []
    kinds: set[str] = set()
    priced: set[str] = set()
    for name, choice in ((name, choice) for name, found in choices.items() for choice in found):
        if choice.type.vcpus < smallest_cpu or choice.type.memory < smallest_memory:
            continue
        for kind in choice.capacity_types:
            kinds.add(kind)
            if (price := market.price(choice, kind)) is not None:
                priced.add(kind)
                pods_of_node = choice.max_pods or UNLIMITED_PODS
                offers.append(Offer(price, choice.type.vcpus, choice.type.memory, pods_of_node, name))
    if unknown := kinds - priced:
        # Without the cheaper of two capacity types, the least of the others would be no lower bound.
        raise NoBoundError(f"no {' and no '.join(sorted(unknown))} price in {market.region} is known")
    return offers


def pools_of(replay: Replay, specs: Iterable[Mapping[str, Any]]) -> list[Pool]:
    """NodePools by their `spec`; how many pods a node may have, by what the timeline tells of their node classes.

    Raises:
        RequirementError: Karpenter does not take one of their requirements.
    """
    launchable = []
    for spec in specs:
        reference = spec.get("template", {}).get("spec", {}).get("nodeClassRef", {})
        pods = replay.node_class_max_pods(str(reference.get("kind", "")), str(reference.get("name", "")))
        launchable.append(Pool.of(spec, pods))
    return launchable


def specs(scenario: Scenario, replay: Replay) -> dict[str, dict[str, Any]]:
    """Name -> `spec` of the NodePools that a scenario uses, as far as it or the timeline tells."""
    existing = {
        name: spec for name in scenario.existing_node_pools if (spec := replay.node_pool_spec(name)) is not None
    }
    return {**scenario.node_pools, **existing}


def hourly(claims: Iterable[NodeClaim], price: Callable[[NodeClaim], float | None], begin: datetime) -> Steps:
    """USD an hour that nodes cost from a moment on; a node whose price is not known counts as free."""
    changes: list[tuple[datetime, float]] = []
    for claim in claims:
        usd, launched = price(claim), claim.reached.get("Launched")
        if usd is not None and launched is not None:
            changes.append((max(launched, begin), usd))
            if claim.gone is not None:
                changes.append((max(claim.gone, begin), -usd))
    return accumulate(changes)


def lower_bound_steps(story: Story, market: Market | None, until: datetime) -> Steps:
    """USD an hour of the lower bound, for the pods and by what could be bought at each moment until one.

    Pods that have finished are left out, and those of DaemonSets: fewer nodes would have fewer of them.

    Raises:
        NoBoundError: What could be bought, or its price, is not known.
    """
    if market is None:
        raise NoBoundError("no facts about instance types of this cloud")
    pods = [pod for pod in story.pods if not pod.of_daemon_set]
    demands, spans = _demands(pods), _spans(story)
    bounds: dict[frozenset[Pool], Bound] = {}
    steps: Steps = []
    bound, seen = Bound(()), _Buyable()
    for time in sorted({time for time, _ in (*demands, *spans) if time <= until}):
        demand, buyable = _latest(demands, time, Demand(0.0, 0.0, 0)), _latest(spans, time, _Buyable())
        if not demand.pods:
            steps.append((time, 0.0))
            continue
        if buyable != seen:
            if buyable.pools and buyable.pools not in bounds:
                bounds[buyable.pools] = bound_for_pods(pods, buyable.pools, market)
            bound, seen = bounds.get(buyable.pools, Bound(())).beside(buyable.standing), buyable
        # Without a NodePool and a node there is nothing that could cost anything.
        steps.append((time, bound.usd_per_hour(demand) or 0.0))
    return steps


class _Buyable(NamedTuple):
    """What could be bought at a moment.

    Attributes:
        pools: What the story's NodePools allow, as they are.
        standing: The nodes that stand, whatever they allow now: a NodePool made them before it was changed, or it is
            not one of the story's. Without these, nodes could cost less than the bound.
    """

    pools: frozenset[Pool] = frozenset()
    standing: frozenset[Offer] = frozenset()


_T = TypeVar("_T")


def _latest(values: Sequence[tuple[datetime, _T]], time: datetime, before: _T) -> _T:
    index = bisect_right(values, time, key=itemgetter(0))
    return values[index - 1][1] if index else before


def _demands(pods: Iterable[Pod]) -> list[tuple[datetime, Demand]]:
    """What has to be held from each moment on."""
    changes: list[tuple[datetime, int, float, float]] = []
    for pod in pods:
        changes.append((pod.seen, 1, pod.cpu, pod.memory))
        if pod.left is not None:
            changes.append((pod.left, -1, -pod.cpu, -pod.memory))
    demands: list[tuple[datetime, Demand]] = []
    count, cpu, memory = 0, 0.0, 0.0
    for time, number, cpus, size in sorted(changes, key=itemgetter(0)):
        count, cpu, memory = count + number, cpu + cpus, memory + size
        # Rounded, so that sums of the same pods in another order are the same demand.
        demands.append((time, Demand(round(cpu, 6), round(memory), count)))
    return demands


def _spans(story: Story) -> list[tuple[datetime, _Buyable]]:
    """What could be bought from each moment on.

    Raises:
        NoBoundError: What could be bought is not known.
    """
    changes: list[tuple[datetime, str, Pool | Offer | None]] = []
    for name in story.scenario.pools:
        changes += ((time, f"NodePool {name}", pool) for time, pool in _history(story, name))
    for claim in story.claims:
        usd, launched = story.replay.price(claim), claim.reached.get("Launched")
        if usd is not None and launched is not None and claim.cpus is not None and claim.memory is not None:
            most = amount(story.replay.allocatable(claim).get("pods", UNLIMITED_PODS))
            node = Offer(usd, float(claim.cpus), claim.memory, int(most))
            changes.append((launched, f"NodeClaim {claim.name}", node))
            if claim.gone is not None:
                changes.append((claim.gone, f"NodeClaim {claim.name}", None))
    there: dict[str, Pool | Offer] = {}
    spans: list[tuple[datetime, _Buyable]] = []
    for time, name, what in sorted(changes, key=itemgetter(0)):
        if there.get(name) == what:
            continue
        if what is None:
            del there[name]
        else:
            there[name] = what
        now = there.values()
        pools = frozenset(one for one in now if isinstance(one, Pool))
        spans.append((time, _Buyable(pools, frozenset(one for one in now if isinstance(one, Offer)))))
    return spans


def _by_spot(story: Story, until: datetime) -> bool:
    """Whether nodes could be had on spot of a rehearsal, whose prices are its own rule and no market's."""
    bought = any(map(story.replay.price_simulated, story.claims))
    told = (found for name in story.scenario.pools for found in _history(story, name))
    offered = any(pool and time <= until and allows(pool.requirements, CAPACITY_TYPE, "spot") for time, pool in told)
    return bought or (story.replay.rehearsed and offered)


def _history(story: Story, name: str) -> Iterator[tuple[datetime, Pool | None]]:
    """A NodePool of the story at each of its changes; None while it is not there.

    Raises:
        NoBoundError: How it was changed is not known, or Karpenter does not take one of its requirements.
    """
    told = story.replay.node_pools.get(name, [])
    if not any("spec" in excerpt for _, excerpt in told):
        # By a timeline that does not tell, it allows what it did when it was made.
        patches = (step.patch_node_pool for step in story.scenario.steps)
        if any(patch and patch.name == name and "template" in patch.spec for patch in patches):
            raise NoBoundError(f"the record does not tell what NodePool {name} may launch after it was changed")
        told = [(story.begin, {"spec": story.scenario.node_pools[name]})] if name in story.scenario.node_pools else []
    try:
        for time, excerpt in told:
            gone = excerpt.get("gone") or "spec" not in excerpt
            yield time, None if gone else pools_of(story.replay, [excerpt["spec"]])[0]
    except RequirementError as error:
        raise NoBoundError(str(error)) from error


def cost(story: Story, market: Market | None) -> tuple[dict[str, Any], list[list[float | None]]]:
    """`cost` and `series.cost` of the report."""
    unknown = sorted(
        {claim.offering.instance_type for claim in story.claims if claim.offering and story.replay.price(claim) is None}
    )
    spent = _spent(story)
    usd = integral(spent, story.begin, story.end) / _HOUR
    try:
        lower: Steps | None = lower_bound_steps(story, market, story.end)
        why = None
    except NoBoundError as error:
        lower, why = None, str(error)
    bound_usd = integral(lower, story.begin, story.end) / _HOUR if lower is not None else None
    rows = [
        [story.after(time), round(value, 6), round(least_value, 6) if lower is not None else None]
        for time, (value, least_value) in merge_steps(story.begin, story.end, spent, lower or [])
    ]
    figures = {
        "usd": round(usd, 6),
        "simulated": any(map(story.replay.price_simulated, story.claims)),
        "bound_usd": round(bound_usd, 6) if bound_usd is not None else None,
        "bound_simulated": lower is not None and _by_spot(story, story.end),
        "ratio": round(usd / bound_usd, 3) if bound_usd and not unknown else None,
        "peak_usd_per_hour": round(max((value for _, value in spent), default=0.0), 6),
        "unknown": unknown,
        "no_bound": why,
    }
    return figures, rows


def within(run: StepRun, story: Story, market: Market | None, factor: float) -> Assertion:
    """Whether at the end of a step the nodes cost at most so many times the lower bound for the pods."""
    expected = f"at most {factor:g} times the lower bound"
    unknown = [claim.name for claim in run.live() if story.replay.price(claim) is None]
    spent = _at(_spent(story), run.ended)
    try:
        if unknown:
            raise NoBoundError(f"the price of {', '.join(unknown)} is not known")
        bound = _at(lower_bound_steps(story, market, run.ended), run.ended)
    except NoBoundError as error:
        return Assertion(f"{run.title}, cost", expected, f"not judged: {error}", True, HOW_TO_GET_PRICES)
    seen = f"{spent:.4f} USD an hour, of which {bound:.4f} is the bound"
    if _by_spot(story, run.ended):
        seen += "; prices of spot are simulated"
    where = "the cost in report.html; timeline.jsonl (PRICE lines)"
    return Assertion(f"{run.title}, cost", expected, seen, spent <= factor * bound, where)


def _spent(story: Story) -> Steps:
    return hourly(story.claims, story.replay.price, story.begin)


def _at(steps: Steps, time: datetime) -> float:
    return next((value for since, value in reversed(steps) if since <= time), 0.0)


def saving(story: Story, before: datetime, after: datetime, claims: Sequence[NodeClaim]) -> float | None:
    """USD an hour less at one moment than at another; None where a price is not known."""
    total = 0.0
    for claim in claims:
        price = story.replay.price(claim)
        launched = claim.reached.get("Launched")
        if launched is None:
            continue
        sign = _there(claim, launched, before) - _there(claim, launched, after)
        if sign and price is None:
            return None
        total += sign * (price or 0.0)
    return round(total, 6)


def _there(claim: NodeClaim, launched: datetime, time: datetime) -> int:
    return int(launched <= time and (claim.gone is None or claim.gone > time))
