"""Private DNS zones, by their names alone: they hold no records, and are tied to no network."""

from __future__ import annotations

import re
from typing import Final

from rehearsal.azure.arm.kind import Kind, Request
from rehearsal.azure.arm.store import Resource

ZONE_TYPE: Final = "Microsoft.Network/privateDnsZones"


class PrivateZone(Kind):
    """A private DNS zone."""

    type = ZONE_TYPE
    versions = ("2018-09-01", "2020-06-01", "2024-06-01")
    name = re.compile(r"([A-Za-z0-9_]([-A-Za-z0-9_]{0,61}[A-Za-z0-9_])?\.)+[A-Za-z0-9_][-A-Za-z0-9_]{0,62}")
    located = False

    def put(self, request: Request) -> Resource:
        """It is everywhere."""
        resource = self.resource(request)
        resource.body["location"] = "global"
        return resource
