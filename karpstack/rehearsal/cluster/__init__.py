"""The Kubernetes side of a rehearsal: control plane, nodes, charts and the Karpenter controller.

Knows no cloud: what a cloud decides comes through `karpstack.rehearsal.cluster.cloud.Cloud`.
"""
