"""What whoever deploys an AKS stack must be allowed, as data: docs/deployer-policy.md is made from it.

Each grant names the types of resources that need it, so that a test can tell a type that nobody has thought of. The
actions are those with which pulumi-azure-native creates, reads, changes and deletes them, and those that Azure asks of
who names one resource in another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

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
_EVERYTHING: Final = ("read", "write", "delete")


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
    grants = (*deploying(), *registering(), *looking())
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
    yield Grant(
        what="the resource group",
        needed_by=("azure-native:resources:ResourceGroup",),
        actions=(
            *_of("Microsoft.Resources/subscriptions/resourceGroups", *_EVERYTHING),
            "Microsoft.Resources/subscriptions/operationresults/read",
        ),
    )
    yield Grant(
        what="the network",
        needed_by=(NETWORK, SUBNET),
        actions=(
            *_of("Microsoft.Network/virtualNetworks", *_EVERYTHING),
            *_of("Microsoft.Network/virtualNetworks/subnets", *_EVERYTHING),
            "Microsoft.Network/locations/operations/read",
            "Microsoft.Network/locations/operationResults/read",
        ),
    )
    yield Grant(
        what="the NAT gateway",
        needed_by=WAY_OUT,
        actions=(
            *_of("Microsoft.Network/natGateways", *_EVERYTHING, "join/action"),
            *_of("Microsoft.Network/publicIPAddresses", *_EVERYTHING, "join/action"),
        ),
    )
    yield joining()
    yield looking_out()
    yield finding()
    yield Grant(
        what="the identities",
        needed_by=("azure-native:managedidentity:UserAssignedIdentity",),
        actions=_of("Microsoft.ManagedIdentity/userAssignedIdentities", *_EVERYTHING, "assign/action"),
    )
    yield Grant(
        what="the controller's federated credential",
        needed_by=(FEDERATION,),
        actions=_of("Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials", *_EVERYTHING),
    )
    yield Grant(
        what="the cluster",
        needed_by=("azure-native:containerservice:ManagedCluster",),
        actions=(
            *_of(
                "Microsoft.ContainerService/managedClusters",
                *_EVERYTHING,
                "listClusterUserCredential/action",
            ),
            "Microsoft.ContainerService/locations/operations/read",
            "Microsoft.ContainerService/locations/operationresults/read",
        ),
    )
    yield administering()
    yield assigning()
    yield Grant(
        what="the control plane's logs",
        needed_by=(LOGS,),
        actions=_of("Microsoft.Insights/diagnosticSettings", *_EVERYTHING),
    )
    yield logging()
    yield observing()
    yield Grant(
        what="the workspace for logs",
        needed_by=(LOG_WORKSPACE,),
        actions=_of("Microsoft.OperationalInsights/workspaces", *_EVERYTHING),
    )
    yield Grant(
        what="the workspace for metrics",
        needed_by=(METRIC_WORKSPACE,),
        actions=_of("Microsoft.Monitor/accounts", *_EVERYTHING),
    )
    yield Grant(
        what="the endpoint that metrics go through",
        needed_by=(ENDPOINT,),
        actions=_of("Microsoft.Insights/dataCollectionEndpoints", *_EVERYTHING),
    )
    yield Grant(
        what="the rules by which agents collect",
        needed_by=COLLECTION,
        actions=(
            *_of("Microsoft.Insights/dataCollectionRules", *_EVERYTHING),
            *_of("Microsoft.Insights/dataCollectionRuleAssociations", *_EVERYTHING),
        ),
    )


def assigning() -> Grant:
    """What giving roles takes, also on what is somebody else's."""
    return Grant(
        what="the roles of identities and of whoever deploys",
        needed_by=("azure-native:authorization:RoleAssignment",),
        actions=_of("Microsoft.Authorization/roleAssignments", *_EVERYTHING),
    )


def joining() -> Grant:
    """What naming a subnet in a cluster takes, also where it is somebody else's."""
    return Grant(
        what="putting nodes into the subnet",
        needed_by=("azure-native:containerservice:ManagedCluster",),
        actions=(
            "Microsoft.Network/virtualNetworks/read",
            "Microsoft.Network/virtualNetworks/subnets/read",
            "Microsoft.Network/virtualNetworks/subnets/join/action",
        ),
    )


def looking_out() -> Grant:
    """What the program asks of the way out of a subnet that is somebody else's, wherever that lies."""
    return Grant(
        what="looking at the way out of the subnets",
        needed_by=("azure-native:containerservice:ManagedCluster",),
        actions=(
            "Microsoft.Network/natGateways/read",
            "Microsoft.Network/publicIPAddresses/read",
            "Microsoft.Network/routeTables/read",
        ),
    )


def finding() -> Grant:
    """What the program asks of a private DNS zone that is somebody else's."""
    return Grant(
        what="looking at the private DNS zone",
        needed_by=("azure-native:containerservice:ManagedCluster",),
        actions=("Microsoft.Network/privateDnsZones/read",),
    )


def entering() -> Grant:
    """What a stack on a cluster that is there asks of it."""
    return Grant(
        what="looking at the cluster, and its kubeconfig",
        needed_by=("azure-native:containerservice:ManagedCluster",),
        actions=_of("Microsoft.ContainerService/managedClusters", "read", "listClusterUserCredential/action"),
    )


def seeing() -> Grant:
    """What it asks of the network of its nodes."""
    return Grant(
        what="looking at the network",
        needed_by=("azure-native:containerservice:ManagedCluster",),
        actions=("Microsoft.Network/virtualNetworks/read",),
    )


def administering() -> Grant:
    """What a stack with `cluster.localAccounts` takes its kubeconfig with."""
    return Grant(
        what="the administrator's kubeconfig",
        needed_by=("azure-native:containerservice:ManagedCluster",),
        actions=("Microsoft.ContainerService/managedClusters/listClusterAdminCredential/action",),
    )


def logging() -> Grant:
    """What naming a workspace in a diagnostic setting takes on the workspace."""
    return Grant(
        what="writing into the workspace",
        needed_by=(LOGS,),
        actions=("Microsoft.OperationalInsights/workspaces/sharedKeys/action",),
    )


def observing() -> Grant:
    """What naming a workspace in Container insights' profile takes on the workspace, though its agents use no key.

    ARM asks it of whoever writes the cluster, at each update: LinkedAuthorizationFailed
    (https://learn.microsoft.com/azure/aks/aks-service-permissions; Azure/azure-cli#22232). `sharedKeys/action` is
    another action, and does not do.
    """
    return Grant(
        what="naming the workspace in the cluster",
        needed_by=("azure-native:containerservice:ManagedCluster",),
        actions=(
            "Microsoft.OperationalInsights/workspaces/read",
            "Microsoft.OperationalInsights/workspaces/sharedKeys/read",
        ),
    )


def registering() -> Iterator[Grant]:
    """What the first stack of a subscription takes."""
    namespaces = (
        "Compute",
        "ContainerService",
        "Insights",
        "ManagedIdentity",
        "Monitor",
        "Network",
        "OperationalInsights",
        "Storage",
    )
    yield Grant(
        what="registering resource providers",
        needed_by=("azure-native:containerservice:ManagedCluster",),
        actions=tuple(f"Microsoft.{namespace}/register/action" for namespace in namespaces),
    )


def looking() -> Iterator[Grant]:
    """What the looks before `pulumi up` and `pulumi destroy` ask, as far as deploying does not ask it too."""
    yield Grant(
        what="the looks before up and destroy",
        needed_by=("preflight",),
        actions=(
            "Microsoft.Authorization/denyAssignments/read",
            "Microsoft.Authorization/locks/read",
            "Microsoft.Authorization/permissions/read",
            "Microsoft.Compute/locations/usages/read",
            "Microsoft.Compute/skus/read",
            "Microsoft.Compute/virtualMachines/read",
            "Microsoft.ContainerRegistry/registries/read",
            "Microsoft.ContainerService/locations/kubernetesVersions/read",
            "Microsoft.Features/providers/features/read",
            "Microsoft.KeyVault/vaults/read",
            "Microsoft.Monitor/accounts/read",
            "Microsoft.Network/locations/usages/read",
            "Microsoft.Network/networkInterfaces/read",
            "Microsoft.OperationalInsights/deletedWorkspaces/read",
            "Microsoft.OperationalInsights/workspaces/read",
            "Microsoft.Resources/subscriptions/locations/read",
            "Microsoft.Resources/subscriptions/providers/read",
            "Microsoft.Resources/subscriptions/read",
            "Microsoft.Resources/subscriptions/resourceGroups/resources/read",
        ),
    )


def _of(resource_type: str, *verbs: str) -> tuple[str, ...]:
    return tuple(f"{resource_type}/{verb}" for verb in verbs)
