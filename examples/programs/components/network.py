"""The network: public subnets for load balancers, private ones for nodes, one NAT gateway."""

import ipaddress

import pulumi
import pulumi_aws as aws


class Network(pulumi.ComponentResource):
    """A VPC with a public and a private subnet in each zone."""

    def __init__(self, name: str, cidr: str, zones: int, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("platform:network:Network", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        ranges = list(ipaddress.ip_network(cidr).subnets(new_prefix=20))
        self.vpc = aws.ec2.Vpc(name, cidr_block=cidr, enable_dns_hostnames=True, opts=child)
        gateway = aws.ec2.InternetGateway(name, vpc_id=self.vpc.id, opts=child)
        self.discovery = {"karpenter.sh/discovery": name}
        self.public, self.private, self.routes = [], [], []
        names = aws.get_availability_zones(state="available", opts=pulumi.InvokeOptions(parent=self)).names
        for i, zone in enumerate(names[:zones]):
            for kind, subnets, number in (("public", self.public, i), ("private", self.private, i + zones)):
                subnets.append(
                    aws.ec2.Subnet(
                        f"{name}-{kind}-{zone}",
                        vpc_id=self.vpc.id,
                        cidr_block=str(ranges[number]),
                        availability_zone=zone,
                        map_public_ip_on_launch=kind == "public",
                        tags=self.discovery if kind == "private" else {"kubernetes.io/role/elb": "1"},
                        opts=child,
                    )
                )
        address = aws.ec2.Eip(name, domain="vpc", opts=child)
        nat = aws.ec2.NatGateway(
            name,
            subnet_id=self.public[0].id,
            allocation_id=address.id,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[gateway]),
        )
        self._route(f"{name}-public", self.public, gateway_id=gateway.id)
        self._route(f"{name}-private", self.private, nat_gateway_id=nat.id)
        self.register_outputs({"vpcId": self.vpc.id})

    def _route(self, name: str, subnets: list[aws.ec2.Subnet], **target: pulumi.Input[str]) -> None:
        child = pulumi.ResourceOptions(parent=self)
        table = aws.ec2.RouteTable(name, vpc_id=self.vpc.id, opts=child)
        self.routes.append(
            aws.ec2.Route(name, route_table_id=table.id, destination_cidr_block="0.0.0.0/0", opts=child, **target)
        )
        for i, subnet in enumerate(subnets):
            self.routes.append(
                aws.ec2.RouteTableAssociation(f"{name}-{i}", subnet_id=subnet.id, route_table_id=table.id, opts=child)
            )
