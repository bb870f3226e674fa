"""The format of a snapshot, version 1. `schema.json` is made of it, and docs/snapshot.md tells of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from .formats import (
    MOST_PODS,
    ApiVersion,
    Kind,
    LabelKey,
    Labels,
    LabelValue,
    Model,
    Name,
    Namespace,
    Pods,
    Quantity,
    Resources,
    Share,
    Text,
    Time,
    Version,
    Word,
)
from .pod import LabelSelector, Pod, Volume

#: What a file says that it is, and the version of the format that is written.
KIND: Final = "karpstack-snapshot"
VERSION: Final = 1

_Price = Annotated[float, Field(ge=0, le=100_000)]
_Count = Annotated[int, Field(ge=0, le=2**53)]
#: Of a kind of objects; a cluster of 5,000 nodes has a quarter of them.
_Many: Any = Field(default_factory=list, max_length=20_000)


class LeftOut(Model):
    """Something of the cluster that is not in the snapshot.

    Attributes:
        what: What.
        count: How much of it.
        why: Why it is not there.
    """

    what: Text
    count: _Count
    why: Text


class Cluster(Model):
    """The cluster that it was.

    Attributes:
        cloud: `aws` or `azure`, or another that its nodes name; null where nothing says.
        region: Region of most of its nodes.
        kubernetes: Version of most of its kubelets.
        nodes: How many nodes it had.
        pods: How many pods it had that had not ended.
    """

    cloud: Word | None = None
    region: Word | None = None
    kubernetes: Version | None = None
    nodes: _Count = 0
    pods: _Count = 0


class NamespaceOf(Model):
    """A namespace.

    Attributes:
        name: Its name.
        labels: Those by which affinities select namespaces.
    """

    name: Namespace
    labels: Labels = Field(default_factory=dict)


class PriorityClass(Model):
    """A PriorityClass.

    Attributes:
        name: Its name.
        value: The priority, of which Kubernetes keeps those above 1,000,000,000 for itself.
        preemption_policy: Whether its pods may take the place of others.
    """

    name: Name
    value: Annotated[int, Field(ge=-(2**31), le=1_000_000_000)]
    preemption_policy: Literal["PreemptLowerPriority", "Never"] | None = None


class Controller(Model):
    """What keeps the pods of a workload.

    Attributes:
        api_version: Its API version, `apps/v1` for a Deployment.
        kind: Its kind: Deployment, StatefulSet, DaemonSet, Job, CronJob; Pod where there is none; or one of its own.
    """

    api_version: ApiVersion
    kind: Kind


class Workload(Model):
    """Pods of one controller that are alike in all that scheduling depends on.

    Attributes:
        namespace: Their namespace.
        name: The controller's name; with a number behind it where the controller has pods of several kinds.
        controller: What keeps them.
        replicas: How many there are; of a DaemonSet, on how many nodes one is.
        pod: What they have in common.
        volumes: Their persistent volumes.
        nodes: Node -> how many of them are on it.
    """

    namespace: Namespace
    name: Name
    controller: Controller
    replicas: Pods
    pod: Pod
    volumes: Annotated[list[Volume], Field(max_length=100)] = Field(default_factory=list)
    nodes: dict[Name, Pods] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _counted(self) -> Self:
        if sum(self.nodes.values()) > self.replicas:
            raise ValueError(
                f"more pods are on nodes ({sum(self.nodes.values())}) than there are ({self.replicas}); mend replicas"
            )
        return self

    @property
    def pending(self) -> int:
        """How many of the pods are on no node."""
        return self.replicas - sum(self.nodes.values())


class PodDisruptionBudget(Model):
    """A PodDisruptionBudget.

    Attributes:
        namespace: Its namespace.
        name: Its name.
        selector: The pods that it is about; none where it is not said.
        min_available: How many of them, or which share, have to be there.
        max_unavailable: How many of them, or which share, may be away.
        unhealthy_pod_eviction_policy: Whether pods that are not ready may be evicted in any case.
    """

    namespace: Namespace
    name: Name
    selector: LabelSelector | None = None
    min_available: Pods | Share | None = None
    max_unavailable: Pods | Share | None = None
    unhealthy_pod_eviction_policy: Literal["IfHealthyBudget", "AlwaysAllow"] | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if self.min_available is not None and self.max_unavailable is not None:
            raise ValueError("minAvailable and maxUnavailable are both there, which Kubernetes refuses; leave one out")
        return self


class Taint(Model):
    """A taint of a node.

    Attributes:
        key: Its key.
        value: Its value.
        effect: What it does to pods that do not tolerate it.
    """

    key: LabelKey
    value: LabelValue | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class Bought(Model):
    """What nodes and NodeClaims have in common.

    Attributes:
        name: Its name.
        node_pool: NodePool that made it.
        instance_type: Instance type.
        zone: Zone.
        capacity_type: spot, on-demand or reserved.
        created: When it was made: its age.
        price_per_hour: USD; null where the facts do not say, for example of spot.
    """

    name: Name
    node_pool: Name | None = None
    instance_type: Word | None = None
    zone: Word | None = None
    capacity_type: Word | None = None
    created: Time | None = None
    price_per_hour: _Price | None = None


class Node(Bought):
    """A node.

    Attributes:
        node_claim: NodeClaim that it belongs to.
        architecture: amd64 or arm64.
        labels: Others by which pods select nodes.
        taints: Its taints.
        unschedulable: Whether it is cordoned.
        ready: Whether its kubelet says that it is ready.
        do_not_disrupt: Whether it has the annotation `karpenter.sh/do-not-disrupt: "true"`, so that Karpenter keeps it.
        capacity: What it has.
        allocatable: What of this pods may ask for.
    """

    node_claim: Name | None = None
    architecture: Word | None = None
    labels: Labels = Field(default_factory=dict)
    taints: Annotated[list[Taint], Field(max_length=100)] = Field(default_factory=list)
    unschedulable: bool = False
    ready: bool = True
    do_not_disrupt: bool = False
    capacity: Resources = Field(default_factory=dict)
    allocatable: Resources = Field(default_factory=dict)


class NodeClaim(Bought):
    """A NodeClaim.

    Attributes:
        node: Node that it became.
        node_class: Name of its node class.
        conditions: Conditions that are true: Launched, Registered, Initialized, Consolidatable, Drifted, ...
        requests: What it was launched for.
        expire_after: When it is replaced, in Karpenter's words.
    """

    node: Name | None = None
    node_class: Name | None = None
    conditions: Annotated[list[Kind], Field(max_length=100)] = Field(default_factory=list)
    requests: Resources = Field(default_factory=dict)
    expire_after: Text | None = None


class _Outline(BaseModel):
    """What is read of a NodePool's `spec`; the rest is Karpenter's."""

    model_config = ConfigDict(extra="ignore", strict=True)


class _Requirement(_Outline):
    key: LabelKey
    operator: Word
    values: list[LabelValue] = Field(default_factory=list)


class _Labelled(_Outline):
    labels: Labels = Field(default_factory=dict)


class _Reference(_Outline):
    name: Name


class _OfNode(_Outline):
    requirements: list[_Requirement] = Field(default_factory=list)
    taints: list[Taint] = Field(default_factory=list)
    startup_taints: list[Taint] = Field(default_factory=list, alias="startupTaints")
    node_class: _Reference | None = Field(None, alias="nodeClassRef")


class _Template(_Outline):
    metadata: _Labelled = Field(default_factory=_Labelled)
    spec: _OfNode = Field(default_factory=_OfNode)


class _PoolSpec(_Outline):
    limits: dict[LabelKey, int | float | Quantity] = Field(default_factory=dict)  # the CRD keeps numbers as they are
    template: _Template = Field(default_factory=_Template)


def _pool_spec(spec: dict[str, Any]) -> dict[str, Any]:
    try:
        _PoolSpec.model_validate(spec, by_alias=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(f"{place}: {first['msg']}; no NodePool of Karpenter's is so; mend it") from error
    return spec


class NodePool(Model):
    """A NodePool.

    Attributes:
        name: Its name.
        spec: Its `spec`, as Karpenter has it, without annotations.
    """

    name: Name
    spec: Annotated[dict[str, JsonValue], AfterValidator(_pool_spec)]


class NodeClass(Model):
    """A node class.

    Attributes:
        api_version: Its API version.
        kind: EC2NodeClass or AKSNodeClass.
        name: Its name.
        spec: What of its `spec` says how large nodes are and how many pods they take.
        zones: Zones of its subnets, where its status has them.
    """

    api_version: ApiVersion
    kind: Kind
    name: Name
    spec: dict[str, JsonValue] = Field(default_factory=dict)
    zones: Annotated[list[Word], Field(max_length=100)] = Field(default_factory=list)


class Snapshot(Model):
    """The whole file.

    Attributes:
        kind: `karpstack-snapshot`.
        version: Version of the format, 1.
        taken: When it was taken.
        source: What it was made of: a cluster, exports of kubectl, kubereplay's or SimKube's files; or it is made up.
        anonymised: Whether names and values are replaced by hashes.
        cluster: The cluster that it was.
        namespaces: Namespaces of workloads.
        priority_classes: PriorityClasses.
        workloads: Workloads.
        pod_disruption_budgets: PodDisruptionBudgets.
        node_pools: NodePools.
        node_classes: Node classes.
        node_claims: NodeClaims.
        nodes: Nodes.
        left_out: What is not in the file.
    """

    kind: Literal["karpstack-snapshot"]
    version: Literal[1]
    taken: Time
    source: Literal["cluster", "exports", "kubereplay", "simkube", "made"]
    anonymised: bool = False
    cluster: Cluster = Field(default_factory=Cluster)
    namespaces: list[NamespaceOf] = _Many
    priority_classes: list[PriorityClass] = _Many
    workloads: list[Workload] = _Many
    pod_disruption_budgets: list[PodDisruptionBudget] = _Many
    node_pools: list[NodePool] = _Many
    node_classes: list[NodeClass] = _Many
    node_claims: list[NodeClaim] = _Many
    nodes: list[Node] = _Many
    left_out: list[LeftOut] = _Many

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if wrong := list(self._contradictions()):
            raise ValueError("; ".join(wrong))
        return self

    def _contradictions(self) -> Iterator[str]:
        named: dict[str, Iterable[Any]] = {
            "namespaces": (one.name for one in self.namespaces),
            "priorityClasses": (one.name for one in self.priority_classes),
            "workloads": (f"{one.namespace}/{one.name}" for one in self.workloads),
            "podDisruptionBudgets": (f"{one.namespace}/{one.name}" for one in self.pod_disruption_budgets),
            "nodePools": (one.name for one in self.node_pools),
            "nodeClasses": (f"{one.kind}/{one.name}" for one in self.node_classes),
            "nodeClaims": (one.name for one in self.node_claims),
            "nodes": (one.name for one in self.nodes),
        }
        for key, names in named.items():
            if twice := [name for name, count in Counter(names).items() if count > 1]:
                yield f"{key} has {', '.join(twice[:3])} twice, of which one would be lost; rename or remove one"
        if self.pods > MOST_PODS:
            yield f"there are {self.pods} pods, more than any cluster holds ({MOST_PODS}); take a part of them"

    @property
    def pods(self) -> int:
        """How many pods there are."""
        return sum(workload.replicas for workload in self.workloads)
