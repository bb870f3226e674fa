"""The network of nodes: one subnet, of a virtual network of the stack's own or of an existing one.

Pods take no addresses from it (they live in the overlay), and there are no network security groups, routes or
gateways here: AKS makes what it needs in the node resource group, and the way out is its load balancer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
from pulumi_azure_native import network

from ..naming import AksNames
from ..settings.aks import NetworkSettings


@dataclass(frozen=True, kw_only=True)
class NetworkArgs:
    """Arguments of `Network`.

    Attributes:
        names: Physical names.
        resource_group: Name of the resource group for a network of the stack's own.
        location: Location of the same.
        settings: With a subnet's range, which is made, or with the ID of one that exists and is not changed.
        tags: For every resource.
    """

    names: AksNames
    resource_group: pulumi.Input[str]
    location: str
    settings: NetworkSettings
    tags: Mapping[str, str]


class Network(pulumi.ComponentResource):
    """The subnet, and the GUID of its virtual network."""

    subnet_id: pulumi.Output[str]
    vnet_guid: pulumi.Output[str]

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:aks:Network", name, {}, opts)
        if args.settings.subnet_id is None:
            self._make(name, args)
        else:
            self._adopt(args.settings.subnet_id)
        self.register_outputs({"subnetId": self.subnet_id, "vnetGuid": self.vnet_guid})

    def _make(self, name: str, args: NetworkArgs) -> None:
        child = pulumi.ResourceOptions(parent=self)
        vnet = network.VirtualNetwork(
            f"{name}-vnet",
            virtual_network_name=args.names.virtual_network,
            resource_group_name=args.resource_group,
            location=args.location,
            address_space=network.AddressSpaceArgs(address_prefixes=[str(args.settings.vnet_cidr)]),
            tags=args.tags,
            opts=child,
        )
        subnet = network.Subnet(
            f"{name}-nodes",
            subnet_name=args.names.node_subnet,
            virtual_network_name=vnet.name.apply(lambda made: made or ""),
            resource_group_name=args.resource_group,
            address_prefix=str(args.settings.subnet_cidr),
            opts=child,
        )
        self.subnet_id = subnet.id
        self.vnet_guid = vnet.resource_guid

    def _adopt(self, subnet_id: str) -> None:
        # /subscriptions/<id>/resourceGroups/<group>/providers/Microsoft.Network/virtualNetworks/<network>/subnets/<it>
        parts = subnet_id.split("/")
        self.subnet_id = pulumi.Output.from_input(subnet_id)
        self.vnet_guid = network.get_virtual_network_output(
            resource_group_name=parts[4], virtual_network_name=parts[8], opts=pulumi.InvokeOutputOptions(parent=self)
        ).resource_guid
