"""What a scenario can expect of a step: its data. Whether it came true is judged in `assertions`."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from .formats import DAY, LONGEST_LIFE, Count, DnsLabel, DnsName, LabelKey, LabelValue, Model, Range, Reason, Text, Word
from .problems import refuse


class Replacement(Model):
    """Every node that was there when the step began (that was interrupted, in such a step) must be gone, others there.

    Attributes:
        cheaper: The new nodes cost less an hour than the old ones.
        smaller: The new nodes have fewer CPUs than the old ones.
    """

    cheaper: bool = True
    smaller: bool = False


class Pending(Model):
    """Some pods stay without a node, and no NodePool of the scenario ever had more than its limits.

    Attributes:
        pods: How many.
        event: Reason of the controller's event on one of them.
        saying: What its message holds.
    """

    pods: Count = Range(min=1)
    event: Reason = "FailedScheduling"
    saying: Text = ""


def _none(value: object) -> object:
    return [] if value == "none" else value


class Places(Model):
    """Where nodes, or pods, are: how many in each place that is named, a number or `{min, max}`.

    Attributes:
        node_pools: NodePool -> how many.
        zones: Zone -> how many.
        capacity_types: Capacity type -> how many.
        zone_count: In how many different zones.
    """

    node_pools: dict[DnsLabel, Count] = Field(default_factory=dict)
    zones: dict[Word, Count] = Field(default_factory=dict)
    capacity_types: dict[Literal["on-demand", "spot", "reserved"], Count] = Field(default_factory=dict)
    zone_count: Count | None = None


class WorkloadExpectation(Places):
    """What must be true of the pods of one workload.

    Attributes:
        ready: How many are ready, or have done their work.
        waiting: How many have no node.
        nodes: On how many different nodes they are.
    """

    ready: Count | None = None
    waiting: Count | None = None
    nodes: Count | None = None


class Expectation(Places):
    """What must be true when the cluster has come to rest after a step. What is left out is not checked.

    Attributes:
        within: Seconds from the request until rest, with `hold`.
        hold: Seconds for which rest must last. For what must not happen: long enough that it would have.
        nodes: How many of the story's nodes there are at rest: a number, or `{min, max}`. 0: NodeClaims and Nodes are
            gone.
        instance_types: Each node is of one of these.
        capacity_type: Each node is of this.
        node_pool: Each node was launched for this NodePool.
        node_labels: Label -> accepted values, or `present` for any.
        taints_gone: Keys of taints that no node carries any more.
        events: Reason -> kinds (`Pod`, `Node`, `NodeClaim`, `NodePool`): during the step, Karpenter told at least one
            of the story's objects of each kind so. Never their number: Karpenter leaves some out.
        replacement: The nodes from before the step (in a step that interrupts or deletes some: those) are gone, and new
            ones are there.
        always_a_home: No pod was unschedulable during the step, and no node was disrupted before its
            replacement was initialized.
        ready_gap: Seconds for which, during the step, no pod at all may have been ready. Not 0 where a single pod is
            moved: Kubernetes evicts it first and starts its successor then.
        pending: Some pods stay without a node. If this is left out, every pod is ready.
        undisturbed: No node came, and none went, during the step.
        disrupted_at_once: At most so many nodes were being disrupted at one time, from Karpenter's decision until the
            node is drained and its instance is going (`InstanceTerminating`), as Karpenter's budgets count; of all of
            the story's NodePools together. For the budgets themselves: `disruptionBudgetsKept`.
        other_instance_type: No node that came in the step is of a type that an earlier `outOfCapacity` named.
        workloads: Name of a workload -> what must be true of its pods.
        disrupted: Workloads of which pods had to leave their nodes, and no others; `none` for none at all. DaemonSets
            do not count unless they are named: their pods go with each node.
        disrupted_in_order: Of these workloads, all pods that had to leave did so before those of the next.
        pod_disruption_budgets_kept: Once enough pods were ready for a PodDisruptionBudget, there were never fewer.
        disruption_budgets_kept: The controller never disrupted more nodes at once than the NodePools' budgets allowed.
        scheduled_before: PriorityClass -> another one: pods of the first got their nodes before any of the other, but
            for less than half a second.
        cost_within: At rest, the nodes cost at most so many times the least that the pods could cost.
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
    always_a_home: bool = False
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
