"""What replaces the Kubernetes provider, and with it every object: another cluster, and nothing else."""

from __future__ import annotations

from karpstack.rehearsal.cluster.provider import replaces
from tests.unit.programs import made, only
from tests.unit.test_aks import both


@both
def test_only_another_cluster_replaces_the_kubernetes_provider(stack: str) -> None:
    inputs = only(made(stack), "kubernetes").inputs
    assert (identifier := inputs["clusterIdentifier"]) == "aks-cluster-control-plane-id"
    rotated = {**inputs, "kubeconfig": inputs["kubeconfig"].replace("Q0E=", "Q0Ey").replace(":443", ":444")}
    assert replaces(inputs, rotated) == []
    assert replaces(inputs, {**rotated, "clusterIdentifier": identifier + "-2"}) == ["clusterIdentifier"]
