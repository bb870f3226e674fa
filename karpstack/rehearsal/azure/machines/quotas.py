"""vCPUs: how many machines and scale sets use, and how many the subscription may have."""

from __future__ import annotations

from karpstack.rehearsal.azure.arm.errors import refused
from karpstack.rehearsal.azure.arm.kind import at
from karpstack.rehearsal.azure.context import Context
from karpstack.rehearsal.azure.machines import MACHINE_TYPE
from karpstack.rehearsal.azure.machines.catalogue import Size
from karpstack.rehearsal.azure.network.networks import SCALE_SET_TYPE

DEFAULT_QUOTA = 1000


def usage(context: Context, family: str) -> int:
    """vCPUs in use: of a family, of all (`cores`), or of spot machines (`lowPriorityCores`)."""
    total = 0
    for machine in context.store.of_type(MACHINE_TYPE):
        size = context.size(str(at(machine.properties, "hardwareProfile.vmSize", "")))
        spot = machine.properties.get("priority") == "Spot"
        if size and _counts(size, family, spot):
            total += size.vcpus
    for scale_set in context.store.of_type(SCALE_SET_TYPE):
        size = context.size(scale_set.body["sku"]["name"])
        if size and _counts(size, family, at(scale_set.properties, "virtualMachineProfile.priority") == "Spot"):
            total += size.vcpus * int(scale_set.body["sku"]["capacity"])
    return total


def _counts(size: Size, family: str, spot: bool) -> bool:
    if family == "lowPriorityCores":
        return spot
    return not spot and family in ("cores", size.family.name)


def check_quota(context: Context, size: Size, machines: int, spot: bool) -> None:
    """Refuse machines for which the subscription has no vCPUs left."""
    checks = (
        [("lowPriorityCores", "LowPriorityCores quota")]
        if spot
        else [("cores", "Total Regional Cores quota"), (size.family.name, f"{size.family.name} Cores quota")]
    )
    for name, text in checks:
        limit = context.quotas.get(name, DEFAULT_QUOTA)
        used, more = usage(context, name), machines * size.vcpus
        if used + more > limit:
            raise refused(
                "OperationNotAllowed/quota",
                what=text,
                region=context.region,
                limit=limit,
                used=used,
                more=more,
                wanted=used + more,
            )
