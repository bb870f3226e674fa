"""Whether the subscription may have the VM sizes that the stack wants, in the zones where it wants them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from karpstack.karpenter.instance_types import ZONE, Facts
from karpstack.karpenter.requirements import allows, fits, requirements

from ..finding import Finding, finding
from .subject import StackSubject, Subject

_CALL: Final = "Microsoft.Compute/skus/read"


def zones_of(size: Mapping[str, Any], region: str) -> frozenset[str]:
    """The zones, `1` to `3`, in which the subscription may have a size; empty for a region without zones too."""
    having = {
        zone for info in size.get("locationInfo", ()) if _is(info["location"], region) for zone in info.get("zones", ())
    }
    for restriction in size.get("restrictions", ()):
        if restriction.get("type") == "Zone":
            having -= set((restriction.get("restrictionInfo") or {}).get("zones", ()))
    return frozenset(having)


def is_sold(size: Mapping[str, Any], region: str) -> bool:
    """Whether the subscription may have a size in a region at all."""
    return not any(
        restriction.get("type") == "Location" and any(_is(value, region) for value in restriction.get("values", ()))
        for restriction in size.get("restrictions", ())
    )


def capability(size: Mapping[str, Any], name: str) -> str:
    """A capability of a size, such as `vCPUs`; empty where it has none of that name."""
    return next((str(one["value"]) for one in size.get("capabilities", ()) if one["name"] == name), "")


def system_nodes(subject: Subject) -> Iterator[Finding]:
    """A size for the system nodes that the subscription may not have, or not in each of their zones."""
    nodes = subject.settings.system_nodes
    size = subject.sizes().get(nodes.vm_size)
    if size is None or not is_sold(size, subject.region):
        yield finding(
            "system-node-size-not-in-region" if size is None else "system-node-size-not-sold",
            _CALL,
            vm_size=nodes.vm_size,
            region=subject.region,
        )
        return
    missing = sorted({str(zone) for zone in nodes.zones} - zones_of(size, subject.region))
    if missing:
        yield finding(
            "system-node-size-not-in-zones",
            _CALL,
            vm_size=nodes.vm_size,
            missing=missing,
            region=subject.region,
            zones=sorted(map(int, zones_of(size, subject.region))),
        )


def node_pools(subject: StackSubject) -> Iterator[Finding]:
    """NodePools of which the subscription may have no size, or none in a zone."""
    for pool, spec in subject.settings.node_pools.items():
        wanted = requirements(spec)
        sold = [size for name, size in admitted(subject, spec).items() if is_sold(size, subject.region)]
        everywhere = {zone for size in sold for zone in zones_of(size, subject.region)}
        asked = [zone for zone in ("1", "2", "3") if allows(wanted, ZONE, f"{subject.region}-{zone}")]
        missing = [zone for zone in asked if zone not in everywhere]
        if not sold:
            yield finding("node-pool-sizes-not-sold", _CALL, region=subject.region, pool=pool)
        elif missing and everywhere:
            yield finding("node-pool-sizes-not-in-each-zone", _CALL, missing=missing, region=subject.region, pool=pool)


def admitted(subject: StackSubject, spec: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The sizes of the region that a NodePool's requirements admit, whatever their zone, restricted ones too.

    Raises:
        NotAskedError: Azure does not tell.
    """
    facts = Facts.load("azure")
    wanted, known = requirements(spec), facts.labels - {ZONE}
    names = {name for name, one in facts.types.items() if fits(wanted, one, subject.region, known)}
    return {name: size for name, size in subject.sizes().items() if name in names}


def _is(location: str, region: str) -> bool:
    return location.replace(" ", "").lower() == region
