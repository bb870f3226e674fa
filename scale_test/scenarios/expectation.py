"""What a scenario can expect of a step: its data. Whether it came true is judged in `assertions`."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from .formats import DAY, Count, DnsLabel, LabelKey, LabelValue, Model, Range, Reason, Text, Word


class Replacement(Model):
    """Every node that was there when the step began (that was interrupted, in such a step) must be gone, others there.

    Attributes:
        cheaper: The new nodes cost less an hour than the old ones: the saving is positive.
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


class Expectation(Model):
    """What must be true when the cluster has come to rest after a step. What is left out is not checked.

    Attributes:
        within: Seconds from the request until rest, with the time that it must hold.
        hold: Seconds for which the cluster must stay at rest.
        nodes: Number of the story's nodes. 0: their NodeClaims and Nodes are gone.
        instance_types: Each node is of one of these.
        capacity_type: Each node is of this.
        node_pool: Each node was launched for this NodePool.
        node_labels: Label -> values of which each node must have one, or `present` for any value.
        taints_gone: Keys of taints that no node carries any more.
        events: Reason -> kinds of the story's objects; at least one object of each kind met such an event of
            Karpenter's during the step.
        replacement: The nodes from before the step were replaced.
        always_a_home: No pod was unschedulable during the step, and no node was disrupted before its
            replacement was initialized.
        ready_gap: Seconds for which, during the step, no replica at all may have been ready.
        pending: Pods that stay without a node. Left out: every replica is ready.
        undisturbed: No node came, and none went, during the step.
        disrupted_at_once: How many nodes were being disrupted at any one time, at most.
        other_instance_type: No node of the step is of an instance type that is out of capacity.
    """

    within: float = Field(gt=0, le=DAY)
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

    @model_validator(mode="after")
    def _can_come_true(self) -> Self:
        if self.hold >= self.within:
            raise ValueError(
                f"hold {self.hold:g} is not less than within {self.within:g}, so that every run would be late; "
                "let within hold both the way to rest and the time that it must last"
            )
        if self.replacement and self.undisturbed:
            raise ValueError("replacement and undisturbed exclude each other; leave one of them out")
        return self

    @property
    def no_nodes(self) -> bool:
        """Whether no node may be left."""
        return self.nodes is not None and self.nodes.max == 0
