"""The least that a demand can cost an hour: a linear programme over what may be launched.

How many of each offering, fractions allowed, hold the demand's CPUs, memory and pods at the lowest price, with one
whole node at least. No choice of nodes can be cheaper: real nodes come whole, lose a share to the system, and pods
do not divide. So the bound is honest where it is low, most of all for a few small pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

# Stands for "any number of pods"; no kubelet takes so many.
UNLIMITED_PODS = 10_000
_GIB = 2**30
_SLACK = 1e-9
_RESOURCES = range(3)  # CPUs, GiB, pods

_Vector = np.ndarray[tuple[int], np.dtype[np.float64]]
_Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]


class Offer(NamedTuple):
    """What can be bought: USD an hour, CPUs, bytes, pods; the NodePool where that matters."""

    price: float
    cpu: float
    memory: float
    pods: int
    node_pool: str = ""


class Demand(NamedTuple):
    """What has to be held: CPUs, bytes, pods."""

    cpu: float
    memory: float
    pods: int


class Group(NamedTuple):
    """Pods with the same offers: only these meet their selectors, affinity and tolerations."""

    demand: Demand
    offers: frozenset[Offer]


class Bound:
    """The lower bound over a set of offers; each demand is solved once, and neighbours of a solved one are not.

    For a demand of the same shape, the same few offers stay the best ones, and only how many of each changes. Where
    a demand can be put together exactly of what an earlier solution uses (its offers, and what it leaves over), the
    prices of resources that the solver found for that one hold for this one too: that is complementary slackness. So
    thousands of demands need a handful of solutions.
    """

    def __init__(self, offers: Sequence[Offer]) -> None:
        self._offers = kept = _undominated(sorted(set(offers)))
        self._prices: _Vector = np.array([offer.price for offer in kept])
        # Rows: CPUs, GiB, pods, nodes.
        self._capacity: _Matrix = np.array(
            [[offer.cpu, offer.memory / _GIB, offer.pods, 1.0] for offer in kept], dtype=float
        ).T
        self._known: dict[Demand, float] = {}
        # What a solution uses, the inverse of it, and USD an hour of one of each resource.
        self._solutions: list[tuple[_Matrix, _Matrix, _Vector]] = []
        self.solved = 0

    def beside(self, offers: Iterable[Offer]) -> Bound:
        """The lower bound over more offers; the same one where none of them is better in anything."""
        more = [offer for offer in offers if not any(_dominates(other, offer) for other in self._offers)]
        return Bound([*self._offers, *more]) if more else self

    def usd_per_hour(self, demand: Demand) -> float | None:
        """The bound; None where there is nothing to buy.

        Raises:
            ArithmeticError: The solver finds no solution.
        """
        if demand.pods == 0:
            return 0.0
        if not self._prices.size:
            return None
        if demand not in self._known:
            wanted: _Vector = np.array([demand.cpu, demand.memory / _GIB, demand.pods, 1.0])
            usd = self._by_earlier(wanted)
            self._known[demand] = self._solve(wanted) if usd is None else usd
        return self._known[demand]

    def _by_earlier(self, wanted: _Vector) -> float | None:
        for used, inverse, prices in self._solutions:
            amounts = inverse @ wanted
            if (amounts >= -_SLACK).all() and np.allclose(used @ amounts, wanted, rtol=_SLACK, atol=_SLACK):
                return float(prices @ wanted)
        return None

    def _solve(self, wanted: _Vector) -> float:
        self.solved += 1
        result = linprog(self._prices, A_ub=-self._capacity, b_ub=-wanted, method="highs")
        if not result.success or result.x is None or result.slack is None or result.fun is None:
            raise ArithmeticError(f"no lower bound of the cost for {wanted.tolist()}: {result.message}")
        chosen = [self._capacity[:, index] for index in np.flatnonzero(result.x > _SLACK)]
        # What is left over of a resource is a column too.
        over = [-np.eye(len(wanted))[index] for index in np.flatnonzero(result.slack > _SLACK)]
        used = np.array([*chosen, *over]).T
        self._solutions.append((used, np.linalg.pinv(used), -result.ineqlin.marginals))
        return float(result.fun)


def lower_bound(groups: Sequence[Group]) -> float | None:
    """Return the lower bound for groups of pods that share nodes where their offers allow it; None without an offer.

    Each group needs a whole node that it may run on. Offers that the same groups may use are pooled: what such nodes
    have is divided among these groups, by resource.

    Raises:
        ArithmeticError: The solver finds no solution.
    """
    if not all(group.offers for group in groups):
        return None
    if not groups:
        return 0.0
    bought = _bought(groups)
    # Columns: how many of each offer, then how much of each resource goes to each of the groups that share it.
    sharing = dict.fromkeys(users for users, _ in bought)
    parts = [(users, user, resource) for users in sharing for user in users for resource in _RESOURCES]
    rows: list[list[float]] = []
    most: list[float] = []
    for users, resource in product(sharing, _RESOURCES):  # no more is given away than is bought
        rows.append([-_capacity(offer)[resource] if of == users else 0.0 for of, offer in bought])
        rows[-1] += [float((of, kind) == (users, resource)) for of, _, kind in parts]
        most.append(0.0)
    for user, group in enumerate(groups):  # each group gets what it asks for, and a whole node
        demand = (group.demand.cpu, group.demand.memory / _GIB, float(group.demand.pods))
        for resource in _RESOURCES:
            rows.append([0.0] * len(bought) + [-float((of, kind) == (user, resource)) for _, of, kind in parts])
            most.append(-demand[resource])
        rows.append([-float(user in users) for users, _ in bought] + [0.0] * len(parts))
        most.append(-1.0)
    prices = [offer.price for _, offer in bought] + [0.0] * len(parts)
    result = linprog(prices, A_ub=np.array(rows), b_ub=most, method="highs")
    if not result.success or result.fun is None:
        raise ArithmeticError(f"no lower bound of the cost for {len(groups)} groups of pods: {result.message}")
    return float(result.fun)


def _bought(groups: Sequence[Group]) -> list[tuple[tuple[int, ...], Offer]]:
    """The offers that are worth buying, each with the groups that may use it."""
    users: dict[Offer, tuple[int, ...]] = {}
    for index, group in enumerate(groups):
        for offer in group.offers:
            users[offer] = (*users.get(offer, ()), index)
    shared: dict[tuple[int, ...], list[Offer]] = {}
    for offer in sorted(users):
        shared.setdefault(users[offer], []).append(offer)
    return [(indexes, offer) for indexes, offers in sorted(shared.items()) for offer in _undominated(offers)]


def _capacity(offer: Offer) -> tuple[float, float, float]:
    return offer.cpu, offer.memory / _GIB, float(offer.pods)


def _undominated(offers: Sequence[Offer]) -> list[Offer]:
    """Offers, cheapest first, without those than which another has no less of anything for no more money."""
    kept: list[Offer] = []
    for offer in offers:
        if not any(_dominates(other, offer) for other in kept):
            kept.append(offer)
    return kept


def _dominates(other: Offer, offer: Offer) -> bool:
    return (
        other.price <= offer.price
        and other.cpu >= offer.cpu
        and other.memory >= offer.memory
        and other.pods >= offer.pods
    )
