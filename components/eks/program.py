"""From a stack's configuration to its EKS environment."""

from __future__ import annotations

from ..settings import EksSettings
from .environment import (
    ControlPlanePlan,
    Environment,
    EnvironmentArgs,
    KarpenterPlan,
    NetworkPlan,
    SystemNodesPlan,
)


def environment(stack: EksSettings) -> Environment:
    """The environment that the configuration describes."""
    network, cluster, karpenter = stack.network, stack.cluster, stack.karpenter
    return Environment(
        "eks",
        EnvironmentArgs(
            cluster_name=stack.name,
            region=stack.region,
            tags=stack.tags,
            network=NetworkPlan(
                vpc_cidr=str(network.vpc_cidr),
                pod_cidr=str(network.pod_cidr),
                pod_cidr_mask_size=network.pod_cidr_mask_size,
                service_cidr=str(network.service_cidr),
                zones=network.zones,
                nat_gateways=network.nat_gateways,
            ),
            control_plane=ControlPlanePlan(
                version=cluster.version,
                public_access_cidrs=[str(cidr) for cidr in cluster.public_access_cidrs],
                admins=cluster.admins,
                log_types=cluster.log_types,
                log_retention_days=cluster.log_retention_days,
            ),
            system_nodes=SystemNodesPlan(**stack.system_nodes.model_dump()),
            karpenter=KarpenterPlan(
                identity=karpenter.identity,
                interruption_queue=karpenter.interruption_queue,
                replicas=karpenter.replicas,
                feature_gates=karpenter.feature_gates.model_dump(by_alias=True),
                settings=karpenter.settings,
                resources=karpenter.resources.model_dump(),
            ),
            spot_service_linked_role=stack.spot_service_linked_role,
            node_classes=stack.node_classes,
            node_pools=stack.node_pools,
        ),
    )
