"""What an Azure subscription says would block `pulumi destroy`, or go with the stack's resource groups.

The cluster takes its node resource group with it, whatever is in there; and Pulumi's provider deletes the stack's own
resource group, whatever is in there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ..azure import locks as on_azure
from ..azure.api_versions import COMPUTE, NETWORK, RESOURCES
from ..azure.asking import Azure
from ..azure.scopes import within
from ..finding import Finding, finding
from .subject import Subject

_MACHINES: Final = "Microsoft.Compute/virtualMachines/read"
_INTERFACES: Final = "Microsoft.Network/networkInterfaces/read"
_RESOURCES: Final = "Microsoft.Resources/subscriptions/resourceGroups/resources/read"
_ROLES: Final = "/providers/microsoft.authorization/roleassignments/"
_KARPENTER: Final = "karpenter.sh_nodepool"


def locks(subject: Subject) -> Iterator[Finding]:
    """Locks of either kind: both keep what is below from being deleted."""
    if subject.azure is None:
        return
    for scope, lock in on_azure.found(subject.azure, *_groups(subject, subject.azure), *_assigned(subject)):
        yield finding(
            "lock-refuses-deletion",
            on_azure.CALL,
            name=lock["name"],
            level=lock["properties"]["level"],
            scope=scope,
            remove=on_azure.removes(lock),
        )


def machines(subject: Subject) -> Iterator[Finding]:
    """Machines in the node resource group that no NodeClaim names."""
    if subject.azure is None:
        return
    group = subject.azure.group(subject.names.node_resource_group)
    claimed = subject.claimed()
    for one in subject.azure.all(_MACHINES, f"{group}/providers/Microsoft.Compute/virtualMachines", COMPUTE):
        if one["name"].lower() in claimed:
            continue
        of_karpenter = _KARPENTER in (one.get("tags") or {})
        yield finding(
            "machine-without-node-claim" if of_karpenter else "machine-of-others",
            _MACHINES,
            name=one["name"],
            node_resource_group=subject.names.node_resource_group,
            id=one["id"],
        )


def neighbours(subject: Subject) -> Iterator[Finding]:
    """Network interfaces of others in the stack's own network, which cannot be deleted under them."""
    if subject.azure is None or subject.state is None:
        return
    networks = f"{subject.azure.group(subject.names.resource_group)}/providers/Microsoft.Network/virtualNetworks"
    network = f"{networks}/{subject.names.virtual_network}"
    if not subject.state.knows(network):
        return
    group = subject.azure.group(subject.names.node_resource_group)
    path = f"{subject.azure.scope}/providers/Microsoft.Network/networkInterfaces"
    for one in subject.azure.all(_INTERFACES, path, NETWORK):
        if not within(one["id"], group) and any(within(subnet, network) for subnet in _subnets(one)):
            yield finding("network-interface-left-on-azure", _INTERFACES, id=one["id"])


def check_foreign_resources(subject: Subject) -> Iterator[Finding]:
    """Resources in the stack's resource group that Pulumi does not know: they go with the group."""
    if subject.azure is None or subject.state is None:
        return
    group = subject.azure.group(subject.names.resource_group)
    if not subject.state.knows(group):
        return
    for one in subject.azure.all(_RESOURCES, f"{group}/resources", RESOURCES):
        if not subject.state.knows(one["id"]):
            yield finding(
                "resource-of-others",
                _RESOURCES,
                type=one["type"],
                name=one["name"],
                resource_group=subject.names.resource_group,
            )


def _assigned(subject: Subject) -> list[str]:
    """Where the stack has given roles: on an existing subnet, a lock keeps them from being taken back."""
    if subject.state is None:
        subnet = subject.setting("network", "subnetId")
        return [subnet] if isinstance(subnet, str) else []
    resources = subject.state.resources
    return [
        identifier[: identifier.lower().index(_ROLES)] for _, identifier in resources if _ROLES in identifier.lower()
    ]


def _groups(subject: Subject, azure: Azure) -> tuple[str, str]:
    return azure.group(subject.names.resource_group), azure.group(subject.names.node_resource_group)


def _subnets(interface: dict[str, Any]) -> list[str]:
    configurations = interface["properties"].get("ipConfigurations") or ()
    return [str(((one.get("properties") or {}).get("subnet") or {}).get("id", "")) for one in configurations]
