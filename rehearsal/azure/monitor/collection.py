"""Data collection: endpoints, rules, and which resources have which. Nothing is collected.

Of a rule are checked its destinations, which must be there, and its flows, which must name them; a rule lies where its
workspace does (https://learn.microsoft.com/azure/azure-monitor/data-collection/data-collection-rule-create-edit). The
code of an invalid rule and its text are Azure's (terraform-provider-azurerm#28709), those of its details ours.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, Final

from rehearsal.azure.arm.errors import ArmError
from rehearsal.azure.arm.identifiers import ResourceId, same
from rehearsal.azure.arm.kind import Kind, Request, at
from rehearsal.azure.arm.store import Resource
from rehearsal.azure.monitor.workspaces import LOG_WORKSPACE_TYPE, METRIC_WORKSPACE_TYPE

ENDPOINT_TYPE: Final = "Microsoft.Insights/dataCollectionEndpoints"
RULE_TYPE: Final = "Microsoft.Insights/dataCollectionRules"
ASSOCIATION_TYPE: Final = "Microsoft.Insights/dataCollectionRuleAssociations"
_VERSIONS: Final = ("2021-09-01-preview", "2022-06-01", "2023-03-11", "2024-03-11")
#: Where a rule sends to -> (the key of the resource's ID, its type).
_DESTINATIONS: Final = {
    "logAnalytics": ("workspaceResourceId", LOG_WORKSPACE_TYPE),
    "monitoringAccounts": ("accountResourceId", METRIC_WORKSPACE_TYPE),
}


class DataCollectionEndpoint(Kind):
    """An endpoint that data goes through."""

    type = ENDPOINT_TYPE
    versions = _VERSIONS
    name = re.compile(r"[A-Za-z0-9][-A-Za-z0-9]{1,42}[A-Za-z0-9]")

    def put(self, request: Request) -> Resource:
        """Give it addresses."""
        resource = self.resource(request)
        kept = at(request.existing.properties, "immutableId") if request.existing else None
        resource.properties["immutableId"] = kept or f"dce-{uuid.uuid4().hex}"
        return resource

    def users(self, resource: Resource) -> Iterator[Resource]:
        """Rules that send by it."""
        for rule in self.context.store.of_type(RULE_TYPE):
            if same(str(rule.properties.get("dataCollectionEndpointId", "")), resource.id.text):
                yield rule


class DataCollectionRule(Kind):
    """What is collected, and where it is sent to."""

    type = RULE_TYPE
    versions = _VERSIONS
    name = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_.]{0,62}[A-Za-z0-9]")

    def put(self, request: Request) -> Resource:
        """Check destinations and flows."""
        resource = self.resource(request)
        properties = resource.properties
        names = {
            self._destination(kind, destination)
            for kind in _DESTINATIONS
            for destination in at(properties, f"destinations.{kind}") or []
        }
        flows = properties.get("dataFlows") or []
        if not flows:
            raise _invalid("InvalidDataFlow", "A rule needs at least one data flow.")
        for flow in flows:
            if unknown := sorted(set(flow.get("destinations") or ()) - names):
                raise _invalid("InvalidDataFlow", f"The data flow's destination '{unknown[0]}' is not declared.")
        endpoint = properties.get("dataCollectionEndpointId")
        if endpoint:
            self._existing(str(endpoint), ENDPOINT_TYPE, "dataCollectionEndpointId")
        kept = at(request.existing.properties, "immutableId") if request.existing else None
        properties["immutableId"] = kept or f"dcr-{uuid.uuid4().hex}"
        return resource

    def users(self, resource: Resource) -> Iterator[Resource]:
        """Resources that have it."""
        for association in self.context.store.of_type(ASSOCIATION_TYPE):
            if same(str(association.properties.get("dataCollectionRuleId", "")), resource.id.text):
                yield association

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


class DataCollectionRuleAssociation(Kind):
    """One resource has one rule, or an endpoint."""

    type = ASSOCIATION_TYPE
    versions = _VERSIONS
    name = re.compile(r"[^<>*%&:\\?+/]{1,260}")
    located = False

    def put(self, request: Request) -> Resource:
        """Check that it names what is there."""
        rule = at(request.body, "properties.dataCollectionRuleId")
        endpoint = at(request.body, "properties.dataCollectionEndpointId")
        if not rule and not endpoint:
            raise ArmError(
                "InvalidPayload", "One of dataCollectionRuleId and dataCollectionEndpointId must be specified."
            )
        for identifier in filter(None, (rule, endpoint)):
            if self.context.get(ResourceId.parse(str(identifier)).text) is None:
                raise ArmError("NotFound", f"The resource '{identifier}' of the association was not found.", 404)
        resource = self.resource(request)
        resource.properties.pop("provisioningState")
        return resource


def _invalid(code: str, message: str) -> ArmError:
    return ArmError("InvalidPayload", f"Data collection rule is invalid: {code}: {message}")
