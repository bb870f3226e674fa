"""The schema of whatif.json as types.

`Answer.model_json_schema()` is the JSON schema for other languages; `make goldens` writes it to schema.json.
Times are seconds after the change began, by the clock of this machine; before it they are negative. Prices are USD an
hour.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

SCHEMA_VERSION: Final = 3

Verdict = Literal["within limits", "limits exceeded", "refused"]
Why = Literal[
    "price",  # nothing cheaper would hold its pods
    "pods",  # its pods fit nowhere else, or only on several new nodes
    "pod disruption budget",
    "do-not-disrupt",
    "policy",  # the NodePool does not want it
    "disruption budget",  # of the NodePool: it allows none, or draining nodes use it up
    "replacement",  # no node could replace it
    "limits",  # of NodePools
    "spot to spot",
    "waiting",  # for consolidateAfter, or for something that passes
    "not replaced yet",  # nothing holds it, and Karpenter has not come to it
    "not settled",  # nodes came and went until the record ended
    "other",
    "unknown",
]


class Part(BaseModel):
    """A part of the answer; its keys are in camel case."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


class Planned(Part):
    """A change of a resource that Pulumi planned."""

    op: str = Field(description="Pulumi's operation: create, update, replace or delete.")
    type: str = Field(description="Pulumi's type of the resource.")
    name: str = Field(description="Name of the resource.")
    what: str = Field(
        description="The properties that an update changes; for versions and the fields of a NodePool, also the old "
        "and the new one. Empty if unknown."
    )


class Moment(Part):
    """A step of the rehearsal, with the time at which it ended."""

    phase: str = Field(description="Name of the step in the timeline.")
    at: str = Field(description="ISO 8601, by the clock of this machine.")
    quiet: float | None = Field(
        None, description="For a wait until the cluster settles: seconds since the last change. Otherwise null."
    )
    needed: float | None = Field(None, description="Seconds without a change that count as settled.")
    gave_up: str | None = Field(None, description="Why the cluster did not settle; null if it settled.")
    left: list[str] = Field([], description="Operations that had not finished.")


class Shortened(Part):
    """A setting of a NodePool that differed in the rehearsal."""

    pool: str = Field(description="Name of the NodePool.")
    setting: str = Field(description="Key of the setting.")
    asked: str = Field(description="Value in the stack file.")
    used: str = Field(description="Value in the rehearsal.")


class Clock(Part):
    """Speed of the simulated time."""

    speed: float = Field(description="Average speed, as a multiple of real time.")
    late: float = Field(description="Largest delay of an engine's timer, in simulated seconds.")


class Settings(Part):
    """Settings that were changed to shorten the rehearsal, and its clock."""

    wait_factor: float = Field(1, description="Divisor of the waits; 1 if no wait was shortened.")
    at: str | None = Field(None, description="The moment of `--at`, ISO 8601; null for the time of the rehearsal.")
    clock: Clock | None = Field(None, description="Speed of the simulated time; null if it ran in real time.")
    shortened: list[Shortened] = Field([], description="The settings with other values than the stack file.")


class Group(Part):
    """Nodes with the same NodePool, instance type, zone or capacity type."""

    name: str = Field(description="The common value.")
    nodes: int = Field(description="Number of nodes.")
    usd_per_hour: float | None = Field(description="Price of these nodes; null if a price is unknown.")


class DaemonSets(Part):
    """CPU and memory that the pods of DaemonSets request."""

    cpu: float = Field(description="Requested CPUs.")
    memory: float = Field(description="Requested memory in bytes.")
    cpu_share: float = Field(description="Share of the nodes' allocatable CPUs, 0 to 1.")
    memory_share: float = Field(description="Share of the nodes' allocatable memory, 0 to 1.")
    usd_per_hour: float | None = Field(
        description="Sum over the nodes: price times the larger of the two shares. Null if a price is unknown."
    )


class Node(Part):
    """A node of a NodePool."""

    node_claim: str = Field(description="Name of its NodeClaim.")
    name: str | None = Field(
        description="Name of the node. If it stands for a node of the snapshot: that node's name. Null without a node."
    )
    pool: str = Field(description="Its NodePool.")
    instance_type: str | None = Field(description="Its instance type; null before the launch.")
    zone: str | None = Field(description="Its zone.")
    capacity_type: str | None = Field(description="on-demand, spot or reserved.")
    usd_per_hour: float | None = Field(description="Its price; null if unknown.")


class Cause(Part):
    """A reason why Karpenter keeps a node at the end of the record."""

    why: Why = Field(description="Kind of the cause.")
    details: str = Field(description="Details; Karpenter's message if there is one.")
    until: str | None = Field(
        None,
        description="Latest time at which the cause ends by itself, ISO 8601; null if it does not end, or if this "
        "is unknown.",
    )
    never: bool = Field(False, description="`true`: lasts until someone changes the configuration.")
    used_up: bool = Field(False, description="`true`: a disruption budget that draining nodes use up.")


class EmptyNode(Node):
    """A node with only DaemonSet pods that Karpenter cannot remove yet, at the end of the record."""

    removable_from: str | None = Field(
        description="Latest time from which Karpenter can remove it, ISO 8601; null if unknown."
    )


class OpenEnd(Part):
    """Why the nodes at the end of the record are not the end state: something delays consolidation."""

    causes: list[Cause] = Field(
        description="What delays it: used-up disruption budgets, or nodes that still wait for their replacement."
    )
    empty: list[EmptyNode] = Field(description="Nodes with only DaemonSet pods.")
    nodes: int = Field(description="Number of nodes without these empty nodes.")
    usd_per_hour: float | None = Field(
        description="Price without these empty nodes, which is the lower end of the range; null if unknown."
    )


class Inventory(Part):
    """The nodes of all NodePools at one time. Values do not include draining nodes, unless their meaning says so."""

    at: str = Field(description="ISO 8601, by the clock of this machine.")
    nodes: int = Field(description="Launched nodes that are not draining.")
    draining: int = Field(description="Draining nodes; not included in `nodes`.")
    launching: int = Field(description="NodeClaims without an instance yet.")
    usd_per_hour: float | None = Field(description="Price of `nodes`; null if a price is unknown.")
    draining_usd_per_hour: float | None = Field(description="Price of the draining nodes; null if a price is unknown.")
    known_usd_per_hour: float = Field(description="Price of those `nodes` whose price is known.")
    unpriced: list[str] = Field(description="Instance types without a known price.")
    spot_usd_per_hour: float | None = Field(description="Price of the spot nodes; null if a price is unknown.")
    spot_simulated: bool = Field(
        description="`true`: at least one spot price is computed by the rehearsal and is not a market price."
    )
    on_demand_usd_per_hour: float | None = Field(
        description="Price of the nodes that are not spot; null if a price is unknown."
    )
    by_pool: list[Group] = Field(description="Nodes by NodePool.")
    by_type: list[Group] = Field(description="Nodes by instance type.")
    by_zone: list[Group] = Field(description="Nodes by zone.")
    by_capacity_type: list[Group] = Field(description="Nodes by capacity type.")
    lower_bound_usd_per_hour: float | None = Field(
        description="Lower bound for the price of nodes for `pods`; null if unknown."
    )
    no_lower_bound: str | None = Field(description="Why the lower bound is unknown.")
    daemon_sets: DaemonSets | None = Field(description="Requests of the DaemonSets; null without DaemonSets.")
    pods: int = Field(
        description="Pods of the workload on these nodes and on draining nodes. DaemonSet pods are not counted."
    )
    waiting: int = Field(description="Pods of the workload without a node.")
    open_end: OpenEnd | None = Field(
        None,
        description="Why this is not the end state, and what Karpenter can still remove; null if it is the end state.",
    )


class Delay(Part):
    """Something that delayed the removal of a node."""

    details: str | None = Field(description="Karpenter's message; null without one.")
    pod_disruption_budgets: list[str] = Field(description="PodDisruptionBudgets in Karpenter's message.")
    selecting: list[str] = Field(
        [], description="PodDisruptionBudgets that select the pods, also if they did not block an eviction."
    )
    workload: str | None = Field(
        description="Workload (namespace/name) whose pods waited for eviction; null for a message before the decision."
    )
    pods: int = Field(description="Number of waiting pods; 0 if unknown.")
    first: float = Field(description="Start of the wait; without a workload, time of the first such message.")
    until: float = Field(
        description="Eviction of the last pod, or the end of the record; without a workload, time of the last "
        "such message."
    )


class ReplacedNode(Node):
    """A node that existed before the change and that Karpenter removed or began to remove."""

    order: int = Field(description="Position in the order of removal, from 1.")
    reason: str | None = Field(
        description="Drifted, Underutilized, Empty, Expired, Interrupted, or another reason of Karpenter; null "
        "without one."
    )
    details: str | None = Field(description="Details: the kind of drift, or the decision of consolidation.")
    decided: float = Field(description="When Karpenter decided to remove it.")
    drained: float | None = Field(description="When its last pod had left; null if unknown.")
    gone: float | None = Field(description="When it was removed; null if the removal had not finished.")
    pods: int = Field(description="Pods that had to leave it after the change began. DaemonSet pods are not counted.")
    delays: list[Delay] = Field(description="What delayed its removal.")
    never: bool = Field(
        False,
        description="`true`: stays until someone changes something. Its replacement does not become ready, or its "
        "pods cannot be evicted.",
    )


class CreatedNode(Node):
    """A node that was created after the change began."""

    since: float = Field(description="When its NodeClaim was created.")
    reason: str | None = Field(description="Disruption for which it is a replacement; null if it was created for pods.")
    for_draining: list[str] = Field(
        [],
        description="NodeClaims of draining nodes for whose pods it was created; empty for a replacement, or for "
        "pods without a node.",
    )
    gone: float | None = Field(description="When it was removed again; null if it stayed.")
    gone_reason: str | None = Field(
        None,
        description="Reason of its removal, as in `reason` of a replaced node; null if it stayed, or without a reason.",
    )


class WorkloadWithoutNode(Part):
    """Pods of a workload that were unschedulable for a time."""

    namespace: str = Field(description="Namespace of the pods.")
    workload: str = Field(description="Name of the workload.")
    pods: int = Field(description="Number of these pods; pods without a node before the change are not counted.")
    longest: float = Field(description="Longest time of one of these pods without a node, in seconds.")
    pod_seconds: float = Field(description="Sum of these times, in seconds.")
    at_the_end: int = Field(description="Pods of the workload without a node at the end of the record.")
    before: int = Field(description="Pods of the workload without a node when the change began.")
    details: str | None = Field(description="Karpenter's last event about one of these pods; null without one.")
    no_node_pool: bool = Field(
        False,
        description="`true`: some pods have no node at the end, and no NodePool can create one for them. Before "
        "the change, one could.",
    )


class NotSchedulableAgain(Part):
    """Running pods of a workload that no NodePool could schedule again."""

    namespace: str = Field(description="Namespace of the pods.")
    workload: str = Field(description="Name of the workload.")
    pods: int = Field(description="Number of these pods at the end of the record.")
    nodes: int = Field(description="Number of nodes on which they run.")
    why: str = Field(description="The reason of each NodePool.")


class BlockedEviction(Part):
    """Pods of a workload that cannot be evicted from a node that Karpenter wants to remove."""

    node_claim: str = Field(description="Name of the node's NodeClaim.")
    namespace: str = Field(description="Namespace of the pods.")
    workload: str = Field(description="Name of the workload.")
    pods: int = Field(description="Number of these pods.")
    why: Why = Field(description="Kind of what prevents the eviction.")
    details: str = Field(description="Details of what prevents the eviction.")
    deleted_at: str | None = Field(
        description="When Karpenter deletes the pods in spite of this, ISO 8601, because of the node's "
        "terminationGracePeriod. Null if it waits without a limit, or if it evicts them before (`until`)."
    )
    deleted: float | None = Field(description="`deletedAt` in seconds after the change began.")
    earliest: bool = Field(
        False, description="`true`: `deletedAt` is the earliest time, because the node is not draining yet."
    )
    done: bool = Field(False, description="`true`: the pods were deleted before the record ended.")
    preempted: bool = Field(False, description="`true`: kube-scheduler deleted them for pods of a higher priority.")
    before: bool = Field(
        False,
        description="`true`: the node had drifted or was draining before the change, so the change is not the reason.",
    )
    until: str | None = Field(
        None, description="When the obstacle ends by itself, ISO 8601; null if it does not end, or if this is unknown."
    )
    never: bool = Field(False, description="`true`: lasts until someone changes something.")
    job: bool = Field(
        False, description="`true`: pods of a Job. If the Job ends before `deletedAt`, Karpenter deletes none of them."
    )


class FullPool(Part):
    """A NodePool whose own limits allow no further node at the end of the record."""

    pool: str = Field(description="Its name.")
    over: bool = Field(
        description="`true`: it is over its limits, and Karpenter replaces none of its nodes. `false`: only the "
        "next node would exceed them."
    )
    amounts: list[str] = Field(description="Usage and value of each limit that blocks new nodes.")
    before: bool = Field(description="`true`: already so before the change.")


class ShorterLife(Part):
    """A NodePool whose nodes expire earlier since the change."""

    pool: str = Field(description="Its name.")
    before: str = Field(description="`expireAfter` before the change.")
    after: str = Field(description="`expireAfter` after the change.")
    expiring_per_day: float = Field(
        description="Expired nodes that Karpenter deletes per day, with as many nodes as at the end of the record."
    )
    short: bool = Field(description="`true`: a node lives for less than a day.")


class BlastRadius(Part):
    """Effects of the change."""

    applied: list[Planned] | None = Field(description="Changes of resources in Pulumi's plan; null if unknown.")
    seconds: float = Field(description="From the beginning of the change until the cluster settled.")
    replaced: list[ReplacedNode] = Field(description="Nodes that Karpenter removed or began to remove, in this order.")
    created: list[CreatedNode] = Field(description="New nodes.")
    disrupted_at_once: int = Field(
        description="Maximum number of nodes disrupted at once, counted like a disruption budget: until the "
        "instance terminates."
    )
    first: float | None = Field(description="When Karpenter decided to remove the first node; null if it removed none.")
    last: float | None = Field(
        description="When the last node was removed; null if none was, or if a removal had not finished."
    )
    pods_moved: int = Field(description="How many times pods had to leave a node. DaemonSet pods are not counted.")
    pods_preempted: int = Field(description="Part of `podsMoved`: how many times for a pod of higher priority.")
    workloads_without_node: list[WorkloadWithoutNode] = Field(
        description="Pods that were unschedulable for a time, by workload."
    )
    pods_without_node: int = Field(description="Number of pods that were unschedulable for a time.")
    pods_without_node_at_once: int = Field(description="Maximum number of unschedulable pods at one time.")
    longest_without_node: float = Field(description="Longest time of one pod without a node, in seconds.")
    longest_until_node: float = Field(
        0.0, description="Longest time without a node, among pods that had a node again when the record ended."
    )
    unschedulable: int = Field(
        description="Pods without a node at the end of the record, minus those before the change."
    )
    not_schedulable_again: list[NotSchedulableAgain] = Field(
        [],
        description="Running workloads that no NodePool could schedule again, and that one could schedule before "
        "the change.",
    )
    blocked_evictions: list[BlockedEviction] = Field(
        [],
        description="Pods that a PodDisruptionBudget or do-not-disrupt keeps on nodes that Karpenter wants to remove.",
    )
    pods_killed: int = Field(
        0,
        description="Number of pods with a blocked eviction that are deleted anyway, by Karpenter or in a preemption. "
        "Pods of Jobs count, because a snapshot does not tell when a Job ends.",
    )
    full_pools: list[FullPool] = Field([], description="NodePools whose own limits allow no further node.")
    shorter_lives: list[ShorterLife] = Field([], description="NodePools whose nodes expire earlier since the change.")


class RemainingNode(Node):
    """A node that stayed."""

    why: Why = Field(description="Kind of the first cause.")
    details: str | None = Field(
        description="The first cause. If no cause is known: Karpenter's last message before the change, for "
        "information."
    )
    causes: list[Cause] = Field(
        description="All causes at the end of the record, in the order in which Karpenter checks them."
    )
    reported: float | None = Field(
        description="When Karpenter last reported a cause; negative before the change, null if the objects show it."
    )
    cause_known: bool = Field(description="`true`: a cause is known.")
    drifted: bool = Field(description="`true`: it has drifted and was not replaced.")
    drifted_before: bool = Field(
        description="`true`: it had drifted before, and its NodePool has not changed, so the change is not the reason."
    )
    never: bool = Field(description="`true`: it has drifted, and is replaced only after someone changes something.")
    consolidation: str | None = Field(
        None,
        description="Of a drifted node: why consolidation keeps it; null if consolidation removed no other node "
        "of its NodePool.",
    )
    expires: str | None = Field(
        None,
        description="Of such a node: when its NodeClaim expires at the latest, ISO 8601. Then Karpenter deletes "
        "it without a replacement. Null without expiry.",
    )
    drains_forever: str | None = Field(
        None,
        description="Of such a node: what keeps a pod on it after `expires`. Its NodeClaim has no "
        "terminationGracePeriod, so it drains until someone changes something. Null if it can be "
        "removed.",
    )
    uses_up_budget: bool = Field(
        False,
        description="`true`: draining nodes of its NodePool then use up the NodePool's disruption budget without end.",
    )


class Step(Part):
    """The number of nodes that may be disrupted at once, from a given time."""

    since: str = Field(description="ISO 8601, UTC.")
    allowed: int = Field(description="Number of nodes.")


class ReasonWeek(Part):
    """What the budgets of a NodePool allow for one reason within a week."""

    reason: str = Field(description="Drifted, Underutilized, Empty or Unhealthy.")
    now: int = Field(description="Nodes that may be disrupted at once at `at` of the week.")
    next_allowed: str | None = Field(
        description="If this is 0: when a disruption is allowed next, ISO 8601; null if not within the week."
    )
    hours: list[list[int]] = Field(
        description="For each of seven days from midnight UTC of `begins`: for each hour, the lowest allowed number."
    )
    steps: list[Step] = Field(description="The exact times at which the allowed number changes.")


class PoolWeek(Part):
    """The disruption budgets of a NodePool as a calendar."""

    pool: str = Field(description="Its name.")
    nodes: int = Field(description="Number of its nodes; percentages of budgets refer to it.")
    reasons: list[ReasonWeek] = Field(
        description="Calendars by reason; empty if Karpenter cannot evaluate the budgets."
    )
    problem: str | None = Field(None, description="Why Karpenter cannot evaluate the budgets.")


class Week(Part):
    """The disruption budgets of all NodePools."""

    at: str = Field(description="Time for which `now` and `possibleNow` hold, ISO 8601.")
    begins: str = Field(description="First day, ISO 8601.")
    pools: list[PoolWeek] = Field(description="Budgets by NodePool, after the change.")
    possible_now: bool | None = Field(
        description="`true`: at `at`, the budgets allow the disruptions of the change. Null if no budget applies "
        "to them."
    )
    blocked: list[str] = Field(description="NodePool and reason of each disruption that the budgets do not allow.")
    used_up: list[str] = Field(
        [], description="A sentence for each budget that draining nodes use up at the end of the record."
    )


class Compared(Part):
    """One value of the real cluster and of the rehearsed base."""

    what: str = Field(description="What is compared.")
    real: float | None = Field(description="Value in the real cluster; null if unknown.")
    rehearsed: float | None = Field(description="Value in the base.")
    difference: float | None = Field(
        description="Difference, as a share of the real value; null if it cannot be computed."
    )
    note: str = Field("", description="A remark.")


class InitialNodes(Part):
    """Which nodes of the real cluster the base started with."""

    real_nodes: int = Field(description="Nodes of NodePools in the real cluster.")
    nodes: int = Field(description="How many of these nodes the base started with.")
    pods: int = Field(description="Pods of the workload. DaemonSet pods are not counted.")
    pods_placed: int = Field(description="How many of these pods started on their real node.")
    figures: list[Compared] = Field(
        [], description="Real cluster and base after all pods were created; empty without a comparison."
    )
    removed: int = Field(description="Nodes that were removed while the base settled.")
    created: int = Field(description="Nodes that were created while the base settled.")


class Accuracy(Part):
    """Difference between the rehearsed base and the real cluster of the snapshot."""

    compared: bool = Field(description="`true`: the two were compared.")
    made_up: bool = Field(False, description="`true`: the snapshot is made up, so there is no such cluster.")
    sentence: str = Field(description="The result in one sentence.")
    figures: list[Compared] = Field(
        [],
        description="Nodes, types and price of the settled base, before the change; empty without a comparison.",
    )
    types: dict[str, tuple[int, int]] = Field(
        {},
        description="Instance types with different numbers of nodes: type -> nodes in the real cluster, nodes in "
        "the base.",
    )
    empty_pools: dict[str, int] = Field(
        {},
        description="NodePools with nodes in the real cluster and none in the settled base: name -> nodes in the real "
        "cluster. The answer does not show what the change does to these nodes.",
    )
    initial_nodes: InitialNodes | None = Field(
        None, description="The nodes that the base started with; null if Karpenter chose them."
    )


class Limit(Part):
    """A limit and the value that was measured."""

    name: str = Field(description="Key of the limit.")
    limit: str = Field(description="What the limit allows.")
    measured: str = Field(description="Measured value.")
    within_limit: bool = Field(description="`true`: within the limit. An unknown value counts as exceeded.")


class Point(Part):
    """The nodes at one time."""

    t: float = Field(description="Seconds after the change began.")
    nodes: int = Field(description="Number of nodes, including draining ones.")
    usd_per_hour: float = Field(description="Their price; nodes without a known price count as 0.")


class PeriodHour(Part):
    """One hour of the time after the change."""

    since: str = Field(description="Start of the hour, ISO 8601; the first and the last hour can be shorter.")
    nodes: float = Field(description="Average number of nodes.")
    usd: float = Field(description="Cost of the hour; nodes without a known price count as 0.")
    pods: int = Field(description="Maximum number of pods of the workload.")
    disruptions: dict[str, int] = Field(
        description="Reason -> number of nodes that Karpenter decided to remove in this hour."
    )
    pods_without_node: int = Field(description="Pods that became unschedulable.")
    blocked_reasons: list[str] = Field(
        description="Reasons for which the budgets allowed no disruption, in any NodePool at any time of the hour."
    )


class PeriodDay(Part):
    """24 hours of the time after the change."""

    since: str = Field(description="Start of the 24 hours, ISO 8601; the last period can be shorter.")
    usd: float = Field(description="Cost; nodes without a known price count as 0.")
    disruptions: dict[str, int] = Field(description="Reason -> number of nodes that Karpenter decided to remove.")
    pods_without_node: int = Field(description="Pods that became unschedulable.")
    longest_without_node: float = Field(description="Longest time of one of these pods without a node, in seconds.")


class SimulatedPeriod(Part):
    """The time after the change that `--for` simulates, in simulated time."""

    begins: str = Field(description="Start, ISO 8601.")
    ends: str = Field(description="End, ISO 8601.")
    real_seconds: float = Field(description="Real time that the rehearsal took for it.")
    skipped_seconds: float = Field(description="Simulated seconds that were skipped, because nothing changed.")
    curve: dict[str, dict[str, float]] | None = Field(
        description="Daily curve of replicas: pattern of workloads -> hour of the day -> factor; null without a curve."
    )
    images: list[str] = Field(description="When the cloud published newer node images.")
    usd: float | None = Field(description="Total cost of the nodes; null if a price is unknown.")
    usd_per_day: float | None = Field(description="Cost of the nodes for 24 hours; null if a price is unknown.")
    disruptions: dict[str, int] = Field(description="Reason -> number of nodes that Karpenter decided to remove.")
    disruptions_by_hour: dict[str, list[int]] = Field(
        description="Reason -> for each hour of the day (UTC), number of nodes that Karpenter decided to remove."
    )
    pods_moved: int = Field(description="How many times pods had to leave a node. DaemonSet pods are not counted.")
    workloads_without_node: list[WorkloadWithoutNode] = Field(
        description="Pods that were unschedulable for a time, by workload."
    )
    pods_without_node: int = Field(description="Number of pods that were unschedulable for a time.")
    pods_without_node_at_once: int = Field(description="Maximum number of unschedulable pods at one time.")
    longest_without_node: float = Field(description="Longest time of one pod without a node, in seconds.")
    drifted_nodes: list[RemainingNode] = Field(
        description="Drifted nodes that still existed at the end, each with its cause. Times are seconds after "
        "`begins`."
    )
    hours: list[PeriodHour] = Field(description="Each hour.")
    days: list[PeriodDay] = Field(description="Each day.")


class Answer(Part):
    """What a change would do."""

    schema_version: Literal[3] = Field(SCHEMA_VERSION, description="Version of this schema.")
    stack: str = Field(description="Name of the stack.")
    base: str | None = Field(None, description="Name of the base; null if unknown.")
    candidate: str | None = Field(description="Name of the change.")
    verdict: Verdict = Field(
        description="Comparison with the limits. `refused`: the program, Pulumi or the simulated cloud refused "
        "the change."
    )
    sentence: str = Field(description="The answer in one sentence.")
    refused: str | None = Field(None, description="What refused the change, and why; null if nothing did.")
    simulated: bool = Field(description="`true`: machines and their boot times are simulated.")
    region: str = Field(description="Region of the stack.")
    moments: list[Moment] = Field(description="Steps of the rehearsal.")
    settings: Settings = Field(description="Settings that were changed to shorten the rehearsal.")
    prices: list[str] = Field(description="Sources of the prices, a sentence each.")
    prices_region: str | None = Field(
        None, description="Region of the prices, if it is not the stack's region; otherwise null."
    )
    prices_note: str | None = Field(
        None, description="A sentence that says that prices are those of another region; null if they are not."
    )
    price_file: dict[str, Any] | None = Field(
        None,
        description="Content of the file with prices and discounts (`--prices`); of a fetched file, its head and a "
        "digest; null without one.",
    )
    snapshot: str | None = Field(
        None,
        description="First twelve digits of the SHA-256 of the snapshot's file; null without a snapshot.",
    )
    before: Inventory = Field(description="The nodes before the change.")
    after: Inventory | None = Field(description="The nodes after the change; null if the change was refused.")
    blast_radius: BlastRadius | None = Field(description="Effects of the change; null if the change was refused.")
    remaining: list[RemainingNode] = Field(description="Nodes that stayed, each with its cause.")
    week: Week = Field(description="Calendar of the disruption budgets.")
    simulated_period: SimulatedPeriod | None = Field(
        None, description="The simulated time after the change (`--for`); null without `--for`."
    )
    accuracy: Accuracy = Field(description="Difference between the base and the real cluster.")
    limits: list[Limit] = Field(default_factory=list, description="The limits and the measured values.")
    series: list[Point] = Field(
        default_factory=list, description="Nodes and price over time, from the settled base on."
    )
    unknown: list[str] = Field(default_factory=list, description="What the answer does not know, a sentence each.")
    unseen: list[str] = Field(
        default_factory=list,
        description="Sentences of `unknown` about what changes, or may change, without being rehearsed, such as "
        "fields that the manifests have and a snapshot does not.",
    )
