"""The VPC of an EKS cluster: one of the stack's own, or an existing one.

The stack's own has public and private subnets over several zones, and a way out. Nodes live in private subnets, and
only those carry Karpenter's discovery tag: a tagged public subnet would give it nodes without a route to the API
server, or with a public address. Where the settings say that nothing leads out, there is neither a gateway nor a public
subnet. Peering is left to those who want it; routes are separate resources so that they can be added.

An existing VPC is looked at first, and left as it is: Karpenter takes its subnets by their IDs, or by tags that they
have. Only where the settings say so its subnets get the discovery tag.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pulumi
import pulumi_aws as aws
from pulumi_aws import ec2
from pydantic.alias_generators import to_camel

from ..documents import subnets
from ..naming import DISCOVERY_TAG, named
from ..problems import SettingsError, finding, key_of, warnings_only
from ..replacement import Keeper
from ..settings import existing_network as judged
from ..settings.eks import EksSettings
from ..settings.eks_identity import EksBefore, other_control_plane_zones
from . import existing_network
from .lookups import name_missing_permission

#: The tag by which load balancers without a public address find their subnets.
_INTERNAL: Final = "kubernetes.io/role/internal-elb"


@dataclass(frozen=True, kw_only=True)
class NetworkArgs:
    """Arguments of `Network`.

    Attributes:
        settings: The stack's. Of a number of zones, those are taken that the stack has already, then those that offer
            EKS and are first by name.
        keeper: Keeps the stack's own VPC, its subnets, and the zones of a control plane in an existing one.
        before: What the stack has.
    """

    settings: EksSettings
    keeper: Keeper
    before: EksBefore


class Network(pulumi.ComponentResource):
    """VPC, subnets, gateways and routes; the default security group of the stack's own VPC lets nothing in or out.

    Attributes:
        vpc_id: The VPC.
        private_subnet_ids: Subnets of the nodes.
        public_subnet_ids: Subnets of NAT gateways and public load balancers; empty for an existing VPC.
        control_plane_subnet_ids: Subnets of the control plane's interfaces, in two zones at least.
        placement: What decides on the subnets of nodes: their number in a VPC of the stack's own, or their IDs.
        route_table_ids: Route tables of the nodes' subnets; empty for an existing VPC.
        isolated: Whether a subnet of nodes has no way out, so that its nodes reach what has a VPC endpoint alone.
        endpoints: Services that an existing VPC without a way out has endpoints of.
        subnet_terms: By which Karpenter finds the subnets of nodes, as `subnetSelectorTerms` has it.
        security_group_terms: The same for `securityGroupSelectorTerms`.
    """

    vpc_id: pulumi.Output[str]
    private_subnet_ids: pulumi.Output[list[str]]
    public_subnet_ids: pulumi.Output[list[str]]
    control_plane_subnet_ids: pulumi.Output[list[str]]
    route_table_ids: pulumi.Output[list[str]]
    placement: int | Sequence[str]
    isolated: bool
    endpoints: Collection[str]
    subnet_terms: Sequence[Mapping[str, Any]]
    security_group_terms: Sequence[Mapping[str, Any]]

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:eks:Network", name, {}, opts)
        network = args.settings.network
        by_tag = {"tags": {DISCOVERY_TAG: args.settings.name}}
        self.subnet_terms = [by_tag]
        # The cluster's own group carries the tag in any case: EKS makes it for this cluster.
        self.security_group_terms = [by_tag, *({"id": group} for group in network.node_security_group_ids)]
        self.isolated = network.isolated
        self.endpoints = ()
        if network.vpc_id is None:
            self._make(name, args)
        else:
            self._adopt(name, args, network.vpc_id)
        self.register_outputs(
            {
                "vpcId": self.vpc_id,
                "privateSubnetIds": self.private_subnet_ids,
                "publicSubnetIds": self.public_subnet_ids,
            }
        )

    def _adopt(self, name: str, args: NetworkArgs, vpc_id: str) -> None:
        """Take an existing VPC as it is, or stop with what is wrong with it."""
        settings, network = args.settings, args.settings.network
        with name_missing_permission("network", "vpcId", vpc_id, "whether the cluster can work in it"):
            found = existing_network.find(vpc_id, network, settings.name, pulumi.InvokeOptions(parent=self))
        for doubt in warnings_only(judged.problems(settings, found)):
            pulumi.log.warn(str(doubt), self)
        self._keep_zones(args, {subnet.zone for subnet in found.control_plane_subnets(network)})
        self.isolated = any(not subnet.leads_out for subnet in found.node_subnets(network))
        self.endpoints = found.endpoints
        subnet_ids = [subnet.id for subnet in found.node_subnets(network)]
        self.placement = subnet_ids
        if network.tag_subnets:
            for subnet_id in subnet_ids:
                ec2.Tag(
                    f"{name}-discovery-{subnet_id}",
                    resource_id=subnet_id,
                    key=DISCOVERY_TAG,
                    value=settings.name,
                    opts=pulumi.ResourceOptions(parent=self),
                )
        elif network.subnet_tags:
            self.subnet_terms = [{"tags": dict(network.subnet_tags)}]
        else:
            self.subnet_terms = [{"id": subnet_id} for subnet_id in subnet_ids]
        self.vpc_id = pulumi.Output.from_input(vpc_id)
        self.private_subnet_ids = pulumi.Output.from_input(subnet_ids)
        self.public_subnet_ids = pulumi.Output.from_input([])
        self.route_table_ids = pulumi.Output.from_input([])
        self.control_plane_subnet_ids = pulumi.Output.from_input(
            [subnet.id for subnet in found.control_plane_subnets(network)]
        )

    def _keep_zones(self, args: NetworkArgs, wanted: set[str]) -> None:
        """Stop where the control plane of a cluster that the stack has would move to other zones."""
        was = args.before.control_plane_subnet_ids
        if not was:
            return
        network, ask = args.settings.network, pulumi.InvokeOptions(parent=self)
        zones = {ec2.get_subnet(id=subnet, opts=ask).availability_zone for subnet in was}
        named = next(
            (one for one in ("control_plane_subnet_ids", "subnet_ids") if getattr(network, one)), "subnet_tags"
        )
        args.keeper.refuse(other_control_plane_zones(key_of("network", to_camel(named)), was, zones, wanted))

    def _make(self, name: str, args: NetworkArgs) -> None:
        settings, kept = args.settings, partial(self._kept, args.keeper)
        child = pulumi.ResourceOptions(parent=self)
        label, tags, network = settings.name, settings.tags, settings.network
        vpc = self._vpc(name, settings, kept(f"{name}-vpc"))
        public_default = None if network.isolated else self._internet(name, settings, vpc)

        zones = self._zones(network.zones, args.before.zones)
        public: list[ec2.Subnet] = []
        private: list[ec2.Subnet] = []
        private_routes: list[ec2.RouteTable] = []
        ways_out: list[ec2.Route] = []
        for index, (zone, cidr) in enumerate(zip(zones, subnets.plan(str(network.vpc_cidr), len(zones)), strict=True)):
            if public_default:
                outside = ec2.Subnet(
                    f"{name}-public-{index}",
                    vpc_id=vpc.id,
                    availability_zone=zone,
                    cidr_block=cidr.public,
                    tags={**named(f"{label}-public-{index}", tags), "kubernetes.io/role/elb": "1"},
                    opts=kept(f"{name}-public-{index}"),
                )
                ec2.RouteTableAssociation(
                    f"{name}-public-{index}",
                    subnet_id=outside.id,
                    route_table_id=public_default.route_table_id,
                    opts=child,
                )
                public.append(outside)
            if index == 0 or network.nat_gateways == "per-zone":
                table = self._private_routes(f"{name}-{index}", f"{label}-{index}", tags, vpc)
                private_routes.append(table)
                if public_default:
                    way = self._way_out(f"{name}-{index}", f"{label}-{index}", tags, table, outside, public_default)
                    ways_out.append(way)
            inside = ec2.Subnet(
                f"{name}-private-{index}",
                vpc_id=vpc.id,
                availability_zone=zone,
                cidr_block=cidr.private,
                tags=named(f"{label}-private-{index}", tags) | {_INTERNAL: "1", DISCOVERY_TAG: label},
                opts=kept(f"{name}-private-{index}"),
            )
            ec2.RouteTableAssociation(
                f"{name}-private-{index}",
                subnet_id=inside.id,
                route_table_id=private_routes[-1].id,
                # With another number of gateways a subnet gets another table, which has to lead out by then.
                opts=pulumi.ResourceOptions(parent=self, depends_on=ways_out[-1:]),
            )
            private.append(inside)

        self.placement = len(zones)
        self.vpc_id = vpc.id
        self.private_subnet_ids = pulumi.Output.all(*[subnet.id for subnet in private])
        self.public_subnet_ids = pulumi.Output.all(*[subnet.id for subnet in public])
        self.route_table_ids = pulumi.Output.all(*[table.id for table in private_routes])
        self.control_plane_subnet_ids = self.private_subnet_ids

    def _vpc(self, name: str, settings: EksSettings, kept: pulumi.ResourceOptions) -> ec2.Vpc:
        label, tags = settings.name, settings.tags
        vpc = ec2.Vpc(
            f"{name}-vpc",
            cidr_block=str(settings.network.vpc_cidr),
            # The cluster's private endpoint is a name in a private zone; nodes resolve it only with both on.
            enable_dns_support=True,
            enable_dns_hostnames=True,
            tags=named(label, tags),
            opts=kept,
        )
        # EC2 makes it with the VPC, open between its members, and gives it to whatever names no group of its own.
        child = pulumi.ResourceOptions(parent=self)
        ec2.DefaultSecurityGroup(f"{name}-closed", vpc_id=vpc.id, tags=named(f"{label}-unused", tags), opts=child)
        return vpc

    def _kept(self, keeper: Keeper, name: str) -> pulumi.ResourceOptions:
        hooks = keeper.hooks(name, lost="the network of the cluster and of its nodes")
        return pulumi.ResourceOptions(parent=self, hooks=hooks)

    def _zones(self, zones: int | Sequence[str], before: Sequence[str]) -> list[pulumi.Input[str]]:
        if not isinstance(zones, int):
            self._refuse_zones_without_eks([zone for zone in zones if zone not in before])
            return list(zones)
        if len(before) >= zones:
            return list(before[:zones])
        found = aws.get_availability_zones_output(
            state="available",
            # Local zones take neither control planes nor NAT gateways.
            filters=[{"name": "opt-in-status", "values": ["opt-in-not-required"]}],
            exclude_zone_ids=list(subnets.ZONES_WITHOUT_EKS),
            opts=pulumi.InvokeOutputOptions(parent=self),
        ).names
        # Which zones AWS offers changes, and a subnet does not move.
        return [*before, *(found.apply(partial(_nth_zone, index, before)) for index in range(len(before), zones))]

    def _refuse_zones_without_eks(self, zones: Sequence[str]) -> None:
        """Stop where EKS has no control plane, which only the account knows: its names of zones are its own."""
        if not zones:
            return
        ask = pulumi.InvokeOptions(parent=self)
        offered = aws.get_availability_zones(exclude_zone_ids=list(subnets.ZONES_WITHOUT_EKS), opts=ask).names
        if wrong := [zone for zone in zones if zone not in offered]:
            raise SettingsError(
                [
                    finding(
                        "zones-without-eks",
                        ("network", "zones"),
                        list(zones),
                        wrong=wrong,
                        zones_without_eks=subnets.ZONES_WITHOUT_EKS,
                        offered=sorted(offered),
                    )
                ]
            )

    def _internet(self, name: str, settings: EksSettings, vpc: ec2.Vpc) -> ec2.Route:
        """An internet gateway, and the route to it in a table for public subnets."""
        child, label, tags = pulumi.ResourceOptions(parent=self), settings.name, settings.tags
        internet = ec2.InternetGateway(f"{name}-internet", vpc_id=vpc.id, tags=named(label, tags), opts=child)
        routes = ec2.RouteTable(f"{name}-public", vpc_id=vpc.id, tags=named(f"{label}-public", tags), opts=child)
        return ec2.Route(
            f"{name}-public-default",
            route_table_id=routes.id,
            destination_cidr_block="0.0.0.0/0",
            gateway_id=internet.id,
            opts=child,
        )

    def _private_routes(self, name: str, label: str, tags: Mapping[str, str], vpc: ec2.Vpc) -> ec2.RouteTable:
        """A route table for private subnets."""
        child = pulumi.ResourceOptions(parent=self)
        return ec2.RouteTable(f"{name}-private", vpc_id=vpc.id, tags=named(f"{label}-private", tags), opts=child)

    def _way_out(
        self,
        name: str,
        label: str,
        tags: Mapping[str, str],
        routes: ec2.RouteTable,
        subnet: ec2.Subnet,
        public_default: ec2.Route,
    ) -> ec2.Route:
        """Return the default route to a NAT gateway in a public subnet."""
        child = pulumi.ResourceOptions(parent=self)
        address = ec2.Eip(f"{name}-nat", domain="vpc", tags=named(f"{label}-nat", tags), opts=child)
        # Without the route of its own subnet the gateway comes up and leads nowhere.
        nat = ec2.NatGateway(
            f"{name}-nat",
            allocation_id=address.id,
            subnet_id=subnet.id,
            tags=named(label, tags),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[public_default]),
        )
        return ec2.Route(
            f"{name}-private-default",
            route_table_id=routes.id,
            destination_cidr_block="0.0.0.0/0",
            nat_gateway_id=nat.id,
            opts=child,
        )


def _nth_zone(index: int, before: Sequence[str], names: Sequence[str]) -> str:
    """The zone of a subnet, by its index, where the first ones are in the zones `before`."""
    ordered = [*before, *sorted({*names} - {*before})]
    if index >= len(ordered):
        raise pulumi.RunError(
            f"karpstack:network.zones asks for at least {index + 1} zones, but this region offers EKS in "
            f"{len(ordered)} ({', '.join(ordered)}); ask for fewer zones or name them"
        )
    return ordered[index]
