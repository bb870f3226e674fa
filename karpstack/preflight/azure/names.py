"""Names that the stack would take and somebody else has: not the stack itself, by Pulumi's state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..finding import Finding, finding
from .api_versions import LOG_WORKSPACES, RESOURCES
from .scopes import within
from .subject import StackSubject, Subject

_GROUPS: Final = "Microsoft.Resources/subscriptions/resourceGroups/read"
_RESOURCES: Final = "Microsoft.Resources/subscriptions/resourceGroups/resources/read"
_DELETED: Final = "Microsoft.OperationalInsights/deletedWorkspaces/read"
_OTHER_NAME: Final = "choose another karpstack:name"
_IN_AZURE: Final = "Pulumi's provider refuses: cannot create already existing resource"


def resource_group(subject: StackSubject) -> Iterator[Finding]:
    """A resource group of the stack's name."""
    if not subject.makes_group:
        return
    name = subject.names.resource_group
    if subject.azure.find(_GROUPS, subject.group, RESOURCES) and not subject.made(subject.group):
        yield finding("resource-group-exists", _GROUPS, name=name, subscription=subject.azure.subscription)


def check_group_leftovers(subject: StackSubject) -> Iterator[Finding]:
    """Find what an interrupted `up` left in the stack's own resource group."""
    if not subject.made(subject.group):
        return
    names = subject.names
    planned = {
        "microsoft.containerservice/managedclusters": {names.cluster},
        "microsoft.managedidentity/userassignedidentities": {names.cluster_identity, names.controller_identity},
        "microsoft.network/virtualnetworks": {names.virtual_network},
        "microsoft.operationalinsights/workspaces": {names.log_workspace},
        "microsoft.monitor/accounts": {names.metrics_workspace},
    }
    for one in subject.azure.all(_RESOURCES, f"{subject.group}/resources", RESOURCES):
        if one["name"] in planned.get(one["type"].lower(), ()) and not subject.made(one["id"]):
            yield finding("azure-resource-exists", _RESOURCES, type=one["type"], name=one["name"], id=one["id"])


def deleted_workspace(subject: Subject) -> Iterator[Finding]:
    """A Log Analytics workspace of the stack's name that was deleted and can still be recovered."""
    if not subject.settings.addons.log_retention_days:
        return
    name = subject.names.log_workspace
    path = f"{subject.azure.scope}/providers/Microsoft.OperationalInsights/deletedWorkspaces"
    for one in subject.azure.all(_DELETED, path, LOG_WORKSPACES):
        if not within(str(one["id"]), f"{subject.group}/providers") or str(one["name"]).lower() != name.lower():
            continue
        location = str(one.get("location", "")).replace(" ", "").lower()
        elsewhere = location != subject.region
        yield finding(
            "deleted-workspace-elsewhere" if elsewhere else "deleted-workspace-is-recovered",
            _DELETED,
            name=name,
            location=location,
            resource_group=subject.names.resource_group,
        )


def node_resource_group(subject: Subject) -> Iterator[Finding]:
    """A resource group of the name that AKS will make one by."""
    name = subject.names.node_resource_group
    if subject.is_up:
        return
    found = subject.azure.find(_GROUPS, subject.azure.group(name), RESOURCES)
    if found:
        owner = found.get("managedBy")
        yield finding(
            "node-resource-group-of-another" if owner else "node-resource-group-exists", _GROUPS, name=name, owner=owner
        )
