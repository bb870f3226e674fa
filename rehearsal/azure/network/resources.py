"""What Pulumi knows of networks: the types of azure-native, for the table in `provider`."""

from __future__ import annotations

from typing import Final

from rehearsal.azure.resource import GROUP, AzureResource

_NETWORK: Final = f"{GROUP}/providers/Microsoft.Network/virtualNetworks/{{virtualNetworkName}}"


class VirtualNetwork(AzureResource):
    """A virtual network."""

    token = "azure-native:network:VirtualNetwork"
    path, default_version = _NETWORK, "2024-05-01"
    # The SDK itself sends the two that begin with `enable`.
    body = frozenset({"location", "tags", "addressSpace", "subnets", "enableDdosProtection", "enableVmProtection"})
    outputs = frozenset({"etag", "provisioningState", "resourceGuid", "virtualNetworkPeerings"})
    nested = frozenset({"subnets"})


class Subnet(AzureResource):
    """A subnet as a resource of its own."""

    token = "azure-native:network:Subnet"
    path, default_version = f"{_NETWORK}/subnets/{{subnetName}}", "2024-05-01"
    body = frozenset(
        {
            "addressPrefix",
            "addressPrefixes",
            "defaultOutboundAccess",
            "networkSecurityGroup",
            "serviceEndpoints",
            "privateEndpointNetworkPolicies",
            "privateLinkServiceNetworkPolicies",
        }
    )
    outputs = frozenset({"delegations", "etag", "provisioningState"})
    name_digits = 0


class NetworkSecurityGroup(AzureResource):
    """A network security group."""

    token = "azure-native:network:NetworkSecurityGroup"
    path = f"{GROUP}/providers/Microsoft.Network/networkSecurityGroups/{{networkSecurityGroupName}}"
    default_version = "2024-05-01"
    body = frozenset({"location", "tags", "securityRules"})
    outputs = frozenset({"etag", "provisioningState"})
    nested = frozenset({"securityRules"})
