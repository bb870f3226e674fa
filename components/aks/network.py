"""The network of nodes: one subnet of a virtual network of the stack's own, or subnets of an existing one.

Pods take no addresses from it (they live in the overlay), and there are no network security groups or routes here: AKS
makes what it needs in the node resource group. The way out is AKS's load balancer there, or a NAT gateway of the
stack's own. An existing network is looked at first, and left as it is, with its way out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
from pulumi_azure_native import network

from ..naming import AksNames
from ..problems import warnings_only
from ..replacement import Keeper
from ..settings import existing_vnet as judged
from ..settings.aks import AksSettings, network_of
from . import existing_network


@dataclass(frozen=True, kw_only=True)
class NetworkArgs:
    """Arguments of `Network`.

    Attributes:
        names: Physical names.
        resource_group: Name of the resource group for a network of the stack's own; empty for an existing one.
        location: Location of the same.
        settings: The stack's: with a subnet's range, which is made, or with the ID of one that exists and is not
            changed.
        keeper: Keeps the network of the stack's own.
        tags: For every resource.
    """

    names: AksNames
    resource_group: pulumi.Input[str]
    location: str
    settings: AksSettings
    keeper: Keeper
    tags: Mapping[str, str]


class Network(pulumi.ComponentResource):
    """The subnets, and the GUID of their virtual network.

    Attributes:
        subnet_id: The subnet of the system nodes, and of Karpenter's where a node class names no other.
        subnets: All subnets of nodes, those that node classes name too, by short, stable labels.
        vnet_id: The virtual network.
        vnet_guid: Azure's own name of it.
        egress: Public addresses by which nodes leave, where AKS does not know them by itself.
        ranges: Those of the virtual network.
        links_zone: Whether AKS ties a private DNS zone to it in the name of the cluster's identity.
    """

    subnet_id: pulumi.Output[str]
    subnets: Mapping[str, pulumi.Input[str]]
    vnet_id: pulumi.Output[str]
    vnet_guid: pulumi.Output[str]
    egress: Sequence[pulumi.Input[str]]
    ranges: Sequence[str]
    links_zone: bool

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:aks:Network", name, {}, opts)
        self.egress = []
        self.links_zone = judged.links_zone(args.settings, ())
        if args.settings.network.subnet_id is None:
            self._make(name, args)
        else:
            self._adopt(args.settings, args.settings.network.subnet_id)
        further = args.settings.further_subnet_ids
        self.subnets = {
            "subnet": self.subnet_id,
            **{f"subnet-{one.rpartition('/')[2].lower()}": one for one in further},
        }
        self.register_outputs({"subnetId": self.subnet_id, "vnetGuid": self.vnet_guid})

    def _kept(self, keeper: Keeper, name: str) -> pulumi.ResourceOptions:
        hooks = keeper.hooks(name, lost="the network of the cluster and of its nodes")
        return pulumi.ResourceOptions(parent=self, hooks=hooks)

    def _make(self, name: str, args: NetworkArgs) -> None:
        settings = args.settings.network
        vnet = network.VirtualNetwork(
            f"{name}-vnet",
            virtual_network_name=args.names.virtual_network,
            resource_group_name=args.resource_group,
            location=args.location,
            address_space=network.AddressSpaceArgs(address_prefixes=[str(settings.vnet_cidr)]),
            tags=args.tags,
            opts=self._kept(args.keeper, f"{name}-vnet"),
        )
        gateway = self._gateway(name, args) if settings.outbound_type == "userAssignedNATGateway" else None
        subnet = network.Subnet(
            f"{name}-nodes",
            subnet_name=args.names.node_subnet,
            virtual_network_name=vnet.name.apply(lambda made: made or ""),
            resource_group_name=args.resource_group,
            address_prefix=str(settings.subnet_cidr),
            nat_gateway=network.SubResourceArgs(id=gateway.id) if gateway else None,
            opts=self._kept(args.keeper, f"{name}-nodes"),
        )
        self.ranges = [str(settings.vnet_cidr)]
        self.subnet_id = subnet.id
        self.vnet_id = vnet.id
        self.vnet_guid = vnet.resource_guid

    def _gateway(self, name: str, args: NetworkArgs) -> network.NatGateway:
        """A NAT gateway with one address, in the zone that Azure chooses."""
        child = pulumi.ResourceOptions(parent=self)
        address = network.PublicIPAddress(
            f"{name}-nat-address",
            public_ip_address_name=args.names.nat_address,
            resource_group_name=args.resource_group,
            location=args.location,
            sku=network.PublicIPAddressSkuArgs(name=network.PublicIPAddressSkuName.STANDARD),
            public_ip_allocation_method=network.IPAllocationMethod.STATIC,
            tags=args.tags,
            opts=child,
        )
        self.egress = [address.ip_address.apply(lambda made: made or "")]
        return network.NatGateway(
            f"{name}-nat",
            nat_gateway_name=args.names.nat_gateway,
            resource_group_name=args.resource_group,
            location=args.location,
            sku=network.NatGatewaySkuArgs(name=network.NatGatewaySkuName.STANDARD),
            public_ip_addresses=[network.SubResourceArgs(id=address.id)],
            tags=args.tags,
            opts=child,
        )

    def _adopt(self, settings: AksSettings, subnet_id: str) -> None:
        """Take an existing network as it is, or stop with what is wrong with it."""
        found = existing_network.find(subnet_id, settings, pulumi.InvokeOptions(parent=self))
        for doubt in warnings_only(judged.problems(settings, found)):
            pulumi.log.warn(str(doubt), self)
        # Azure goes by the gateway of a subnet before any load balancer, whatever AKS is told.
        self.egress = found.egress([subnet_id, *settings.further_subnet_ids])
        self.ranges = [*map(str, found.space)]
        self.links_zone = judged.links_zone(settings, found.dns_servers)
        self.subnet_id = pulumi.Output.from_input(subnet_id)
        self.vnet_id = pulumi.Output.from_input(network_of(subnet_id))
        self.vnet_guid = pulumi.Output.from_input(found.guid)
