"""Whether the zones offer what the stack wants to launch there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from karpenter.instance_types import ZONE, Facts
from karpenter.requirements import allows, fits, requirements

from ..finding import Finding
from .subject import StackSubject, Subject

_OFFERINGS: Final = "ec2:DescribeInstanceTypeOfferings"
_ZONES: Final = "ec2:DescribeAvailabilityZones"


def zones(subject: Subject) -> Iterator[Finding]:
    """Zones that the stack names, or counts on, and the region has not."""
    if subject.settings.network.vpc_id is not None:
        return
    wanted, offered = subject.settings.network.zones, subject.offered_zones()
    missing = [] if isinstance(wanted, int) else [zone for zone in wanted if zone not in offered]
    if missing or (isinstance(wanted, int) and wanted > len(offered)):
        yield Finding(
            "error",
            f"karpstack:network.zones asks for {', '.join(missing) or f'{wanted} zones'}, and {subject.aws.region} "
            f"offers EKS in {', '.join(offered)}",
            "pulumi up stops at the subnets",
            "ask for zones that are there",
            _ZONES,
        )


def system_nodes(subject: Subject) -> Iterator[Finding]:
    """A type for the system nodes that zones of the stack do not offer."""
    name = subject.settings.system_nodes.instance_type
    zones = subject.zones()
    missing = [zone for zone in zones if name not in _offered(subject, zone)]
    if missing:
        everywhere = len(missing) == len(zones)
        yield Finding(
            "error" if everywhere else "warning",
            f"{name}, the system nodes' instance type, is not offered in {', '.join(missing)}",
            "no system node comes up, and pulumi up fails at the node group"
            if everywhere
            else "system nodes come up in the other zones only, and fewer zones can be lost",
            "set karpstack:systemNodes.instanceType to a type that all zones offer, or name other zones in "
            "karpstack:network.zones",
            _OFFERINGS,
        )


def node_pools(subject: StackSubject) -> Iterator[Finding]:
    """NodePools for which a zone has no instance type that their requirements admit."""
    facts = Facts.load("aws")
    stack_zones = subject.zones()
    for pool, spec in subject.settings.node_pools.items():
        wanted = requirements(spec)
        # Without the zone: what the account offers where is what it says, not what the facts do.
        known = facts.labels - {ZONE}
        types = {name for name, one in facts.types.items() if fits(wanted, one, subject.aws.region, known)}
        zones = [zone for zone in stack_zones if allows(wanted, ZONE, zone)]
        if not zones:
            yield Finding(
                "error",
                f"karpstack:nodePools.{pool} admits none of the stack's zones, {', '.join(stack_zones)}",
                "it never launches a node: there is no subnet where it may",
                f"name some of these zones in its requirement on {ZONE}",
                _ZONES,
            )
            continue
        missing = [zone for zone in zones if not types & _offered(subject, zone)]
        if missing:
            yield Finding(
                "error" if len(missing) == len(zones) else "warning",
                f"{', '.join(missing)} offers no instance type that karpstack:nodePools.{pool} admits",
                "it never launches a node" if len(missing) == len(zones) else "it never launches a node there",
                "admit more instance types, or other zones",
                _OFFERINGS,
            )


def _offered(subject: StackSubject, zone: str) -> set[str]:
    found = subject.aws.all(
        "ec2",
        "DescribeInstanceTypeOfferings",
        "InstanceTypeOfferings",
        LocationType="availability-zone",
        Filters=[{"Name": "location", "Values": [zone]}],
    )
    return {one["InstanceType"] for one in found}
