"""The clouds that the pack and the review know: all by which these are told apart stands here.

What is about any other cloud is named as not known, and never judged as if it were one of these.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from .tokens import AKS_CLUSTER, AKS_NODE_CLASS, CLUSTER, EC2_NODE_CLASS

Cloud = Literal["aws", "azure"]


@dataclass(frozen=True, kw_only=True)
class Traits:
    """What is different in one cloud.

    Attributes:
        title: What people call it.
        package: Its Pulumi package.
        region: Property of the package's provider, and of resources, that names the region.
        variables: Environment variables that name the region, the first that is set.
        cluster: Token of its Kubernetes cluster.
        node_class: Token of Karpenter's node class.
        gates: Feature gates that its Karpenter chart switches on by itself (1.15 for AWS, 1.14 for Azure).
    """

    title: str
    package: str
    region: str
    variables: tuple[str, ...]
    cluster: str
    node_class: str
    gates: frozenset[str] = frozenset()

    @property
    def group(self) -> str:
        """API group of the node class."""
        return self.node_class.split(":")[1].split("/")[0]


CLOUDS: Final[Mapping[Cloud, Traits]] = {
    "aws": Traits(
        title="AWS",
        package="aws",
        region="region",
        variables=("AWS_REGION", "AWS_DEFAULT_REGION"),
        cluster=CLUSTER,
        node_class=EC2_NODE_CLASS,
        gates=frozenset({"reservedCapacity"}),
    ),
    "azure": Traits(
        title="Azure",
        package="azure-native",
        region="location",
        variables=("ARM_LOCATION",),
        cluster=AKS_CLUSTER,
        node_class=AKS_NODE_CLASS,
    ),
}
