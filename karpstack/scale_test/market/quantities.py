"""What pods ask for and nodes have: CPUs, bytes, and any other resource."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from karpstack.karpenter.quantities import quantity

RESOURCES = ("cpu", "memory")


#: A quantity as a number. A timeline has the same few thousands of times.
amount = cache(quantity)


def pod_requests(spec: Mapping[str, Any]) -> dict[str, float]:
    """Resource -> amount for which the scheduler keeps room, by a pod's `spec`; what it does not ask for is left out.

    Containers and sidecars run side by side; an init container runs beside the sidecars that are before it. What the
    pod as a whole asks for goes before that (`PodRequests` in k8s.io/component-helpers/resource, which the scheduler
    and Karpenter call).
    """
    requests = {}
    every = (spec, *(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
    given = [part for one in every for part in (one.get("resources") or {}).values() if isinstance(part, Mapping)]
    for resource in sorted({name for part in (*given, spec.get("overhead") or {}) for name in part}):
        sidecars = highest = 0.0
        for container in spec.get("initContainers") or ():
            asked = _request(container, resource) or 0.0
            if container.get("restartPolicy") == "Always":
                sidecars += asked
                highest = max(highest, sidecars)
            else:
                highest = max(highest, sidecars + asked)
        running = sidecars + sum(_request(container, resource) or 0.0 for container in spec.get("containers") or ())
        overhead = (spec.get("overhead") or {}).get(resource)
        of_pod = _request(spec, resource)
        total = (max(highest, running) if of_pod is None else of_pod) + (
            amount(overhead) if overhead is not None else 0
        )
        if total:
            requests[resource] = total
    return requests


def total(resources: Iterable[Mapping[str, Any]], resource: str) -> float:
    """Sum of one resource over several `allocatable` or `capacity`."""
    return sum(amount(quantities.get(resource, 0)) for quantities in resources)


def _request(asking: Mapping[str, Any], resource: str) -> float | None:
    """What a container, or a pod as a whole, asks for: where it has only a limit, that; None where it has neither."""
    resources = asking.get("resources") or {}
    asked = (resources.get("requests") or {}).get(resource, (resources.get("limits") or {}).get(resource))
    return amount(asked) if asked is not None else None
