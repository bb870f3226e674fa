"""Diagnostic settings of clusters: which of their logs go where.

Nothing is logged, and what they are sent to (a Log Analytics workspace, a storage account) is not looked up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karpstack.rehearsal.azure.arm.errors import refused
from karpstack.rehearsal.azure.arm.identifiers import same
from karpstack.rehearsal.azure.arm.kind import Kind, Request
from karpstack.rehearsal.azure.arm.store import Resource

DIAGNOSTICS_TYPE = "Microsoft.Insights/diagnosticSettings"

_SINKS = ("workspaceId", "storageAccountId", "eventHubAuthorizationRuleId")


class DiagnosticSetting(Kind):
    """One setting of one resource."""

    type = DIAGNOSTICS_TYPE

    def check(self, request: Request, resource: Resource) -> None:
        """Check that no other setting sends the same to the same place."""
        for other in self.context.store.of_type(DIAGNOSTICS_TYPE, request.id.scope):
            if not same(other.id.text, request.id.text):
                _refuse_reuse(resource, other)


def _refuse_reuse(one: Resource, other: Resource) -> None:
    shared = sorted(_enabled(one.properties) & _enabled(other.properties))
    for sink in _SINKS:
        if shared and one.properties.get(sink) and one.properties.get(sink) == other.properties.get(sink):
            raise refused("Conflict/sink", sink=one.properties[sink], name=other.id.name, category=shared[0])


def _enabled(properties: Mapping[str, Any]) -> set[str]:
    return {log["category"] for log in properties.get("logs") or [] if log.get("enabled") and log.get("category")}
