"""Permissions for deploying an AKS stack: the rows of grants.yaml, shown in docs/reference/deployer-policy.md.

Each grant names the types of resources that need it, so that a test finds a type without one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

#: The type of resource that only a stack has whose control plane's logs are kept.
LOGS: Final = "azure-native:monitor:DiagnosticSetting"
#: Those that only a stack has which makes workspaces of its own, and one whose agents collect something.
LOG_WORKSPACE: Final = "azure-native:operationalinsights:Workspace"
METRIC_WORKSPACE: Final = "azure-native:monitor:AzureMonitorWorkspace"
ENDPOINT: Final = "azure-native:monitor:DataCollectionEndpoint"
COLLECTION: Final = (
    "azure-native:monitor:DataCollectionRule",
    "azure-native:monitor:DataCollectionRuleAssociation",
)
#: The type that only a stack with `mode: self-hosted` has.
FEDERATION: Final = "azure-native:managedidentity:FederatedIdentityCredential"
NETWORK: Final = "azure-native:network:VirtualNetwork"
SUBNET: Final = "azure-native:network:Subnet"
#: The types that only a stack with a NAT gateway of its own has.
WAY_OUT: Final = ("azure-native:network:NatGateway", "azure-native:network:PublicIPAddress")
_FILE: Final = Path(__file__).with_name("grants.yaml")


@dataclass(frozen=True, kw_only=True)
class Grant:
    """Some actions, all on the scope in which the stack works.

    Attributes:
        what: What they are for.
        needed_by: Types of resources, as `azure-native:network:Subnet`; `preflight` for what only the looks need.
        actions: For example `Microsoft.Network/virtualNetworks/write`.
    """

    what: str
    needed_by: tuple[str, ...]
    actions: tuple[str, ...]


def role(subscription: str) -> dict[str, Any]:
    """A custom role with all of it, the rights of the looks included, as `az role definition create` takes it."""
    grants = (*deploying(), grant_for("registering"), grant_for("looking"))
    what = "Makes, changes and removes AKS environments of karpstack."
    return custom_role("karpstack deployer", what, grants, [f"/subscriptions/{subscription}"])


def custom_role(name: str, description: str, grants: Iterable[Grant], scopes: Sequence[str]) -> dict[str, Any]:
    """A custom role with some grants, that can be assigned in some subscriptions."""
    return {
        "Name": name,
        "IsCustom": True,
        "Description": description,
        "Actions": sorted({action for grant in grants for action in grant.actions}),
        "NotActions": [],
        "AssignableScopes": list(scopes),
    }


def deploying() -> Iterator[Grant]:
    """What `pulumi up` and `pulumi destroy` do."""
    return map(grant_for, _rows()["deploying"])


def grant_for(name: str) -> Grant:
    """Return a grant of grants.yaml by its name."""
    row = _rows()["grants"][name]
    actions = tuple(f"{kind}/{verb}" for kind, verbs in row["actions"].items() for verb in verbs)
    return Grant(what=row["what"], needed_by=tuple(row["needed_by"]), actions=actions)


@cache
def _rows() -> dict[str, Any]:
    rows: dict[str, Any] = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    return rows
