"""VPC endpoints in the stack's own VPC: what its nodes reach of AWS without a way out.

Interface endpoints stand in each subnet of nodes and answer to the services' usual names (private DNS). Their security
group admits the cluster's own group on 443, and nothing else: a node class that selects other groups needs a rule of
its own there. They come before the first node, which pulls its images through them, and go after the last.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import pulumi
import pulumi_aws as aws
from pulumi_aws import ec2

from ..documents.endpoints import GATEWAYS, EndpointService, endpoint_policy
from ..naming import named
from .scope import Scope

_HTTPS: Final = 443


@dataclass(frozen=True, kw_only=True)
class EndpointsArgs:
    """Arguments of `Endpoints`.

    Attributes:
        scope: Whose it is.
        vpc_id: The VPC.
        subnet_ids: Subnets of nodes, one a zone.
        route_table_ids: Route tables of these subnets.
        nodes_group_id: The security group that all nodes carry.
        services: For example `ecr.api`.
    """

    scope: Scope
    vpc_id: pulumi.Input[str]
    subnet_ids: pulumi.Input[Sequence[str]]
    route_table_ids: pulumi.Input[Sequence[str]]
    nodes_group_id: pulumi.Input[str]
    services: Sequence[EndpointService]


class Endpoints(pulumi.ComponentResource):
    """An endpoint for each service, and the security group of those that have addresses."""

    def __init__(self, name: str, args: EndpointsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:eks:Endpoints", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        group = ec2.SecurityGroup(
            f"{name}-group",
            name=args.scope.names.endpoints_group,
            description=f"Nodes of the EKS cluster {args.scope.names.cluster} to the VPC endpoints of AWS services",
            vpc_id=args.vpc_id,
            tags=named(args.scope.names.endpoints_group, args.scope.tags),
            opts=child,
        )
        admitted = aws.vpc.SecurityGroupIngressRule(
            f"{name}-nodes",
            security_group_id=group.id,
            referenced_security_group_id=args.nodes_group_id,
            ip_protocol="tcp",
            from_port=_HTTPS,
            to_port=_HTTPS,
            tags=args.scope.tags,
            opts=child,
        )
        for service in args.services:
            gateway = service in GATEWAYS
            ec2.VpcEndpoint(
                f"{name}-{service}",
                vpc_id=args.vpc_id,
                service_name=f"com.amazonaws.{args.scope.region}.{service}",
                vpc_endpoint_type="Gateway" if gateway else "Interface",
                route_table_ids=args.route_table_ids if gateway else None,
                subnet_ids=None if gateway else args.subnet_ids,
                security_group_ids=None if gateway else [group.id],
                private_dns_enabled=None if gateway else True,
                policy=pulumi.Output.from_input(args.scope.account_id).apply(partial(_policy, service)),
                tags=named(f"{args.scope.names.cluster}-{service}", args.scope.tags),
                opts=pulumi.ResourceOptions(parent=self, depends_on=[admitted]),
            )
        self.register_outputs({"securityGroupId": group.id})


def _policy(service: EndpointService, account_id: str) -> str | None:
    policy = endpoint_policy(service, account_id)
    return json.dumps(policy) if policy else None
