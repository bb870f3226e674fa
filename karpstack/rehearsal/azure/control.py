"""What the rehearsal's control endpoint does to the simulated Azure subscription."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from karpstack.rehearsal.azure.arm.faults import Fault
from karpstack.rehearsal.azure.arm.kind import at
from karpstack.rehearsal.azure.arm.rows import latest
from karpstack.rehearsal.azure.machines import MACHINE_TYPE
from karpstack.rehearsal.azure.machines.catalogue import ZONES, offered
from karpstack.rehearsal.azure.network.networks import INTERFACE_TYPE
from karpstack.rehearsal.azure.subscription import Subscription
from karpstack.rehearsal.control import Body, ControlError, Hits

_POOL_TAG = "karpenter.sh_nodepool"
# Karpenter names a VM after its claim, and tags it with the pool only.
_NAME_PREFIX = "aks-"
_NO_EVENTS = (
    "kind = {kind!r}: the rehearsal's Azure sends no such event, so nothing would happen; Azure announces evictions to "
    "the machine itself (scheduled events), which Karpenter for Azure does not read: run this scenario on AWS"
)


class AzureControl:
    """Implements `karpstack.rehearsal.control.Cloud` for a subscription."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription

    def instance_types(self) -> Collection[str]:
        """The VM sizes that the region sells."""
        prices = self._subscription.prices
        return [size.name for size in offered(prices.sizes(self._subscription.region))]

    def zones(self) -> Collection[str]:
        """`westus2-1`, ..., as nodes are labelled."""
        return [f"{self._subscription.region}-{zone}" for zone in ZONES]

    def out_of_capacity(self, instance_type: str, capacity_type: str, zone: str) -> Hits:
        """A PUT of such a virtual machine fails as Azure lets it fail.

        Spot is refused at once (SkuNotAvailable). The others are accepted, and their allocation fails
        (ZonalAllocationFailed where a zone is given, AllocationFailed otherwise).
        """
        number = zone.rsplit("-", 1)[-1]
        if capacity_type == "spot":
            fault = Fault.sku_not_available(instance_type, number, "Spot")
        else:
            fault = Fault.allocation_failed(instance_type, number, "Regular" if capacity_type else "")
        return self._inject(fault)

    def throttle(self, calls: int) -> Hits:
        """A PUT of a virtual machine is answered with 429; the SDK's own retries are calls too."""
        return self._inject(Fault.throttled(calls, "PUT", MACHINE_TYPE))

    def end_faults(self) -> None:
        """Let all calls succeed."""
        self._subscription.faults.end()

    def interrupt(self, kind: str, instance: str) -> Sequence[Body]:
        """Always refused.

        Raises:
            ControlError: With status 404.
        """
        raise ControlError(_NO_EVENTS.format(kind=kind), 404)

    def publish_image(self) -> Sequence[str]:
        """The next release of every image in AKS's community galleries, of which Karpenter hears within three days."""
        return [self._subscription.images.publish_next()]

    def resources(self) -> Body:
        """Virtual machines with their disks, and network interfaces, that have Karpenter's tag."""
        machines = list(self._ours(MACHINE_TYPE))
        disks = [str(at(machine, "properties.storageProfile.osDisk.name", "")) for machine in machines]
        return {
            "instances": [
                {"id": machine["id"], "nodeclaim": str(machine["name"]).removeprefix(_NAME_PREFIX)}
                for machine in machines
            ],
            "networkInterfaces": [interface["id"] for interface in self._ours(INTERFACE_TYPE)],
            # They are no resources of their own here: each goes with its machine.
            "disks": [name for name in disks if name],
        }

    def stop(self) -> None:
        """Nothing is still to happen."""

    def _inject(self, fault: Fault) -> Hits:
        self._subscription.faults.inject(fault)
        return lambda: fault.hits

    def _ours(self, resource_type: str) -> Iterable[Any]:
        collection = f"/subscriptions/{self._subscription.subscription_id}/providers/{resource_type}"
        for resource in self._subscription.arm.list(collection, latest(resource_type)):
            if _POOL_TAG in (resource.get("tags") or {}):
                yield resource
