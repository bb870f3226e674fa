"""Plays what the VPC CNI's pods, aws-node, do to nodes; no packet is handled and no address is given.

The pods are those of the add-on or of whoever installed it, on nodes that kwok plays. On each node its address manager
asks EC2 for network interfaces and addresses, as the role of its service account or, without one, of the node; without
the rights it never starts, and the node's kubelet has no network plugin (amazon-vpc-cni-k8s, docs/iam-policy.md and
docs/troubleshooting.md).
"""

from __future__ import annotations

from typing import ClassVar

from karpstack.rehearsal.cluster.cilium import mark_ready
from karpstack.rehearsal.cluster.cloud import Cloud
from karpstack.rehearsal.cluster.feed import Event, Player
from karpstack.rehearsal.cluster.nodes import CNI_ANNOTATION
from karpstack.rehearsal.cluster.objects import Object, Objects, try_patch, warn
from karpstack.rehearsal.timing import Timing

LABEL = "k8s-app=aws-node"


class VpcCni(Player):
    """The pods aws-node of one cluster."""

    name = "vpc-cni"
    #: Seconds. Kubelets go on trying: rights that are given later count.
    between_tries = 3.0
    watches: ClassVar = {"pods": {"path": "/api/v1/pods", "labels": LABEL}}

    def __init__(self, objects: Objects, cloud: Cloud, timing: Timing) -> None:
        super().__init__(objects)
        self._cloud = cloud
        self._timing = timing
        self._starting: set[str] = set()
        self._refusals: dict[str, str] = {}

    def _handle(self, event: Event) -> None:
        pod = event.object
        uid = pod["metadata"]["uid"]
        if event.source == "start":
            self._start(pod)
        elif event.type == "DELETED":
            self._starting.discard(uid)
            self._refusals.pop(uid, None)
        elif pod["spec"].get("nodeName") and uid not in self._starting:
            self._starting.add(uid)
            self._feed.after(self._timing.agent_start, "start", pod)

    def _start(self, pod: Object) -> None:
        """The pod's address manager starts, or says why it does not."""
        metadata, name = pod["metadata"], pod["spec"]["nodeName"]
        node = self._objects.get(f"/api/v1/nodes/{name}")
        if metadata["uid"] not in self._starting or node is None:
            return
        namespace, account = metadata["namespace"], pod["spec"].get("serviceAccountName", "default")
        found = self._objects.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}") or {}
        annotations = found.get("metadata", {}).get("annotations", {})
        refusal = self._cloud.network_refusal(node["spec"].get("providerID", ""), namespace, account, annotations)
        if refusal:
            if self._refusals.get(metadata["uid"]) != refusal:
                self._refusals[metadata["uid"]] = refusal
                warn(self._objects, pod, "kubelet", "BackOff", refusal)
                warn(self._objects, node, "kubelet", "NetworkPluginNotReady", f"aws-node does not start: {refusal}")
            self._feed.after(self.between_tries, "start", pod)
            return
        if mark_ready(self._objects, pod):
            network = {"metadata": {"annotations": {CNI_ANNOTATION: "aws-vpc-cni"}}}
            try_patch(self._objects, f"/api/v1/nodes/{name}", network)
