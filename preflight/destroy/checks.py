"""All checks before `pulumi destroy`, by the names that the table has for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from ..finding import Finding
from . import nodes, workloads
from .subject import Subject

CHECKS: Final[Mapping[str, Callable[[Subject], Iterable[Finding]]]] = {
    "load balancers": workloads.load_balancers,
    "volumes": workloads.volumes,
    "NodePools": nodes.node_pools,
    "NodeClaims": nodes.node_claims,
    "node classes": nodes.node_classes,
    "instances": nodes.instances,
    "disruption budgets": workloads.budgets,
    "undisturbed pods": workloads.undisturbed_pods,
    "how long it takes": nodes.how_long,
}
