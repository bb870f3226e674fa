"""What replaces the Kubernetes provider, and with it every object: another cluster, and nothing else."""

from __future__ import annotations

from rehearsal.cluster.provider import replaces
from tests.unit.test_aks import PROVIDER, both, resource, shipped


@both
def test_only_another_cluster_replaces_the_kubernetes_provider(stack: str) -> None:
    made = resource(shipped(stack), PROVIDER)
    assert (identifier := made.inputs["clusterIdentifier"]) == "aks-cluster-control-plane-id"
    rotated = {**made.inputs, "kubeconfig": made.inputs["kubeconfig"].replace("Q0E=", "Q0Ey").replace(":443", ":444")}
    assert replaces(made.inputs, rotated) == []
    assert replaces(made.inputs, {**rotated, "clusterIdentifier": identifier + "-2"}) == ["clusterIdentifier"]
