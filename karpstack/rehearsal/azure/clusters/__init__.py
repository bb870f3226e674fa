"""AKS: managed clusters, their agent pools, and what the cluster resource brings along."""

CLUSTER_TYPE = "Microsoft.ContainerService/managedClusters"
POOL_TYPE = f"{CLUSTER_TYPE}/agentPools"
