"""What a cluster needs to know of the cloud that it runs in.

`rehearsal.aws` and `rehearsal.azure` implement `Cloud`; nothing in `rehearsal.cluster` imports them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True)
class Machine:
    """An instance as the kubelet on it would describe itself when it registers.

    Attributes:
        provider_id: `spec.providerID` of the node, for example `aws:///us-east-1a/i-0abc`.
        node_name: Name of the Node object.
        labels: Labels that the kubelet sets by itself (instance type, zone, region, architecture, os).
        kubelet_version: For example `v1.36.3`.
        refusal: Why the instance cannot join the cluster, for people to read; empty when it can.
        capacity: Resources of the instance as quantities (`{"cpu": "2", "memory": "7910Mi", "pods": "110"}`). Needed
            for nodes of managed groups; a NodeClaim carries its own, which goes before.
        allocatable: What the kubelet leaves of them for pods; all of it when empty.
        internal_ip: The node's address inside its network, where it matters.
    """

    provider_id: str
    node_name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    kubelet_version: str = ""
    refusal: str = ""
    capacity: Mapping[str, str] = field(default_factory=dict)
    allocatable: Mapping[str, str] = field(default_factory=dict)
    internal_ip: str = ""


class ControllerIdentityError(Exception):
    """The controller's pod would start without working cloud credentials; the text says why and the fix."""


class LoadBalancerError(Exception):
    """The cloud makes no load balancer for a Service, or does not remove it; the text says why."""


class LoadBalancers(Protocol):
    """What the cloud makes for Services of type LoadBalancer; each is a Service as the API server gives it."""

    def ensure(self, service: Mapping[str, Any]) -> str:
        """Make a Service's load balancer unless it is there; its DNS name.

        Raises:
            LoadBalancerError: It cannot be made.
        """
        ...

    def remove(self, service: Mapping[str, Any]) -> None:
        """Remove a Service's load balancer with all that was made for it; nothing happens when there is none.

        Raises:
            LoadBalancerError: It cannot be removed, or not all of it.
        """
        ...


class Cloud(Protocol):
    """The cloud as one cluster sees it."""

    #: Name of the engine that is the production controller for this cloud, for example `karpenter-aws`.
    controller_engine: str
    #: Whether the controller reads its service account's files where a pod has them, and not from its environment.
    controller_needs_pod_files: bool
    #: Whether the control plane reaches pods, and not only nodes.
    control_plane_reaches_pods: bool

    @property
    def load_balancers(self) -> LoadBalancers | None:
        """What makes its load balancers; None where the rehearsal plays none, and Services wait for an address."""
        ...

    def machine(self, provider_id: str) -> Machine | None:
        """Describe the instance behind a provider ID; None when it does not exist or is terminated."""
        ...

    def has_machine(self, provider_id: str) -> bool:
        """Whether `machine` would describe one: asked of every node, every other second, so it must cost nothing."""
        ...

    def network_refusal(
        self, provider_id: str, namespace: str, service_account: str, annotations: Mapping[str, str]
    ) -> str:
        """Why the cloud gives a pod that is a node's network no addresses for other pods; empty where it does."""
        ...

    def controller_environment(
        self,
        namespace: str,
        service_account: str,
        annotations: Mapping[str, str],
        token_folder: Path,
        labels: Mapping[str, str],
        admitted: datetime | None = None,
    ) -> dict[str, str]:
        """Environment that the cloud adds to a pod of this service account: endpoints, region, credentials.

        Called each time that the controller starts, as admission is for each pod. It grants nothing that
        the stack did not create: an identity that is missing is missing in the result too.

        Args:
            annotations: Annotations of the service account (IRSA's role ARN, for example).
            token_folder: An existing folder in which projected service account tokens are put.
        """
        ...
