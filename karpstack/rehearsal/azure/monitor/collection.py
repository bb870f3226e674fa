"""Rules of data collection: their destinations and flows. Nothing is collected.

The code of an invalid rule and its text are Azure's (terraform-provider-azurerm#28709), those of its details ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from karpstack.rehearsal.azure.arm.errors import ArmError
from karpstack.rehearsal.azure.arm.identifiers import ResourceId
from karpstack.rehearsal.azure.arm.kind import Kind, Request, at
from karpstack.rehearsal.azure.arm.store import Resource
from karpstack.rehearsal.azure.monitor.workspaces import LOG_WORKSPACE_TYPE, METRIC_WORKSPACE_TYPE

ENDPOINT_TYPE: Final = "Microsoft.Insights/dataCollectionEndpoints"
RULE_TYPE: Final = "Microsoft.Insights/dataCollectionRules"
#: Where a rule sends to -> (the key of the resource's ID, its type).
_DESTINATIONS: Final = {
    "logAnalytics": ("workspaceResourceId", LOG_WORKSPACE_TYPE),
    "monitoringAccounts": ("accountResourceId", METRIC_WORKSPACE_TYPE),
}


class DataCollectionRule(Kind):
    """What is collected, and where it is sent to."""

    type = RULE_TYPE

    def check(self, request: Request, resource: Resource) -> None:
        """Check destinations, which must be there, and flows, which must name them."""
        properties = resource.properties
        names = {
            self._destination(kind, destination)
            for kind in _DESTINATIONS
            for destination in at(properties, f"destinations.{kind}") or []
        }
        for flow in properties["dataFlows"]:
            if unknown := sorted(set(flow.get("destinations") or ()) - names):
                raise _invalid("InvalidDataFlow", f"The data flow's destination '{unknown[0]}' is not declared.")
        endpoint = properties.get("dataCollectionEndpointId")
        if endpoint:
            self._existing(str(endpoint), ENDPOINT_TYPE, "dataCollectionEndpointId")

    def _destination(self, kind: str, destination: Mapping[str, Any]) -> str:
        key, its_type = _DESTINATIONS[kind]
        self._existing(str(destination.get(key, "")), its_type, f"destinations.{kind}.{key}")
        return str(destination.get("name", ""))

    def _existing(self, identifier: str, its_type: str, path: str) -> None:
        parsed = ResourceId.parse(identifier)
        # Of another subscription nothing is known here.
        if parsed.subscription.lower() == self.context.subscription and (
            parsed.type.lower() != its_type.lower() or self.context.get(identifier) is None
        ):
            raise _invalid("InvalidDestination", f"properties.{path}: the resource '{identifier}' was not found.")


def _invalid(code: str, message: str) -> ArmError:
    return ArmError("InvalidPayload", f"Data collection rule is invalid: {code}: {message}")
