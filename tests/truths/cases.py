"""The cases: what a file may say, and how it is read. README.md beside this file explains the format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

FOLDER: Final = Path(__file__).parent / "cases"
STACKS: Final = {"eks": "us-east-1a", "aks-self-hosted": "westus2-1", "aks-nap": "westus2-1"}
_UNDERUTILIZED: Final = "Underutilized"
#: Cases in one cluster. With 44, Karpenter computes for so long that the cluster's clock cannot run ahead.
_BATCH: Final = 12


def _texts(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Texts = Annotated[list[str], BeforeValidator(_texts)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)


class Pool(_Part):
    """A NodePool in short.

    Attributes:
        types: Instance types that it may launch.
        zones: Zones in which it may.
        capacity: Capacity types that it may have.
        requirements: More requirements, as in a NodePool.
        labels: Labels of the template.
        annotations: Annotations of the template.
        taints: Taints of its nodes.
        startup_taints: Startup taints of its nodes.
        expire_after: As in a NodePool.
        termination_grace_period: As in a NodePool.
        node_class: Its node class; null for the stack's default.
        policy: Its consolidation policy.
        consolidate_after: As in a NodePool.
        budgets: Its disruption budgets.
        weight: Its weight.
        limits: Its limits.
        replicas: How many nodes a static NodePool has.
    """

    types: list[str] = []
    zones: list[str] = []
    capacity: list[str] = []
    requirements: list[dict[str, Any]] = []
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    taints: list[dict[str, str]] = []
    startup_taints: list[dict[str, str]] = []
    expire_after: str = "Never"
    termination_grace_period: str | None = None
    node_class: str | None = Field(None, alias="class")
    policy: str = "WhenEmptyOrUnderutilized"
    consolidate_after: str = "Never"
    budgets: list[dict[str, Any]] = [{"nodes": "100%"}]
    weight: int | None = None
    limits: dict[str, int | str] = {}
    replicas: int | None = None


class Workload(BaseModel):
    """A workload in short; what else it says is of a snapshot's pod.

    Attributes:
        kind: Its kind.
        at: Node -> how many of its pods are there.
        replicas: How many pods it has; null for those on nodes.
        cpu: CPUs of each pod.
        memory: Memory of each pod.
        volume_in: Zone of a volume that each pod has.
    """

    model_config = ConfigDict(extra="allow", frozen=True, alias_generator=to_camel, populate_by_name=True)

    kind: Literal["Deployment", "StatefulSet", "DaemonSet"] = "Deployment"
    at: dict[str, int] = {}
    replicas: int | None = None
    cpu: str
    memory: str = "256Mi"
    volume_in: str | None = None

    @property
    def count(self) -> int:
        """How many pods it has."""
        return sum(self.at.values()) if self.replicas is None else self.replicas


class Overlay(_Part):
    """A NodeOverlay that prices instance types."""

    types: list[str]
    price: str


class Change(_Part):
    """A change.

    Attributes:
        pools: NodePool -> keys that replace its own.
        classes: Node class -> keys that replace its own.
        delete: NodePools that are deleted.
        scale: Workload -> its new number of pods.
        overlays: NodeOverlays that are made.
        interrupt: Nodes whose spot instances EC2 takes back.
    """

    pools: dict[str, dict[str, Any]] = {}
    classes: dict[str, dict[str, Any]] = {}
    delete: list[str] = []
    scale: dict[str, int] = {}
    overlays: dict[str, Overlay] = {}
    interrupt: list[str] = []


class Expected(_Part):
    """What the answer has to say; README.md explains each key."""

    gone: dict[str, str] = {}
    leaving: dict[str, str] = {}
    stays: dict[str, Texts] = {}
    drifted: list[str] | None = None
    counts: dict[str, int] | None = None
    reason: str | None = None
    order: list[str] = []
    at_most: int | None = None
    came: list[str] | None = None
    moved: int | None = None
    preempted: int | None = None
    without_node: dict[str, int] = {}
    without_node_pool: list[str] | None = None
    held_by: dict[str, list[str]] = {}
    allowed: dict[str, dict[str, int]] = {}
    dollars: Literal["up", "down"] | tuple[float, float] | None = None


class Case(_Part):
    """A small cluster, a change and the answer.

    Attributes:
        name: Its name, and that of its namespace.
        stack: The stack that it needs.
        sources: Where the answer is from.
        why: The reasoning.
        corrected: What was wrong in an earlier version; empty if nothing was.
        classes: Node class -> what differs from the stack's default.
        pools: NodePools.
        nodes: Node -> NodePool, instance type, zone and capacity type.
        workloads: Workloads.
        pod_disruption_budgets: PodDisruptionBudgets.
        change: The change.
        answer: The answer.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,48}$")]
    stack: Literal["eks", "aks-self-hosted", "aks-nap"]
    sources: Annotated[list[str], Field(min_length=1)]
    why: str
    corrected: str = ""
    classes: dict[str, dict[str, Any]] = {}
    pools: dict[str, Pool]
    nodes: dict[str, str] = {}
    workloads: dict[str, Workload] = {}
    pod_disruption_budgets: dict[str, dict[str, Any]] = {}
    change: Change
    answer: Expected

    def named(self, part: str) -> str:
        """The name that a NodePool, a node class or a node of the case has in the cluster."""
        return f"{self.name}-{part}"

    def changed(self) -> dict[str, Pool]:
        """The NodePools after the change."""
        given = {name: pool.model_dump(by_alias=True) for name, pool in self.pools.items() if name not in self._deleted}
        return {name: Pool.model_validate({**keys, **self.change.pools.get(name, {})}) for name, keys in given.items()}

    @property
    def _deleted(self) -> frozenset[str]:
        return frozenset(self.change.delete)

    @property
    def alone(self) -> bool:
        """Whether consolidation removes several nodes at once, which other cases in the cluster would hinder."""
        return list(self.answer.gone.values()).count(_UNDERUTILIZED) > 1

    @property
    def holds(self) -> bool:
        """Whether nodes are on their way out when it ends, for which a what-if waits longer."""
        return bool(self.answer.leaving or (self.answer.counts or {}).get("leaving"))


class _File(_Part):
    subject: str
    stack: str
    cases: list[dict[str, Any]]


def load(folder: Path = FOLDER) -> dict[str, list[Case]]:
    """Return the cases of each file.

    Raises:
        ValueError: A case says what no case may say, or two have one name.
    """
    found = {}
    for path in sorted(folder.glob("*.yml")):
        file = _File.model_validate(yaml.safe_load(path.read_text()))
        found[path.name] = [Case.model_validate({**one, "stack": file.stack}) for one in file.cases]
    names = [case.name for cases in found.values() for case in cases]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{folder}: two cases are called {', '.join(twice)}; rename one")
    return found


def batches(cases: Sequence[Case]) -> Iterator[list[Case]]:
    """Share cases of one stack out to clusters in which they do not influence each other.

    Cases whose nodes are held at the end have a cluster for themselves, because it takes minutes to be sure of them.
    """
    held = [case for case in cases if case.holds]
    alone = [case for case in cases if case.alone]
    others = [case for case in cases if case not in (*held, *alone)]
    yield from (others[start : start + _BATCH] for start in range(0, len(others), _BATCH))
    yield from ([case] for case in alone)
    yield from (held[start : start + _BATCH] for start in range(0, len(held), _BATCH))
