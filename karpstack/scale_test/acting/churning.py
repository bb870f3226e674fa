"""Scales up and down in a fixed rhythm. The waiting is what it is for: nothing could be watched."""

from __future__ import annotations

from collections.abc import Callable

from karpstack.karpenter import clock

from ..scenarios.actions import Churn

Scale = Callable[[int], object]


@clock.waiting()
def churn(
    wanted: Churn,
    scale: Scale,
    clock: Callable[[], float] = clock.monotonic,
    sleep: Callable[[float], None] = clock.sleep,
) -> list[int]:
    """Scale as the churn says, return when its time is over; the replicas that were set.

    A change that takes long does not put off the next ones: each has its time from the beginning on.
    """
    begun = clock()
    done = []
    for change in range(wanted.changes):
        sleep(max(0.0, begun + change * wanted.every - clock()))
        scale(wanted.at(change))
        done.append(wanted.at(change))
    sleep(max(0.0, begun + wanted.seconds - clock()))
    return done
