"""Pods and addresses: how many pods a node takes, and whether its share of the pod network has room for them."""

from __future__ import annotations

from pulumi_policy import PolicyResource

from karpstack.karpenter import addresses

from . import graph
from .rule import Judgement, Properties, StackRule, section
from .tokens import AKS_CLUSTER, AKS_NODE_CLASS, EC2_NODE_CLASS

# AKS gives each node a /24 of the overlay, and takes 250 pods at most.
_AKS_LARGEST = 250
_CILIUM_DEFAULT_MASK = 24


def _max_pods(resources: list[PolicyResource], judgement: Judgement) -> None:
    for room, why in _rooms(resources, judgement):
        for node_class in graph.of(resources, EC2_NODE_CLASS):
            with judgement.part():
                spec = graph.output(node_class, "spec")
                pods = section(spec, "kubelet").get("maxPods")
                if pods is None:
                    judgement.violation(
                        f"spec.kubelet.maxPods of {node_class.name} is not set: Karpenter then counts addresses of "
                        f"the VPC, which pods do not use here, up to 737 of them; {why}.",
                        node_class.urn,
                    )
                elif int(pods) > room:
                    judgement.violation(
                        f"spec.kubelet.maxPods of {node_class.name} is {int(pods)}; {why}.", node_class.urn
                    )
    for node_class in graph.of(resources, AKS_NODE_CLASS):
        with judgement.part():
            pods = graph.output(node_class, "spec").get("maxPods")
            if pods is not None and int(pods) > _AKS_LARGEST:
                judgement.violation(
                    f"spec.maxPods of {node_class.name} is {int(pods)}; a node of AKS has a /24 of the overlay and "
                    f"takes {_AKS_LARGEST} pods.",
                    node_class.urn,
                )
    for cluster in graph.of(resources, AKS_CLUSTER):
        with judgement.part():
            pools = graph.output(cluster, "agentPoolProfiles") or []
            for index in range(len(pools)):
                pods = pools[index].get("maxPods")
                if pods is not None and int(pods) > _AKS_LARGEST:
                    judgement.violation(
                        f"agentPoolProfiles[{index}].maxPods of {cluster.name} is {int(pods)}; a node of AKS takes "
                        f"{_AKS_LARGEST} pods.",
                        cluster.urn,
                    )


def _rooms(resources: list[PolicyResource], judgement: Judgement) -> list[tuple[int, str]]:
    rooms = []
    for release in graph.releases(resources, "cilium", judgement):
        with judgement.part():
            ipam = section(graph.values(release), "ipam")
            if (ipam.get("mode") or "cluster-pool") != "cluster-pool":
                continue
            operator: Properties = section(ipam, "operator")
            mask = int(operator.get("clusterPoolIPv4MaskSize") or _CILIUM_DEFAULT_MASK)
            room = addresses.pods(mask)
            rooms.append((room, f"{release.name} gives each node a /{mask}, which is {room} addresses for pods"))
    return rooms


NODE_MAX_PODS = StackRule(name="node-max-pods", check=_max_pods)
