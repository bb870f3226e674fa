"""Names that the stack would take and somebody else has: not the stack itself, by Pulumi's state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..finding import Finding
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
        yield Finding(
            "error",
            f"the resource group {name} is there already",
            _IN_AZURE,
            f"{_OTHER_NAME}; or choose the stack that made it; or az group delete --subscription "
            f"{subject.azure.subscription} --name {name}, with everything in it, if nobody needs it",
            _GROUPS,
        )


def in_the_group(subject: StackSubject) -> Iterator[Finding]:
    """What an `up` that broke off left in the stack's own resource group."""
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
            yield Finding(
                "error",
                f"{one['type']} {one['name']} is there already, and Pulumi's state does not have it",
                f"{_IN_AZURE}; an earlier pulumi up was broken off before it wrote that down",
                f"az resource delete --ids {one['id']}, or pulumi import it",
                _RESOURCES,
            )


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
        yield Finding(
            "error" if elsewhere else "warning",
            f"the workspace {name} was deleted from {location} in the last 14 days, and Azure keeps it for so long",
            "Azure refuses a workspace of that name in another location: Conflict"
            if elsewhere
            else "pulumi up recovers it: the audit logs of the cluster before are in it, and are paid for",
            f"{_OTHER_NAME}; or remove it for good: az monitor log-analytics workspace recover --resource-group "
            f"{subject.names.resource_group} --workspace-name {name}, then az monitor log-analytics workspace delete "
            f"--force --resource-group {subject.names.resource_group} --workspace-name {name}",
            _DELETED,
        )


def node_resource_group(subject: Subject) -> Iterator[Finding]:
    """A resource group of the name that AKS will make one by."""
    name = subject.names.node_resource_group
    if subject.is_up:
        return
    found = subject.azure.find(_GROUPS, subject.azure.group(name), RESOURCES)
    if found:
        owner = found.get("managedBy")
        yield Finding(
            "error",
            f"the resource group {name} is there already" + (f", managed by {owner}" if owner else ""),
            "AKS, which makes it itself, refuses the cluster after the network is made: NodeResourceGroupAlreadyExists",
            f"{_OTHER_NAME}, or "
            + ("delete that cluster if nobody needs it" if owner else "delete the group if nobody needs it"),
            _GROUPS,
        )
