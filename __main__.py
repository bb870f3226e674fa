"""The Pulumi program: one stack, one environment. What it is like is said by Pulumi.<stack>.yaml alone."""

import pulumi

from components import eks, settings

stack = settings.read()
network, cluster, nodes, karpenter = stack.network, stack.cluster, stack.system_nodes, stack.karpenter

environment = eks.Environment(
    "eks",
    eks.EnvironmentArgs(
        cluster_name=stack.name,
        region=stack.region,
        tags=stack.tags,
        network=eks.NetworkPlan(
            vpc_cidr=str(network.vpc_cidr),
            pod_cidr=str(network.pod_cidr),
            pod_cidr_mask_size=network.pod_cidr_mask_size,
            service_cidr=str(network.service_cidr),
            zones=network.zones,
            nat_gateways=network.nat_gateways,
        ),
        control_plane=eks.ControlPlanePlan(
            version=cluster.version,
            public_access_cidrs=[str(cidr) for cidr in cluster.public_access_cidrs],
            admins=cluster.admins,
            log_types=cluster.log_types,
            log_retention_days=cluster.log_retention_days,
        ),
        system_nodes=eks.SystemNodesPlan(**nodes.model_dump()),
        karpenter=eks.KarpenterPlan(
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

pulumi.export("cloud", stack.cloud)
pulumi.export("region", stack.region)
pulumi.export("clusterName", environment.cluster_name)
pulumi.export("clusterEndpoint", environment.cluster_endpoint)
pulumi.export("kubeconfig", environment.kubeconfig)
pulumi.export("interruptionQueue", environment.interruption_queue)
pulumi.export("karpenterVersion", environment.karpenter_version)
pulumi.export("karpenterNamespace", environment.karpenter_namespace)
pulumi.export("nodePools", environment.node_pools)
pulumi.export("nodeClasses", environment.node_classes)
