"""Resource groups."""

from __future__ import annotations

import re

from rehearsal.azure.arm.errors import ArmError
from rehearsal.azure.arm.identifiers import GROUP_TYPE, ResourceId
from rehearsal.azure.arm.kind import Kind, Request
from rehearsal.azure.arm.store import Resource


class ResourceGroup(Kind):
    """A resource group; its deletion deletes all that lies in it (see `arm`)."""

    type = GROUP_TYPE
    versions = (
        "2020-10-01",
        "2021-01-01",
        "2021-04-01",
        "2022-09-01",
        "2023-07-01",
        "2024-03-01",
        "2024-07-01",
        "2024-11-01",
        "2025-03-01",
        "2025-04-01",
    )
    name = re.compile(r"[-\w._()]{0,89}[-\w_()]")
    name_error = "InvalidResourceGroup"

    def check_name(self, identifier: ResourceId) -> None:
        """Refuse a name that Azure refuses."""
        if not self.name.fullmatch(identifier.name):
            raise ArmError(
                self.name_error,
                f"The provided resource group name '{identifier.name}' is invalid. It can only contain alphanumeric "
                "characters, periods, underscores, hyphens and parentheses, cannot end in a period, and is limited to "
                "90 characters.",
            )

    def put(self, request: Request) -> Resource:
        """A group keeps its location for ever."""
        resource = self.resource(request)
        if request.existing and request.existing.body["location"] != resource.body["location"]:
            raise ArmError(
                "InvalidResourceGroupLocation",
                f"Invalid resource group location '{resource.body['location']}'. The Resource group already exists in "
                f"location '{request.existing.body['location']}'.",
                409,
            )
        return resource
