"""What an existing cluster says of what runs in it, on either cloud."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Workloads:
    """What a cluster says of what runs in it; what only EKS's are asked is as here on AKS.

    Attributes:
        refusal: Why the deployer may not do there what must be done; empty if permitted, and then the rest counts.
        networks: On EKS, names of the DaemonSets that are a network, but for a Cilium that this stack has installed.
        own_network: On EKS, whether there is a Cilium that this stack has installed.
        kube_proxy: On EKS, whether kube-proxy runs there.
        agent: On EKS, whether the Pod Identity agent does.
        cni_role: Whether the VPC CNI's service account has a role of its own, by IRSA.
        autoscalers: Deployments of Cluster Autoscaler that have replicas, with their namespaces. AKS's is no pod.
        controllers: Deployments of Karpenter that are not this stack's, with their namespaces.
        own_definitions: CRDs of Karpenter that Helm has made for a release `karpenter-crd`.
        foreign_definitions: Those that somebody else has made.
        ready: On EKS, how many nodes are ready.
        places: How many of the ready nodes take Karpenter's controller: not Karpenter's own, and without taints that
            the controller does not tolerate.
    """

    refusal: str = ""
    networks: Sequence[str] = ()
    own_network: bool = False
    kube_proxy: bool = False
    agent: bool = False
    cni_role: bool = False
    autoscalers: Sequence[str] = ()
    controllers: Sequence[str] = ()
    own_definitions: Sequence[str] = ()
    foreign_definitions: Sequence[str] = ()
    ready: int = 0
    places: int = 0
