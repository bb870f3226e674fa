"""The format of a snapshot, version 1: the source of `schema.json` and of the tables in docs/reference/snapshot.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, Final, Literal, Self, TypeVar

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
from .problems import refuse

#: What a file says that it is, and the version of the format that is written.
KIND: Final = "karpstack-snapshot"
VERSION: Final = 1

_Price = Annotated[float, Field(ge=0, le=100_000)]
_Count = Annotated[int, Field(ge=0, le=2**53)]
#: Pods that a budget wants, which may be more than there are: then it lets none go.
_OfBudget = Annotated[int, Field(ge=0, le=2**31 - 1)]
#: Of a kind of objects; a cluster of 5,000 nodes has a quarter of them.
_Item = TypeVar("_Item")
Many = Annotated[list[_Item], Field(max_length=20_000)]


class LeftOut(Model):
    """Something of the cluster that is not in the snapshot."""

    what: Text = Field(description="Kind of object or field.")
    count: _Count = Field(description="Number of these.")
    why: Text = Field(description="Why it is not included.")


class Cluster(Model):
    """The cluster that it was."""

    cloud: Word | None = Field(None, description="`aws`, `azure`, or another name from its nodes; null if unknown.")
    region: Word | None = Field(None, description="Region of most of its nodes.")
    kubernetes: Version | None = Field(None, description="Version of most of its kubelets.")
    nodes: _Count = Field(0, description="Number of nodes.")
    pods: _Count = Field(0, description="Number of pods that had not ended.")


class NamespaceOf(Model):
    """A namespace."""

    name: Namespace = Field(description="Its name.")
    labels: Labels = Field(default_factory=dict, description="Labels that affinities use to select namespaces.")


class PriorityClass(Model):
    """A PriorityClass."""

    name: Name = Field(description="Its name.")
    value: Annotated[int, Field(ge=-(2**31), le=1_000_000_000)] = Field(
        description="The priority; values above 1,000,000,000 are reserved for Kubernetes."
    )
    preemption_policy: Literal["PreemptLowerPriority", "Never"] | None = Field(
        None, description="Whether its pods may preempt others."
    )


class Controller(Model):
    """What keeps the pods of a workload."""

    api_version: ApiVersion = Field(description="Its API version, `apps/v1` for a Deployment.")
    kind: Kind = Field(
        description="Deployment, StatefulSet, DaemonSet, Job, CronJob, Pod (no controller), or a custom kind."
    )


class Workload(Model):
    """Pods of one controller that are alike in all that scheduling depends on."""

    namespace: Namespace = Field(description="Namespace of the pods.")
    name: Name = Field(description="The controller's name, with a number appended if its pods differ.")
    controller: Controller = Field(description="Their controller.")
    replicas: Pods = Field(description="Number of pods; for a DaemonSet, number of nodes that run one.")
    pod: Pod = Field(description="The pod that all replicas share.")
    volumes: Annotated[list[Volume], Field(max_length=100)] = Field(
        default_factory=list, description="Their persistent volumes."
    )
    nodes: dict[Name, Pods] = Field(default_factory=dict, description="Node -> number of its pods there.")

    @model_validator(mode="after")
    def _counted(self) -> Self:
        if sum(self.nodes.values()) > self.replicas:
            raise refuse("snapshot-more-on-nodes", there=sum(self.nodes.values()), replicas=self.replicas)
        return self

    @property
    def pending(self) -> int:
        """How many of the pods are on no node."""
        return self.replicas - sum(self.nodes.values())


class PodDisruptionBudget(Model):
    """A PodDisruptionBudget."""

    namespace: Namespace = Field(description="Its namespace.")
    name: Name = Field(description="Its name.")
    selector: LabelSelector | None = Field(None, description="The selected pods; none if omitted.")
    min_available: _OfBudget | Share | None = Field(None, description="Minimum number or percentage of available pods.")
    max_unavailable: _OfBudget | Share | None = Field(
        None, description="Maximum number or percentage of unavailable pods."
    )
    unhealthy_pod_eviction_policy: Literal["IfHealthyBudget", "AlwaysAllow"] | None = Field(
        None, description="Whether pods that are not ready may always be evicted."
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if self.min_available is not None and self.max_unavailable is not None:
            raise refuse("snapshot-budget-both")
        return self


class Taint(Model):
    """A taint of a node."""

    key: LabelKey = Field(description="Its key.")
    value: LabelValue | None = Field(None, description="Its value.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = Field(
        description="Effect on pods that do not tolerate it."
    )


class Bought(Model):
    """What nodes and NodeClaims have in common."""

    name: Name = Field(description="Its name.")
    node_pool: Name | None = Field(None, description="NodePool that created it.")
    instance_type: Word | None = Field(None, description="Instance type.")
    zone: Word | None = Field(None, description="Zone.")
    capacity_type: Word | None = Field(None, description="spot, on-demand or reserved.")
    created: Time | None = Field(None, description="Creation time.")
    price_per_hour: _Price | None = Field(
        None, description="USD; null if the facts have no price, for example for spot."
    )
    deleting: bool = Field(False, description="Whether it is being deleted: it has a `deletionTimestamp`.")


class Node(Bought):
    """A node."""

    node_claim: Name | None = Field(None, description="Its NodeClaim.")
    architecture: Word | None = Field(None, description="amd64 or arm64.")
    labels: Labels = Field(default_factory=dict, description="Other labels that pods use to select nodes.")
    taints: Annotated[list[Taint], Field(max_length=100)] = Field(default_factory=list, description="Its taints.")
    unschedulable: bool = Field(False, description="Whether it is cordoned.")
    ready: bool = Field(True, description="Whether its kubelet reports it as ready.")
    do_not_disrupt: bool = Field(
        False,
        description='Whether it has the annotation `karpenter.sh/do-not-disrupt: "true"`, which stops disruption.',
    )
    capacity: Resources = Field(default_factory=dict, description="Its total resources.")
    allocatable: Resources = Field(default_factory=dict, description="Resources that pods can request.")


class NodeClaim(Bought):
    """A NodeClaim."""

    node: Name | None = Field(None, description="Its node.")
    node_class: Name | None = Field(None, description="Name of its node class.")
    conditions: Annotated[list[Kind], Field(max_length=100)] = Field(
        default_factory=list,
        description="Conditions that are true: Launched, Registered, Initialized, Consolidatable, Drifted, ...",
    )
    requests: Resources = Field(default_factory=dict, description="Resource requests for which it was launched.")
    expire_after: Text | None = Field(None, description="Lifetime until Karpenter replaces it, in Karpenter's format.")


class _Outline(BaseModel):
    """What is read of the `spec` of a NodePool or a NodeOverlay; the rest is Karpenter's."""

    model_config = ConfigDict(extra="ignore", strict=True)


class _Requirement(_Outline):
    key: LabelKey
    operator: Word
    values: list[LabelValue] = Field(default_factory=list)


class _Labelled(_Outline):
    labels: Labels = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)


class _Reference(_Outline):
    name: Name
    kind: Word | None = None
    group: Word | None = None


class _PoolTaint(Taint):
    time_added: Annotated[Time, Field(strict=False)] | None = None  # the CRD has it; it decides nothing


class _OfNode(_Outline):
    requirements: list[_Requirement] = Field(default_factory=list)
    taints: list[_PoolTaint] = Field(default_factory=list)
    startup_taints: list[_PoolTaint] = Field(default_factory=list, alias="startupTaints")
    node_class: _Reference | None = Field(None, alias="nodeClassRef")


class _Template(_Outline):
    metadata: _Labelled = Field(default_factory=_Labelled)
    spec: _OfNode = Field(default_factory=_OfNode)


class _Disruption(_Outline):
    budgets: list[dict[str, JsonValue]] = Field(default_factory=list)


# The CRDs keep numbers as they are.
_Amounts = dict[LabelKey, int | float | Quantity]


class _PoolSpec(_Outline):
    limits: _Amounts = Field(default_factory=dict)
    template: _Template = Field(default_factory=_Template)
    disruption: _Disruption = Field(default_factory=_Disruption)


class _OverlaySpec(_Outline):
    requirements: list[_Requirement] = Field(default_factory=list)
    capacity: _Amounts = Field(default_factory=dict)


def _outlined(outline: type[_Outline], code: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a validator of a `spec` that is kept as it is, without nulls, which an API server drops."""

    def check(spec: dict[str, Any]) -> dict[str, Any]:
        spec = _without_nulls(spec)
        try:
            outline.model_validate(spec, by_alias=True)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"]))
            raise refuse(code, place=place, message=f"{place}: {first['msg']}") from error
        return spec

    return check


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value


_READY: Final = "Whether Karpenter launches nodes of it: its condition Ready, and it is not being deleted."


class NodePool(Model):
    """A NodePool."""

    name: Name = Field(description="Its name.")
    spec: Annotated[dict[str, JsonValue], AfterValidator(_outlined(_PoolSpec, "snapshot-node-pool"))] = Field(
        description="Its `spec` in Karpenter's format, without annotations."
    )
    ready: bool = Field(True, description=_READY)


class NodeClass(Model):
    """A node class."""

    api_version: ApiVersion = Field(description="Its API version.")
    kind: Kind = Field(description="EC2NodeClass or AKSNodeClass.")
    name: Name = Field(description="Its name.")
    spec: dict[str, JsonValue] = Field(
        default_factory=dict, description="The part of its `spec` that determines node size and pods per node."
    )
    zones: Annotated[list[Word], Field(max_length=100)] = Field(
        default_factory=list, description="Zones of its subnets, if its status contains them."
    )
    architectures: Annotated[list[Word], Field(max_length=100)] = Field(
        default_factory=list, description="Architectures of its images, if its status contains them."
    )
    ready: bool = Field(True, description=_READY)


class NodeOverlay(Model):
    """A NodeOverlay."""

    name: Name = Field(description="Its name.")
    spec: Annotated[dict[str, JsonValue], AfterValidator(_outlined(_OverlaySpec, "snapshot-node-overlay"))] = Field(
        description="Its `spec` in Karpenter's format."
    )
    ready: bool = Field(True, description="Whether Karpenter uses it: its condition Ready.")


class Karpenter(Model):
    """Karpenter's controller."""

    version: Version | None = Field(None, description="Its version.")
    feature_gates: Annotated[dict[Word, bool], Field(max_length=100)] = Field(
        default_factory=dict, description="Its feature gates, as the Helm chart names them."
    )
    settings: Annotated[dict[Word, Word], Field(max_length=100)] = Field(
        default_factory=dict,
        description="Those of its settings that decide what it does, as the Helm chart names them.",
    )


class Snapshot(Model):
    """The whole file."""

    kind: Literal["karpstack-snapshot"] = Field(description="`karpstack-snapshot`.")
    version: Literal[1] = Field(description="Version of the format: 1.")
    taken: Time = Field(description="Time of the snapshot.")
    source: Literal["cluster", "exports", "kubereplay", "simkube", "made"] = Field(
        description="Its source: a cluster, exports of kubectl, files of kubereplay or SimKube, or generated (`made`)."
    )
    anonymised: bool = Field(False, description="Whether hashes replace names and values.")
    cluster: Cluster = Field(default_factory=Cluster, description="The original cluster.")
    namespaces: Many[NamespaceOf] = Field([], description="Namespaces of workloads.")
    priority_classes: Many[PriorityClass] = Field([], description="PriorityClasses.")
    workloads: Many[Workload] = Field([], description="Workloads.")
    pod_disruption_budgets: Many[PodDisruptionBudget] = Field([], description="PodDisruptionBudgets.")
    node_pools: Many[NodePool] = Field([], description="NodePools.")
    node_classes: Many[NodeClass] = Field([], description="Node classes.")
    node_overlays: Many[NodeOverlay] = Field([], description="NodeOverlays.")
    karpenter: Karpenter | None = Field(
        None, description="Karpenter's controller; null if its Deployment is not in the cluster, or is not known."
    )
    node_claims: Many[NodeClaim] = Field([], description="NodeClaims.")
    nodes: Many[Node] = Field([], description="Nodes.")
    left_out: Many[LeftOut] = Field([], description="What the file does not include.")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if twice := list(self._named_twice()):
            raise refuse("snapshot-named-twice", names=twice)
        if self.pods > MOST_PODS:
            raise refuse("snapshot-too-many-pods", count=self.pods, most=MOST_PODS)
        return self

    def _named_twice(self) -> Iterator[str]:
        named: dict[str, Iterable[Any]] = {
            "namespaces": (one.name for one in self.namespaces),
            "priorityClasses": (one.name for one in self.priority_classes),
            "workloads": (f"{one.namespace}/{one.name}" for one in self.workloads),
            "podDisruptionBudgets": (f"{one.namespace}/{one.name}" for one in self.pod_disruption_budgets),
            "nodePools": (one.name for one in self.node_pools),
            "nodeClasses": (f"{one.kind}/{one.name}" for one in self.node_classes),
            "nodeOverlays": (one.name for one in self.node_overlays),
            "nodeClaims": (one.name for one in self.node_claims),
            "nodes": (one.name for one in self.nodes),
        }
        for key, names in named.items():
            if twice := [name for name, count in Counter(names).items() if count > 1]:
                yield f"{key}: {', '.join(twice[:3])}"

    @property
    def pods(self) -> int:
        """How many pods there are."""
        return sum(workload.replicas for workload in self.workloads)
