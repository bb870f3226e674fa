"""IAM role of EC2 nodes. It holds what a node needs and no more: pods have identities of their own.

The managed node group and Karpenter have one each: EKS makes the access entry of a managed node group's role by
itself, and a second entry for the same role would be refused.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_aws import iam

from ..documents.iam import NODE_MANAGED_POLICIES, service_trust
from ..documents.partitions import ec2_principal
from .scope import Scope


@dataclass(frozen=True, kw_only=True)
class NodeRoleArgs:
    """Arguments of `NodeRole`.

    Attributes:
        scope: Whose it is.
        role_name, description: Of the role.
        more_policies: Names of AWS's own policies beside those that every node has.
        instance_profile: Whether there is one of the same name: Karpenter makes its own where it reaches IAM.
    """

    scope: Scope
    role_name: str
    description: str
    more_policies: Sequence[str] = ()
    instance_profile: bool = False


class NodeRole(pulumi.ComponentResource):
    """The role with AWS's managed policies for nodes."""

    name: pulumi.Output[str]
    arn: pulumi.Output[str]

    def __init__(self, name: str, args: NodeRoleArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:eks:NodeRole", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        role = iam.Role(
            f"{name}-role",
            name=args.role_name,
            description=args.description,
            assume_role_policy=json.dumps(service_trust(ec2_principal(args.scope.region))),
            tags=args.scope.tags,
            opts=child,
        )
        for policy in (*NODE_MANAGED_POLICIES, *args.more_policies):
            iam.RolePolicyAttachment(
                f"{name}-{policy}",
                role=role.name,
                policy_arn=pulumi.Output.concat("arn:", args.scope.partition, ":iam::aws:policy/", policy),
                opts=child,
            )
        if args.instance_profile:
            iam.InstanceProfile(
                f"{name}-profile", name=args.role_name, role=role.name, tags=args.scope.tags, opts=child
            )
        self.name = role.name
        self.arn = role.arn
        self.register_outputs({"name": self.name, "arn": self.arn})
