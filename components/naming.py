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
from .documents.load_balancer_policy import LOAD_BALANCER_POLICIES

#: Karpenter finds subnets and security groups by this tag; its value is the cluster's name.
DISCOVERY_TAG: Final = "karpenter.sh/discovery"
#: Label of what a stack installs in a cluster that is there, by which it knows it again; its value is the stack's name.
STACK_LABEL: Final = "karpstack.io/stack"
#: Prefixes of tag keys with a meaning for Karpenter, Kubernetes or the cloud; an environment's own tags keep off.
RESERVED_TAG_PREFIXES: Final = ("aws:", "eks:", "karpenter.", "kubernetes.io/")
RESERVED_AZURE_TAG_PREFIXES: Final = ("aks-", "azure", "karpenter.", "kubernetes.", "microsoft", "windows")

#: Where the controller runs and as whom: its credentials are bound to exactly this pair.
KARPENTER_NAMESPACE: Final = "kube-system"
KARPENTER_AWS_SERVICE_ACCOUNT: Final = "karpenter"
KARPENTER_AZURE_SERVICE_ACCOUNT: Final = "karpenter-sa"
#: The same of what runs beside it on EKS; the EBS CSI driver's is EKS's choice.
ADDON_NAMESPACE: Final = "kube-system"
EBS_CSI_SERVICE_ACCOUNT: Final = "ebs-csi-controller-sa"
LOAD_BALANCER_SERVICE_ACCOUNT: Final = "aws-load-balancer-controller"


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
    """Physical names of an EKS environment, all of them derived from one stem.

    Names of IAM are global in an account: two clusters of one account need two names, whatever their region.

    Attributes:
        stem: The environment's name.
        existing: Name of the cluster where it is there already; otherwise it is called like the environment.
    """

    stem: str
    existing: str = ""

    @property
    def cluster(self) -> str:
        """The EKS cluster."""
        return self.existing or self.stem

    @property
    def cluster_role(self) -> str:
        """IAM role of the control plane."""
        return f"{self.stem}-cluster"

    @property
    def system_node_role(self) -> str:
        """IAM role of the managed node group's instances."""
        return f"{self.stem}-system-nodes"

    @property
    def system_launch_template(self) -> str:
        """Launch template of the managed node group."""
        return f"{self.stem}-system-nodes"

    @property
    def private_access_group(self) -> str:
        """Security group of those who reach the API server through the VPC."""
        return f"{self.stem}-private-access"

    @property
    def endpoints_group(self) -> str:
        """Security group of the VPC's endpoints."""
        return f"{self.stem}-endpoints"

    @property
    def node_role(self) -> str:
        """IAM role of the instances that Karpenter launches, and of the instance profile that the stack makes."""
        return f"{self.stem}-karpenter-nodes"

    @property
    def controller_role(self) -> str:
        """IAM role of Karpenter's controller."""
        return f"{self.stem}-karpenter-controller"

    @property
    def ebs_csi_role(self) -> str:
        """IAM role of the EBS CSI driver's controller."""
        return f"{self.cluster}-ebs-csi"

    @property
    def load_balancer_role(self) -> str:
        """IAM role of the AWS Load Balancer Controller."""
        return f"{self.cluster}-load-balancers"

    @property
    def interruption_queue(self) -> str:
        """SQS queue that receives interruption events."""
        return f"{self.stem}-interruption"

    @property
    def secrets_key_alias(self) -> str:
        """Alias of the KMS key that encrypts Kubernetes secrets."""
        return f"alias/{self.stem}-secrets"

    @property
    def control_plane_log_group(self) -> str:
        """Log group of the control plane; EKS prescribes the name."""
        return f"/aws/eks/{self.cluster}/cluster"

    @property
    def flow_log_group(self) -> str:
        """Log group of the VPC's flow logs."""
        return f"/aws/vpc/{self.stem}/flow-logs"

    @property
    def flow_log_role(self) -> str:
        """IAM role with which the VPC's flow logs are written, and its policy."""
        return f"{self.stem}-flow-logs"

    def controller_policy(self, subject: str) -> str:
        """IAM policy of the controller for one of `CONTROLLER_POLICIES`."""
        return f"{self.stem}-karpenter-{subject}"

    def load_balancer_policy(self, subject: str) -> str:
        """IAM policy of that controller for one of `LOAD_BALANCER_POLICIES`."""
        return f"{self.load_balancer_role}-{subject}"

    def event_rule(self, event: str) -> str:
        """EventBridge rule for one of `EVENT_PATTERNS`."""
        return f"{self.stem}-{event}"

    def limited(self) -> Iterator[LimitedName]:
        """Every name whose length the cloud limits.

        The instance profiles that Karpenter makes (the cluster's name, `_` and at most 20 digits, 128 allowed)
        always fit when the cluster's own limit is kept.
        """
        yield LimitedName("EKS cluster", self.cluster, 100)
        roles = (self.cluster_role, self.system_node_role, self.node_role, self.controller_role, self.flow_log_role)
        for role in (*roles, self.ebs_csi_role, self.load_balancer_role):
            yield LimitedName("IAM role", role, 64)
        for subject in CONTROLLER_POLICIES:
            yield LimitedName("IAM policy", self.controller_policy(subject), 128)
        for subject in LOAD_BALANCER_POLICIES:
            yield LimitedName("IAM policy", self.load_balancer_policy(subject), 128)
        yield LimitedName("SQS queue", self.interruption_queue, 80)
        for event in EVENT_PATTERNS:
            yield LimitedName("EventBridge rule", self.event_rule(event), 64)
        yield LimitedName("launch template", self.system_launch_template, 128)
        yield LimitedName("security group", self.private_access_group, 255)
        yield LimitedName("security group", self.endpoints_group, 255)
        yield LimitedName("KMS alias", self.secrets_key_alias, 256)


@dataclass(frozen=True)
class AksNames:
    """Physical names of an AKS environment, all of them derived from the cluster's name.

    The resource group's is unique in a subscription, the cluster's DNS name gets a suffix from Azure.
    """

    cluster: str

    @property
    def resource_group(self) -> str:
        """Resource group of everything that the stack makes itself."""
        return self.cluster

    @property
    def node_resource_group(self) -> str:
        """Resource group that AKS makes for nodes, load balancers and the kubelet's identity."""
        return f"{self.cluster}-nodes"

    @property
    def dns_prefix(self) -> str:
        """First part of the API server's name."""
        return self.cluster

    @property
    def virtual_network(self) -> str:
        """Virtual network, unless an existing one is used."""
        return self.cluster

    @property
    def node_subnet(self) -> str:
        """Subnet of all nodes."""
        return "nodes"

    @property
    def nat_gateway(self) -> str:
        """Way out of the stack's own network, where that is no load balancer of AKS's."""
        return self.cluster

    @property
    def nat_address(self) -> str:
        """Public address of the same."""
        return f"{self.cluster}-nat"

    @property
    def cluster_identity(self) -> str:
        """Identity of the control plane."""
        return f"{self.cluster}-cluster"

    @property
    def controller_identity(self) -> str:
        """Identity of Karpenter's controller."""
        return f"{self.cluster}-karpenter"

    @property
    def log_workspace(self) -> str:
        """Log Analytics workspace, unless one of somebody else is used, or none."""
        return f"{self.cluster}-logs"

    @property
    def metrics_workspace(self) -> str:
        """The same of Azure Monitor, for metrics."""
        return f"{self.cluster}-metrics"

    @property
    def log_collection(self) -> str:
        """Rule by which the logs of containers are collected; in the stack's own resource group."""
        return "container-insights"

    @property
    def metric_collection(self) -> str:
        """Endpoint and rule by which metrics are collected; in the stack's own resource group."""
        return "prometheus"

    @property
    def federated_credential(self) -> str:
        """The tie between the controller's identity and its service account."""
        return "karpenter"

    def limited(self) -> Iterator[LimitedName]:
        """Every name whose length the cloud limits."""
        yield LimitedName("AKS cluster", self.cluster, 63)
        yield LimitedName("DNS prefix", self.dns_prefix, 54)
        yield LimitedName("resource group", self.resource_group, 90)
        yield LimitedName("node resource group", self.node_resource_group, 80)
        yield LimitedName("virtual network", self.virtual_network, 64)
        yield LimitedName("NAT gateway", self.nat_gateway, 80)
        yield LimitedName("public IP address", self.nat_address, 80)
        yield LimitedName("cluster identity", self.cluster_identity, 128)
        yield LimitedName("controller identity", self.controller_identity, 128)
        yield LimitedName("Log Analytics workspace", self.log_workspace, 63)
        yield LimitedName("Azure Monitor workspace", self.metrics_workspace, 63)


def worst(names: EksNames | AksNames) -> LimitedName:
    """The name that has least room, or the most too much."""
    return max(names.limited(), key=lambda limited: limited.excess)


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
