"""Whether the zones offer what the stack wants to launch there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from karpstack.karpenter.instance_types import ZONE, Facts
from karpstack.karpenter.requirements import allows, fits, requirements

from ..finding import Finding, finding
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
        yield finding(
            "zones-not-offered",
            _ZONES,
            wanted_zones=", ".join(missing) or f"{wanted} zones",
            region=subject.aws.region,
            offered=offered,
        )


def system_nodes(subject: Subject) -> Iterator[Finding]:
    """A type for the system nodes that zones of the stack do not offer."""
    name = subject.settings.system_nodes.instance_type
    zones = subject.zones()
    missing = [zone for zone in zones if name not in _offered(subject, zone)]
    if missing:
        everywhere = len(missing) == len(zones)
        yield finding(
            "system-node-type-not-offered" if everywhere else "system-node-type-not-in-each-zone",
            _OFFERINGS,
            name=name,
            missing=missing,
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
            yield finding("node-pool-outside-zones", _ZONES, pool=pool, stack_zones=stack_zones, zone=ZONE)
            continue
        missing = [zone for zone in zones if not types & _offered(subject, zone)]
        if missing:
            yield finding(
                "node-pool-types-not-offered" if len(missing) == len(zones) else "node-pool-types-not-in-each-zone",
                _OFFERINGS,
                missing=missing,
                pool=pool,
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
