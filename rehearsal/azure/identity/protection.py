"""What keeps even those away who have the right: locks, and deny assignments."""

from __future__ import annotations

import re

from rehearsal.azure.arm.errors import ArmError
from rehearsal.azure.arm.kind import Kind, Request, at
from rehearsal.azure.arm.locks import CAN_NOT_DELETE, LOCK_TYPE, READ_ONLY
from rehearsal.azure.arm.store import Resource
from rehearsal.azure.identity.access import DENY_TYPE


class ManagementLock(Kind):
    """A lock on a subscription, a resource group or a resource, and on all below it."""

    type = LOCK_TYPE
    versions = ("2016-09-01", "2020-05-01")
    name = re.compile(r"[^<>%&\\?/]{1,260}")
    located = False

    def put(self, request: Request) -> Resource:
        """Check the level."""
        level = at(request.body, "properties.level")
        if level not in (READ_ONLY, CAN_NOT_DELETE):
            raise ArmError(
                "InvalidLockLevel", f"The lock level '{level}' is not valid; expect {CAN_NOT_DELETE} or {READ_ONLY}."
            )
        resource = self.resource(request)
        resource.properties.pop("provisioningState")
        return resource


class DenyAssignment(Kind):
    """A deny assignment: made by Azure itself, for managed applications, deployment stacks and the like."""

    type = DENY_TYPE
    versions = ("2018-07-01-preview", "2022-04-01")
    name = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
    located = False

    def put(self, request: Request) -> Resource:
        """Refused: nobody makes one directly."""
        raise ArmError("MethodNotAllowed", "Deny assignments are made by Azure; they cannot be created directly.", 405)

    def check_delete(self, resource: Resource) -> None:
        """Refused likewise."""
        raise ArmError("MethodNotAllowed", "Deny assignments are removed by what has made them.", 405)
