"""From a stack's configuration to its AKS environment."""

from __future__ import annotations

from ..settings import AksSettings
from .cluster import SystemPool
from .environment import (
    ControlPlanePlan,
    Environment,
    EnvironmentArgs,
    NetworkPlan,
    NodeProvisioningPlan,
)
from .karpenter import KarpenterPlan


def environment(stack: AksSettings) -> Environment:
    """The environment that the configuration describes."""
    network, cluster, karpenter = stack.network, stack.cluster, stack.karpenter
    return Environment(
        "aks",
        EnvironmentArgs(
            cluster_name=stack.name,
            location=stack.region,
            subscription_id=stack.subscription_id,
            tags=stack.tags,
            network=NetworkPlan(
                vnet_cidr=str(network.vnet_cidr),
                subnet_cidr=str(network.subnet_cidr) if network.subnet_cidr else None,
                subnet_id=network.subnet_id,
                pod_cidr=str(network.pod_cidr),
                service_cidr=str(network.service_cidr),
            ),
            control_plane=ControlPlanePlan(
                version=cluster.version,
                tier=cluster.tier,
                public_access_cidrs=[str(cidr) for cidr in cluster.public_access_cidrs],
                local_accounts=cluster.local_accounts,
                kubelogin=cluster.kubelogin,
                deployer_role=cluster.deployer_role,
                admins=cluster.admins,
            ),
            system_pool=SystemPool(**stack.system_nodes.model_dump()),
            node_provisioning=NodeProvisioningPlan(**stack.node_provisioning.model_dump()),
            karpenter=KarpenterPlan(
                chart_version=karpenter.chart_version,
                ssh_public_key=karpenter.ssh_public_key,
                bootstrap_token_generation=karpenter.bootstrap_token_generation,
                replicas=karpenter.replicas,
                feature_gates=karpenter.feature_gates.model_dump(by_alias=True),
                settings=karpenter.settings,
                resources=karpenter.resources.model_dump(),
            )
            if karpenter
            else None,
            node_classes=stack.node_classes,
            node_pools=stack.node_pools,
        ),
    )
