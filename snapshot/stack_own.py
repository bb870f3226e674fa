"""Which workloads a stack, or the cloud under it, brings by itself: those of a snapshot are not made a second time."""

from __future__ import annotations

import re
from typing import Final

from .model import Workload

#: Namespaces that every cluster has.
NAMESPACES: Final = frozenset({"default", "kube-node-lease", "kube-public", "kube-system"})
#: Where charts and clouds put what is listed below; in a namespace of one's own, the names are one's own.
_THEIRS: Final = frozenset({"calico-system", "cilium", "gatekeeper-system", "karpenter", "kube-system"})
_NAMES: Final = re.compile(
    "|".join(
        (
            "cilium(-envoy|-operator|-pre-flight-check)?|hubble-(relay|ui)|clustermesh-apiserver",  # the dataplane
            "calico-.+|tigera-operator|kube-proxy(-windows)?|aws-node|azure-(cns|cni-networkmonitor|npm|ip-masq-agent)",
            "(core|kube-|node-local-)dns(-autoscaler|-hpa)?",
            "karpenter(-.+)?",
            "eks-(node-monitoring|pod-identity)-agent(-.+)?|(ebs|efs|fsx)-csi-(controller|node)(-windows)?",
            "aws-cloud-controller-manager|cloud-(controller-manager|node-manager)(-windows)?",
            "csi-azure(disk|file)-node(-win)?|csi-blob-node|konnectivity-agent(-autoscaler)?",
            "(ama|azure-policy|azure-wi-webhook|microsoft-defender|retina|overlay-vpa|eraser)-?.*",
            "(kube-apiserver|kube-controller-manager|kube-scheduler|etcd)(-.+)?",
        )
    )
)


def brought(workload: Workload) -> bool:
    """Whether the stack or the cloud brings it; so do kubelets with the pods of their own files."""
    return workload.controller.kind == "Node" or named(workload.namespace, workload.name)


def theirs(namespace: str) -> bool:
    """Whether a namespace is one that every cluster has, or one of those that charts and clouds make."""
    return namespace in NAMESPACES or namespace in _THEIRS


def named(namespace: str, name: str) -> bool:
    """Whether what is called so is the stack's or the cloud's."""
    return namespace in _THEIRS and _NAMES.fullmatch(name) is not None
