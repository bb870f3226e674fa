"""The fields of a pod that its scheduling and disruption depend on, in the form of Kubernetes."""

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
    values: Some[LabelValue] = Field([], description="The values for In and NotIn.")


class LabelSelector(Model):
    """A selector for pods or namespaces; an empty one selects all."""

    match_labels: Labels = Field(default_factory=dict, description="Labels that they have.")
    match_expressions: Some[LabelRequirement] = Field([], description="Requirements that they meet.")


class NodeRequirement(Model):
    """One requirement of a node selector's term."""

    key: LabelKey = Field(description="Key of a label of nodes.")
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"] = Field(
        description="In, NotIn, Exists, DoesNotExist, Gt or Lt."
    )
    values: Some[LabelValue] = Field([], description="The values.")


class FieldRequirement(Model):
    """A requirement of the name of a node."""

    key: Literal["metadata.name"] = Field(description="The field, `metadata.name`.")
    operator: Literal["In", "NotIn"] = Field(description="In or NotIn.")
    values: Some[Name] = Field([], description="Names of nodes.")


class NodeSelectorTerm(Model):
    """Requirements that must all be met."""

    match_expressions: Some[NodeRequirement] = Field([], description="Of the node's labels.")
    match_fields: Some[FieldRequirement] = Field([], description="Of its name.")


class NodeSelector(Model):
    """Terms of which one must be met."""

    node_selector_terms: Some[NodeSelectorTerm] = Field([], description="The terms.")


class PreferredNodes(Model):
    """Nodes that are preferred."""

    weight: _Weight = Field(description="The weight, 1 to 100.")
    preference: NodeSelectorTerm = Field(description="The preference.")


class NodeAffinity(Model):
    """The nodes that a pod requires and those that it prefers."""

    required: NodeSelector | None = Field(
        None,
        alias="requiredDuringSchedulingIgnoredDuringExecution",
        description="Required nodes: `requiredDuringSchedulingIgnoredDuringExecution`.",
    )
    preferred: Some[PreferredNodes] = Field(
        [],
        alias="preferredDuringSchedulingIgnoredDuringExecution",
        description="Preferred nodes: `preferredDuringSchedulingIgnoredDuringExecution`.",
    )


class PodAffinityTerm(Model):
    """The selected pods, and the topology domain."""

    label_selector: LabelSelector | None = Field(None, description="The pods' labels; selects no pods if omitted.")
    namespaces: Some[Namespace] = Field(
        [], description="Their namespaces; the pod's own if this and `namespaceSelector` are omitted."
    )
    namespace_selector: LabelSelector | None = Field(None, description="Labels of their namespaces.")
    topology_key: LabelKey = Field(description="Label of nodes whose values are the domains.")
    match_label_keys: Some[LabelKey] = Field([], description="Labels whose values are the same as those of the pod.")
    mismatch_label_keys: Some[LabelKey] = Field([], description="Labels whose values differ from those of the pod.")


class PreferredPods(Model):
    """Pods that a pod prefers to be near."""

    weight: _Weight = Field(description="The weight, 1 to 100.")
    pod_affinity_term: PodAffinityTerm = Field(description="The preference.")


class PodAffinity(Model):
    """Affinity or anti-affinity of a pod to other pods."""

    required: Some[PodAffinityTerm] = Field(
        [],
        alias="requiredDuringSchedulingIgnoredDuringExecution",
        description="Required: `requiredDuringSchedulingIgnoredDuringExecution`.",
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
    pod_anti_affinity: PodAffinity | None = Field(None, description="Anti-affinity to other pods.")


class TopologySpreadConstraint(Model):
    """How pods are spread."""

    max_skew: Annotated[int, Field(ge=1, le=2**31 - 1)] = Field(
        description="Maximum difference in pods between two domains."
    )
    topology_key: LabelKey = Field(description="Label of nodes whose values are the domains.")
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"] = Field(
        description="Whether a pod stays pending if it would violate the constraint."
    )
    label_selector: LabelSelector | None = Field(None, description="The pods that count; none if omitted.")
    min_domains: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = Field(
        None, description="With fewer domains, no domain gets more than `maxSkew` pods."
    )
    node_affinity_policy: Literal["Honor", "Ignore"] | None = Field(
        None, description="Whether only nodes that match the pod's node affinity count."
    )
    node_taints_policy: Literal["Honor", "Ignore"] | None = Field(
        None, description="Whether only nodes whose taints the pod tolerates count."
    )
    match_label_keys: Some[LabelKey] = Field(
        [], description="Labels whose values must be the same as those of the pod."
    )


class Toleration(Model):
    """A taint that a pod tolerates."""

    key: LabelKey | None = Field(None, description="Its key; every key if omitted.")
    operator: Literal["Equal", "Exists", "Lt", "Gt"] | None = Field(
        None, description="Equal (default), Exists, Lt or Gt."
    )
    value: LabelValue | None = Field(None, description="Its value.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        None, description="Its effect; every effect if omitted."
    )
    toleration_seconds: Annotated[int, Field(ge=-(2**63), le=2**63 - 1)] | None = Field(
        None, description="How long NoExecute is tolerated."
    )


class HostPort(Model):
    """A port of the node that a pod uses."""

    port: _Port = Field(description="The port.")
    protocol: Literal["TCP", "UDP", "SCTP"] = Field("TCP", description="TCP (default), UDP or SCTP.")
    host_ip: IpAddress | None = Field(None, alias="hostIP", description="The node's address; all addresses if omitted.")


class VolumePlace(Model):
    """The zones of existing volumes."""

    zones: Annotated[list[Word], Field(min_length=1, max_length=100)] = Field(
        description="Zones from which a volume can be reached; several for a regional volume."
    )
    pods: Pods = Field(description="Number of the workload's pods with a volume there.")


class Volume(Model):
    """A persistent volume of each pod, or one that all pods of a workload share."""

    size: Quantity = Field(description="The size.")
    storage_class: Name | None = Field(None, description="Name of its StorageClass; the cluster's default if omitted.")
    access_modes: list[AccessMode] = Field(
        default=["ReadWriteOnce"], min_length=1, max_length=4, description="Its access modes."
    )
    claim: Name | None = Field(
        None, description="Name of the claim that all pods share; if omitted, each pod has its own."
    )
    ephemeral: bool = Field(False, description="Whether it is created and deleted with its pod.")
    places: Some[VolumePlace] = Field(
        [],
        description="Zones of existing volumes; none if they can be reached from every zone, or do not exist yet.",
    )


class Pod(Model):
    """The pod that all replicas of a workload share."""

    labels: Labels = Field(default_factory=dict, description="Labels that budgets, affinities and spread select by.")
    requests: Resources = Field(
        default_factory=dict,
        description="Effective requests, including init containers, sidecars and overhead.",
    )
    node_selector: Labels = Field(default_factory=dict, description="Required node labels.")
    affinity: Affinity | None = Field(None, description="Its affinity.")
    tolerations: Some[Toleration] = Field([], description="Its tolerations, without those that every pod gets.")
    topology_spread_constraints: Some[TopologySpreadConstraint] = Field(
        [], description="Its topology spread constraints."
    )
    priority_class_name: Name | None = Field(None, description="Name of its PriorityClass.")
    priority: _Priority | None = Field(None, description="The priority of that class.")
    preemption_policy: Literal["PreemptLowerPriority", "Never"] | None = Field(
        None, description="Whether it may preempt others."
    )
    host_ports: Some[HostPort] = Field([], description="Ports of the node that it uses.")
    do_not_disrupt: Text | None = Field(
        None, description="The value of the annotation `karpenter.sh/do-not-disrupt`, if it has one."
    )
    deletion_cost: _Priority | None = Field(
        None, description="The value of `controller.kubernetes.io/pod-deletion-cost`."
    )
    termination_grace_period_seconds: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = Field(
        None, description="Seconds that it has to terminate."
    )
    scheduler_name: Name | None = Field(None, description="Its scheduler, if it is not the default one.")
