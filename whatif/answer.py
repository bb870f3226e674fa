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
    """A change of a resource, as Pulumi named it.

    Attributes:
        what: Which of its properties an update changed; of versions also how. Empty where it was not told.
    """

    op: str
    type: str
    name: str
    what: str


class Moment(Part):
    """How far the what-if was at a moment.

    Attributes:
        phase: As the timeline names it.
        at: ISO 8601, by our clock.
        quiet: For how many seconds nothing had moved, where it is about settling.
        needed: How many of them are rest.
        gave_up: Why it did not settle; null if it did.
        left: What was under way still.
    """

    phase: str
    at: str
    quiet: float | None = None
    needed: float | None = None
    gave_up: str | None = None
    left: list[str] = []


class Shortened(Part):
    """A setting of a NodePool that was another in the rehearsal.

    Attributes:
        pool: Name of the NodePool.
        setting: Its key.
        asked: As the stack has it.
        used: As it was rehearsed.
    """

    pool: str
    setting: str
    asked: str
    used: str


class Clock(Part):
    """How cluster time ran.

    Attributes:
        speed: How many times as fast as the machine's time, on average.
        late: By how many seconds of it a timer of an engine was late at most.
    """

    speed: float
    late: float


class Settings(Part):
    """What was made other than it is, so that the rehearsal need not last for days.

    Attributes:
        wait_factor: By how much waits were divided; 1 if they were not.
        at: The moment that is asked about; null for that of the rehearsal.
        clock: How cluster time ran; null where it was real time.
        shortened: The settings.
    """

    wait_factor: float = 1
    at: str | None = None
    clock: Clock | None = None
    shortened: list[Shortened] = []


class Group(Part):
    """Nodes that have something in common.

    Attributes:
        name: What they have in common.
        nodes: How many.
        usd_per_hour: Of all; null where the price of one is not known.
    """

    name: str
    nodes: int
    usd_per_hour: float | None


class DaemonSets(Part):
    """What the DaemonSets of the workload take of the nodes.

    Attributes:
        cpu: CPUs that they ask for.
        memory: Bytes that they ask for.
        cpu_share: Of what pods may have of the nodes, 0 to 1.
        memory_share: Likewise.
        usd_per_hour: Of each node's price the larger of the two shares; null where a price is not known.
    """

    cpu: float
    memory: float
    cpu_share: float
    memory_share: float
    usd_per_hour: float | None


class Inventory(Part):
    """The nodes of all NodePools at a moment: those that stay. Figures are of these, unless they say otherwise.

    Attributes:
        at: ISO 8601, by our clock.
        nodes: Nodes that were launched and stay.
        leaving: Further nodes that were on their way out.
        coming: NodeClaims that were not launched yet.
        usd_per_hour: What the nodes cost that stay; null where the price of one is not known.
        leaving_usd_per_hour: What the nodes cost besides that were on their way out; null likewise.
        known_usd_per_hour: Of those that stay and whose price is known.
        unpriced: Instance types without a price.
        spot_usd_per_hour: Of those on spot; null where the price of one is not known.
        spot_simulated: Whether any of their prices is the rehearsal's rule and no market's.
        on_demand_usd_per_hour: Of those that are not on spot.
        by_pool: By NodePool.
        by_type: By instance type.
        by_zone: By zone.
        by_capacity_type: By capacity type.
        lower_bound_usd_per_hour: The least that `pods` could cost an hour; null where it is not known.
        no_lower_bound: Why not.
        daemon_sets: What DaemonSets take; null without any.
        pods: Pods of the workload on these nodes and on those on their way out, without those of DaemonSets.
        waiting: Pods of the workload without a node.
    """

    at: str
    nodes: int
    leaving: int
    coming: int
    usd_per_hour: float | None
    leaving_usd_per_hour: float | None
    known_usd_per_hour: float
    unpriced: list[str]
    spot_usd_per_hour: float | None
    spot_simulated: bool
    on_demand_usd_per_hour: float | None
    by_pool: list[Group]
    by_type: list[Group]
    by_zone: list[Group]
    by_capacity_type: list[Group]
    lower_bound_usd_per_hour: float | None
    no_lower_bound: str | None
    daemon_sets: DaemonSets | None
    pods: int
    waiting: int


class Node(Part):
    """A node of a NodePool.

    Attributes:
        node_claim: Name of its NodeClaim.
        name: Name of the node; of a rehearsed one that of the snapshot's node for which it stands. Null where there is
            none.
        pool: Its NodePool.
        instance_type: Its instance type; null before the launch.
        zone: Its zone.
        capacity_type: on-demand, spot or reserved.
        usd_per_hour: Its price; null where that is not known.
    """

    node_claim: str
    name: str | None
    pool: str
    instance_type: str | None
    zone: str | None
    capacity_type: str | None
    usd_per_hour: float | None


class HeldUp(Part):
    """What kept a node from going for a while.

    Attributes:
        words: The controller's; null where it said nothing.
        pod_disruption_budgets: The PodDisruptionBudgets that it named.
        selecting: The PodDisruptionBudgets of the snapshot that select the pods, whether they kept them or not.
        workload: Whose pods waited to be evicted, with its namespace; null for what was said before it was decided.
        pods: How many of them; 0 where it is not known.
        first: When they began to wait; without a workload, when the words were said first.
        until: When the last one was evicted, or the record ended; without a workload, when the words were said last.
    """

    words: str | None
    pod_disruption_budgets: list[str]
    selecting: list[str] = []
    workload: str | None
    pods: int
    first: float
    until: float


class Replaced(Node):
    """A node that was there when the change began, and went or began to go.

    Attributes:
        order: Its place among them, from 1.
        reason: Drifted, Underutilized, Empty, Expired, Interrupted, or what else the controller said; null where
            nobody said it.
        words: What exactly: the kind of drift, or what consolidation wanted.
        decided: When it was to go.
        drained: When no pod was left on it; null if that was not said.
        gone: When it was gone; null if it still was on its way.
        pods: Pods that had to leave it after the change began, without those of DaemonSets.
        held_up: What kept it.
        never: Whether it stays as long as nobody changes something: its replacement does not become ready, or nothing
            lets its pods go.
    """

    order: int
    reason: str | None
    words: str | None
    decided: float
    drained: float | None
    gone: float | None
    pods: int
    held_up: list[HeldUp]
    never: bool = False


class Made(Node):
    """A node that came after the change began.

    Attributes:
        since: When its NodeClaim was there.
        reason: The disruption for which it is a replacement; null if it is for pods that waited.
        gone: When it was gone again; null if it stayed.
    """

    since: float
    reason: str | None
    gone: float | None


class Homeless(Part):
    """Pods of a workload for which there was no node for a while, by the scheduler.

    Attributes:
        namespace: Theirs.
        workload: Theirs.
        pods: How many, without those that had none when the change began.
        longest: The longest time of one of these, in seconds.
        pod_seconds: All their times together.
        at_the_end: How many pods of the workload had none when the record ended.
        before: How many of its pods had none when the change began.
        words: Why, by the controller's last event on one of them; null where it said nothing.
    """

    namespace: str
    workload: str
    pods: int
    longest: float
    pod_seconds: float
    at_the_end: int
    before: int
    words: str | None


class NotAnew(Part):
    """Pods of a workload that run and could not be scheduled anew: after the change no NodePool can have such a node.

    Attributes:
        namespace: Theirs.
        workload: Theirs.
        pods: How many of them run when the record ends.
        nodes: On how many nodes.
        why: Why none of the NodePools can, each with its reason.
    """

    namespace: str
    workload: str
    pods: int
    nodes: int
    why: str


class HeldPods(Part):
    """Pods of a workload that something keeps on a node that is to go, and what becomes of them.

    Attributes:
        node_claim: Name of the node's NodeClaim.
        namespace: Theirs.
        workload: Theirs.
        pods: How many.
        why: The kind of what keeps them.
        words: What exactly.
        deleted_at: When Karpenter deletes them all the same, ISO 8601: by the node's terminationGracePeriod. Null where
            it waits for as long as something keeps them.
        deleted: The same in seconds after the change began.
        earliest: Whether that is the earliest moment, because the node is not being drained yet.
        done: Whether they were deleted before the record ended.
        before: Whether the node was to go, or had drifted, before the change, so that the change is not why.
        until: When what keeps them ends by itself, ISO 8601; null where it does not, or that is not known.
        never: Whether it ends only when somebody changes something.
    """

    node_claim: str
    namespace: str
    workload: str
    pods: int
    why: Why
    words: str
    deleted_at: str | None
    deleted: float | None
    earliest: bool = False
    done: bool = False
    before: bool = False
    until: str | None = None
    never: bool = False


class BlastRadius(Part):
    """What the change set in motion.

    Attributes:
        applied: The changes of resources, as Pulumi named them; null where they were not told.
        seconds: From the beginning of the change until nothing moved any more.
        replaced: The nodes that went or began to go, in their order.
        made: The nodes that came.
        at_once: How many were on their way out at the same time, at most, as budgets count them: until their instance
            is ending.
        first: When the first one was to go; null without any.
        last: When the last one was gone; null without any, or if one is not gone.
        pods_moved: How often a pod had to leave its node, whichever that was, without those of DaemonSets.
        pods_preempted: Of these, how often for a pod of higher priority.
        homeless: Pods without a node for a while, by workload.
        without_home: How many pods that were.
        without_home_at_once: How many at the same time, at most.
        longest_without_home: Seconds, of one pod at most.
        unschedulable: Pods without a node when the record ended that are more than before the change.
        not_anew: Workloads whose pods run still and for which no NodePool could make a node any more, as one could
            before.
        held: Pods that a PodDisruptionBudget or do-not-disrupt keeps on nodes that are to go.
        pods_killed: How many of them Karpenter deletes, or deleted, all the same, on nodes that go for the change.
    """

    applied: list[Planned] | None
    seconds: float
    replaced: list[Replaced]
    made: list[Made]
    at_once: int
    first: float | None
    last: float | None
    pods_moved: int
    pods_preempted: int
    homeless: list[Homeless]
    without_home: int
    without_home_at_once: int
    longest_without_home: float
    unschedulable: int
    not_anew: list[NotAnew] = []
    held: list[HeldPods] = []
    pods_killed: int = 0


class Cause(Part):
    """What holds a node when the record ends.

    Attributes:
        why: The kind of cause.
        words: What exactly, in the controller's words where it said them.
        until: When it ends by itself at the latest, ISO 8601; null where it does not, or that is not known.
        never: Whether it ends only when somebody changes something.
    """

    why: Why
    words: str
    until: str | None = None
    never: bool = False


class Surviving(Node):
    """A node that stayed.

    Attributes:
        why: The kind of the first cause.
        words: The first cause; without a cause, what the controller said before the change, which decides nothing.
        causes: All causes that hold it when the record ends, the one that Karpenter checks first at the beginning.
        said: When the controller last said a cause; negative before the change, null where the objects show it.
        looked_at: Whether a cause is known.
        drifted: Whether it is to be replaced and was not.
        drifted_before: Whether it had drifted before, and its NodePool is the same, so that the change is not why.
        never: Whether a drifted node is never replaced as long as nobody changes something.
    """

    why: Why
    words: str | None
    causes: list[Cause]
    said: float | None
    looked_at: bool
    drifted: bool
    drifted_before: bool
    never: bool


class Step(Part):
    """From a moment on, so many nodes may be disrupted at once.

    Attributes:
        since: ISO 8601, UTC.
        allowed: How many.
    """

    since: str
    allowed: int


class ReasonWeek(Part):
    """What the budgets of a NodePool allow for a reason within a week.

    Attributes:
        reason: Drifted, Underutilized, Empty or Unhealthy.
        now: Nodes that may be on their way out at the moment that is asked about.
        next_allowed: When more than none may, ISO 8601, if none may now; null if that is not within the week.
        hours: For each of seven days from midnight UTC of `begins`, for each hour the least that is allowed in it.
        steps: The same exactly.
    """

    reason: str
    now: int
    next_allowed: str | None
    hours: list[list[int]]
    steps: list[Step]


class PoolWeek(Part):
    """The disruption budgets of a NodePool as a calendar.

    Attributes:
        pool: Its name.
        nodes: How many nodes it has, of which shares are taken.
        reasons: By reason; empty where Karpenter can't evaluate the budgets.
        problem: Why it can't.
    """

    pool: str
    nodes: int
    reasons: list[ReasonWeek]
    problem: str | None = None


class Week(Part):
    """The disruption budgets of all NodePools.

    Attributes:
        at: The moment that is asked about, ISO 8601.
        begins: The first day, ISO 8601.
        pools: By NodePool, as they are after the change.
        possible_now: Whether the budgets allow at that moment what the change set in motion; null if it set nothing
            in motion that budgets are asked about.
        blocked: NodePool and reason, of what they do not allow.
        used_up: What they allow and nodes that drain have used up when the record ends: a sentence each.
    """

    at: str
    begins: str
    pools: list[PoolWeek]
    possible_now: bool | None
    blocked: list[str]
    used_up: list[str] = []


class Compared(Part):
    """One figure of the real cluster beside that of the rehearsed base.

    Attributes:
        what: What is compared.
        real: Of the real cluster; null where it is not known.
        rehearsed: Of the base.
        distance: The difference as a share of the real one; null where it cannot be reckoned.
        note: What is to be known of it.
    """

    what: str
    real: float | None
    rehearsed: float | None
    distance: float | None
    note: str = ""


class AsIs(Part):
    """What of the real cluster's nodes the base began with.

    Attributes:
        of: How many nodes of NodePools the real cluster had.
        made: How many of them were made as they were.
        pods: How many pods the workload has, without those of DaemonSets.
        pods_placed: How many of them were put on the node that they had.
        figures: The base beside the real cluster when all was loaded; empty if it was not compared.
        gone: How many nodes went while the base settled.
        came: How many nodes came meanwhile.
    """

    of: int
    made: int
    pods: int
    pods_placed: int
    figures: list[Compared] = []
    gone: int
    came: int


class Truth(Part):
    """How far the rehearsed base is from the real cluster that the snapshot was taken of.

    Attributes:
        compared: Whether it was compared.
        sentence: In words.
        figures: Nodes, types, dollars before the change, when the base has settled; empty if it was not compared.
        types: Instance type -> nodes in the real cluster and in the base, where they differ.
        as_is: What it began with; null where Karpenter chose the nodes of the base.
    """

    compared: bool
    sentence: str
    figures: list[Compared] = []
    types: dict[str, tuple[int, int]] = {}
    as_is: AsIs | None = None


class Limit(Part):
    """A limit and what was seen.

    Attributes:
        name: Its key.
        limit: What is allowed.
        seen: What there was.
        kept: Whether it was kept; what is not known keeps none.
    """

    name: str
    limit: str
    seen: str
    kept: bool


class Point(Part):
    """The nodes at a moment.

    Attributes:
        t: The moment.
        nodes: How many there were, those on their way out included.
        usd_per_hour: What they cost an hour, those without a price for nothing.
    """

    t: float
    nodes: int
    usd_per_hour: float


class LifeHour(Part):
    """An hour of the changed cluster's life.

    Attributes:
        since: Its beginning, ISO 8601; the first and the last hour may be shorter.
        nodes: How many nodes there were, on average.
        usd: What they cost in it, those without a price for nothing.
        pods: How many pods of the workload there were, at most.
        disruptions: Reason -> how many nodes were to go from some moment of it on.
        without_home: How many pods began to be without a home.
        closed: Reasons for which no NodePool's budgets allowed any node to go, at any moment of it.
    """

    since: str
    nodes: float
    usd: float
    pods: int
    disruptions: dict[str, int]
    without_home: int
    closed: list[str]


class LifeDay(Part):
    """24 hours of the changed cluster's life.

    Attributes:
        since: Their beginning, ISO 8601; the last ones may be fewer.
        usd: What the nodes cost, those without a price for nothing.
        disruptions: Reason -> how many nodes were to go.
        without_home: How many pods began to be without a home.
        longest_without_home: Seconds, of one of these at most.
    """

    since: str
    usd: float
    disruptions: dict[str, int]
    without_home: int
    longest_without_home: float


class Life(Part):
    """The days that the changed cluster lived after it had settled, by its own clock.

    Attributes:
        begins: Their beginning, ISO 8601.
        ends: Their end.
        real_seconds: How long the rehearsal took for them.
        skipped_seconds: How much of them was skipped, for nothing moved.
        curve: The daily curve of replicas: pattern of workloads -> hour of the day -> factor; null without one.
        images: When the cloud published newer images of nodes.
        usd: What the nodes cost in all; null where a price is not known.
        usd_per_day: The same for 24 hours.
        disruptions: Reason -> how many nodes were to go.
        disruptions_by_hour: Reason -> for each hour of the day, in UTC, how many nodes were to go.
        pods_moved: How often a pod had to leave its node, without those of DaemonSets.
        homeless: Pods without a node for a while, by workload.
        without_home: How many pods that were.
        without_home_at_once: How many at the same time, at most.
        longest_without_home: Seconds, of one pod at most.
        never: Nodes that had drifted and were still there at the end, each with its cause; moments are seconds after
            these days began.
        hours: Hour by hour.
        days: Day by day.
    """

    begins: str
    ends: str
    real_seconds: float
    skipped_seconds: float
    curve: dict[str, dict[str, float]] | None
    images: list[str]
    usd: float | None
    usd_per_day: float | None
    disruptions: dict[str, int]
    disruptions_by_hour: dict[str, list[int]]
    pods_moved: int
    homeless: list[Homeless]
    without_home: int
    without_home_at_once: int
    longest_without_home: float
    never: list[Surviving]
    hours: list[LifeHour]
    days: list[LifeDay]


class Answer(Part):
    """What a change would do.

    Attributes:
        schema_version: Of this form.
        stack: Name of the stack.
        base: Name of what it is changed from; null where it was not told.
        candidate: Name of the change.
        verdict: By the limits; `refused` where Pulumi, the policies or the cloud refused the change.
        sentence: The answer in one sentence.
        refused: Who refused it, and why; null if nobody did.
        simulated: Whether it was rehearsed, so that machines and their boot times are fakes.
        region: Where the stack is.
        moments: How it went.
        settings: What was shortened.
        prices: Where prices are from, a sentence each.
        prices_of: The region whose prices dollars are at, where that is not the stack's; null where it is.
        prices_elsewhere: That dollars are at the prices of another region than the stack's; null where they are not.
        given_prices: The file of prices and discounts that was given, as data; null without one.
        snapshot: The snapshot that was given: the first twelve digits of its file's SHA-256; null without one.
        before: The nodes before the change.
        after: The nodes after it; null if it was refused.
        blast_radius: What it set in motion; null if it was refused.
        surviving: Nodes that stayed, each with its cause.
        week: The disruption budgets.
        life: The days that the changed cluster lived; null where it lived none.
        truth: How far the base is from the real cluster.
        limits: The limits that were set.
        series: Nodes and dollars from the settled base on.
        unknown: What is not known, a sentence each.
    """

    schema_version: Literal[2] = SCHEMA_VERSION
    stack: str
    base: str | None = None
    candidate: str | None
    verdict: Verdict
    sentence: str
    refused: str | None = None
    simulated: bool
    region: str
    moments: list[Moment]
    settings: Settings
    prices: list[str]
    prices_of: str | None = None
    prices_elsewhere: str | None = None
    given_prices: dict[str, Any] | None = None
    snapshot: str | None = None
    before: Inventory
    after: Inventory | None
    blast_radius: BlastRadius | None
    surviving: list[Surviving]
    week: Week
    life: Life | None = None
    truth: Truth
    limits: list[Limit] = Field(default_factory=list)
    series: list[Point] = Field(default_factory=list)
    unknown: list[str] = Field(default_factory=list)
