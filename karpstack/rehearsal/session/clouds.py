"""The clouds that can be rehearsed: what must be known of each before anything of it is loaded.

`karpstack.rehearsal.session.simulated` loads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

Name = Literal["aws", "azure"]


@dataclass(frozen=True)
class ClusterType:
    """The cluster and its Karpenter as resources of Pulumi, in programs that are not karpstack's.

    Attributes:
        token: The cluster's type.
        name: The input with its name.
        version: The input with its version of Kubernetes.
        node_class: The type of Karpenter's node classes.
        provisioning: The input by which the cloud runs Karpenter itself (`mode` Auto); empty where none does.
        default_node_pools: The NodePools that the cloud then creates, unless `defaultNodePools` is None.
    """

    token: str
    name: str
    version: str
    node_class: str
    provisioning: str = ""
    default_node_pools: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cloud:
    """One cloud.

    Attributes:
        name: As `karpstack:cloud` calls it.
        region: The key of its region, an example, and what all of them look like.
        subscription: The key of what the stack is deployed to; empty where the credentials alone say it.
        account: What the simulated account is, for people.
        credentials: What the account wants to see of those who ask, for people.
        node_classes: The resource of its Karpenter's node classes, as kubectl has it.
        cluster: Its cluster in a program that is not karpstack's.
        readers: What reads the files that describe the account's networks, and its cluster; loaded when needed.
    """

    name: Name
    region: tuple[str, str, str]
    subscription: str
    account: str
    credentials: str
    node_classes: str
    cluster: ClusterType
    readers: tuple[str, str]


#: Name -> cloud.
CLOUDS: Final[Mapping[str, Cloud]] = {
    "aws": Cloud(
        "aws",
        ("aws:region", "us-east-1", r"[a-z]{2}(-[a-z]+)+-[0-9]"),
        "",
        "the simulated AWS account",
        "the account's access keys",
        "ec2nodeclasses.karpenter.k8s.aws",
        ClusterType("aws:eks/cluster:Cluster", "name", "version", "kubernetes:karpenter.k8s.aws/v1:EC2NodeClass"),
        ("karpstack.rehearsal.aws.ec2.existing:Networks.load", "karpstack.rehearsal.aws.eks.existing:Description.load"),
    ),
    "azure": Cloud(
        "azure",
        ("azure-native:location", "westus2", r"[A-Za-z]+( ?[A-Za-z0-9]+)*"),
        "azure-native:subscriptionId",
        "the simulated Azure, as a proxy",
        "Entra's tokens",
        "aksnodeclasses.karpenter.azure.com",
        ClusterType(
            "azure-native:containerservice:ManagedCluster",
            "resourceName",
            "kubernetesVersion",
            "kubernetes:karpenter.azure.com/v1beta1:AKSNodeClass",
            "nodeProvisioningProfile",
            ("default", "system-surge"),
        ),
        (
            "karpstack.rehearsal.azure.network.existing:load",
            "karpstack.rehearsal.azure.clusters.existing:Description.load",
        ),
    ),
}
