"""EKS add-ons that the environment cannot do without: CoreDNS and the Pod Identity agent.

Both need nodes. kube-proxy and the VPC CNI are missing on purpose: Cilium takes their place. What a cluster can do
without is in `extra_addons`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
from pulumi_aws import eks

from ..settings.eks import AddonName


@dataclass(frozen=True, kw_only=True)
class AddonsArgs:
    """Arguments of `Addons`.

    Attributes:
        cluster_name: The cluster.
        kubernetes_version: Its version, which is known before it is there.
        versions: Versions of add-ons that are not to be the ones that EKS has as default for the cluster's version.
        pod_identity_agent: Whether the Pod Identity agent is wanted.
        tags: For every resource.
    """

    cluster_name: pulumi.Input[str]
    kubernetes_version: str
    versions: Mapping[AddonName, str]
    pod_identity_agent: bool
    tags: Mapping[str, str]


class Addons(pulumi.ComponentResource):
    """One add-on each. EKS never updates them, nor when the cluster is upgraded; so each `up` names their versions."""

    def __init__(self, name: str, args: AddonsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:eks:Addons", name, {}, opts)
        wanted: list[AddonName] = ["coredns"]
        if args.pod_identity_agent:
            wanted.append("eks-pod-identity-agent")
        for addon in wanted:
            eks.Addon(
                f"{name}-{addon}",
                cluster_name=args.cluster_name,
                addon_name=addon,
                addon_version=addon_version(addon, args.versions, args.kubernetes_version, self),
                # What somebody changed by hand stays as it is; otherwise EKS would refuse the update.
                resolve_conflicts_on_update="PRESERVE",
                tags=args.tags,
                opts=pulumi.ResourceOptions(parent=self),
            )
        self.register_outputs({})


def addon_version(
    addon: AddonName, versions: Mapping[AddonName, str], kubernetes_version: str, parent: pulumi.Resource
) -> pulumi.Input[str]:
    """The version of an add-on: the one that is named, or EKS's default for the cluster's version."""
    return (
        versions.get(addon)
        or eks.get_addon_version_output(
            addon_name=addon, kubernetes_version=kubernetes_version, opts=pulumi.InvokeOutputOptions(parent=parent)
        ).version
    )
