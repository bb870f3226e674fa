"""What a step of a scenario can do: its data. How it is done is the matter of `acting`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    TypeAdapter,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from karpstack.karpenter.quantities import duration

from .curve import Curve
from .curve import of as curve_of
from .formats import DAY, LONGEST_LIFE, DnsLabel, Image, Model, Nothing, Pods, Word
from .manifests import safe_patch
from .problems import refuse

CAPACITY_TYPE, ZONE, NODE_POOL = "karpenter.sh/capacity-type", "topology.kubernetes.io/zone", "karpenter.sh/nodepool"

#: What a fault takes: a controller of one's own, an interruption queue that is read, or a cloud that is rehearsed.
Needs = Literal["controller", "queue", "rehearsal"]


@dataclass(frozen=True)
class Fault:
    """Something that can be broken on purpose.

    Attributes:
        kind: Its name in the timeline, and at the rehearsal's control endpoint.
        needs: Without what it cannot be had.
        why: Why a real cluster cannot have it, where it needs a rehearsal.
    """

    kind: str
    needs: Needs
    why: str = ""


#: The faults by the field of a step (`scenario.Step`). How to inject them is in `acting.faults`.
FAULTS = {
    "interrupt": Fault("interruption", "queue"),
    "rebalance": Fault("rebalance", "queue"),
    "out_of_capacity": Fault("out-of-capacity", "rehearsal", "a shortage of capacity cannot be caused"),
    "throttle": Fault("throttle", "rehearsal", "throttling cannot be caused"),
    "publish_image": Fault("publish-image", "rehearsal", "a new image of nodes cannot be published"),
    "kill_controller": Fault("kill-controller", "controller"),
    "restart_api_server": Fault("restart-api-server", "rehearsal", "the API server is the cloud's"),
}


_PODS = TypeAdapter(Pods)
_PODS_OF = TypeAdapter(dict[DnsLabel, Pods])


def _scale(value: object, _: ValidatorFunctionWrapHandler) -> int | dict[str, int]:
    # One of both is meant, so that only what is wrong with that one is said.
    return (_PODS_OF if isinstance(value, dict) else _PODS).validate_python(value)


#: Replicas of the only workload that has some, or of each of several by name.
Scale = Annotated[Pods | dict[DnsLabel, Pods], WrapValidator(_scale)]


class RollOut(Model):
    """A new image of a workload's first container.

    Attributes:
        workload: Name of the workload.
        image: The new image.
    """

    workload: DnsLabel
    image: Image


class NodeClassPatch(Model):
    """A change of one of the scenario's node classes.

    Attributes:
        name: Name of the node class.
        spec: JSON merge patch of its `spec`: lists are replaced, null removes a key.
    """

    name: DnsLabel
    spec: Annotated[dict[str, Any], AfterValidator(safe_patch)] = Field(min_length=1)


class NodePoolPatch(Model):
    """A change of one of the scenario's NodePools.

    Attributes:
        name: Name of the NodePool.
        spec: JSON merge patch of its `spec`: lists are replaced, null removes a key.
    """

    name: DnsLabel
    spec: dict[str, Any] = Field(min_length=1)


class Nodes(Model):
    """Some of the story's nodes.

    Attributes:
        nodes: Number of matching nodes, the oldest first, or `all`.
        capacity_type: Only nodes of this capacity type.
        zone: Only nodes in this zone.
        node_pool: Only nodes of this NodePool.
    """

    nodes: int | Literal["all"] = "all"
    capacity_type: Literal["on-demand", "spot", "reserved"] | None = None
    zone: Word | None = None
    node_pool: DnsLabel | None = None

    @model_validator(mode="after")
    def _one_at_least(self) -> Self:
        if self.nodes != "all" and self.nodes < 1:
            raise refuse("no-node")
        return self

    def suits(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels may be among them."""
        asked = {CAPACITY_TYPE: self.capacity_type, ZONE: self.zone, NODE_POOL: self.node_pool}
        return all(wanted is None or labels.get(label) == wanted for label, wanted in asked.items())

    def __str__(self) -> str:
        count = "all nodes" if self.nodes == "all" else f"{self.nodes} node{'s' * (self.nodes > 1)}"
        asked = {"of": self.capacity_type, "in": self.zone, "of NodePool": self.node_pool}
        return " ".join([count, *(f"{word} {wanted}" for word, wanted in asked.items() if wanted)])


class OutOfCapacity(Model):
    """Instance types of which the cloud has none left, until the story's end or `clearFaults`.

    Attributes:
        instance_types: Instance types; `launched`: those of all nodes that the story has had so far, which were the
            cheapest that fitted; `all`: every type, in some capacity types or zones.
        capacity_types: Capacity types; all if empty.
        zones: Zones; all if empty.
    """

    instance_types: list[Word] | Literal["launched", "all"] = "launched"
    capacity_types: list[Literal["on-demand", "spot"]] = Field(default_factory=list)
    zones: list[Word] = Field(default_factory=list)

    @model_validator(mode="after")
    def _not_everything(self) -> Self:
        if self.instance_types == "all" and not self.capacity_types and not self.zones:
            raise refuse("all-out-of-capacity")
        return self


class Throttle(Model):
    """The cloud answers calls that launch instances as it does when there are too many.

    Attributes:
        calls: How many of the next calls are throttled.
    """

    calls: int = Field(gt=0, le=1_000_000)


class Churn(Model):
    """Replicas up and down.

    Attributes:
        replicas: Numbers of replicas, used in turn.
        every: Seconds between two changes.
        seconds: Total seconds (`for` in the file); the number of changes is rounded down.
    """

    replicas: list[Pods] = Field(min_length=2)
    every: float = Field(ge=1)
    seconds: float = Field(gt=0, le=DAY, alias="for")

    @model_validator(mode="after")
    def _two_changes_at_least(self) -> Self:
        if self.changes < 2:
            raise refuse("churn-too-short")
        return self

    @property
    def changes(self) -> int:
        """How many changes there are."""
        return int(self.seconds // self.every)

    def at(self, change: int) -> int:
        """The replicas after a change, counted from 0."""
        return self.replicas[change % len(self.replicas)]

    @property
    def last(self) -> int:
        """The replicas that remain."""
        return self.at(self.changes - 1)


def _seconds(value: object) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    try:
        seconds = float(str(value)) if number else duration(str(value)).total_seconds()
    except ValueError as error:
        raise refuse("time") from error
    if not 0 < seconds <= LONGEST_LIFE:
        raise refuse("life-length", hours=f"{LONGEST_LIFE / 3600:g}")
    return seconds


class Life(Model):
    """Time that goes by while replicas follow a daily curve.

    Attributes:
        seconds: Duration (`for` in the file): `24h`, or `168h` for a week. A rehearsal skips time in which nothing
            changes.
        curve: Workload (`*` for any characters) -> hour of the day in UTC -> factor of its replicas at the beginning of
            the step, for example `{web: {0h: 0.2, 8h: 1, 20h: 0.5}}`. At the end it has its original replicas.
    """

    seconds: Annotated[float, BeforeValidator(_seconds, json_schema_input_type=str | float)] = Field(alias="for")
    curve: dict[str, dict[str, float]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _is_a_curve(self) -> Self:
        if self.curve:
            curve_of(self.curve)
        return self

    @property
    def factors(self) -> Curve:
        """The curve; without one, replicas stay."""
        return curve_of(self.curve) if self.curve else Curve({})


class Meanwhile(Model):
    """A fault in the middle of a step.

    Attributes:
        once: When: as soon as a pod is `pending`, or a machine is `launched` (and has not joined yet).
        after: When: seconds after the request. Set either `once` or `after`.
        kill_controller: What: delete the controller's pods.
        restart_api_server: What: restart the API server.
        interrupt: What: interrupt nodes, as in the step `interrupt`. Set exactly one of the three.
    """

    once: Literal["pending", "launched"] | None = None
    after: float | None = Field(None, ge=0, le=DAY)
    kill_controller: Nothing | None = None
    restart_api_server: Nothing | None = None
    interrupt: Nodes | None = None

    @property
    def faults(self) -> list[str]:
        """The fields of what it breaks."""
        return [name for name in FAULTS if getattr(self, name, None) is not None]

    @model_validator(mode="after")
    def _one_time_and_one_fault(self) -> Self:
        if (self.once is None) == (self.after is None):
            raise refuse("meanwhile-when")
        if len(self.faults) != 1:
            raise refuse("meanwhile-what")
        return self
