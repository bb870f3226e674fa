"""What the checks before `pulumi destroy` look at: the cluster, and what the stack says is its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from shlex import quote
from typing import Any, Final

from karpstack.components.documents.manifests import AKS_NODE_CLASS, EC2_NODE_CLASS, NodeClassKind
from karpstack.components.naming import AksNames
from karpstack.karpenter.quantities import duration

from ..aws.asking import Aws
from ..azure.asking import Azure
from ..stack import State, setting
from .cluster import Lister, Object

NODE_POOLS: Final = "/apis/karpenter.sh/v1/nodepools"
NODE_CLAIMS: Final = "/apis/karpenter.sh/v1/nodeclaims"
NODES: Final = "/api/v1/nodes"
PODS: Final = "/api/v1/pods"
POOL_LABEL: Final = "karpenter.sh/nodepool"
FOR_EVER: Final = "for ever"
_VPC: Final = "aws:ec2/vpc:Vpc"
#: The node classes of each cloud.
NODE_CLASSES: Final[Mapping[str, NodeClassKind]] = {"aws": EC2_NODE_CLASS, "azure": AKS_NODE_CLASS}


@dataclass(frozen=True)
class Subject:
    """A stack that is up.

    Attributes:
        cluster: Its cluster.
        outputs: Its outputs.
        aws: Its account; None on another cloud.
        azure: Its subscription; None on another cloud, or where nothing says which.
        state: What Pulumi has made; None where it was not asked.
        configured: The stack's configuration, as its file has it; empty where there is none.
    """

    cluster: Lister
    outputs: Mapping[str, Any]
    aws: Aws | None = None
    azure: Azure | None = None
    state: State | None = None
    configured: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> AksNames:
        """Physical names on Azure, which follow from the cluster's."""
        return AksNames(str(self.outputs.get("clusterName", "")))

    def claimed(self) -> set[str]:
        """The last parts of the provider IDs that NodeClaims have, in lower case: an instance, or a machine's name.

        Raises:
            NotAskedError: The cluster does not tell.
        """
        return {
            str((claim.get("status") or {}).get("providerID", "")).rpartition("/")[2].lower()
            for claim in self.cluster.list(NODE_CLAIMS)
        }

    @property
    def cloud(self) -> str:
        """`aws` or `azure`."""
        return str(self.outputs.get("cloud", ""))

    @property
    def is_managed(self) -> bool:
        """Whether the cloud runs Karpenter: then its objects and nodes go with the cluster."""
        return self.outputs.get("karpenterVersion") == "managed"

    @property
    def outlives_the_stack(self) -> bool:
        """Whether the cluster is somebody else's, and stays with all that is in it but Karpenter and its nodes."""
        return bool(self.setting("cluster", "existing"))

    def setting(self, section: str, key: str) -> Any:
        """A setting as the stack's file has it, for example `cluster` and `deletionProtection`; None if it has not."""
        return setting(self.configured, section, key)

    @property
    def vpcs(self) -> list[str]:
        """The stack's own VPCs on AWS, as far as its state was asked."""
        return sorted(identifier for kind, identifier in (self.state.resources if self.state else ()) if kind == _VPC)

    def own(self, *outputs: str) -> set[str]:
        """Names that the stack lists in some of its outputs."""
        return {str(name) for output in outputs for name in self.outputs.get(output) or ()}

    def pods_on_karpenters_nodes(self) -> list[tuple[Object, str]]:
        """Pods that a drain has to move, each with the NodePool of its node. DaemonSets' pods are not drained.

        Raises:
            NotAskedError: The cluster does not tell.
        """
        pools = {name_of(node): pool for node in self.cluster.list(NODES) if (pool := labels_of(node).get(POOL_LABEL))}
        return [
            (pod, pools[where])
            for pod in self.cluster.list(PODS)
            if (where := (pod.get("spec") or {}).get("nodeName")) in pools
            and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
            and all(owner.get("kind") != "DaemonSet" for owner in pod["metadata"].get("ownerReferences") or ())
        ]

    def grace(self, pool: str) -> str:
        """How long pods can hold a NodePool's nodes at most, in words.

        A NodeClaim has the grace that its NodePool had when it was made, so the claims say it where there are any.

        Raises:
            NotAskedError: The cluster does not tell.
        """
        pools = [found for found in self.cluster.list(NODE_POOLS) if name_of(found) == pool]
        claims = [found for found in self.cluster.list(NODE_CLAIMS) if labels_of(found).get(POOL_LABEL) == pool]
        specs = [found["spec"] for found in claims] or [found["spec"]["template"]["spec"] for found in pools]
        periods = [spec.get("terminationGracePeriod") for spec in specs]
        if not periods or None in periods:
            return FOR_EVER
        return max(map(str, periods), key=duration)


def name_of(found: Object) -> str:
    """An object's name, after its namespace where it has one."""
    metadata = found["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else str(metadata["name"])


def labels_of(found: Object) -> Mapping[str, str]:
    """An object's labels."""
    return found["metadata"].get("labels") or {}


def annotations_of(found: Object) -> Mapping[str, str]:
    """An object's annotations."""
    return found["metadata"].get("annotations") or {}


def kubectl(verb: str, kind: str, found: Object) -> str:
    """The command that does something to one object."""
    metadata = found["metadata"]
    where = f" --namespace {quote(str(metadata['namespace']))}" if metadata.get("namespace") else ""
    return f"kubectl {verb} {kind}{where} {quote(str(metadata['name']))}"
