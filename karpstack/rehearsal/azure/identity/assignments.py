"""Role assignments."""

from __future__ import annotations

import re
import uuid

from karpstack.karpenter import clock
from karpstack.rehearsal.azure.arm.errors import refused
from karpstack.rehearsal.azure.arm.identifiers import same
from karpstack.rehearsal.azure.arm.kind import Kind, Request, at
from karpstack.rehearsal.azure.arm.store import Resource
from karpstack.rehearsal.azure.context import Context
from karpstack.rehearsal.azure.identity import roles
from karpstack.rehearsal.azure.identity.access import ASSIGNMENT_TYPE, EFFECTIVE
from karpstack.rehearsal.azure.identity.roles import Role

_DEFINITIONS = "Microsoft.Authorization/roleDefinitions"


class RoleAssignment(Kind):
    """A role given to a principal at a scope.

    People and groups are not in the directory of the rehearsal: an assignment that says `principalType` User or Group
    is believed, any other principal must exist.
    """

    type = ASSIGNMENT_TYPE

    def check(self, request: Request, resource: Resource) -> None:
        """Check role, principal and that the same was not assigned before."""
        principal = str(at(request.body, "properties.principalId", ""))
        definition = str(at(request.body, "properties.roleDefinitionId", ""))
        role = roles.find(definition)
        if role is None:
            raise refused("RoleDefinitionDoesNotExist", id=definition.rsplit("/", 1)[-1].replace("-", ""))
        kind = self._kind(principal, str(at(request.body, "properties.principalType", "")))
        if request.existing and (
            request.existing.properties["principalId"].lower() != principal.lower()
            or roles.find(request.existing.properties["roleDefinitionId"]) != role
        ):
            raise refused("RoleAssignmentUpdateNotPermitted")
        for other in self.context.store.of_type(ASSIGNMENT_TYPE):
            if (
                not same(other.id.text, request.id.text)
                and same(other.id.scope, request.id.scope)
                and other.properties["principalId"].lower() == principal.lower()
                and roles.find(other.properties["roleDefinitionId"]) == role
            ):
                raise refused("RoleAssignmentExists", name_replace=other.id.name.replace("-", ""))
        resource.private.setdefault(EFFECTIVE, clock.monotonic() + self.context.role_effective)
        resource.properties.update({"principalType": kind, "scope": request.id.scope or "/"})

    def _kind(self, principal: str, given: str) -> str:
        if not re.fullmatch(self.row.name, principal):
            raise refused("InvalidPrincipalId", principal=principal)
        known = self.context.directory.principal(principal)
        if known is None:
            if given in ("User", "Group"):
                return given
            raise refused(
                "PrincipalNotFound", principal=principal.replace("-", ""), tenant=self.context.directory.tenant
            )
        if given and given != known.kind:
            raise refused("UnmatchedPrincipalType", principal=principal, actual=known.kind, given=given)
        return known.kind


def make(context: Context, principal: str, scope: str, role: Role) -> None:
    """Assign a role as Azure itself does: at once, and past the checks of a caller's PUT."""
    assignment = context.keep(f"{scope}/providers/{ASSIGNMENT_TYPE}/{uuid.uuid4()}", ASSIGNMENT_TYPE, {})
    assignment.body["properties"] = {
        "principalId": principal,
        "principalType": "ServicePrincipal",
        "scope": scope,
        "roleDefinitionId": f"/subscriptions/{context.subscription}/providers/{_DEFINITIONS}/{role.id}",
    }
