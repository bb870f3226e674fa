"""Self-hosted Karpenter: its identity and rights, what it hands to new machines, and its charts.

With node auto provisioning AKS has all of this outside the cluster, and nothing here is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pulumi

from .. import versions
from ..documents import charts, images
from ..kubernetes import Karpenter, KarpenterArgs
from ..naming import KARPENTER_AZURE_SERVICE_ACCOUNT, KARPENTER_NAMESPACE, AksNames
from ..settings.aks import KarpenterSettings
from .cluster import Cluster
from .controller_identity import ControllerIdentity, ControllerIdentityArgs
from .existing_cluster import ExistingCluster
from .network import Network
from .node_bootstrap import NodeBootstrap, NodeBootstrapArgs


@dataclass(frozen=True, kw_only=True)
class SelfHostedKarpenterArgs:
    """Arguments of `SelfHostedKarpenter`.

    Attributes:
        names: Physical names.
        resource_group: Name of the stack's resource group.
        location: Location of everything.
        subscription_id: Subscription of everything.
        network: Where machines live; a cluster that is there knows it.
        cluster: What they join.
        cluster_group: Name of its resource group; the stack's if not set.
        settings: How the controller runs.
        labels: Of what is installed in the cluster.
        mirrors: What stands in place of registries of images.
        tags: For every resource.
    """

    names: AksNames
    resource_group: pulumi.Input[str]
    location: str
    subscription_id: str
    network: Network | ExistingCluster
    cluster: Cluster | ExistingCluster
    cluster_group: pulumi.Input[str] | None = None
    settings: KarpenterSettings
    mirrors: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str]


class SelfHostedKarpenter(pulumi.ComponentResource):
    """Everything that a running controller needs. The Kubernetes provider comes with `opts.providers`."""

    version: pulumi.Output[str]
    namespace: pulumi.Output[str]

    def __init__(self, name: str, args: SelfHostedKarpenterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:aks:SelfHostedKarpenter", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        network, cluster, settings = args.network, args.cluster, args.settings
        node_group = pulumi.Output.concat(
            f"/subscriptions/{args.subscription_id}/resourceGroups/", cluster.node_resource_group
        )
        identity = ControllerIdentity(
            f"{name}-identity",
            ControllerIdentityArgs(
                names=args.names,
                resource_group=args.resource_group,
                location=args.location,
                subscription_id=args.subscription_id,
                issuer=cluster.issuer,
                node_resource_group_id=node_group,
                identity_scopes={label: scope or node_group for label, scope in cluster.identity_scopes.items()},
                subnets=network.subnets,
                tags=args.tags,
            ),
            opts=child,
        )
        bootstrap = NodeBootstrap(
            f"{name}-bootstrap",
            NodeBootstrapArgs(
                cluster_name=args.names.cluster,
                namespace=KARPENTER_NAMESPACE,
                generation=settings.bootstrap_token_generation,
                days=settings.bootstrap_token_days,
                ssh_public_key=settings.ssh_public_key,
            ),
            opts=child,
        )
        releases = Karpenter(
            f"{name}-charts",
            KarpenterArgs(
                chart=versions.KARPENTER_AZURE_CHART,
                crd_chart=versions.KARPENTER_AZURE_CRD_CHART,
                version=settings.chart_version,
                namespace=KARPENTER_NAMESPACE,
                values=images.mirrored(_values(args, identity, bootstrap), images.KARPENTER_AZURE, args.mirrors),
                install_after=(identity, bootstrap),
                # Azure spreads roles and federated credentials in minutes.
                patience=900,
            ),
            opts=child,
        )
        self.version = releases.version
        self.namespace = releases.namespace
        self.register_outputs({"version": self.version, "namespace": self.namespace})


def _values(args: SelfHostedKarpenterArgs, identity: ControllerIdentity, bootstrap: NodeBootstrap) -> charts.Values:
    """Return the values of the chart."""
    network, cluster, settings = args.network, args.cluster, args.settings
    return charts.karpenter_azure(
        cluster_name=cluster.name,
        endpoint=cluster.endpoint,
        subscription_id=args.subscription_id,
        location=args.location,
        resource_group=args.cluster_group or args.resource_group,
        node_resource_group=cluster.node_resource_group,
        subnet_id=network.subnet_id,
        vnet_guid=network.vnet_guid,
        node_identity_ids=cluster.node_identity_ids,
        kubelet_identity_client_id=cluster.kubelet_identity_client_id,
        controller_client_id=identity.client_id,
        service_account=KARPENTER_AZURE_SERVICE_ACCOUNT,
        bootstrap_token_secret=bootstrap.token_secret,
        ssh_key_secret=bootstrap.ssh_key_secret,
        replicas=settings.replicas,
        feature_gates=settings.chart_gates,
        settings=settings.settings,
        resources=settings.resources.model_dump(),
        labels=args.labels,
    )
