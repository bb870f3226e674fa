"""The form of the timeline's lines, as far as they are read, so that what a torn file holds is said and not judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from karpstack.text import names, shown

from ..recording.timeline import Line, TimelineError
from ..scenarios.formats import Quantity
from ..scenarios.node_pool import NodePoolSpec

Outcome = Literal["rest", "hopeless", "late"]


def _moment(text: str) -> str:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("a time without an offset")
    return text


Time = Annotated[str, AfterValidator(_moment)]
Number = Annotated[float, Field(ge=0, le=1e18)]
Amounts = dict[str, Annotated[Quantity, Field(strict=False)]]
Index = Annotated[int, Field(ge=0, le=1_000_000)]


class _Part(BaseModel):
    """Empty defaults are made by a factory: pydantic copies others for each line, which took half of its time."""

    model_config = ConfigDict(extra="ignore", strict=True, coerce_numbers_to_str=True, allow_inf_nan=False)


class _Condition(_Part):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    lastTransitionTime: Time | None = None  # noqa: N815


class _Metadata(_Part):
    name: str
    uid: str = ""
    namespace: str = ""
    labels: dict[str, str] = Field(default_factory=dict)
    creationTimestamp: Time | None = None  # noqa: N815
    deletionTimestamp: Time | None = None  # noqa: N815


class _Taint(_Part):
    key: str
    value: str = ""
    effect: str = ""


class _Requirement(_Part):
    key: str
    operator: str
    values: list[str] = Field(default_factory=list)
    minValues: Index = 0  # noqa: N815


class _Toleration(_Part):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class _Selector(_Part):
    matchLabels: dict[str, str] = Field(default_factory=dict)  # noqa: N815
    matchExpressions: list[_Requirement] = Field(default_factory=list)  # noqa: N815


class _NodeSelectorTerm(_Part):
    matchExpressions: list[_Requirement] = Field(default_factory=list)  # noqa: N815


class _Object(_Part):
    metadata: _Metadata
    conditions: list[_Condition] = Field(default_factory=list)
    nodeName: str = ""  # noqa: N815
    nodeSelector: dict[str, str] = Field(default_factory=dict)  # noqa: N815
    requests: dict[str, Number] = Field(default_factory=dict)
    taints: list[_Taint] = Field(default_factory=list)
    capacity: Amounts = Field(default_factory=dict)
    allocatable: Amounts = Field(default_factory=dict)
    resources: Amounts = Field(default_factory=dict)
    expireAfter: str = ""  # noqa: N815
    terminationGracePeriod: str = ""  # noqa: N815
    terminationGracePeriodSeconds: Index = 0  # noqa: N815
    terminationTime: Time | None = None  # noqa: N815
    doNotDisrupt: str = ""  # noqa: N815
    standsFor: str = ""  # noqa: N815
    selector: _Selector | None = None
    disruptionsAllowed: int = 0  # noqa: N815
    desiredHealthy: int = 0  # noqa: N815
    expectedPods: int = 0  # noqa: N815
    minAvailable: int | str | None = None  # noqa: N815
    maxUnavailable: int | str | None = None  # noqa: N815
    unhealthyPodEvictionPolicy: str = ""  # noqa: N815
    maxPods: Index = 0  # noqa: N815
    images: list[str] = Field(default_factory=list)
    zones: list[str] = Field(default_factory=list)
    requirements: list[_Requirement] = Field(default_factory=list)
    minValuesRelaxed: bool = False  # noqa: N815
    tolerations: list[_Toleration] = Field(default_factory=list)
    nodeSelectorTerms: list[_NodeSelectorTerm] = Field(default_factory=list)  # noqa: N815
    nodeClassRef: dict[str, str] = Field(default_factory=dict)  # noqa: N815
    spec: NodePoolSpec | None = None


class _PodMetadata(_Metadata):
    uid: str


class _Pod(_Object):
    metadata: _PodMetadata


class _About(_Part):
    kind: str = ""
    name: str = ""
    uid: str = ""


class _Event(_Object):
    involvedObject: _About  # noqa: N815
    reason: str = ""
    message: str = ""


class _Line(_Part):
    received: Time


class _Stack(_Part):
    name: Annotated[str, AfterValidator(names.stack_name)]
    outputs: dict[str, str | None] = Field(default_factory=dict)


class _Start(_Line):
    prices: bool = False
    kubernetes: str | None = None
    stack: _Stack | None = None
    scenarios: list[str] = Field(default_factory=list)


class _Clock(_Part):
    speed: float
    late: float


class _Stop(_Line):
    reason: str
    clock: _Clock | None = None


class _Gap(_Line):
    kind: str
    reason: str


class _Change(_Line):
    kind: str
    object: _Object


class _PodChange(_Line):
    object: _Pod


class _EventChange(_Line):
    object: _Event


class _Price(_Line):
    instanceType: str  # noqa: N815
    capacityType: str  # noqa: N815
    zone: str
    pricePerHour: Number  # noqa: N815
    source: Literal["controller", "table"] = "controller"


class _Prices(_Line):
    cheapest: dict[str, dict[str, Number]]


class _Unavailable(_Line):
    became: dict[str, dict[str, list[str]]]
    ceased: dict[str, dict[str, list[str]]]


class _Controller(_Line):
    memory_bytes: Number
    cpu_seconds: Number
    api_errors: Number
    started: Number
    looks: Number = 0


class _Queue(_Line):
    errors: Number
    reading: bool


class _Mark(_Line):
    scenario: str


class _Step(_Mark):
    step: Index
    requested: Time
    outcome: Outcome


class _Error(_Mark):
    task: str
    message: str


class _FaultDetail(_Part):
    nodeClaim: str = ""  # noqa: N815
    instanceTypes: list[str] = Field(default_factory=list)  # noqa: N815
    capacityTypes: list[str] = Field(default_factory=list)  # noqa: N815
    zones: list[str] = Field(default_factory=list)


class _Fault(_Mark):
    step: Index
    kind: str
    detail: _FaultDetail


class _NoticeDetail(_FaultDetail):
    nodeClaim: str  # noqa: N815


class _ShortageDetail(_FaultDetail):
    @model_validator(mode="after")
    def _of_something(self) -> Self:
        if not (self.instanceTypes or self.capacityTypes or self.zones):
            raise ValueError("of which instance types, capacity types or zones is not said")
        return self


class _Notice(_Fault):
    detail: _NoticeDetail


class _Shortage(_Fault):
    detail: _ShortageDetail


class _Resource(_Part):
    kind: str
    id: str
    nodeClaim: str | None = None  # noqa: N815


class _Resources(_Mark):
    moment: Literal["before", "story", "after"]
    source: str
    reason: str = ""
    resources: list[_Resource]
    orphans: list[_Resource]


class _Planned(_Part):
    op: str
    type: str
    name: str


class _Others(_Part):
    nodes: Number
    pods: Number
    cpu: Number
    memory: Number


class _Phase(_Line):
    phase: Literal[
        "settings", "loaded", "base-settled", "change-begins", "change-applied", "change-settled",
        "life-begins", "image-published", "life-ends",
    ]  # fmt: skip
    gaveUp: str | None = None  # noqa: N815
    refused: str | None = None
    base: str | None = None
    candidate: str | None = None
    left: list[Any] | None = None
    leftOut: list[str] | None = None  # noqa: N815
    others: _Others | None = None
    changes: list[_Planned] | None = None
    waitFactor: Number | None = None  # noqa: N815
    quiet: Number | None = None
    needed: Number | None = None
    realSeconds: Number | None = None  # noqa: N815
    skippedSeconds: Number | None = None  # noqa: N815
    curve: dict[str, dict[str, Number]] | None = None
    at: Time | None = None
    pools: dict[str, dict[str, Annotated[list[Any], Field(min_length=2, max_length=2)]]] = {}


_FORMS: dict[str, type[_Line]] = {
    "START": _Start,
    "SYNCED": _Line,
    "STOP": _Stop,
    "GAP": _Gap,
    "ADDED": _Change,
    "MODIFIED": _Change,
    "DELETED": _Change,
    "PRICE": _Price,
    "PRICES": _Prices,
    "UNAVAILABLE": _Unavailable,
    "CONTROLLER": _Controller,
    "QUEUE": _Queue,
    "STORY": _Mark,
    "STEP": _Step,
    "ERROR": _Error,
    "END": _Mark,
    "FAULT": _Fault,
    "RESOURCES": _Resources,
    "PHASE": _Phase,
}
_OF_KIND: dict[str, type[_Line]] = {
    "Pod": _PodChange,
    "Event": _EventChange,
    "interruption": _Notice,
    "rebalance": _Notice,
    "out-of-capacity": _Shortage,
}


def checked(lines: Iterable[object]) -> Iterator[Line]:
    """The lines of a timeline as they are, as long as they can be read.

    Args:
        lines: What JSON made of each line of the file, from the first.

    Raises:
        TimelineError: A line cannot be read; the text has its number, from 1.
    """
    for number, line in enumerate(lines, 1):
        yield _checked(line, number)


def _checked(line: Any, number: int) -> Line:
    type_ = line.get("type") if isinstance(line, Mapping) else None
    form = _FORMS.get(type_) if isinstance(type_, str) else None
    if form is None:
        raise _unusable(number, f"type: {shown.value(type_)}: no such line")
    kind = line.get("kind")
    if form in (_Change, _Fault) and isinstance(kind, str):
        form = _OF_KIND.get(kind, form)
    try:
        form.model_validate(line)
    except ValidationError as error:
        details = error.errors(include_url=False)[0]
        raise _unusable(
            number, f"{type_}: {shown.key(details['loc'])}: {shown.value(details['input'])}: {details['msg']}"
        ) from error
    return line  # type: ignore[no-any-return]


def _unusable(number: int, why: str) -> TimelineError:
    return TimelineError(
        f"timeline.jsonl, line {number}: {shown.message([why])}, so the run cannot be judged; remove the line if it is "
        "the last, or run the scale test again"
    )
