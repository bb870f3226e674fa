"""The form of whatif.json as types: whoever reads answers can rely on it.

`Answer.model_json_schema()` is the JSON schema for other languages; `make goldens` writes it to schema.json.
Moments are seconds after the change began, by our clock; before it they are negative. Prices are USD an hour.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

SCHEMA_VERSION: Final = 2

Verdict = Literal["within limits", "limits broken", "refused"]
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
    "pace",  # nothing holds it, and Karpenter has not come to it
    "other",
    "not said",
]


class Part(BaseModel):
    """A part of the answer; its keys are in camel case."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


class Planned(Part):
    """A change of a resource, as Pulumi named it."""

    op: str
    type: str
    name: str
    what: str = Field(
        description="Which of its properties an update changed; of versions also how. Empty where it was not told."
    )


class Moment(Part):
    """How far the what-if was at a moment."""

    phase: str = Field(description="As the timeline names it.")
    at: str = Field(description="ISO 8601, by our clock.")
    quiet: float | None = Field(None, description="For how many seconds nothing had moved, where it is about settling.")
    needed: float | None = Field(None, description="How many of them are needed until it counts as settled.")
    gave_up: str | None = Field(None, description="Why it did not settle; null if it did.")
    left: list[str] = Field([], description="What was under way still.")


class Shortened(Part):
    """A setting of a NodePool that was another in the rehearsal."""

    pool: str = Field(description="Name of the NodePool.")
    setting: str = Field(description="Its key.")
    asked: str = Field(description="As the stack has it.")
    used: str = Field(description="As it was rehearsed.")


class Clock(Part):
    """How cluster time ran."""

    speed: float = Field(description="How many times as fast as the machine's time, on average.")
    late: float = Field(description="By how many seconds of it a timer of an engine was late at most.")


class Settings(Part):
    """What was made other than it is, so that the rehearsal need not last for days."""

    wait_factor: float = Field(1, description="By how much waits were divided; 1 if they were not.")
    at: str | None = Field(None, description="The moment that is asked about; null for that of the rehearsal.")
    clock: Clock | None = Field(None, description="How cluster time ran; null where it was real time.")
    shortened: list[Shortened] = Field([], description="The settings.")


class Group(Part):
    """Nodes that have something in common."""

    name: str = Field(description="What they have in common.")
    nodes: int = Field(description="How many.")
    usd_per_hour: float | None = Field(description="Of all; null where the price of one is not known.")


class DaemonSets(Part):
    """What the DaemonSets of the workload take of the nodes."""

    cpu: float = Field(description="CPUs that they ask for.")
    memory: float = Field(description="Bytes that they ask for.")
    cpu_share: float = Field(description="Of what pods may have of the nodes, 0 to 1.")
    memory_share: float = Field(description="Likewise.")
    usd_per_hour: float | None = Field(
        description="Of each node's price the larger of the two shares; null where a price is not known."
    )


class Node(Part):
    """A node of a NodePool."""

    node_claim: str = Field(description="Name of its NodeClaim.")
    name: str | None = Field(
        description="Name of the node; of a rehearsed one that of the snapshot's node for which it stands. Null where "
        "there is none."
    )
    pool: str = Field(description="Its NodePool.")
    instance_type: str | None = Field(description="Its instance type; null before the launch.")
    zone: str | None = Field(description="Its zone.")
    capacity_type: str | None = Field(description="on-demand, spot or reserved.")
    usd_per_hour: float | None = Field(description="Its price; null where that is not known.")


class Cause(Part):
    """What holds a node when the record ends."""

    why: Why = Field(description="The kind of cause.")
    words: str = Field(description="What exactly, in the controller's words where it said them.")
    until: str | None = Field(
        None,
        description="When it ends by itself at the latest, ISO 8601; null where it does not, or that is not known.",
    )
    never: bool = Field(False, description="Whether it ends only when somebody changes something.")
    used_up: bool = Field(False, description="Whether it is a disruption budget that going nodes use up.")


class EmptyNode(Node):
    """A node that has only DaemonSet pods when the record ends, and that Karpenter may not remove yet."""

    removable_from: str | None = Field(
        description="From when Karpenter may remove it at the latest, ISO 8601; null where that is not known."
    )


class OpenEnd(Part):
    """Why the nodes when the record ends are not the end state: something keeps consolidation off until later."""

    causes: list[Cause] = Field(
        description="What keeps it off: used up disruption budgets, nodes still to be replaced."
    )
    empty: list[EmptyNode] = Field(description="Nodes that have only DaemonSet pods.")
    nodes: int = Field(description="Nodes that stay without the empty ones.")
    usd_per_hour: float | None = Field(
        description="What the nodes cost without the empty ones: the other end of the range; null where not known."
    )


class Inventory(Part):
    """The nodes of all NodePools at a moment: those that stay. Figures are of these, unless they say otherwise."""

    at: str = Field(description="ISO 8601, by our clock.")
    nodes: int = Field(description="Nodes that were launched and stay.")
    leaving: int = Field(description="Further nodes that were on their way out.")
    coming: int = Field(description="NodeClaims that were not launched yet.")
    usd_per_hour: float | None = Field(
        description="What the nodes cost that stay; null where the price of one is not known."
    )
    leaving_usd_per_hour: float | None = Field(
        description="What the nodes cost besides that were on their way out; null likewise."
    )
    known_usd_per_hour: float = Field(description="Of those that stay and whose price is known.")
    unpriced: list[str] = Field(description="Instance types without a price.")
    spot_usd_per_hour: float | None = Field(description="Of those on spot; null where the price of one is not known.")
    spot_simulated: bool = Field(description="Whether any of their prices is the rehearsal's rule and no market's.")
    on_demand_usd_per_hour: float | None = Field(description="Of those that are not on spot.")
    by_pool: list[Group] = Field(description="By NodePool.")
    by_type: list[Group] = Field(description="By instance type.")
    by_zone: list[Group] = Field(description="By zone.")
    by_capacity_type: list[Group] = Field(description="By capacity type.")
    lower_bound_usd_per_hour: float | None = Field(
        description="The least that `pods` could cost an hour; null where it is not known."
    )
    no_lower_bound: str | None = Field(description="Why not.")
    daemon_sets: DaemonSets | None = Field(description="What DaemonSets take; null without any.")
    pods: int = Field(
        description="Pods of the workload on these nodes and on those on their way out, without those of DaemonSets."
    )
    waiting: int = Field(description="Pods of the workload without a node.")
    open_end: OpenEnd | None = Field(
        None, description="Why this is not the end state, and what Karpenter may still remove; null where it is."
    )


class HeldUp(Part):
    """What kept a node from going for a while."""

    words: str | None = Field(description="The controller's; null where it said nothing.")
    pod_disruption_budgets: list[str] = Field(description="The PodDisruptionBudgets that it named.")
    selecting: list[str] = Field(
        [], description="The PodDisruptionBudgets that select the pods, whether they kept them or not."
    )
    workload: str | None = Field(
        description="Whose pods waited to be evicted, with its namespace; null for what was said before it was decided."
    )
    pods: int = Field(description="How many of them; 0 where it is not known.")
    first: float = Field(description="When they began to wait; without a workload, when the words were said first.")
    until: float = Field(
        description="When the last one was evicted, or the record ended; without a workload, when the words were said "
        "last."
    )


class Replaced(Node):
    """A node that was there when the change began, and went or began to go."""

    order: int = Field(description="Its place among them, from 1.")
    reason: str | None = Field(
        description="Drifted, Underutilized, Empty, Expired, Interrupted, or another reason that the controller gave; "
        "null if it gave none."
    )
    words: str | None = Field(description="What exactly: the kind of drift, or what consolidation wanted.")
    decided: float = Field(description="When it was to go.")
    drained: float | None = Field(description="When no pod was left on it; null if that was not said.")
    gone: float | None = Field(description="When it was gone; null if it still was on its way.")
    pods: int = Field(description="Pods that had to leave it after the change began, without those of DaemonSets.")
    held_up: list[HeldUp] = Field(description="What kept it.")
    never: bool = Field(
        False,
        description="Whether it stays until a person changes something: its replacement does not become ready, or its "
        "pods cannot be evicted.",
    )


class Made(Node):
    """A node that came after the change began."""

    since: float = Field(description="When its NodeClaim was there.")
    reason: str | None = Field(description="The disruption for which it is a replacement; null if it is for pods.")
    for_draining: list[str] = Field(
        [],
        description="The NodeClaims of the draining nodes for whose pods it came; empty if it came for pods without "
        "a node, or as a replacement.",
    )
    gone: float | None = Field(description="When it was gone again; null if it stayed.")
    gone_why: str | None = Field(
        None,
        description="Why the node goes or went, as `reason` of a replaced node; null if it stays, or without a reason.",
    )


class Homeless(Part):
    """Pods of a workload for which there was no node for a while, by the scheduler."""

    namespace: str = Field(description="Namespace of the pods.")
    workload: str = Field(description="Name of the pods' workload.")
    pods: int = Field(description="How many, without those that had none when the change began.")
    longest: float = Field(description="The longest time of one of these, in seconds.")
    pod_seconds: float = Field(description="All their times together.")
    at_the_end: int = Field(description="How many pods of the workload had none when the record ended.")
    before: int = Field(description="How many of its pods had none when the change began.")
    words: str | None = Field(
        description="Why, by the controller's last event on one of them; null where it said nothing."
    )
    no_node_pool: bool = Field(
        False,
        description="Whether no NodePool could make a node any more, as one could before, for pods that have none when "
        "the record ends.",
    )


class NotAnew(Part):
    """Pods of a workload that run and could not be scheduled again: no NodePool can have such a node any more."""

    namespace: str = Field(description="Namespace of the pods.")
    workload: str = Field(description="Name of the pods' workload.")
    pods: int = Field(description="How many of them run when the record ends.")
    nodes: int = Field(description="On how many nodes.")
    why: str = Field(description="Why none of the NodePools can, each with its reason.")


class HeldPods(Part):
    """Pods of a workload that something keeps on a node that is to go, and what becomes of them."""

    node_claim: str = Field(description="Name of the node's NodeClaim.")
    namespace: str = Field(description="Namespace of the pods.")
    workload: str = Field(description="Name of the pods' workload.")
    pods: int = Field(description="How many.")
    why: Why = Field(description="The kind of what keeps them.")
    words: str = Field(description="What exactly.")
    deleted_at: str | None = Field(
        description="When Karpenter deletes them all the same, ISO 8601: by the node's terminationGracePeriod. Null "
        "where it waits for as long as something keeps them."
    )
    deleted: float | None = Field(description="The same in seconds after the change began.")
    earliest: bool = Field(
        False, description="Whether that is the earliest moment, because the node is not being drained yet."
    )
    done: bool = Field(False, description="Whether they were deleted before the record ended.")
    before: bool = Field(
        False,
        description="Whether the node was to go, or had drifted, before the change, so that the change is not why.",
    )
    until: str | None = Field(
        None, description="When what keeps them ends by itself, ISO 8601; null where it does not, or that is not known."
    )
    never: bool = Field(False, description="Whether it ends only when somebody changes something.")
    job: bool = Field(
        False, description="Whether they are of a Job, so that they go by themselves if it ends before `deletedAt`."
    )


class FullPool(Part):
    """A NodePool whose own limits allow no further node when the record ends."""

    pool: str = Field(description="Its name.")
    over: bool = Field(
        description="Whether its nodes are over the limits, so that Karpenter replaces none of them; else only the "
        "next node would be."
    )
    amounts: list[str] = Field(description="What its nodes have of each limit that is in the way.")
    before: bool = Field(description="Whether it was so before the change.")


class BlastRadius(Part):
    """What the change set in motion."""

    applied: list[Planned] | None = Field(
        description="The changes of resources, as Pulumi named them; null where they were not told."
    )
    seconds: float = Field(description="From the beginning of the change until nothing moved any more.")
    replaced: list[Replaced] = Field(description="The nodes that went or began to go, in their order.")
    made: list[Made] = Field(description="The nodes that came.")
    at_once: int = Field(
        description="How many were on their way out at the same time, at most, as budgets count them: until their "
        "instance is ending."
    )
    first: float | None = Field(description="When the first one was to go; null without any.")
    last: float | None = Field(description="When the last one was gone; null without any, or if one is not gone.")
    pods_moved: int = Field(
        description="How often a pod had to leave its node, whichever that was, without those of DaemonSets."
    )
    pods_preempted: int = Field(description="Of these, how often for a pod of higher priority.")
    homeless: list[Homeless] = Field(description="Pods without a node for a while, by workload.")
    without_home: int = Field(description="How many pods that were.")
    without_home_at_once: int = Field(description="How many at the same time, at most.")
    longest_without_home: float = Field(description="Seconds, of one pod at most.")
    longest_until_home: float = Field(
        0.0, description="Seconds, of one pod at most that had a node again when the record ended."
    )
    unschedulable: int = Field(
        description="Pods without a node when the record ended that are more than before the change."
    )
    not_anew: list[NotAnew] = Field(
        [],
        description="Workloads whose pods run still and for which no NodePool could make a node any more, as one "
        "could before.",
    )
    held: list[HeldPods] = Field(
        [], description="Pods that a PodDisruptionBudget or do-not-disrupt keeps on nodes that are to go."
    )
    pods_killed: int = Field(
        0,
        description="How many of them Karpenter deletes, or deleted, all the same, on nodes that go for the change. "
        "Pods of Jobs count, because a snapshot does not say when these end.",
    )
    full_pools: list[FullPool] = Field([], description="NodePools whose own limits allow no further node.")


class Surviving(Node):
    """A node that stayed."""

    why: Why = Field(description="The kind of the first cause.")
    words: str | None = Field(
        description="The first cause; without a cause, what the controller said before the change, which decides "
        "nothing."
    )
    causes: list[Cause] = Field(
        description="All causes that hold it when the record ends, the one that Karpenter checks first at the "
        "beginning."
    )
    said: float | None = Field(
        description="When the controller last said a cause; negative before the change, null where the objects show it."
    )
    looked_at: bool = Field(description="Whether a cause is known.")
    drifted: bool = Field(description="Whether it is to be replaced and was not.")
    drifted_before: bool = Field(
        description="Whether it had drifted before, and its NodePool is the same, so that the change is not why."
    )
    never: bool = Field(description="Whether a drifted node is replaced only after a person changes something.")
    consolidation: str | None = Field(
        None,
        description="Of a drifted node, why consolidation leaves it; null where consolidation took no other node of "
        "its NodePool since the change.",
    )
    expires: str | None = Field(
        None,
        description="Of such a node, when its NodeClaim expires at the latest, ISO 8601: then Karpenter deletes it "
        "without a replacement. Null where it does not expire.",
    )
    drains_for_ever: str | None = Field(
        None,
        description="What keeps a pod on such a node, so that after `expires` it drains until somebody changes "
        "something: its NodeClaim has no terminationGracePeriod. Null where it goes.",
    )
    uses_up_budget: bool = Field(
        False, description="Whether the nodes of its NodePool that drain for ever then use up its disruption budget."
    )


class Step(Part):
    """From a moment on, so many nodes may be disrupted at once."""

    since: str = Field(description="ISO 8601, UTC.")
    allowed: int = Field(description="How many.")


class ReasonWeek(Part):
    """What the budgets of a NodePool allow for a reason within a week."""

    reason: str = Field(description="Drifted, Underutilized, Empty or Unhealthy.")
    now: int = Field(description="Nodes that may be on their way out at the moment that is asked about.")
    next_allowed: str | None = Field(
        description="When more than none may, ISO 8601, if none may now; null if that is not within the week."
    )
    hours: list[list[int]] = Field(
        description="For each of seven days from midnight UTC of `begins`, for each hour the lowest "
        "number that is allowed in it."
    )
    steps: list[Step] = Field(description="The same exactly.")


class PoolWeek(Part):
    """The disruption budgets of a NodePool as a calendar."""

    pool: str = Field(description="Its name.")
    nodes: int = Field(description="How many nodes it has, of which shares are taken.")
    reasons: list[ReasonWeek] = Field(description="By reason; empty where Karpenter can't evaluate the budgets.")
    problem: str | None = Field(None, description="Why it can't.")


class Week(Part):
    """The disruption budgets of all NodePools."""

    at: str = Field(description="The moment that is asked about, ISO 8601.")
    begins: str = Field(description="The first day, ISO 8601.")
    pools: list[PoolWeek] = Field(description="By NodePool, as they are after the change.")
    possible_now: bool | None = Field(
        description="Whether the budgets allow at that moment what the change set in motion; null if it set nothing "
        "in motion that budgets are asked about."
    )
    blocked: list[str] = Field(description="NodePool and reason, of what they do not allow.")
    used_up: list[str] = Field(
        [], description="What they allow and nodes that drain have used up when the record ends: a sentence each."
    )


class Compared(Part):
    """One figure of the real cluster beside that of the rehearsed base."""

    what: str = Field(description="What is compared.")
    real: float | None = Field(description="Of the real cluster; null where it is not known.")
    rehearsed: float | None = Field(description="Of the base.")
    distance: float | None = Field(
        description="The difference as a share of the real one; null where it cannot be reckoned."
    )
    note: str = Field("", description="What is to be known of it.")


class AsIs(Part):
    """What of the real cluster's nodes the base began with."""

    of: int = Field(description="How many nodes of NodePools the real cluster had.")
    made: int = Field(description="How many of them were made as they were.")
    pods: int = Field(description="How many pods the workload has, without those of DaemonSets.")
    pods_placed: int = Field(description="How many of them were put on the node that they had.")
    figures: list[Compared] = Field(
        [], description="The base beside the real cluster when all was loaded; empty if it was not compared."
    )
    gone: int = Field(description="How many nodes went while the base settled.")
    came: int = Field(description="How many nodes came meanwhile.")


class Truth(Part):
    """How far the rehearsed base is from the real cluster that the snapshot was taken of."""

    compared: bool = Field(description="Whether it was compared.")
    sentence: str = Field(description="In words.")
    figures: list[Compared] = Field(
        [],
        description="Nodes, types, dollars before the change, when the base has settled; empty if it was not compared.",
    )
    types: dict[str, tuple[int, int]] = Field(
        {}, description="Instance type -> nodes in the real cluster and in the base, where they differ."
    )
    as_is: AsIs | None = Field(
        None, description="What it began with; null where Karpenter chose the nodes of the base."
    )


class Limit(Part):
    """A limit and what was seen."""

    name: str = Field(description="Its key.")
    limit: str = Field(description="What is allowed.")
    seen: str = Field(description="What there was.")
    kept: bool = Field(description="Whether it was kept; what is not known keeps none.")


class Point(Part):
    """The nodes at a moment."""

    t: float = Field(description="The moment.")
    nodes: int = Field(description="How many there were, those on their way out included.")
    usd_per_hour: float = Field(description="What they cost an hour, those without a price for nothing.")


class LifeHour(Part):
    """An hour of the changed cluster's life."""

    since: str = Field(description="Its beginning, ISO 8601; the first and the last hour may be shorter.")
    nodes: float = Field(description="How many nodes there were, on average.")
    usd: float = Field(description="What they cost in it, those without a price for nothing.")
    pods: int = Field(description="How many pods of the workload there were, at most.")
    disruptions: dict[str, int] = Field(description="Reason -> how many nodes were to go from some moment of it on.")
    without_home: int = Field(description="How many pods became unschedulable.")
    closed: list[str] = Field(
        description="Reasons for which no NodePool's budgets allowed any node to go, at any moment of it."
    )


class LifeDay(Part):
    """24 hours of the changed cluster's life."""

    since: str = Field(description="Their beginning, ISO 8601; the last ones may be fewer.")
    usd: float = Field(description="What the nodes cost, those without a price for nothing.")
    disruptions: dict[str, int] = Field(description="Reason -> how many nodes were to go.")
    without_home: int = Field(description="How many pods became unschedulable.")
    longest_without_home: float = Field(description="Seconds, of one of these at most.")


class Life(Part):
    """The days that the changed cluster lived after it had settled, by its own clock."""

    begins: str = Field(description="Their beginning, ISO 8601.")
    ends: str = Field(description="Their end.")
    real_seconds: float = Field(description="How long the rehearsal took for them.")
    skipped_seconds: float = Field(description="How much of them was skipped, for nothing moved.")
    curve: dict[str, dict[str, float]] | None = Field(
        description="The daily curve of replicas: pattern of workloads -> hour of the day -> factor; null without one."
    )
    images: list[str] = Field(description="When the cloud published newer images of nodes.")
    usd: float | None = Field(description="What the nodes cost in all; null where a price is not known.")
    usd_per_day: float | None = Field(description="The same for 24 hours.")
    disruptions: dict[str, int] = Field(description="Reason -> how many nodes were to go.")
    disruptions_by_hour: dict[str, list[int]] = Field(
        description="Reason -> for each hour of the day, in UTC, how many nodes were to go."
    )
    pods_moved: int = Field(description="How often a pod had to leave its node, without those of DaemonSets.")
    homeless: list[Homeless] = Field(description="Pods without a node for a while, by workload.")
    without_home: int = Field(description="How many pods that were.")
    without_home_at_once: int = Field(description="How many at the same time, at most.")
    longest_without_home: float = Field(description="Seconds, of one pod at most.")
    never: list[Surviving] = Field(
        description="Nodes that had drifted and were still there at the end, each with its cause; moments are seconds "
        "after these days began."
    )
    hours: list[LifeHour] = Field(description="Hour by hour.")
    days: list[LifeDay] = Field(description="Day by day.")


class Answer(Part):
    """What a change would do."""

    schema_version: Literal[2] = Field(SCHEMA_VERSION, description="Of this form.")
    stack: str = Field(description="Name of the stack.")
    base: str | None = Field(None, description="Name of what it is changed from; null where it was not told.")
    candidate: str | None = Field(description="Name of the change.")
    verdict: Verdict = Field(
        description="By the limits; `refused` where Pulumi, the policies or the cloud refused the change."
    )
    sentence: str = Field(description="The answer in one sentence.")
    refused: str | None = Field(None, description="What refused the change, and why; null if it was not refused.")
    simulated: bool = Field(description="Whether it was rehearsed, so that machines and their boot times are fakes.")
    region: str = Field(description="Where the stack is.")
    moments: list[Moment] = Field(description="How it went.")
    settings: Settings = Field(description="What was shortened.")
    prices: list[str] = Field(description="Where prices are from, a sentence each.")
    prices_of: str | None = Field(
        None, description="The region whose prices dollars are at, where that is not the stack's; null where it is."
    )
    prices_elsewhere: str | None = Field(
        None, description="That dollars are at the prices of another region than the stack's; null where they are not."
    )
    given_prices: dict[str, Any] | None = Field(
        None, description="The file of prices and discounts that was given, as data; null without one."
    )
    snapshot: str | None = Field(
        None,
        description="The snapshot that was given: the first twelve digits of its file's SHA-256; null without one.",
    )
    before: Inventory = Field(description="The nodes before the change.")
    after: Inventory | None = Field(description="The nodes after it; null if it was refused.")
    blast_radius: BlastRadius | None = Field(description="What it set in motion; null if it was refused.")
    surviving: list[Surviving] = Field(description="Nodes that stayed, each with its cause.")
    week: Week = Field(description="The disruption budgets.")
    life: Life | None = Field(None, description="The days that the changed cluster lived; null where it lived none.")
    truth: Truth = Field(description="How far the base is from the real cluster.")
    limits: list[Limit] = Field(default_factory=list, description="The limits that were set.")
    series: list[Point] = Field(default_factory=list, description="Nodes and dollars from the settled base on.")
    unknown: list[str] = Field(default_factory=list, description="What is not known, a sentence each.")
