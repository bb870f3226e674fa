"""All checks before `pulumi destroy`, by the names that the table has for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from ..finding import Finding
from . import balancers, nodes, reached, subscription, workloads
from .subject import Subject

CHECKS: Final[Mapping[str, Callable[[Subject], Iterable[Finding]]]] = {
    "cluster": reached.reached,
    "load balancers": workloads.load_balancers,
    "load balancers in the account": balancers.balancers,
    "security groups": balancers.groups,
    "volumes": workloads.volumes,
    "NodePools": nodes.node_pools,
    "NodeClaims": nodes.node_claims,
    "node classes": nodes.node_classes,
    "instances": nodes.instances,
    "machines": subscription.machines,
    "locks": subscription.locks,
    "who else is in the network": subscription.neighbours,
    "who else is in the group": subscription.guests,
    "disruption budgets": workloads.budgets,
    "undisturbed pods": workloads.undisturbed_pods,
    "how long it takes": nodes.how_long,
}
