"""The simulated clouds. Each implements `rehearsal.cluster.cloud.Cloud`; they know the cluster, not the providers."""
