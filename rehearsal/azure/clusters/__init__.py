"""AKS: managed clusters, their agent pools, and what the cluster resource brings along."""

CLUSTER_TYPE = "Microsoft.ContainerService/managedClusters"
POOL_TYPE = f"{CLUSTER_TYPE}/agentPools"
#: Node auto provisioning is in the API since 2025-05-01.
VERSIONS = (
    "2023-11-01",
    "2024-02-01",
    "2024-05-01",
    "2024-09-01",
    "2024-10-01",
    "2025-01-01",
    "2025-02-01",
    "2025-03-01",
    "2025-04-01",
    "2025-05-01",
    "2025-06-02-preview",
    "2025-07-01",
    "2025-08-01",
    "2025-09-01",
    "2025-10-01",
    "2026-01-01",
    "2026-03-01",
    "2026-04-01",
)
