"""Names and tags: physical names with the cloud's limits on their length, and the tags that mean something.

Logical names are literals in the components. Nothing here truncates or hashes: a name that does not fit is
refused by `settings`, because a name that the reader cannot predict helps nobody at night.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from .documents.events import EVENT_PATTERNS
from .documents.iam import CONTROLLER_POLICIES

#: Karpenter finds subnets and security groups by this tag; its value is the cluster's name.
DISCOVERY_TAG: Final = "karpenter.sh/discovery"
#: Prefixes of tag keys with a meaning for Karpenter, Kubernetes or AWS; an environment's own tags keep off.
RESERVED_TAG_PREFIXES: Final = ("aws:", "eks:", "karpenter.", "kubernetes.io/")

#: Where the controller runs and as whom: its credentials are bound to exactly this pair.
KARPENTER_NAMESPACE: Final = "kube-system"
KARPENTER_SERVICE_ACCOUNT: Final = "karpenter"


@dataclass(frozen=True)
class LimitedName:
    """A physical name beside the length that the cloud allows for it."""

    kind: str
    name: str
    limit: int

    @property
    def excess(self) -> int:
        """Characters too many; negative where there is room."""
        return len(self.name) - self.limit


@dataclass(frozen=True)
class EksNames:
    """Physical names of an EKS environment, all of them derived from the cluster's name.

    Names of IAM are global in an account: two clusters of one account need two names, whatever their region.
    """

    cluster: str

    @property
    def cluster_role(self) -> str:
        """IAM role of the control plane."""
        return f"{self.cluster}-cluster"

    @property
    def system_node_role(self) -> str:
        """IAM role of the managed node group's instances."""
        return f"{self.cluster}-system-nodes"

    @property
    def system_launch_template(self) -> str:
        """Launch template of the managed node group."""
        return f"{self.cluster}-system-nodes"

    @property
    def node_role(self) -> str:
        """IAM role of the instances that Karpenter launches."""
        return f"{self.cluster}-karpenter-nodes"

    @property
    def controller_role(self) -> str:
        """IAM role of Karpenter's controller."""
        return f"{self.cluster}-karpenter-controller"

    @property
    def interruption_queue(self) -> str:
        """SQS queue that receives interruption events."""
        return f"{self.cluster}-interruption"

    @property
    def secrets_key_alias(self) -> str:
        """Alias of the KMS key that encrypts Kubernetes secrets."""
        return f"alias/{self.cluster}-secrets"

    @property
    def control_plane_log_group(self) -> str:
        """Log group of the control plane; EKS prescribes the name."""
        return f"/aws/eks/{self.cluster}/cluster"

    def controller_policy(self, subject: str) -> str:
        """IAM policy of the controller for one of `CONTROLLER_POLICIES`."""
        return f"{self.cluster}-karpenter-{subject}"

    def event_rule(self, event: str) -> str:
        """EventBridge rule for one of `EVENT_PATTERNS`."""
        return f"{self.cluster}-{event}"

    def limited(self) -> Iterator[LimitedName]:
        """Every name whose length the cloud limits.

        The instance profiles that Karpenter makes (the cluster's name, `_` and at most 20 digits, 128 allowed)
        always fit when the cluster's own limit is kept.
        """
        yield LimitedName("EKS cluster", self.cluster, 100)
        for role in (self.cluster_role, self.system_node_role, self.node_role, self.controller_role):
            yield LimitedName("IAM role", role, 64)
        for subject in CONTROLLER_POLICIES:
            yield LimitedName("IAM policy", self.controller_policy(subject), 128)
        yield LimitedName("SQS queue", self.interruption_queue, 80)
        for event in EVENT_PATTERNS:
            yield LimitedName("EventBridge rule", self.event_rule(event), 64)
        yield LimitedName("launch template", self.system_launch_template, 128)
        yield LimitedName("KMS alias", self.secrets_key_alias, 256)


def principal_label(arn: str) -> str:
    """Short, stable label of an IAM principal for logical names: account, then the last part of its path.

    >>> principal_label("arn:aws:iam::123456789012:role/teams/platform-admin")
    '123456789012-platform-admin'
    """
    account, path = arn.split(":")[4:6]
    return f"{account}-{path.rsplit('/', 1)[-1]}"


def named(name: str, tags: Mapping[str, str]) -> dict[str, str]:
    """The environment's tags and a `Name`, which is what the AWS console shows."""
    return {**tags, "Name": name}
