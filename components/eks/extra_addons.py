"""What runs beside Karpenter, where it is asked for: EBS CSI driver, metrics server, AWS Load Balancer Controller.

They come before the NodePools and go after them: Karpenter keeps a node until its volumes are detached, which the
driver does, and what the driver and the controller have made in the account only they take back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pulumi
from pulumi_aws import eks
from pulumi_kubernetes.helm.v3 import Release, RepositoryOptsArgs

from .. import versions
from ..documents import addons as documents
from ..documents import images
from ..documents.charts import Values
from ..documents.iam import EBS_CSI_MANAGED_POLICIES, Document
from ..documents.load_balancer_policy import LOAD_BALANCER_POLICIES, LoadBalancerScope
from ..documents.proxy import NO_EGRESS, Egress
from ..naming import ADDON_NAMESPACE, EBS_CSI_SERVICE_ACCOUNT, LOAD_BALANCER_SERVICE_ACCOUNT
from ..settings.eks import AddonName, AddonsSettings
from .addons import addon_version
from .pod_role import PodRole, PodRoleArgs
from .scope import Scope

EBS_CSI_ADDON: Final[AddonName] = "aws-ebs-csi-driver"


@dataclass(frozen=True, kw_only=True)
class ExtraAddonsArgs:
    """Arguments of `ExtraAddons`.

    Attributes:
        scope: Whose it is.
        settings: Which of them there are.
        cluster_name: The cluster.
        kubernetes_version: Its version, which is known before it is there.
        addon_versions: Versions of EKS's add-ons that are not to be EKS's defaults.
        vpc_id: The cluster's.
        replicas: At most the number of system nodes that are there first.
        isolated: Whether pods reach what has a VPC endpoint alone.
        mirrors: What stands in place of registries of images.
        egress: How pods that call AWS get out.
    """

    scope: Scope
    settings: AddonsSettings
    cluster_name: pulumi.Input[str]
    kubernetes_version: str
    addon_versions: Mapping[AddonName, str]
    vpc_id: pulumi.Input[str]
    replicas: int
    isolated: bool
    mirrors: Mapping[str, str]
    egress: Egress = NO_EGRESS


class ExtraAddons(pulumi.ComponentResource):
    """Those of the three that the settings ask for; what is in the cluster has the provider of the options."""

    def __init__(self, name: str, args: ExtraAddonsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:eks:ExtraAddons", name, {}, opts)
        self._stem = name
        self._args = args
        if args.settings.ebs_csi:
            self._ebs_csi()
        if args.settings.metrics_server:
            self._release(
                versions.METRICS_SERVER_CHART,
                versions.METRICS_SERVER,
                versions.METRICS_SERVER_REPOSITORY,
                images.mirrored(documents.metrics_server(replicas=args.replicas), images.METRICS_SERVER, args.mirrors),
            )
        if args.settings.load_balancer_controller:
            self._load_balancer_controller()
        self.register_outputs({})

    def _ebs_csi(self) -> None:
        # The SDK needs a quarter of a second for it, and most stacks have no use for it.
        from pulumi_kubernetes.storage.v1 import StorageClass

        args = self._args
        role = self._role(
            "ebs-csi",
            args.scope.names.ebs_csi_role,
            f"EBS CSI driver of the EKS cluster {args.scope.names.cluster}",
            EBS_CSI_SERVICE_ACCOUNT,
            managed_policies=EBS_CSI_MANAGED_POLICIES,
        )
        driver = eks.Addon(
            f"{self._stem}-{EBS_CSI_ADDON}",
            cluster_name=args.cluster_name,
            addon_name=EBS_CSI_ADDON,
            addon_version=addon_version(EBS_CSI_ADDON, args.addon_versions, args.kubernetes_version, self),
            configuration_values=json.dumps(
                documents.ebs_csi_driver(region=args.scope.region, tags=args.scope.tags, egress=args.egress)
            ),
            resolve_conflicts_on_update="PRESERVE",
            tags=args.scope.tags,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[role]),
        )
        StorageClass(
            f"{self._stem}-storage-class",
            **documents.storage_class(),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[driver]),
        )

    def _load_balancer_controller(self) -> None:
        args = self._args
        scope = pulumi.Output.all(partition=args.scope.partition, account_id=args.scope.account_id).apply(
            lambda known: LoadBalancerScope(region=args.scope.region, cluster_name=args.scope.names.cluster, **known)
        )
        role = self._role(
            "load-balancers",
            args.scope.names.load_balancer_role,
            f"AWS Load Balancer Controller of the EKS cluster {args.scope.names.cluster}",
            LOAD_BALANCER_SERVICE_ACCOUNT,
            policies={
                args.scope.names.load_balancer_policy(subject): scope.apply(document)
                for subject, document in LOAD_BALANCER_POLICIES.items()
            },
        )
        values = documents.load_balancer_controller(
            cluster_name=args.cluster_name,
            region=args.scope.region,
            vpc_id=args.vpc_id,
            service_account=LOAD_BALANCER_SERVICE_ACCOUNT,
            replicas=args.replicas,
            isolated=args.isolated,
            tags=args.scope.tags,
            egress=args.egress,
        )
        self._release(
            versions.LOAD_BALANCER_CONTROLLER_CHART,
            versions.LOAD_BALANCER_CONTROLLER,
            versions.LOAD_BALANCER_CONTROLLER_REPOSITORY,
            images.mirrored(values, images.LOAD_BALANCER_CONTROLLER, args.mirrors),
            role,
        )

    def _role(
        self,
        label: str,
        role_name: str,
        description: str,
        service_account: str,
        *,
        managed_policies: Sequence[str] = (),
        policies: Mapping[str, pulumi.Input[Document]] | None = None,
    ) -> PodRole:
        args = self._args
        return PodRole(
            f"{self._stem}-{label}",
            PodRoleArgs(
                scope=args.scope,
                role_name=role_name,
                description=description,
                cluster_name=args.cluster_name,
                cluster_arn=pulumi.Output.format(
                    "arn:{0}:eks:{1}:{2}:cluster/{3}",
                    args.scope.partition,
                    args.scope.region,
                    args.scope.account_id,
                    args.scope.names.cluster,
                ),
                namespace=ADDON_NAMESPACE,
                service_account=service_account,
                managed_policies=managed_policies,
                policies=policies or {},
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _release(self, chart: str, version: str, repository: str, values: Values, *after: pulumi.Resource) -> None:
        Release(
            f"{self._stem}-{chart}",
            name=chart,
            namespace=ADDON_NAMESPACE,
            chart=chart,
            version=version,
            repository_opts=RepositoryOptsArgs(repo=repository),
            values=values,
            opts=pulumi.ResourceOptions(parent=self, depends_on=list(after)),
        )
