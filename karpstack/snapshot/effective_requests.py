"""What the scheduler keeps room for when it places a pod: its effective requests.

Containers and sidecars run side by side, and an init container runs beside the sidecars that are before it; what is
said of the pod as a whole counts instead, and overhead comes on top (`PodRequests` of k8s.io/component-helpers).
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal
from typing import Any, Final

from karpstack.karpenter.quantities import exact

_ZERO: Final = Decimal(0)
_BINARY: Final = (("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))
_OF_BYTES: Final = ("memory", "ephemeral-storage", "hugepages-", "storage")
Amounts = dict[str, Decimal]


def requests(spec: Mapping[str, Any]) -> dict[str, str]:
    """Resource -> quantity, by a pod's `spec`; what it does not ask for is left out.

    Raises:
        ValueError: A quantity is none.
    """
    sidecars: Amounts = {}
    highest: Amounts = {}
    for container in spec.get("initContainers") or ():
        asked = _asked(container)
        if container.get("restartPolicy") == "Always":
            sidecars = added(sidecars, asked)
            highest = largest(highest, sidecars)
        else:
            highest = largest(highest, added(sidecars, asked))
    running = sidecars
    for container in spec.get("containers") or ():
        running = added(running, _asked(container))
    total = largest(highest, running) | _asked(spec)
    overhead = amounts(spec.get("overhead") or {})
    return {
        resource: written(resource, amount) for resource, amount in sorted(added(total, overhead).items()) if amount > 0
    }


def written(resource: str, amount: Decimal) -> str:
    """An amount as a quantity, of which the API server would write the same: rounded up to what it can tell apart."""
    if resource == "cpu":
        milli = int((amount * 1000).to_integral_value(ROUND_CEILING))
        return f"{milli}m" if milli % 1000 else str(milli // 1000)
    whole = int(amount.to_integral_value(ROUND_CEILING))
    if resource.startswith(_OF_BYTES):
        for unit, size in _BINARY:
            if whole and whole % size == 0:
                return f"{whole // size}{unit}"
    return str(whole)


def _asked(container: Mapping[str, Any]) -> Amounts:
    """What a container asks for: where it has only a limit, that."""
    resources = container.get("resources") or {}
    both = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return amounts(both)


def amounts(quantities: Mapping[str, str]) -> Amounts:
    """Quantities as numbers.

    Raises:
        ValueError: A quantity is none.
    """
    return {resource: exact(quantity) for resource, quantity in quantities.items()}


def added(one: Amounts, other: Amounts) -> Amounts:
    """The sums of two requests."""
    return {resource: one.get(resource, _ZERO) + other.get(resource, _ZERO) for resource in {**one, **other}}


def largest(one: Amounts, other: Amounts) -> Amounts:
    """The larger amount of each resource of two requests."""
    return {resource: max(one.get(resource, _ZERO), other.get(resource, _ZERO)) for resource in {**one, **other}}
