"""What a scenario can expect of a step: its data. Whether it came true is judged in `assertions`."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from .formats import DAY, LONGEST_LIFE, Count, DnsLabel, DnsName, LabelKey, LabelValue, Model, Range, Reason, Text, Word
from .problems import refuse


class Replacement(Model):
    """Every node that was there when the step began (that was interrupted, in such a step) must be gone, others there.

    Attributes:
        cheaper: The new nodes cost less per hour than the old ones.
        smaller: The new nodes have fewer CPUs than the old ones.
    """

    cheaper: bool = True
    smaller: bool = False


class Pending(Model):
    """Some pods stay without a node, and no NodePool of the scenario ever had more than its limits.

    Attributes:
        pods: Number of pods.
        event: Reason of the controller's event on one of them.
        saying: Text that the event's message contains.
    """

    pods: Count = Range(min=1)
    event: Reason = "FailedScheduling"
    saying: Text = ""


def _none(value: object) -> object:
    return [] if value == "none" else value


class Places(Model):
    """Where nodes, or pods, are: how many in each place that is named, a number or `{min, max}`.

    Attributes:
        node_pools: NodePool -> number.
        zones: Zone -> number.
        capacity_types: Capacity type -> number.
        zone_count: Number of different zones.
    """

    node_pools: dict[DnsLabel, Count] = Field(default_factory=dict)
    zones: dict[Word, Count] = Field(default_factory=dict)
    capacity_types: dict[Literal["on-demand", "spot", "reserved"], Count] = Field(default_factory=dict)
    zone_count: Count | None = None


class WorkloadExpectation(Places):
    """What must be true of the pods of one workload.

    Attributes:
        ready: Number of pods that are ready, or have completed.
        waiting: Number of pods without a node.
        nodes: Number of different nodes that run its pods.
    """

    ready: Count | None = None
    waiting: Count | None = None
    nodes: Count | None = None


class Expectation(Places):
    """What must be true when the cluster has come to rest after a step. What is left out is not checked.

    Attributes:
        within: Maximum seconds from the request until the cluster has settled, including `hold`.
        hold: Seconds for which the cluster must stay settled. To check that an event does not happen, choose a time in
            which it would.
        nodes: Number of the story's nodes when the cluster has settled, or `{min, max}`. 0: NodeClaims and Nodes are
            gone.
        instance_types: Each node has one of these instance types.
        capacity_type: Each node has this capacity type.
        node_pool: Each node was launched for this NodePool.
        node_labels: Label -> accepted values, or `present` for any value.
        taints_gone: Keys of taints that no node has any more.
        events: Reason -> kinds (`Pod`, `Node`, `NodeClaim`, `NodePool`): during the step, Karpenter emitted this event
            on at least one of the story's objects of each kind. The number of events is not checked, because Karpenter
            omits some.
        replacement: The nodes from before the step are gone, and there are new ones. If the step interrupts or deletes
            nodes, only these must be gone.
        no_pod_without_node: No pod was unschedulable during the step, and no node was disrupted before its replacement
            was initialized.
        ready_gap: Maximum seconds without any ready pod during the step. For a single pod that moves it cannot be 0:
            Kubernetes evicts it before its successor starts.
        pending: Some pods stay without a node. If omitted, every pod must be ready.
        undisturbed: No node was added or removed during the step.
        disrupted_at_once: Maximum number of nodes that were disrupted at the same time, in all of the story's
            NodePools: from Karpenter's decision until the node is drained and its instance is terminating
            (`InstanceTerminating`), as Karpenter's budgets count. To check the budgets themselves:
            `disruptionBudgetsKept`.
        other_instance_type: No new node has an instance type that an earlier `outOfCapacity` named.
        workloads: Name of a workload -> expectations for its pods.
        disrupted: The only workloads whose pods had to leave their nodes; `none`: no workload. DaemonSets count only if
            they are named, because their pods leave with each node.
        disrupted_in_order: All pods of each of these workloads that had to leave did so before those of the next one.
        pod_disruption_budgets_kept: Once a PodDisruptionBudget had enough ready pods, it never had fewer.
        disruption_budgets_kept: The controller never disrupted more nodes at once than the NodePools' budgets allow.
        scheduled_before: PriorityClass -> another one: pods of the first got their nodes before pods of the other, with
            a tolerance of half a second.
        cost_within: When the cluster has settled, the nodes cost at most this multiple of the least that the pods could
            cost.
    """

    within: float = Field(gt=0, le=LONGEST_LIFE + DAY)
    hold: float = Field(0, ge=0)
    nodes: Count | None = None
    instance_types: list[Word] | None = Field(None, min_length=1)
    capacity_type: Literal["on-demand", "spot", "reserved"] | None = None
    node_pool: DnsLabel | None = None
    node_labels: dict[LabelKey, list[LabelValue] | Literal["present"]] = Field(default_factory=dict)
    taints_gone: list[LabelKey] = Field(default_factory=list)
    events: dict[Reason, Annotated[list[Literal["Pod", "Node", "NodeClaim", "NodePool"]], Field(min_length=1)]] = Field(
        default_factory=dict
    )
    replacement: Replacement | None = None
    no_pod_without_node: bool = False
    ready_gap: float | None = Field(None, ge=0, le=DAY)
    pending: Pending | None = None
    undisturbed: bool = False
    disrupted_at_once: int | None = Field(None, gt=0)
    other_instance_type: bool = False
    workloads: dict[DnsLabel, WorkloadExpectation] = Field(default_factory=dict)
    disrupted: Annotated[
        list[DnsLabel] | None, BeforeValidator(_none, json_schema_input_type=list[DnsLabel] | Literal["none"] | None)
    ] = None
    disrupted_in_order: list[DnsLabel] = Field(default_factory=list)
    pod_disruption_budgets_kept: bool = False
    disruption_budgets_kept: bool = False
    scheduled_before: dict[DnsName, DnsName] = Field(default_factory=dict)
    cost_within: float | None = Field(None, ge=1)

    @model_validator(mode="after")
    def _can_come_true(self) -> Self:
        if self.hold >= self.within:
            raise refuse("hold-too-long", hold=f"{self.hold:g}", within=f"{self.within:g}")
        if self.replacement and self.undisturbed:
            raise refuse("replacement-undisturbed")
        return self

    @property
    def no_nodes(self) -> bool:
        """Whether no node may be left."""
        return self.nodes is not None and self.nodes.max == 0
