"""Workloads that a cluster runs by itself, such as Cilium or CoreDNS, and how they are called.

Only what a cluster really runs counts as brought by it: a name alone leaves nothing out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from .model import Workload

#: Namespaces that every cluster has.
NAMESPACES: Final = frozenset({"default", "kube-node-lease", "kube-public", "kube-system"})
#: Where charts and clouds put what is listed below; in a namespace of one's own, the names are one's own.
_THEIRS: Final = frozenset({"calico-system", "cilium", "gatekeeper-system", "karpenter", "kube-system"})
# No name with an open end: people call their own workloads `karpenter-billing`.
_NAMES: Final = re.compile(
    "|".join(
        (
            "cilium(-envoy|-operator|-pre-flight-check)?|hubble-(relay|ui)|clustermesh-apiserver",  # the dataplane
            "calico-(apiserver|kube-controllers|node(-windows)?|typha(-autoscaler)?)|tigera-operator",
            "kube-proxy(-windows)?|aws-node|azure-(cns|cni-networkmonitor|npm|ip-masq-agent)",
            "(core|kube-|node-local-)dns(-autoscaler|-hpa)?",
            "karpenter",
            "eks-(node-monitoring|pod-identity)-agent|(ebs|efs|fsx)-csi-(controller|node)(-windows)?",
            "aws-cloud-controller-manager|cloud-(controller-manager|node-manager)(-windows)?",
            "csi-azure(disk|file)-node(-win)?|csi-blob-node|konnectivity-agent(-autoscaler)?",
            "ama-logs(-rs|-windows)?|ama-metrics(-ksm|-node|-operator-targets|-win-node)?",
            "azure-policy(-webhook)?|azure-wi-webhook-controller-manager|eraser-controller-manager",
            "microsoft-defender-(collector-ds|collector-misc|publisher-ds)|retina-agent(-win)?",
            "overlay-vpa(-admission-controller|-recommender|-updater)?",
            "kube-apiserver|kube-controller-manager|kube-scheduler|etcd",
        )
    )
)


@dataclass(frozen=True)
class Existing:
    """What a cluster runs in the namespaces of charts and clouds before a workload is loaded.

    Attributes:
        requests: Kind, namespace and name of a controller -> what each of its pods requests.
        budgets: Namespace and name of each PodDisruptionBudget.
        namespaces: Those of the namespaces that exist.
        on_pools: Namespace and name of each DaemonSet with pods on nodes of NodePools; without such nodes, on any.
    """

    requests: Mapping[tuple[str, str, str], Mapping[str, str]] = field(default_factory=dict)
    budgets: frozenset[tuple[str, str]] = frozenset()
    namespaces: frozenset[str] = NAMESPACES
    on_pools: frozenset[tuple[str, str]] = frozenset()

    def of(self, workload: Workload) -> Mapping[str, str] | None:
        """Return what a pod of the cluster's own copy of a workload requests; None where the cluster has no copy."""
        return self.requests.get((workload.controller.kind, workload.namespace, workload.name))


def is_static_pod(workload: Workload) -> bool:
    """Return whether a kubelet runs the pods from a file of its own; no API server makes those."""
    return workload.controller.kind == "Node"


def is_system_namespace(namespace: str) -> bool:
    """Whether a namespace is one that every cluster has, or one of those that charts and clouds make."""
    return namespace in NAMESPACES or namespace in _THEIRS


def is_system_name(namespace: str, name: str) -> bool:
    """Whether what is called so is the stack's or the cloud's; such names are no secret."""
    return namespace in _THEIRS and _NAMES.fullmatch(name) is not None
