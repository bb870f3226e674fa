"""The schema of report.json as types, version 2.

`Report.model_validate(data)` checks a report; `Report.model_json_schema()` is the JSON schema for other languages.
Times `t` are seconds after the story's start, money is USD, memory is bytes.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

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
    """Versions of Kubernetes, Karpenter and karpstack; null if unknown."""

    kubernetes: str | None = Field(description="Kubernetes of the control plane.")
    karpenter: str | None = Field(description="Karpenter's controller.")
    karpstack: str | None = Field(description="karpstack, which wrote the timeline.")


class EnvironmentOfRun(_Model):
    """Where the stories ran."""

    kind: str | None = Field(description="eks, aks-nap or aks-self-hosted; null if unknown.")
    simulated: bool = Field(description="`true`: a simulated kubelet ran at least one node.")
    prices_of: str | None = Field(
        None, description="Region of the prices, if it is not the stack's region; otherwise null."
    )
    assumed_images: str = Field(
        "", description="A sentence about node images that the facts do not know; empty without such images."
    )
    cloud: str | None = Field(None, description="`aws` or `azure`.")
    region: str | None = Field(None, description="Region of the cluster.")
    clusterName: str | None = Field(None, description="Name of the cluster.")  # noqa: N815


class Clock(_Model):
    """Speed of the simulated time."""

    speed: float = Field(description="Average speed, as a multiple of real time.")
    late: float = Field(description="Largest delay of an engine's timer, in simulated seconds.")


class Gap(_Model):
    """A time for which changes of a kind can be missing in the record."""

    kind: str = Field(description="Kind of the objects whose changes can be missing.")
    at: str = Field(description="Time of the gap.")
    reason: str = Field(description="Why the record has a gap.")


class Controller(_Model):
    """Karpenter's process, from its metrics."""

    samples: list[tuple[AnyT, Count, AnyT, Count]] = Field(
        description="Rows: `t` after the start of the recorder, memory in bytes, CPU seconds, failed API calls."
    )
    peak_memory_bytes: Count = Field(description="Largest memory.")
    cpu_seconds: AnyT = Field(description="CPU time used during the recording.")
    api_errors: Count = Field(description="Failed API calls during the recording, to Kubernetes and to the cloud.")
    restarts: Count = Field(description="Restarts of the process.")


class StepOfStory(_Model):
    """A step of a story."""

    index: Annotated[int, Field(ge=1, le=2**53)] = Field(description="Position in the story, from 1.")
    title: str = Field(description="Title of the step.")
    requested: AnyT = Field(description="When the step began, in `t`.")
    ended: T = Field(description="When the step ended, in `t`.")
    outcome: str = Field(
        description="`rest`: the expected state was reached and held. `late`: not in time. `hopeless`: a NodePool "
        "was not ready."
    )
    seconds: AnyT = Field(description="Duration of the step.")


class AssertionOfStory(_Model):
    """A check of a story: an expectation of the scenario, or a limit."""

    name: str = Field(description="Name of the check; `threshold ...` for a limit.")
    expected: str = Field(description="Expected value.")
    seen: str = Field(description="Measured value.")
    passed: bool = Field(description="`true`: the check passed.")
    where_to_look: str = Field(description="Where to look for the cause of a failure.")
    step: Count | None = Field(description="Position of its step; null for the whole story.")
    lines: Annotated[list[Count], Field(max_length=20)] = Field(
        description="Line numbers of timeline.jsonl, from 1; at most 20."
    )


class NodeClaimTimes(_Model):
    """When the recorder saw each change of a NodeClaim, in `t`; null if it did not happen."""

    created: AnyT = Field(description="The NodeClaim was created.")
    launched: AnyT | None = Field(description="The instance was launched.")
    registered: AnyT | None = Field(description="The node joined the cluster.")
    initialized: AnyT | None = Field(description="The node was ready for pods.")
    disrupted: AnyT | None = Field(
        description="Karpenter decided to remove the node, or someone deleted the NodeClaim."
    )
    drained: AnyT | None = Field(description="The last pod had left the node.")
    gone: AnyT | None = Field(description="The NodeClaim was removed.")


class LimitOfPool(_Model):
    """A limit of a NodePool that left no room for another node. Amounts are CPUs, bytes or nodes."""

    resource: str = Field(description="The resource that is limited.")
    limit: AnyAmount = Field(description="Value of the limit.")
    used: AnyAmount = Field(description="Usage by the NodePool's nodes.")
    least: AnyAmount = Field(description="The least that another node would need.")
    at_once: bool = Field(description="`true`: the usage includes nodes that were created in the same second.")


class PoolOfNode(_Model):
    """A NodePool that existed when the node was created, and why Karpenter used it or not."""

    name: str = Field(description="Name of the NodePool.")
    weight: Count = Field(description="Its weight.")
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
    ] = Field(
        description="`taken`: used for the node. `later`: comes after the used one. `static`: has a fixed number "
        "of nodes. `going`: is being deleted. `not ready`: was not ready. `taint`, `requirements`: "
        "the pods do not fit, see `about`. `limit`: no room, see `limit`. `short`: all its offerings "
        "were unavailable, see `about`. `not recorded`, `unknown`: no answer."
    )
    about: list[str] = Field(description="Details of the verdict.")
    limit: LimitOfPool | None = Field(description="The limit without room; null for another verdict.")


class LeftOut(_Model):
    """Numbers of instance types that the NodePool and the pods allow, and that Karpenter did not offer."""

    too_small: Count = Field(description="Too small for the pods.")
    beyond_limit: Count = Field(description="Would exceed a limit of the NodePool.")
    unavailable: Count = Field(description="Unavailable, by the controller's metrics.")
    short: Count = Field(0, description="Unavailable after an interruption or a refused launch.")
    others: Count = Field(description="Other reasons.")


class OfferOfNode(_Model):
    """Instance types and offerings that the NodeClaim allowed for the node."""

    instance_types: Count = Field(description="Number of instance types.")
    capacity_types: list[str] = Field(description="Capacity types.")
    zones: list[str] | None = Field(description="Zones; null if unknown.")
    min_values: dict[str, Count] = Field(description="`minValues` of the NodePool: label -> number.")
    min_values_relaxed: bool = Field(description="`true`: Karpenter relaxed `minValues`.")
    offerings: Count | None = Field(description="Number of offerings; null if unknown.")
    unavailable: Count | None = Field(
        description="How many of the offerings were unavailable, by the controller's metrics; null if unknown."
    )
    left_out: LeftOut | None = Field(description="Instance types that were not offered; null if unknown.")


class PriceOfNode(_Model):
    """Price of the node's type compared with the other offered types, each in its cheapest zone."""

    rank: Annotated[int, Field(ge=1, le=2**53)] = Field(description="Position by price; 1 is the cheapest.")
    of: Count = Field(description="Number of offerings with a price.")
    unpriced: Count = Field(description="Number of offerings without a price.")
    usd_per_hour: Usd = Field(description="Price of the node's type.")
    least_usd_per_hour: Usd = Field(description="Price of the cheapest type.")
    cheapest: str = Field(description="The cheapest type.")
    cheaper: list[str] = Field(description="Cheaper types, at most ten.")
    source: Literal["facts", "controller"] = Field(description="Source of the prices.")
    simulated: bool = Field(False, description="`true`: simulated spot prices are among them.")


class Shortage(_Model):
    """Offerings that were reported as unavailable."""

    source: Literal["fault", "metrics", "metrics, later", "interruption", "event", "own event"] = Field(
        description="Who reported it: `fault`: an injected fault. `metrics`: the controller's metrics. `metrics, "
        "later`: these metrics after the launch. `interruption`: an interruption of a spot node. "
        "`event`, `own event`: a refused launch of another node, or of this one."
    )
    t: AnyT = Field(description="Time of the report.")
    offerings: Count = Field(description="Number of unavailable offerings.")
    instance_types: list[str] = Field(description="Their instance types, at most ten.")
    more: Count = Field(description="Number of further instance types.")
    message: str | None = Field(description="Text of the event; null without one.")


class WhyOfNode(_Model):
    """What Karpenter could choose from for the node, and which offerings were unavailable."""

    pods: Count = Field(description="Number of pods for which the node was created.")
    pods_known_by: Literal["nominated", "ran", "none"] = Field(
        description="`nominated`: Karpenter's events name the pods. `ran`: no event names them, but they ran on "
        "the node. `none`: unknown."
    )
    replaces: str | None = Field(description="Disruption reason, if the node is a replacement; otherwise null.")
    pools: list[PoolOfNode] = Field(description="The NodePools, in the order in which Karpenter tries them.")
    offered: OfferOfNode | None = Field(description="The choice; null if it was not recorded.")
    price: PriceOfNode | None = Field(description="Comparison of prices; null if unknown.")
    no_price: str | None = Field(description="Why there is no comparison of prices; null if there is one.")
    availability: Literal["recorded", "not recorded", "not published"] = Field(
        description="Whether the controller's metrics about unavailable offerings were recorded; `not published`: "
        "the controller has none."
    )
    shortages: list[Shortage] = Field(description="Reported shortages around the launch.")


class NodeClaimOfStory(_Model):
    """A node that Karpenter created."""

    name: str = Field(description="Name of the NodeClaim.")
    instance_type: str | None = Field(description="Instance type; null before the launch.")
    zone: str | None = Field(description="Zone.")
    capacity_type: str | None = Field(description="on-demand, spot or reserved.")
    nodepool: str = Field(description="Its NodePool.")
    node: str | None = Field(description="Name of the node; null if none joined.")
    vcpus: Factor | None = Field(description="CPUs of the instance type.")
    memory_bytes: Count | None = Field(description="Memory of the instance type.")
    price_per_hour: Usd | None = Field(description="Price; null if unknown.")
    price_simulated: bool = Field(False, description="`true`: a simulated spot price.")
    price_source: Literal["controller", "table"] | None = Field(
        description="`controller`: Karpenter's metrics. `table`: the price table of karpstack."
    )
    created: str = Field(description="Creation time of the NodeClaim in the API, in whole seconds.")
    launched: str | None = Field(description="Time of the launch in the API; null if it did not happen.")
    registered: str | None = Field(description="Time of the registration in the API; null if it did not happen.")
    initialized: str | None = Field(description="Time of the initialization in the API; null if it did not happen.")
    gone: str | None = Field(description="When the recorder saw that it was removed; null if it was not.")
    t: NodeClaimTimes = Field(description="When the recorder saw each change.")
    disruption: str | None = Field(
        description="Reason of the disruption, for example `Drifted`; null if the node ended with the story."
    )
    simulated: bool = Field(description="`true`: a simulated kubelet ran the node.")
    why: WhyOfNode | None = Field(None, description="Why Karpenter chose this node; null in reports of version 0.1.")


class PhaseOfStep(_Model):
    """When the first and the last object of a step reached a phase."""

    step: Count = Field(description="Position of the step.")
    phase: str = Field(description="Name of the phase.")
    n: Count = Field(description="Number of objects.")
    first: AnyT = Field(description="Seconds from the request to the first object.")
    last: AnyT = Field(description="Seconds from the request to the last object.")
    at: str = Field(description="Time of the last object.")


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
    ] = Field(description="The phase, for example `pod_pending_to_running`.")
    simulated: bool = Field(description="`true`: a simulated kubelet or cloud contributed to the duration.")
    n: Count = Field(description="Number of values.")
    p50: T | None = Field(description="Median in seconds; null without values.")
    p90: T | None = Field(description="90th percentile in seconds; null without values.")
    p99: T | None = Field(description="99th percentile in seconds; null without values.")
    max: T | None = Field(description="Longest duration in seconds; null without values.")
    values: list[T] = Field(description="All values in seconds.")


class Reached(_Model):
    """When a percentage of the expected pods or nodes existed."""

    step: Count = Field(description="Position of the step.")
    kind: Literal["pods", "nodes"] = Field(
        description="`pods`: of the pods that the step added. `nodes`: of the NodeClaims that were created in the "
        "step, initialized."
    )
    percent: Literal[50, 70, 90, 99, 100] = Field(description="The percentage.")
    seconds: AnyT | None = Field(description="Seconds after the request; null if it was not reached in the step.")


class Series(_Model):
    """Values over time, with a row for each change."""

    pods: list[tuple[T, Count, Count, Count]] = Field(description="Rows: `t`, wanted pods, running pods, pending pods.")
    nodes: list[tuple[T, Count, Count]] = Field(description="Rows: `t`, NodeClaims, ready nodes that are not draining.")
    cost: list[tuple[T, Usd, Usd | None]] = Field(
        description="Rows: `t`, USD per hour, lower bound in USD per hour (null if unknown)."
    )


class Cost(_Model):
    """Cost of the nodes, and the lower bound for nodes with these pods."""

    usd: Usd = Field(description="Cost of the nodes.")
    simulated: bool = Field(False, description="`true`: contains a simulated spot price.")
    bound_usd: Usd | None = Field(description="Lower bound; null if unknown.")
    bound_simulated: bool = Field(False, description="`true`: the lower bound can contain a simulated spot price.")
    ratio: Factor | None = Field(description="Cost divided by the lower bound; null if unknown.")
    peak_usd_per_hour: Usd = Field(description="Highest price of all nodes at one time.")
    unknown: list[str] = Field(description="Instance types without a price, which count as 0.")
    no_bound: str | None = Field(description="Why there is no lower bound; null if there is one.")


class PackingOfStory(_Model):
    """Requests of the story's pods, divided by its nodes' allocatable: the average while a node exists."""

    cpu: Share | None = Field(description="Share of CPU, 0 to 1; null without nodes.")
    memory: Share | None = Field(description="Share of memory, 0 to 1; null without nodes.")


class Consolidation(_Model):
    """Result of the first step in which consolidation removed nodes."""

    step: Count = Field(description="Position of the step.")
    first_action: AnyT = Field(description="Seconds from the request to the first decision.")
    last_gone: AnyT | None = Field(
        description="Seconds from the request until the last of these nodes was removed; null if one was not."
    )
    saving_per_hour: AnyUsd | None = Field(description="Saved USD per hour; null if a price is unknown.")
    saving_simulated: bool = Field(False, description="`true`: computed with simulated spot prices.")


class Interruption(_Model):
    """A message of the cloud that it will take a node away."""

    nodeclaim: str = Field(description="Name of the NodeClaim.")
    kind: Literal["interruption", "rebalance"] = Field(
        description="`interruption`: the cloud takes the node. `rebalance`: an early warning."
    )
    t: T = Field(description="Time of the message.")
    replacement_running: T | None = Field(
        description="Seconds until all pods had left the node and as many ran elsewhere; null if this was not reached."
    )


class Fault(_Model):
    """An injected fault."""

    t: T = Field(description="Time of the fault.")
    kind: str = Field(description="Kind of the fault.")
    detail: dict[str, Any] = Field(description="Its parameters.")


class Configuration(_Model):
    """What was deployed."""

    nodePools: dict[str, dict[str, Any]] = Field(description="Name -> NodePool, as in Kubernetes.")  # noqa: N815
    workload: dict[str, Any] = Field(description="Workload, as in the scenario file.")


class StoryOfRun(_Model):
    """One run of a scenario."""

    name: str = Field(description="Name of the scenario.")
    description: str = Field(description="Its description.")
    tags: list[str] = Field(description="Its labels.")
    passed: bool = Field(description="`true`: all checks passed.")
    started: Moment | None = Field(description="Start, ISO 8601; null if unknown.")
    ended: Moment | None = Field(description="End, ISO 8601; null if it did not end.")
    seconds: T = Field(description="Duration.")
    configuration: Configuration = Field(description="NodePools and workload.")
    steps: list[StepOfStory] = Field(description="The steps.")
    assertions: list[AssertionOfStory] = Field(description="The checks.")
    nodeclaims: list[NodeClaimOfStory] = Field(description="The nodes that Karpenter created.")
    phases: list[PhaseOfStep] = Field(description="First and last time of each phase, by step.")
    durations: list[Duration] = Field(description="Durations of the phases.")
    reached: list[Reached] = Field(description="When 50, 70, 90, 99 and 100 percent were reached.")
    pending_pod_seconds: T = Field(description="Sum of the times that pods waited until they were ready.")
    series: Series = Field(description="Values over time.")
    cost: Cost = Field(description="Cost and its lower bound.")
    packing: PackingOfStory = Field(description="How full the nodes were.")
    consolidation: Consolidation | None = Field(description="Result of consolidation; null if it removed no node.")
    interruptions: list[Interruption] = Field(description="Messages that the cloud takes a node away.")
    faults: list[Fault] = Field(description="Injected faults.")
    controller_restarts: int | None = Field(
        None, description="Restarts of Karpenter during the story; null without its metrics."
    )


class Report(_Model):
    """The whole report."""

    schema_: Literal[2] = Field(alias="schema", description="Version of this schema.")
    stack: str = Field(description="Name of the stack.")
    passed: bool = Field(description="`true`: all stories passed.")
    started: Moment | None = Field(description="Start, ISO 8601; null if unknown.")
    ended: Moment | None = Field(description="End, ISO 8601; null if it did not end.")
    seconds: T = Field(description="Duration.")
    versions: Versions = Field(description="What was tested.")
    environment: EnvironmentOfRun = Field(description="Where it was tested.")
    clock: Clock | None = Field(None, description="Speed of the simulated time; null if it ran in real time.")
    gaps: list[Gap] = Field(description="Times for which the record can be incomplete.")
    thresholds: dict[str, dict[str, Any]] = Field(description="The limits that were applied.")
    controller: Controller | None = Field(description="Karpenter's process; null without its metrics.")
    stories: list[StoryOfRun] = Field(description="One entry for each run of a scenario.")

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if len({story.name for story in self.stories}) < len(self.stories):
            raise ValueError("two stories have one name")
        if self.passed and not all(story.passed for story in self.stories):
            raise ValueError("it passed, and one of its stories did not")
        return self
