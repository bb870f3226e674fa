"""EKS add-ons that the environment cannot do without: CoreDNS and the Pod Identity agent.

Both need nodes. kube-proxy and the VPC CNI are missing on purpose: Cilium takes their place. There is no EBS
CSI driver either, so the cluster has no StorageClass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
from pulumi_aws import eks


@dataclass(frozen=True, kw_only=True)
class AddonsArgs:
    """Arguments of `Addons`: the cluster, whether the Pod Identity agent is wanted, and tags."""

    cluster_name: pulumi.Input[str]
    pod_identity_agent: bool
    tags: Mapping[str, str]


class Addons(pulumi.ComponentResource):
    """One add-on each, in the version that EKS prefers for the cluster's."""

    def __init__(self, name: str, args: AddonsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:eks:Addons", name, {}, opts)
        wanted = ["coredns"] + (["eks-pod-identity-agent"] if args.pod_identity_agent else [])
        for addon in wanted:
            eks.Addon(
                f"{name}-{addon}",
                cluster_name=args.cluster_name,
                addon_name=addon,
                tags=args.tags,
                opts=pulumi.ResourceOptions(parent=self),
            )
        self.register_outputs({})
