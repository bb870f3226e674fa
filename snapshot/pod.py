"""What of a pod its scheduling and disruption depend on, in Kubernetes' own words and of Kubernetes' own shape."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from pydantic import Field

from .formats import (
    IpAddress,
    LabelKey,
    Labels,
    LabelValue,
    Model,
    Name,
    Namespace,
    Pods,
    Quantity,
    Resources,
    Text,
    Word,
)

_Weight = Annotated[int, Field(ge=1, le=100)]
_Port = Annotated[int, Field(ge=1, le=65535)]
AccessMode = Literal["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]
_Priority = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
_Item = TypeVar("_Item")
Some = Annotated[list[_Item], Field(max_length=1000)]


class LabelRequirement(Model):
    """One requirement of a label selector."""

    key: LabelKey = Field(description="Key of a label of pods, or of namespaces.")
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = Field(description="In, NotIn, Exists or DoesNotExist.")
    values: Some[LabelValue] = Field([], description="The values that In and NotIn speak of.")


class LabelSelector(Model):
    """Which pods, or which namespaces; an empty one selects all."""

    match_labels: Labels = Field(default_factory=dict, description="Labels that they have.")
    match_expressions: Some[LabelRequirement] = Field([], description="Requirements that they meet.")


class NodeRequirement(Model):
    """One requirement of a node selector's term."""

    key: LabelKey = Field(description="Key of a label of nodes.")
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"] = Field(
        description="In, NotIn, Exists, DoesNotExist, Gt or Lt."
    )
    values: Some[LabelValue] = Field([], description="The values that it speaks of.")


class FieldRequirement(Model):
    """A requirement of the name of a node."""

    key: Literal["metadata.name"] = Field(description="The field, `metadata.name`.")
    operator: Literal["In", "NotIn"] = Field(description="In or NotIn.")
    values: Some[Name] = Field([], description="Names of nodes.")


class NodeSelectorTerm(Model):
    """Requirements that hold together."""

    match_expressions: Some[NodeRequirement] = Field([], description="Of the node's labels.")
    match_fields: Some[FieldRequirement] = Field([], description="Of its name.")


class NodeSelector(Model):
    """Terms of which one has to hold."""

    node_selector_terms: Some[NodeSelectorTerm] = Field([], description="The terms.")


class PreferredNodes(Model):
    """Nodes that are preferred."""

    weight: _Weight = Field(description="How much, 1 to 100.")
    preference: NodeSelectorTerm = Field(description="Which.")


class NodeAffinity(Model):
    """Which nodes a pod needs, and which it prefers."""

    required: NodeSelector | None = Field(
        None,
        alias="requiredDuringSchedulingIgnoredDuringExecution",
        description="Those that it needs: `requiredDuringSchedulingIgnoredDuringExecution`.",
    )
    preferred: Some[PreferredNodes] = Field(
        [],
        alias="preferredDuringSchedulingIgnoredDuringExecution",
        description="Those that it prefers: `preferredDuringSchedulingIgnoredDuringExecution`.",
    )


class PodAffinityTerm(Model):
    """Which pods it is about, and what "beside" them means."""

    label_selector: LabelSelector | None = Field(
        None, description="The pods' labels; none are meant where it is not said."
    )
    namespaces: Some[Namespace] = Field(
        [], description="Their namespaces; the pod's own where neither this nor `namespaceSelector` is said."
    )
    namespace_selector: LabelSelector | None = Field(None, description="Labels of their namespaces.")
    topology_key: LabelKey = Field(description="Label of nodes whose values are the domains.")
    match_label_keys: Some[LabelKey] = Field([], description="Labels in which they are like the pod itself.")
    mismatch_label_keys: Some[LabelKey] = Field([], description="Labels in which they are unlike it.")


class PreferredPods(Model):
    """Pods beside which one is preferred to be."""

    weight: _Weight = Field(description="How much, 1 to 100.")
    pod_affinity_term: PodAffinityTerm = Field(description="Which.")


class PodAffinity(Model):
    """Beside which pods a pod needs to be, or not to be, and prefers it."""

    required: Some[PodAffinityTerm] = Field(
        [],
        alias="requiredDuringSchedulingIgnoredDuringExecution",
        description="Needed: `requiredDuringSchedulingIgnoredDuringExecution`.",
    )
    preferred: Some[PreferredPods] = Field(
        [],
        alias="preferredDuringSchedulingIgnoredDuringExecution",
        description="Preferred: `preferredDuringSchedulingIgnoredDuringExecution`.",
    )


class Affinity(Model):
    """A pod's affinity."""

    node_affinity: NodeAffinity | None = Field(None, description="To nodes.")
    pod_affinity: PodAffinity | None = Field(None, description="To other pods.")
    pod_anti_affinity: PodAffinity | None = Field(None, description="Away from other pods.")


class TopologySpreadConstraint(Model):
    """How pods are spread."""

    max_skew: Annotated[int, Field(ge=1, le=2**31 - 1)] = Field(description="By how many pods two domains may differ.")
    topology_key: LabelKey = Field(description="Label of nodes whose values are the domains.")
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"] = Field(
        description="Whether a pod waits when it would break that."
    )
    label_selector: LabelSelector | None = Field(None, description="The pods that count; none where it is not said.")
    min_domains: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = Field(
        None, description="While there are fewer domains, none has more than `maxSkew` pods."
    )
    node_affinity_policy: Literal["Honor", "Ignore"] | None = Field(
        None, description="Whether domains count only where the pod's node affinity holds."
    )
    node_taints_policy: Literal["Honor", "Ignore"] | None = Field(
        None, description="Whether they count only where the pod tolerates the taints."
    )
    match_label_keys: Some[LabelKey] = Field(
        [], description="Labels in which the pods that count are like the pod itself."
    )


class Toleration(Model):
    """A taint that a pod tolerates."""

    key: LabelKey | None = Field(None, description="Its key; every key where it is not said.")
    operator: Literal["Equal", "Exists", "Lt", "Gt"] | None = Field(
        None, description="Equal, where it is not said, Exists, Lt or Gt."
    )
    value: LabelValue | None = Field(None, description="Its value.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        None, description="Its effect; every effect where it is not said."
    )
    toleration_seconds: Annotated[int, Field(ge=-(2**63), le=2**63 - 1)] | None = Field(
        None, description="For how long NoExecute is tolerated."
    )


class HostPort(Model):
    """A port of its node that a pod takes."""

    port: _Port = Field(description="The port.")
    protocol: Literal["TCP", "UDP", "SCTP"] = Field("TCP", description="TCP, where it is not said, UDP or SCTP.")
    host_ip: IpAddress | None = Field(
        None, alias="hostIP", description="The node's address that it is of; all where it is not said."
    )


class VolumePlace(Model):
    """Where volumes are that exist."""

    zones: Annotated[list[Word], Field(min_length=1, max_length=100)] = Field(
        description="The zones from which one can be reached; several for a volume of a region."
    )
    pods: Pods = Field(description="How many of the workload's pods have theirs there.")


class Volume(Model):
    """A persistent volume of each pod, or one that all pods of a workload have together."""

    size: Quantity = Field(description="How large.")
    storage_class: Name | None = Field(
        None, description="Name of its StorageClass; the cluster's default where it is not said."
    )
    access_modes: list[AccessMode] = Field(
        default=["ReadWriteOnce"], min_length=1, max_length=4, description="How it may be mounted."
    )
    claim: Name | None = Field(
        None, description="Name of the claim that all pods have together; each has one of its own where it is not said."
    )
    ephemeral: bool = Field(False, description="Whether it comes and goes with its pod.")
    places: Some[VolumePlace] = Field(
        [],
        description="The zones of volumes that exist; none where they can be reached from anywhere, or are not made "
        "yet.",
    )


class Pod(Model):
    """What every pod of a workload has in common."""

    labels: Labels = Field(
        default_factory=dict, description="Those by which something selects pods: budgets, affinities, spread."
    )
    requests: Resources = Field(
        default_factory=dict,
        description="What the scheduler keeps room for, init containers, sidecars and overhead reckoned in.",
    )
    node_selector: Labels = Field(default_factory=dict, description="Labels of the nodes that it needs.")
    affinity: Affinity | None = Field(None, description="Its affinity.")
    tolerations: Some[Toleration] = Field(
        [], description="The taints that it tolerates, but for those that every pod gets."
    )
    topology_spread_constraints: Some[TopologySpreadConstraint] = Field([], description="How it is spread.")
    priority_class_name: Name | None = Field(None, description="Name of its PriorityClass.")
    priority: _Priority | None = Field(None, description="The number that this stands for.")
    preemption_policy: Literal["PreemptLowerPriority", "Never"] | None = Field(
        None, description="Whether it may take the place of others."
    )
    host_ports: Some[HostPort] = Field([], description="Ports of its node that it takes.")
    do_not_disrupt: Text | None = Field(
        None, description="The value of `karpenter.sh/do-not-disrupt`, where it has this annotation."
    )
    deletion_cost: _Priority | None = Field(
        None, description="The value of `controller.kubernetes.io/pod-deletion-cost`."
    )
    termination_grace_period_seconds: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = Field(
        None, description="How long it may take to end."
    )
    scheduler_name: Name | None = Field(None, description="Its scheduler, where it is not Kubernetes' own.")
