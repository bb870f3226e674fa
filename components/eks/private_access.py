"""Who reaches the API server through the VPC: a security group for the control plane's interfaces.

The group that EKS makes admits its own members alone, the nodes. A rule in that group would come too late: whoever
makes the cluster from a range of the company talks to the API server as soon as it is there. So this group is made
before, and handed to EKS with the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Final

import pulumi
import pulumi_aws as aws
from pulumi_aws import ec2

from ..naming import EksNames, named

_HTTPS: Final = 443


@dataclass(frozen=True, kw_only=True)
class PrivateAccessArgs:
    """Arguments of `PrivateAccess`.

    Attributes:
        names: Physical names.
        vpc_id: The cluster's VPC.
        cidrs: Ranges that may reach the API server.
        tags: For every resource.
    """

    names: EksNames
    vpc_id: pulumi.Input[str]
    cidrs: Sequence[IPv4Network]
    tags: Mapping[str, str]


class PrivateAccess(pulumi.ComponentResource):
    """The group, and a rule for each range."""

    security_group_id: pulumi.Output[str]

    def __init__(self, name: str, args: PrivateAccessArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:eks:PrivateAccess", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        tags = named(args.names.private_access_group, args.tags)
        group = ec2.SecurityGroup(
            f"{name}-group",
            name=args.names.private_access_group,
            description=f"Who reaches the API server of the EKS cluster {args.names.cluster} through the VPC",
            vpc_id=args.vpc_id,
            tags=tags,
            opts=child,
        )
        for cidr in args.cidrs:
            aws.vpc.SecurityGroupIngressRule(
                f"{name}-{cidr}",
                security_group_id=group.id,
                cidr_ipv4=str(cidr),
                ip_protocol="tcp",
                from_port=_HTTPS,
                to_port=_HTTPS,
                tags=args.tags,
                opts=child,
            )
        self.security_group_id = group.id
        self.register_outputs({"securityGroupId": self.security_group_id})
