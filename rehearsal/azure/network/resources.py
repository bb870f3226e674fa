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
            "delegations",
            "natGateway",
            "networkSecurityGroup",
            "routeTable",
            "serviceEndpoints",
            "privateEndpointNetworkPolicies",
            "privateLinkServiceNetworkPolicies",
        }
    )
    outputs = frozenset({"etag", "provisioningState"})
    nested = frozenset({"delegations"})
    name_digits = 0


class NetworkSecurityGroup(AzureResource):
    """A network security group."""

    token = "azure-native:network:NetworkSecurityGroup"
    path = f"{GROUP}/providers/Microsoft.Network/networkSecurityGroups/{{networkSecurityGroupName}}"
    default_version = "2024-05-01"
    body = frozenset({"location", "tags", "securityRules"})
    outputs = frozenset({"etag", "provisioningState"})
    nested = frozenset({"securityRules"})


class PublicIPAddress(AzureResource):
    """A public IP address."""

    token = "azure-native:network:PublicIPAddress"
    path = f"{GROUP}/providers/Microsoft.Network/publicIPAddresses/{{publicIpAddressName}}"
    default_version = "2024-05-01"
    body = frozenset({"location", "tags", "sku", "zones", "publicIPAllocationMethod", "idleTimeoutInMinutes"})
    outputs = frozenset({"etag", "ipAddress", "provisioningState", "publicIPAddressVersion", "resourceGuid"})
    fixed = frozenset({"sku"})


class NatGateway(AzureResource):
    """A NAT gateway."""

    token = "azure-native:network:NatGateway"
    path = f"{GROUP}/providers/Microsoft.Network/natGateways/{{natGatewayName}}"
    default_version = "2024-05-01"
    body = frozenset({"location", "tags", "sku", "zones", "publicIpAddresses", "idleTimeoutInMinutes"})
    outputs = frozenset({"etag", "provisioningState", "resourceGuid", "subnets", "publicIpPrefixes"})


class RouteTable(AzureResource):
    """A route table with its routes."""

    token = "azure-native:network:RouteTable"
    path = f"{GROUP}/providers/Microsoft.Network/routeTables/{{routeTableName}}"
    default_version = "2024-05-01"
    body = frozenset({"location", "tags", "disableBgpRoutePropagation", "routes"})
    outputs = frozenset({"etag", "provisioningState", "resourceGuid", "subnets"})
    nested = frozenset({"routes"})


class PrivateZone(AzureResource):
    """A private DNS zone; its location is `global`."""

    token = "azure-native:privatedns:PrivateZone"
    path = f"{GROUP}/providers/Microsoft.Network/privateDnsZones/{{privateZoneName}}"
    default_version = "2024-06-01"
    body = frozenset({"location", "tags"})
    outputs = frozenset({"etag", "provisioningState"})
