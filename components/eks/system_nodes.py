"""The system nodes: a small managed node group for what Karpenter itself needs in order to run.

Tainted CriticalAddonsOnly, so that everything that users deploy needs a node of Karpenter's. EKS reports the
group as created once its nodes are Ready, which takes a CNI: Cilium must be installed before.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pulumi
from pulumi_aws import ec2, eks, ssm

from ..documents import user_data
from ..documents.charts import SYSTEM_TAINT_KEY
from ..documents.proxy import NO_EGRESS, Egress
from ..naming import named
from ..settings.eks import SystemNodesSettings
from .node_role import NodeRole, NodeRoleArgs
from .scope import Scope

#: Where AWS publishes releases of an image, by its type.
_IMAGES: Final = {"AL2023_x86_64_STANDARD": "x86_64/standard", "AL2023_ARM_64_STANDARD": "arm64/standard"}


@dataclass(frozen=True, kw_only=True)
class SystemNodesArgs:
    """Arguments of `SystemNodes`.

    Attributes:
        scope: Whose it is.
        cluster_name: The cluster to join; an output, so that the group comes after the cluster.
        version: Kubernetes version of the nodes, the cluster's.
        subnet_ids: Private subnets.
        security_group_ids: The nodes' groups, the cluster's own among them; of an empty list EKS makes that one.
        placement: What decides on the subnets: the number of the stack's own, or IDs of existing ones.
        settings: Image and instance type must be of one architecture.
        egress: How programs on them get out.
        after: What must be there before the first node boots; the role and the template need not wait for it.
    """

    scope: Scope
    cluster_name: pulumi.Input[str]
    version: str
    subnet_ids: pulumi.Input[Sequence[pulumi.Input[str]]]
    security_group_ids: Sequence[pulumi.Input[str]] = ()
    placement: int | Sequence[str]
    settings: SystemNodesSettings
    egress: Egress = NO_EGRESS
    after: Sequence[pulumi.Resource] = ()


class SystemNodes(pulumi.ComponentResource):
    """Role, launch template and node group."""

    node_group_arn: pulumi.Output[str]

    def __init__(self, name: str, args: SystemNodesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:eks:SystemNodes", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        role = NodeRole(
            f"{name}-node",
            NodeRoleArgs(
                scope=args.scope,
                role_name=args.scope.names.system_node_role,
                description=f"System nodes of the EKS cluster {args.scope.names.cluster}",
            ),
            opts=child,
        )
        template = self._template(name, args)
        group = eks.NodeGroup(
            f"{name}-group",
            cluster_name=args.cluster_name,
            node_group_name=_group_name(args.settings, args.placement),
            node_role_arn=role.arn,
            subnet_ids=args.subnet_ids,
            version=args.version,
            # Of one that is not named EKS takes the newest at creation, and none after that.
            release_version=args.settings.release_version or self._recommended(args),
            ami_type=args.settings.ami_type,
            instance_types=[args.settings.instance_type],
            scaling_config=eks.NodeGroupScalingConfigArgs(
                min_size=args.settings.min_size,
                desired_size=args.settings.desired_size,
                max_size=args.settings.max_size,
            ),
            update_config=eks.NodeGroupUpdateConfigArgs(max_unavailable=1),
            launch_template=eks.NodeGroupLaunchTemplateArgs(id=template.id, version=template.latest_version.apply(str)),
            taints=[eks.NodeGroupTaintArgs(key=SYSTEM_TAINT_KEY, value="true", effect="NO_SCHEDULE")],
            tags=args.scope.tags,
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[role, *args.after],
                # CoreDNS and Karpenter's controllers run nowhere else: the old group drains when the new one is Ready.
                delete_before_replace=False,
                custom_timeouts=pulumi.CustomTimeouts(delete="30m"),
            ),
        )
        self.node_group_arn = group.arn
        self.register_outputs({"nodeGroupArn": self.node_group_arn})

    def _template(self, name: str, args: SystemNodesArgs) -> ec2.LaunchTemplate:
        instance_tags = named(f"{args.scope.names.cluster}-system", args.scope.tags)
        # Where it names no security group, EKS gives the nodes the cluster's own, which Karpenter's nodes carry too.
        return ec2.LaunchTemplate(
            f"{name}-template",
            name=args.scope.names.system_launch_template,
            update_default_version=True,
            vpc_security_group_ids=list(args.security_group_ids) or None,
            metadata_options=ec2.LaunchTemplateMetadataOptionsArgs(
                http_endpoint="enabled",
                http_tokens="required",
                # One hop ends at the node: pods cannot take the node's credentials.
                http_put_response_hop_limit=1,
            ),
            block_device_mappings=[
                ec2.LaunchTemplateBlockDeviceMappingArgs(
                    device_name="/dev/xvda",
                    ebs=ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
                        volume_size=args.settings.disk_size,
                        volume_type="gp3",
                        encrypted="true",
                        delete_on_termination="true",
                    ),
                )
            ],
            # EKS puts the NodeConfig with which they join behind it.
            user_data=_encoded(user_data.al2023(args.egress)) if args.egress.for_nodes else None,
            tag_specifications=[
                ec2.LaunchTemplateTagSpecificationArgs(resource_type=kind, tags=instance_tags)
                for kind in ("instance", "volume")
            ],
            tags=args.scope.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _recommended(self, args: SystemNodesArgs) -> pulumi.Output[str]:
        folder = f"/aws/service/eks/optimized-ami/{args.version}/amazon-linux-2023/{_IMAGES[args.settings.ami_type]}"
        # `value` would be a secret, and with it all inputs of the node group.
        release: pulumi.Output[str] = ssm.get_parameter_output(
            name=f"{folder}/recommended/release_version", opts=pulumi.InvokeOutputOptions(parent=self)
        ).insecure_value
        return release


def _group_name(settings: SystemNodesSettings, placement: int | Sequence[str]) -> str:
    """Return a name that changes with what EKS fixes when it makes a group, so that two can stand side by side."""
    fixed = [settings.instance_type, settings.ami_type, placement if isinstance(placement, int) else sorted(placement)]
    return f"system-{hashlib.sha256(json.dumps(fixed).encode()).hexdigest()[:8]}"


def _encoded(text: str) -> str:
    """User data as a launch template has it."""
    return base64.b64encode(text.encode()).decode()
