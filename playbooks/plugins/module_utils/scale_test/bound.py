"""The least that a demand can cost an hour: a linear programme over what may be launched.

How many of each offering, fractions allowed, hold the demand's CPUs, memory and pods at the lowest price, with one
whole node at least. No choice of nodes can be cheaper: real nodes come whole, lose a share to the system, and pods
do not divide. So the bound is honest where it is low, most of all for a few small pods.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

# Stands for "as many pods as one likes"; no kubelet takes so many.
UNLIMITED_PODS = 10_000
_GIB = 2**30
_SLACK = 1e-9

_Vector = np.ndarray[tuple[int], np.dtype[np.float64]]
_Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]


class Offer(NamedTuple):
    """What can be bought: USD an hour, CPUs, bytes, pods."""

    price: float
    cpu: float
    memory: float
    pods: int


class Demand(NamedTuple):
    """What has to be held: CPUs, bytes, pods."""

    cpu: float
    memory: float
    pods: int


class Bound:
    """The lower bound over a set of offers; each demand is solved once, and neighbours of a solved one are not.

    For a demand of the same shape, the same few offers stay the best ones (the basis of the solution); only how many
    of each changes, and that is a product of matrices. So thousands of demands need a handful of solutions.
    """

    def __init__(self, offers: Sequence[Offer]) -> None:
        kept = _undominated(sorted(set(offers)))
        self._prices: _Vector = np.array([offer.price for offer in kept])
        # Rows: CPUs, GiB, pods, nodes.
        self._capacity: _Matrix = np.array(
            [[offer.cpu, offer.memory / _GIB, offer.pods, 1.0] for offer in kept], dtype=float
        ).T
        self._known: dict[Demand, float] = {}
        self._bases: list[tuple[_Matrix, _Vector]] = []
        self.solved = 0

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
            found = self._by_basis(wanted)
            self._known[demand] = self._solve(wanted) if found is None else found
        return self._known[demand]

    def _by_basis(self, wanted: _Vector) -> float | None:
        for inverse, duals in self._bases:
            if (inverse @ wanted >= -_SLACK).all():
                return float(duals @ wanted)
        return None

    def _solve(self, wanted: _Vector) -> float:
        self.solved += 1
        result = linprog(self._prices, A_ub=-self._capacity, b_ub=-wanted, method="highs")
        if not result.success or result.x is None or result.slack is None or result.fun is None:
            raise ArithmeticError(f"no lower bound of the cost for {wanted.tolist()}: {result.message}")
        chosen = [self._capacity[:, index] for index in np.flatnonzero(result.x > _SLACK)]
        # What is left over of a resource is a column too.
        over = [-np.eye(len(wanted))[index] for index in np.flatnonzero(result.slack > _SLACK)]
        basis = np.array([*chosen, *over]).T
        if basis.shape == (len(wanted), len(wanted)) and np.linalg.cond(basis) < 1e12:
            self._bases.append((np.linalg.inv(basis), -result.ineqlin.marginals))
        return float(result.fun)


def _undominated(offers: Sequence[Offer]) -> list[Offer]:
    """Offers, cheapest first, without those than which another has no less of anything for no more money."""
    kept: list[Offer] = []
    for offer in offers:
        if not any(
            other.cpu >= offer.cpu and other.memory >= offer.memory and other.pods >= offer.pods for other in kept
        ):
            kept.append(offer)
    return kept
