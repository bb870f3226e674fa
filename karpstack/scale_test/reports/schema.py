"""The form of report.json, schema 2, as types: whoever reads reports can rely on it.

`Report.model_validate(data)` checks a report; `Report.model_json_schema()` is the JSON schema for other languages.
Times `t` are seconds after the story's start, money is USD, memory is bytes; README.md beside the playbooks says
what each number means.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

SCHEMA = 2
_LONGEST = 1e9  # seconds: thirty years

T = Annotated[float, Field(ge=0, le=_LONGEST)]
# Of a step that was asked for before, or of a NodeClaim that was there before the story, it may be negative.
AnyT = Annotated[float, Field(ge=-_LONGEST, le=_LONGEST)]
Usd = Annotated[float, Field(ge=0, le=1e12)]
AnyUsd = Annotated[float, Field(ge=-1e12, le=1e12)]
Factor = Annotated[float, Field(ge=0, le=1e12)]
Count = Annotated[int, Field(ge=0, le=2**53)]
AnyAmount = Annotated[float, Field(ge=-1e18, le=1e18)]
Share = Annotated[float, Field(ge=0, le=1)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def _moment(text: str) -> str:
    datetime.fromisoformat(text)
    return text


Moment = Annotated[str, AfterValidator(_moment)]


class Versions(_Model):
    """Of what was tested, and of what tested it."""

    kubernetes: str | None
    karpenter: str | None
    karpstack: str | None


class EnvironmentOfRun(_Model):
    """Where the stories ran; `prices_of` names the region of dollars that are not of the stack's region."""

    kind: str | None
    simulated: bool
    prices_of: str | None = None
    assumed_images: str = ""
    cloud: str | None = None
    region: str | None = None
    clusterName: str | None = None  # noqa: N815


class Clock(_Model):
    """How cluster time ran: its mean speed, and by how many seconds of it a timer of an engine was late at most."""

    speed: float
    late: float


class Gap(_Model):
    """Where the record may lack changes of a kind."""

    kind: str
    at: str
    reason: str


class Controller(_Model):
    """The controller's process; the samples' t count from the START line."""

    samples: list[tuple[AnyT, Count, AnyT, Count]]
    peak_memory_bytes: Count
    cpu_seconds: AnyT
    api_errors: Count
    restarts: Count


class StepOfStory(_Model):
    """A step that was taken."""

    index: Annotated[int, Field(ge=1, le=2**53)]
    title: str
    requested: AnyT
    ended: T
    outcome: str
    seconds: AnyT


class AssertionOfStory(_Model):
    """One thing that was checked."""

    name: str
    expected: str
    seen: str
    passed: bool
    where_to_look: str
    step: Count | None
    lines: Annotated[list[Count], Field(max_length=20)]


class NodeClaimTimes(_Model):
    """When we learnt of each change; None where it did not come to that."""

    created: AnyT
    launched: AnyT | None
    registered: AnyT | None
    initialized: AnyT | None
    disrupted: AnyT | None
    drained: AnyT | None
    gone: AnyT | None


class LimitOfPool(_Model):
    """A limit of a NodePool that left no room for another node; amounts are CPUs, bytes, nodes."""

    resource: str
    limit: AnyAmount
    used: AnyAmount
    least: AnyAmount
    at_once: bool


class PoolOfNode(_Model):
    """A NodePool that was there when a node was made."""

    name: str
    weight: Count
    verdict: Literal[
        "taken",
        "later",
        "static",
        "going",
        "not ready",
        "taint",
        "requirements",
        "limit",
        "short",
        "not recorded",
        "unknown",
    ]
    about: list[str]
    limit: LimitOfPool | None


class LeftOut(_Model):
    """Instance types that NodePool and pods admit by the facts and that were not offered."""

    too_small: Count
    beyond_limit: Count
    unavailable: Count
    # Earlier reports count these among the others.
    short: Count = 0
    others: Count


class OfferOfNode(_Model):
    """What a node could have been launched as, by the requirements of its NodeClaim."""

    instance_types: Count
    capacity_types: list[str]
    zones: list[str] | None
    min_values: dict[str, Count]
    min_values_relaxed: bool
    offerings: Count | None
    unavailable: Count | None
    left_out: LeftOut | None


class PriceOfNode(_Model):
    """Where its instance type stands among those that were offered, each in its cheapest zone."""

    rank: Annotated[int, Field(ge=1, le=2**53)]
    of: Count
    unpriced: Count
    usd_per_hour: Usd
    least_usd_per_hour: Usd
    cheapest: str
    cheaper: list[str]
    source: Literal["facts", "controller"]
    simulated: bool = False


class Shortage(_Model):
    """What of an offer was said to be short."""

    source: Literal["fault", "metrics", "metrics, later", "interruption", "event", "own event"]
    t: AnyT
    offerings: Count
    instance_types: list[str]
    more: Count
    message: str | None


class WhyOfNode(_Model):
    """What there was to choose from for a node, and what of it was not to be had."""

    pods: Count
    pods_known_by: Literal["nominated", "ran", "none"]
    replaces: str | None
    pools: list[PoolOfNode]
    offered: OfferOfNode | None
    price: PriceOfNode | None
    no_price: str | None
    availability: Literal["recorded", "not recorded", "not published"]
    shortages: list[Shortage]


class NodeClaimOfStory(_Model):
    """A node that was bought."""

    name: str
    instance_type: str | None
    zone: str | None
    capacity_type: str | None
    nodepool: str
    node: str | None
    vcpus: Factor | None
    memory_bytes: Count | None
    price_per_hour: Usd | None
    # Of a rehearsal's spot; earlier reports do not tell.
    price_simulated: bool = False
    price_source: Literal["controller", "table"] | None
    created: str
    launched: str | None
    registered: str | None
    initialized: str | None
    gone: str | None
    t: NodeClaimTimes
    disruption: str | None
    simulated: bool
    # Reports of 0.1 do without.
    why: WhyOfNode | None = None


class PhaseOfStep(_Model):
    """When the first and the last thing of a step reached a phase."""

    step: Count
    phase: str
    n: Count
    first: AnyT
    last: AnyT
    at: str


class Duration(_Model):
    """How long a phase took."""

    phase: Literal[
        "pod_pending_to_nominated",
        "pod_nominated_to_scheduled",
        "pod_scheduled_to_running",
        "pod_pending_to_running",
        "nodeclaim_created_to_launched",
        "nodeclaim_launched_to_registered",
        "nodeclaim_registered_to_initialized",
        "node_disrupted_to_drained",
        "node_drained_to_gone",
    ]
    simulated: bool
    n: Count
    p50: T | None
    p90: T | None
    p99: T | None
    max: T | None
    values: list[T]


class Reached(_Model):
    """When so many per cent of what a step wanted were there."""

    step: Count
    kind: Literal["pods", "nodes"]
    percent: Literal[50, 70, 90, 99, 100]
    seconds: AnyT | None


class Series(_Model):
    """Step functions of time: a row at each change."""

    pods: list[tuple[T, Count, Count, Count]]
    nodes: list[tuple[T, Count, Count]]
    cost: list[tuple[T, Usd, Usd | None]]


class Cost(_Model):
    """What the nodes cost against the least that the pods could have cost."""

    usd: Usd
    simulated: bool = False
    bound_usd: Usd | None
    bound_simulated: bool = False
    ratio: Factor | None
    peak_usd_per_hour: Usd
    unknown: list[str]
    no_bound: str | None


class PackingOfStory(_Model):
    """How full the nodes were."""

    cpu: Share | None
    memory: Share | None


class Consolidation(_Model):
    """What came of the first step in which nodes went to save money."""

    step: Count
    first_action: AnyT
    last_gone: AnyT | None
    saving_per_hour: AnyUsd | None
    saving_simulated: bool = False


class Interruption(_Model):
    """A message that a node is to be taken away."""

    nodeclaim: str
    kind: Literal["interruption", "rebalance"]
    t: T
    replacement_running: T | None


class Fault(_Model):
    """What was broken on purpose."""

    t: T
    kind: str
    detail: dict[str, Any]


class Configuration(_Model):
    """What was deployed: NodePools in Karpenter's words, the workload in the scenario's."""

    nodePools: dict[str, dict[str, Any]]  # noqa: N815
    workload: dict[str, Any]


class StoryOfRun(_Model):
    """One run of a scenario."""

    name: str
    description: str
    tags: list[str]
    passed: bool
    started: Moment | None
    ended: Moment | None
    seconds: T
    configuration: Configuration
    steps: list[StepOfStory]
    assertions: list[AssertionOfStory]
    nodeclaims: list[NodeClaimOfStory]
    phases: list[PhaseOfStep]
    durations: list[Duration]
    reached: list[Reached]
    pending_pod_seconds: T
    series: Series
    cost: Cost
    packing: PackingOfStory
    consolidation: Consolidation | None
    interruptions: list[Interruption]
    faults: list[Fault]
    controller_restarts: int | None = None


class Report(_Model):
    """The whole report."""

    schema_: Literal[2] = Field(alias="schema")
    stack: str
    passed: bool
    started: Moment | None
    ended: Moment | None
    seconds: T
    versions: Versions
    environment: EnvironmentOfRun
    clock: Clock | None = None
    gaps: list[Gap]
    thresholds: dict[str, dict[str, Any]]
    controller: Controller | None
    stories: list[StoryOfRun]
