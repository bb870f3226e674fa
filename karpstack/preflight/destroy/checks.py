"""The checks before `pulumi destroy`, by the names that the table has for them: of a cloud, those that ask of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from ..finding import Finding
from . import api_access, balancers, controller, foreign_groups, interfaces, nodes, protection, subscription, workloads
from .subject import Subject

Check = Callable[[Subject], Iterable[Finding]]

_CHECKS: Final[Mapping[str, Check]] = {
    "cluster": api_access.check_access,
    "rights in the cluster": api_access.rights,
    "interrupted operations": protection.interrupted,
    "protection": protection.protection,
    "node groups": foreign_groups.node_groups,
    "controller": controller.controller,
    "load balancers": workloads.load_balancers,
    "load balancers in the account": balancers.balancers,
    "security groups": balancers.groups,
    "foreign security groups": foreign_groups.security_groups,
    "foreign network interfaces": interfaces.interfaces,
    "volumes": workloads.volumes,
    "NodePools": nodes.node_pools,
    "NodeClaims": nodes.node_claims,
    "node classes": nodes.node_classes,
    "instances": nodes.instances,
    "machines": subscription.machines,
    "locks": subscription.locks,
    "foreign interfaces in the network": subscription.neighbours,
    "foreign resources in the group": subscription.check_foreign_resources,
    "disruption budgets": workloads.budgets,
    "do-not-disrupt pods": workloads.check_do_not_disrupt,
    "duration": nodes.check_removal_time,
}
_OF_AWS: Final = frozenset(
    {
        *("load balancers in the account", "security groups", "foreign network interfaces", "instances"),
        *("foreign security groups", "node groups"),
    }
)
_OF_AZURE: Final = frozenset(
    {"machines", "locks", "foreign interfaces in the network", "foreign resources in the group"}
)
_OF_A_CONTROLLER: Final = frozenset({"controller", "NodePools", "NodeClaims", "node classes"})
#: What a cluster takes with it, or leaves behind, when it goes.
_OF_ITS_END: Final = frozenset(
    {
        *("protection", "load balancers", "load balancers in the account", "security groups"),
        *("foreign network interfaces", "foreign security groups", "node groups", "volumes", "machines"),
    }
)


def checks(subject: Subject) -> dict[str, Check]:
    """Those that have something to ask: the other cloud's would count as if they had found nothing."""
    left_out = {
        *(() if subject.aws else _OF_AWS),
        *(() if subject.azure else _OF_AZURE),
        *(_OF_A_CONTROLLER if subject.is_managed else ()),
        *(_OF_ITS_END if subject.outlives_the_stack else ()),
    }
    return {name: check for name, check in _CHECKS.items() if name not in left_out}
