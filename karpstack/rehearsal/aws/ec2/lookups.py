"""Lookups: filters as EC2 has them, and what moto finds by going through everything there is and was.

Of a filter's values one is enough, also where a resource has several, as a route table has subnets; moto wants all of
the one among the other. A route whose target is gone is a blackhole, and can be asked for (`route.state`; EC2's
reference of DescribeRouteTables), where moto has each of them active. A rule of a security group has its description
also where its peer is a group. The rest changes no answer: a resource's tags are those under its id, where moto tries
each tag of the account; and an instance is found without a copy of each reservation. Instances that have ended stay
visible, in EC2 for an hour, so without this a burst of a hundred nodes would be slower than the one before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from karpstack.rehearsal.aws.patching import Patches

#: States of gateways to which nothing leads any more.
_GONE: Final = frozenset({"deleted", "deleting", "failed"})


def patch(patches: Patches) -> None:
    """Install them."""
    from moto.ec2 import utils
    from moto.ec2.models.core import TaggedEC2Resource
    from moto.ec2.models.instances import InstanceBackend
    from moto.ec2.models.route_tables import Route, RouteTable
    from moto.ec2.models.security_groups import SecurityGroupRule

    patches.set(TaggedEC2Resource, "get_tags", _tags)
    patches.set(InstanceBackend, "get_instance_by_id", _instance)
    patches.wrap(utils, "is_filter_matching", _any_value)
    patches.set(Route, "state", property(_state))
    patches.wrap(RouteTable, "get_filter_value", _by_state)
    patches.set(SecurityGroupRule, "description", property(_description))


def _any_value(original: Callable[..., bool]) -> Callable[..., bool]:
    def matching(resource: Any, name: str, values: Any) -> bool:
        given = values if isinstance(values, list) else [values]
        return any(original(resource, name, [value]) for value in given)

    return matching


def _state(route: Any) -> str:
    """EC2's state of a route: `blackhole` where what it leads to has been deleted, or detached from the VPC."""
    for target in (route.nat_gateway, route.transit_gateway):
        if target is not None and target.state in _GONE:
            return "blackhole"
    gateway = route.gateway_id or ""
    if gateway.startswith("igw-") and getattr(route.gateway, "vpc", None) is None:
        return "blackhole"
    return "active"


def _description(rule: Any) -> Any:
    return rule.ip_range.get("Description") or rule.source_group.get("Description")


def _by_state(original: Callable[..., Any]) -> Callable[..., Any]:
    def value(table: Any, name: str, *rest: Any, **more: Any) -> Any:
        return (
            [route.state for route in table.routes] if name == "route.state" else original(table, name, *rest, **more)
        )

    return value


def _tags(resource: Any) -> list[dict[str, str]]:
    from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE, get_prefix

    if not resource.id:
        return []
    kind = EC2_PREFIX_TO_RESOURCE.get(get_prefix(resource.id), "")
    found = resource.ec2_backend.tags.get(resource.id, {})
    return [
        {"resource_id": resource.id, "key": key, "value": value, "resource_type": kind}
        for key, value in list(found.items())
    ]


def _instance(backend: Any, instance_id: str) -> Any | None:
    return next(
        (
            instance
            for reservation in list(backend.reservations.values())
            for instance in reservation.instances
            if instance.id == instance_id
        ),
        None,
    )
