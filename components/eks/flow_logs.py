"""Flow logs of the VPC: who talked to whom over its interfaces, in a log group of their own.

They are paid for by the gigabyte, so they are a choice. What pods say to each other is inside Cilium's tunnel and shows
as traffic between nodes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import pulumi
from pulumi_aws import cloudwatch, ec2, iam

from ..documents.iam import flow_log_delivery, flow_log_trust
from .scope import Scope


@dataclass(frozen=True, kw_only=True)
class FlowLogsArgs:
    """Arguments of `FlowLogs`.

    Attributes:
        scope: Whose it is.
        vpc_id: The VPC.
        retention_days: How long they are kept.
    """

    scope: Scope
    vpc_id: pulumi.Input[str]
    retention_days: int


class FlowLogs(pulumi.ComponentResource):
    """The log group, the role with which the VPC writes to it, and the flow log."""

    def __init__(self, name: str, args: FlowLogsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:eks:FlowLogs", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        group = cloudwatch.LogGroup(
            f"{name}-group",
            name=args.scope.names.flow_log_group,
            retention_in_days=args.retention_days,
            tags=args.scope.tags,
            opts=child,
        )
        where = pulumi.Output.all(partition=args.scope.partition, account_id=args.scope.account_id)
        role = iam.Role(
            f"{name}-role",
            name=args.scope.names.flow_log_role,
            description=f"Flow logs of the VPC of the EKS cluster {args.scope.names.cluster}",
            assume_role_policy=where.apply(lambda known: json.dumps(flow_log_trust(region=args.scope.region, **known))),
            tags=args.scope.tags,
            opts=child,
        )
        policy = iam.Policy(
            f"{name}-delivery",
            name=args.scope.names.flow_log_role,
            description=f"Flow logs of the VPC of the EKS cluster {args.scope.names.cluster}",
            policy=where.apply(
                lambda known: json.dumps(
                    flow_log_delivery(region=args.scope.region, group=args.scope.names.flow_log_group, **known)
                )
            ),
            tags=args.scope.tags,
            opts=child,
        )
        attachment = iam.RolePolicyAttachment(f"{name}-delivery", role=role.name, policy_arn=policy.arn, opts=child)
        ec2.FlowLog(
            f"{name}-log",
            vpc_id=args.vpc_id,
            traffic_type="ALL",
            log_destination=group.arn,
            iam_role_arn=role.arn,
            tags=args.scope.tags,
            # EC2 makes it in any case; without the right it only ever says "Access error".
            opts=pulumi.ResourceOptions(parent=self, depends_on=[attachment]),
        )
        self.register_outputs({})
