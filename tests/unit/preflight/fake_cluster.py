"""A stack that is up, as the look before `pulumi destroy` sees it: its outputs, and a cluster of a few objects."""

from __future__ import annotations

from typing import Any

from karpstack.preflight.destroy.cluster import Object
from karpstack.preflight.finding import NotAskedError

EKS = {
    "cloud": "aws",
    "region": "us-east-1",
    "clusterName": "karpstack-eks",
    "karpenterVersion": "1.14.1",
    "karpenterNamespace": "kube-system",
    "nodePools": ["default"],
    "nodeClasses": ["default"],
    "defaultNodePools": [],
}
NAP = {**EKS, "cloud": "azure", "karpenterVersion": "managed", "defaultNodePools": ["system-surge"]}
SERVICES, VOLUMES, BUDGETS = "/api/v1/services", "/api/v1/persistentvolumes", "/apis/policy/v1/poddisruptionbudgets"
POOLS, CLAIMS = "/apis/karpenter.sh/v1/nodepools", "/apis/karpenter.sh/v1/nodeclaims"
DEPLOYMENTS = "/apis/apps/v1/deployments"
CLASSES, NODES, PODS = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses", "/api/v1/nodes", "/api/v1/pods"


class FakeCluster:
    """Objects by collection; what is asked for `refused` is."""

    def __init__(self, refused: str = "") -> None:
        self.host = "karpstack.example"
        self.objects: dict[str, list[Object]] = {}
        self._refused = refused
        self.may_delete_pools = True

    def put(self, path: str, name: str, *, namespace: str = "", **found: Any) -> Object:
        metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **found.pop("metadata", {})}
        self.objects.setdefault(path, []).append({"metadata": metadata, **found})
        return self.objects[path][-1]

    def greet(self) -> None:
        if self._refused == "/version":
            raise NotAskedError("GET /version", "timed out", refused=False)

    def may_delete(self, path: str) -> bool:
        return self.may_delete_pools

    def list(self, path: str) -> list[Object]:
        if path == self._refused:
            raise NotAskedError(f"GET {path}", "403 forbidden", refused=True)
        return self.objects.get(path, [])


def of_the_stack() -> FakeCluster:
    """The stack's own objects, and a node of its NodePool with one pod."""
    made = FakeCluster()
    made.put(POOLS, "default", spec={"template": {"spec": {"terminationGracePeriod": "1h"}}})
    made.put(CLASSES, "default")
    pool = {"labels": {"karpenter.sh/nodepool": "default"}}
    made.put(
        CLAIMS,
        "default-1",
        metadata=pool,
        spec={"terminationGracePeriod": "1h"},
        status={"providerID": "aws:///us-east-1a/i-1"},
    )
    karpenter = {"labels": {"app.kubernetes.io/name": "karpenter"}}
    made.put(DEPLOYMENTS, "karpenter", namespace="kube-system", metadata=karpenter, status={"readyReplicas": 2})
    made.put(NODES, "node-1", metadata=pool)
    made.put(NODES, "system-1")
    made.put(PODS, "web-1", namespace="shop", metadata={"labels": {"app": "web"}}, spec={"nodeName": "node-1"})
    made.put(PODS, "coredns-1", namespace="kube-system", spec={"nodeName": "system-1"})
    return made
