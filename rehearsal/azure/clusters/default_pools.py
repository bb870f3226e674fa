"""What AKS brings into a cluster with node auto provisioning: the NodePools and node classes of its own.

They are AKS's published defaults (https://aka.ms/aks/nap/nodepools) with the image family and the node class of
upstream's examples (karpenter-provider-azure v1.14.2, examples/v1): Ubuntu is 24.04 from Kubernetes 1.34 on, and AKS's
system-surge names the node class default (its issue 1230). Who applies them, and who
runs the controller, is not decided here; `AzureCloud.provisioning_environment` has the controller's environment.
"""

from __future__ import annotations

from typing import Any

_DOMAIN = "kubernetes.azure.com"
_CILIUM_TAINT = {"key": "node.cilium.io/agent-not-ready", "value": "true", "effect": "NoExecute"}


def default_manifests(*, cilium: bool) -> list[dict[str, Any]]:
    """The AKSNodeClasses `default` and `system-surge`, and the NodePools of the same names.

    Args:
        cilium: Whether the cluster's dataplane is Cilium, whose agent nodes must wait for.
    """
    surge = {
        "labels": {f"{_DOMAIN}/mode": "system"},
        "taints": [{"key": "CriticalAddonsOnly", "value": "true", "effect": "NoSchedule"}],
    }
    return [
        _node_class("default", "General purpose AKSNodeClass for running Ubuntu nodes"),
        _node_class("system-surge", "Surge capacity AKSNodeClass for system pod pressure"),
        _node_pool("default", "General purpose NodePool for generic workloads", {}, cilium),
        _node_pool("system-surge", "Surge capacity pool for system pod pressure", surge, cilium),
    ]


def _node_class(name: str, description: str) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.azure.com/v1beta1",
        "kind": "AKSNodeClass",
        "metadata": {"name": name, "annotations": {"kubernetes.io/description": description}},
        "spec": {"imageFamily": "Ubuntu", "osDiskSizeGB": 128},
    }


def _node_pool(name: str, description: str, extra: dict[str, Any], cilium: bool) -> dict[str, Any]:
    labels = {**extra.get("labels", {}), **({f"{_DOMAIN}/ebpf-dataplane": "cilium"} if cilium else {})}
    required = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "karpenter.sh/capacity-type": "on-demand",
        "karpenter.azure.com/sku-family": "D",
    }
    spec: dict[str, Any] = {
        "nodeClassRef": {"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "default"},
        "expireAfter": "Never",
        "requirements": [{"key": key, "operator": "In", "values": [value]} for key, value in required.items()],
    }
    if "taints" in extra:
        spec["taints"] = extra["taints"]
    if cilium:
        spec["startupTaints"] = [_CILIUM_TAINT]
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name, "annotations": {"kubernetes.io/description": description}},
        "spec": {
            "disruption": {
                "consolidationPolicy": "WhenEmptyOrUnderutilized",
                "consolidateAfter": "0s",
                "budgets": [{"nodes": "30%"}],
            },
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
