"""Virtual machines.

A VM is checked as Azure checks one: size, zone, spot, image, processor, keys, interfaces, identities and quota. Its
disks are no resources of their own; power states do not exist, a VM runs from its creation to its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karpstack.rehearsal.azure.arm.errors import ArmError, invalid_reference, refused
from karpstack.rehearsal.azure.arm.identifiers import same
from karpstack.rehearsal.azure.arm.kind import Kind, Request, at
from karpstack.rehearsal.azure.arm.rows import each
from karpstack.rehearsal.azure.arm.store import Resource
from karpstack.rehearsal.azure.identity.identities import IDENTITY_TYPE
from karpstack.rehearsal.azure.machines import MACHINE_TYPE
from karpstack.rehearsal.azure.machines.catalogue import ZONES, Size
from karpstack.rehearsal.azure.machines.quotas import check_quota
from karpstack.rehearsal.azure.machines.ssh_keys import check_keys
from karpstack.rehearsal.azure.network.networks import INTERFACE_TYPE


class VirtualMachine(Kind):
    """A virtual machine."""

    type = MACHINE_TYPE

    def check(self, request: Request, resource: Resource) -> None:
        """Check everything, and make the machine."""
        properties = resource.properties
        size = self._size(properties)
        zones = resource.body.get("zones") or []
        if len(zones) > 1 or any(zone not in ZONES for zone in zones):
            raise refused(
                "AvailabilityZoneNotSupported/machine",
                zone=",".join(zones),
                id=request.id.text,
                region=self.context.region,
                zones=",".join(ZONES),
            )
        restricted = self.context.restricted.get(size.name.lower(), ())
        if not self.context.zones_of(size) or any(zone in restricted for zone in zones):
            raise refused("SkuNotAvailable", size=size.name, region=self.context.region)
        spot = properties["priority"] == "Spot"
        self._check_image(properties, size)
        check_keys(at(properties, "osProfile.linuxConfiguration.ssh.publicKeys") or [])
        self._check_identities(resource)
        for reference in self._interfaces(resource):
            interface = self.context.get(reference)
            if interface is None or interface.type != INTERFACE_TYPE:
                raise invalid_reference(reference, request.id.text)
            user = at(interface.properties, "virtualMachine.id")
            if user and not same(user, request.id.text):
                raise refused("OperationNotAllowed/attached", nic=reference, user=user, id=request.id.text)
        if not request.existing:
            check_quota(self.context, size, 1, spot)
        # ARM keeps the custom data to itself: it may hold secrets, and here it holds the bootstrap token.
        if data := properties["osProfile"].pop("customData", None):
            resource.private["customData"] = data

    def created(self, resource: Resource, request: Request) -> None:
        """Attach the interfaces."""
        for reference in self._interfaces(resource):
            interface = self.context.get(reference)
            if interface:
                interface.properties["virtualMachine"] = {"id": resource.id.text}

    def deleted(self, resource: Resource) -> None:
        """Let go of the interfaces; those with deleteOption Delete go too."""
        for item in at(resource.properties, "networkProfile.networkInterfaces") or []:
            interface = self.context.get(item["id"])
            if interface and same(at(interface.properties, "virtualMachine.id", ""), resource.id.text):
                interface.properties.pop("virtualMachine")
                if at(item, "properties.deleteOption") == "Delete":
                    self.context.store.remove(interface.id.text)

    def failure(self, resource: Resource) -> ArmError | None:
        """An injected failure of the allocation."""
        return self.context.faults.meet("PUT", self.type, self.context.region, resource.body, late=True)

    def patch(self, resource: Resource, body: Mapping[str, Any]) -> None:
        """Identities are added."""
        super().patch(resource, body)
        if body.get("identity"):
            merged = {
                **at(resource.body, "identity.userAssignedIdentities", {}),
                **at(body, "identity.userAssignedIdentities", {}),
            }
            resource.body["identity"] = {"type": "UserAssigned", "userAssignedIdentities": merged}
            self._check_identities(resource)

    def _size(self, properties: Mapping[str, Any]) -> Size:
        name = str(at(properties, "hardwareProfile.vmSize", ""))
        size = self.context.size(name)
        if size is None:
            sizes = ", ".join(size.name for size in self.context.sizes)
            raise refused("InvalidParameter/size", size=name, sizes=sizes)
        return size

    def _check_image(self, properties: Mapping[str, Any], size: Size) -> None:
        reference = at(properties, "storageProfile.imageReference") or {}
        image = str(reference.get("communityGalleryImageId") or reference.get("id") or "")
        definition = self.context.images.find(image)
        if definition is None:
            raise refused("PlatformImageNotFound", image=image)
        if definition.architecture != size.architecture:
            raise refused(
                "BadRequest/processor", size=size.name, wanted=size.architecture, given=definition.architecture
            )
        if definition.generation not in size.family.generations.split(","):
            raise refused("BadRequest/generation", size=size.name, given=definition.generation.removeprefix("V"))

    def _check_identities(self, resource: Resource) -> None:
        assigned = at(resource.body, "identity.userAssignedIdentities") or {}
        for identifier in assigned:
            identity = self.context.get(identifier)
            if identity is None or identity.type != IDENTITY_TYPE:
                raise refused("FailedIdentityOperation/machine", id=resource.id.text, identity=identifier)
            assigned[identifier] = {name: identity.properties[name] for name in ("principalId", "clientId")}

    @staticmethod
    def _interfaces(resource: Resource) -> list[str]:
        return [str(one) for one in each(resource.body, "networkProfile.networkInterfaces[].id")]
