"""What a review says. The three documents are written from this and nothing else; nothing here is secret.

Each text is one that can be shown, whoever wrote it: not too long, with nothing in it that a terminal or a page obeys
apart from markup, which is each document's matter.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, field_validator
from rules.values import readable

from karpstack.karpenter.findings import Finding

Level = Literal["critical", "high", "medium", "low"]
LEVELS: tuple[Level, ...] = ("critical", "high", "medium", "low")
Verdict = Literal["passed", "refused", "failed"]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @field_validator("*", mode="before")
    @classmethod
    def _readable(cls, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(readable(entry) if isinstance(entry, str) else entry for entry in value)
        return readable(value) if isinstance(value, str) else value


class Place(_Model):
    """Where in the stack's configuration something is said: a line from 1, and the key there (empty: the file)."""

    line: int = 1
    key: str = ""


class Count(_Model):
    """How many resources of a type meet with one operation."""

    operation: str
    type: str
    number: int


class Change(_Model):
    """A resource that exists and will not stay as it is; `properties` are names, never values."""

    operation: str
    type: str
    name: str
    urn: str
    properties: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Judged(Finding):
    """What a rule found: an error stops the update.

    The code is the rule's name; `subject` is the logical name of a resource, and empty for the stack as a whole.

    Attributes:
        level: How severe the rule is.
        urn: The resource's; empty for the stack as a whole.
        description: What the rule asks for.
    """

    level: Level = "medium"
    urn: str = ""
    description: str = ""

    def __post_init__(self) -> None:
        """Make each text one that can be shown."""
        for field in fields(self):
            if isinstance(text := getattr(self, field.name), str):
                object.__setattr__(self, field.name, readable(text))

    @property
    def mandatory(self) -> bool:
        """Whether it stops the update."""
        return self.severity == "error"


class NotJudged(_Model):
    """What a rule could not judge in the preview, and why."""

    rule: str
    resource: str
    urn: str
    why: str


class Excused(_Model):
    """An exception in force, and the finding that it excused; `what` of that is empty where it excused nothing."""

    finding: Judged
    pattern: str
    reason: str
    until: str


class Offer(_Model):
    """An instance type that a NodePool may launch; USD an hour on demand, None where facts/ has no price."""

    name: str
    vcpus: int
    gib: float
    usd: float | None
    capacity: tuple[str, ...]


class Pool(_Model):
    """A NodePool: what it may launch, and what it can cost at most.

    Attributes:
        usd: USD an hour; None where nothing bounds it, or where it is not known.
        of: What the ceiling is made of.
        allowed: The rule's ceiling in USD an hour.
        unknown: What could not be read or is not in facts/; the other figures are then missing.
        types: By price, the cheapest first.
    """

    name: str
    urn: str
    place: Place
    usd: float | None = None
    of: str = ""
    allowed: float | None = None
    unknown: str = ""
    requirements: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    types: tuple[Offer, ...] = ()

    @property
    def unbounded(self) -> bool:
        """Whether the limits bound nothing."""
        return self.usd is None and not self.unknown


class Cost(_Model):
    """What all NodePools can cost in an hour: the sum of those that are known, and whether that is all of them."""

    usd: float
    complete: bool
    allowed: float | None
    notes: tuple[str, ...] = ()

    @property
    def exceeded(self) -> bool:
        """Whether it is more than the policies allow; the rule may not have been able to judge it yet."""
        return self.allowed is not None and self.usd > self.allowed


class Entry(_Model):
    """Who may act as an identity. `who` and `when` are for people."""

    identity: str
    who: str
    when: tuple[str, ...]
    source: str
    urn: str


class Permission(_Model):
    """What an identity may do; `unknown` says what of it comes later."""

    identity: str
    effect: str = "Allow"
    actions: tuple[str, ...] = ()
    on: tuple[str, ...] = ()
    when: tuple[str, ...] = ()
    source: str
    urn: str
    unknown: str = ""
    broad: bool = False


class RuleText(_Model):
    """A rule of the pack, for the tools that read SARIF."""

    name: str
    group: str
    severity: Level
    description: str
    rationale: str
    consequence: str
    remediation: str
    url: str


class Review(_Model):
    """The whole.

    Attributes:
        counts: Resources of clouds and clusters.
        beside: How many components, the stack itself, and providers that the program names Pulumi counts beside them.
        assumed: A sentence on images that the facts do not know; empty without one.
    """

    stack: str
    project: str
    configuration: str
    pack_configuration: str
    pack_version: str
    verdict: Verdict
    assumed: str = ""
    failures: tuple[str, ...] = ()
    counts: tuple[Count, ...]
    beside: int
    changes: tuple[Change, ...]
    findings: tuple[Judged, ...]
    excused: tuple[Excused, ...]
    not_judged: tuple[NotJudged, ...]
    cost: Cost
    pools: tuple[Pool, ...]
    entries: tuple[Entry, ...]
    permissions: tuple[Permission, ...]
    rules: tuple[RuleText, ...]

    @property
    def mandatory(self) -> tuple[Judged, ...]:
        """The findings that stop the update."""
        return tuple(finding for finding in self.findings if finding.mandatory)

    @property
    def advisory(self) -> tuple[Judged, ...]:
        """The findings that don't."""
        return tuple(finding for finding in self.findings if not finding.mandatory)

    def total(self, operation: str) -> int:
        """How many resources meet with an operation."""
        return sum(count.number for count in self.counts if count.operation == operation)
