"""What of a pod its scheduling and disruption depend on, in Kubernetes' own words and of Kubernetes' own shape."""

from __future__ import annotations

from typing import Annotated, Any, Literal

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
_Some: Any = Field(default_factory=list, max_length=1000)


class LabelRequirement(Model):
    """One requirement of a label selector.

    Attributes:
        key: Key of a label of pods, or of namespaces.
        operator: In, NotIn, Exists or DoesNotExist.
        values: The values that In and NotIn speak of.
    """

    key: LabelKey
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: list[LabelValue] = _Some


class LabelSelector(Model):
    """Which pods, or which namespaces; an empty one selects all.

    Attributes:
        match_labels: Labels that they have.
        match_expressions: Requirements that they meet.
    """

    match_labels: Labels = Field(default_factory=dict)
    match_expressions: list[LabelRequirement] = _Some


class NodeRequirement(Model):
    """One requirement of a node selector's term.

    Attributes:
        key: Key of a label of nodes.
        operator: In, NotIn, Exists, DoesNotExist, Gt or Lt.
        values: The values that it speaks of.
    """

    key: LabelKey
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: list[LabelValue] = _Some


class FieldRequirement(Model):
    """A requirement of the name of a node.

    Attributes:
        key: The field, `metadata.name`.
        operator: In or NotIn.
        values: Names of nodes.
    """

    key: Literal["metadata.name"]
    operator: Literal["In", "NotIn"]
    values: list[Name] = _Some


class NodeSelectorTerm(Model):
    """Requirements that hold together.

    Attributes:
        match_expressions: Of the node's labels.
        match_fields: Of its name.
    """

    match_expressions: list[NodeRequirement] = _Some
    match_fields: list[FieldRequirement] = _Some


class NodeSelector(Model):
    """Terms of which one has to hold.

    Attributes:
        node_selector_terms: The terms.
    """

    node_selector_terms: list[NodeSelectorTerm] = _Some


class PreferredNodes(Model):
    """Nodes that are preferred.

    Attributes:
        weight: How much, 1 to 100.
        preference: Which.
    """

    weight: _Weight
    preference: NodeSelectorTerm


class NodeAffinity(Model):
    """Which nodes a pod needs, and which it prefers.

    Attributes:
        required: Those that it needs: `requiredDuringSchedulingIgnoredDuringExecution`.
        preferred: Those that it prefers: `preferredDuringSchedulingIgnoredDuringExecution`.
    """

    required: NodeSelector | None = Field(None, alias="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[PreferredNodes] = Field(
        default_factory=list, max_length=1000, alias="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(Model):
    """Which pods it is about, and what "beside" them means.

    Attributes:
        label_selector: The pods' labels; none are meant where it is not said.
        namespaces: Their namespaces; the pod's own where neither this nor `namespaceSelector` is said.
        namespace_selector: Labels of their namespaces.
        topology_key: Label of nodes whose values are the domains.
        match_label_keys: Labels in which they are like the pod itself.
        mismatch_label_keys: Labels in which they are unlike it.
    """

    label_selector: LabelSelector | None = None
    namespaces: list[Namespace] = _Some
    namespace_selector: LabelSelector | None = None
    topology_key: LabelKey
    match_label_keys: list[LabelKey] = _Some
    mismatch_label_keys: list[LabelKey] = _Some


class PreferredPods(Model):
    """Pods beside which one is preferred to be.

    Attributes:
        weight: How much, 1 to 100.
        pod_affinity_term: Which.
    """

    weight: _Weight
    pod_affinity_term: PodAffinityTerm


class PodAffinity(Model):
    """Beside which pods a pod needs to be, or not to be, and prefers it.

    Attributes:
        required: Needed: `requiredDuringSchedulingIgnoredDuringExecution`.
        preferred: Preferred: `preferredDuringSchedulingIgnoredDuringExecution`.
    """

    required: list[PodAffinityTerm] = Field(
        default_factory=list, max_length=1000, alias="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[PreferredPods] = Field(
        default_factory=list, max_length=1000, alias="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Model):
    """A pod's affinity.

    Attributes:
        node_affinity: To nodes.
        pod_affinity: To other pods.
        pod_anti_affinity: Away from other pods.
    """

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Model):
    """How pods are spread.

    Attributes:
        max_skew: By how many pods two domains may differ.
        topology_key: Label of nodes whose values are the domains.
        when_unsatisfiable: Whether a pod waits when it would break that.
        label_selector: The pods that count; none where it is not said.
        min_domains: While there are fewer domains, none has more than `maxSkew` pods.
        node_affinity_policy: Whether domains count only where the pod's node affinity holds.
        node_taints_policy: Whether they count only where the pod tolerates the taints.
        match_label_keys: Labels in which the pods that count are like the pod itself.
    """

    max_skew: Annotated[int, Field(ge=1, le=2**31 - 1)]
    topology_key: LabelKey
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    label_selector: LabelSelector | None = None
    min_domains: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    node_affinity_policy: Literal["Honor", "Ignore"] | None = None
    node_taints_policy: Literal["Honor", "Ignore"] | None = None
    match_label_keys: list[LabelKey] = _Some


class Toleration(Model):
    """A taint that a pod tolerates.

    Attributes:
        key: Its key; every key where it is not said.
        operator: Equal, where it is not said, Exists, Lt or Gt.
        value: Its value.
        effect: Its effect; every effect where it is not said.
        toleration_seconds: For how long NoExecute is tolerated.
    """

    key: LabelKey | None = None
    operator: Literal["Equal", "Exists", "Lt", "Gt"] | None = None
    value: LabelValue | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    toleration_seconds: Annotated[int, Field(ge=-(2**63), le=2**63 - 1)] | None = None


class HostPort(Model):
    """A port of its node that a pod takes.

    Attributes:
        port: The port.
        protocol: TCP, where it is not said, UDP or SCTP.
        host_ip: The node's address that it is of; all where it is not said.
    """

    port: _Port
    protocol: Literal["TCP", "UDP", "SCTP"] = "TCP"
    host_ip: IpAddress | None = Field(None, alias="hostIP")


class VolumePlace(Model):
    """Where volumes are that exist.

    Attributes:
        zones: The zones from which one can be reached; several for a volume of a region.
        pods: How many of the workload's pods have theirs there.
    """

    zones: Annotated[list[Word], Field(min_length=1, max_length=100)]
    pods: Pods


class Volume(Model):
    """A persistent volume of each pod, or one that all pods of a workload have together.

    Attributes:
        size: How large.
        storage_class: Name of its StorageClass; the cluster's default where it is not said.
        access_modes: How it may be mounted.
        claim: Name of the claim that all pods have together; each has one of its own where it is not said.
        ephemeral: Whether it comes and goes with its pod.
        places: The zones of volumes that exist; none where they can be reached from anywhere, or are not made yet.
    """

    size: Quantity
    storage_class: Name | None = None
    access_modes: list[AccessMode] = Field(default=["ReadWriteOnce"], min_length=1, max_length=4)
    claim: Name | None = None
    ephemeral: bool = False
    places: list[VolumePlace] = _Some


class Pod(Model):
    """What every pod of a workload has in common.

    Attributes:
        labels: Those by which something selects pods: budgets, affinities, spread.
        requests: What the scheduler keeps room for, init containers, sidecars and overhead reckoned in.
        node_selector: Labels of the nodes that it needs.
        affinity: Its affinity.
        tolerations: The taints that it tolerates, but for those that every pod gets.
        topology_spread_constraints: How it is spread.
        priority_class_name: Name of its PriorityClass.
        priority: The number that this stands for.
        preemption_policy: Whether it may take the place of others.
        host_ports: Ports of its node that it takes.
        do_not_disrupt: The value of `karpenter.sh/do-not-disrupt`, where it has this annotation.
        deletion_cost: The value of `controller.kubernetes.io/pod-deletion-cost`.
        termination_grace_period_seconds: How long it may take to end.
        scheduler_name: Its scheduler, where it is not Kubernetes' own.
    """

    labels: Labels = Field(default_factory=dict)
    requests: Resources = Field(default_factory=dict)
    node_selector: Labels = Field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: list[Toleration] = _Some
    topology_spread_constraints: list[TopologySpreadConstraint] = _Some
    priority_class_name: Name | None = None
    priority: _Priority | None = None
    preemption_policy: Literal["PreemptLowerPriority", "Never"] | None = None
    host_ports: list[HostPort] = _Some
    do_not_disrupt: Text | None = None
    deletion_cost: _Priority | None = None
    termination_grace_period_seconds: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    scheduler_name: Name | None = None
