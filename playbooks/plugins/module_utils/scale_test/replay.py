"""Replays a timeline: what the cluster looked like after each line, and the history that a story needs.

States facts only; whether they are what a scenario expects is judged in `assertions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from .prices import Offering, offering_of
from .scenario import Scenario
from .timeline import SCENARIO_LABEL, Line, parse_time

NODE_POOL_LABEL = "karpenter.sh/nodepool"


@dataclass
class Pod:
    """A pod of a workload: `ready` means that it serves, so not while it is being deleted."""

    name: str
    namespace: str
    scenario: str
    node: str | None = None
    ready: bool = False


@dataclass
class NodeClaim:
    """A NodeClaim through its life.

    Attributes:
        labels: Its labels, from which instance type, zone and so on are read.
        cpus: CPUs of its instance, once launched.
        node: Name of its node, once registered.
        created: By the API's clock.
        conditions: Type of condition -> the condition.
        first_seen: When we learnt of it.
        reached: Type of condition -> when we learnt that it is true.
        deleting: When we learnt that it is to go.
        gone: When we learnt that it is gone.
        hosted: Scenarios whose pods were on its node.
    """

    name: str
    labels: dict[str, str]
    created: str
    first_seen: datetime
    cpus: Decimal | None = None
    node: str | None = None
    conditions: dict[str, Line] = field(default_factory=dict)
    reached: dict[str, datetime] = field(default_factory=dict)
    deleting: datetime | None = None
    gone: datetime | None = None
    hosted: set[str] = field(default_factory=set)

    @property
    def offering(self) -> Offering | None:
        """What was bought; None before the launch."""
        return offering_of(self.labels)

    @property
    def node_pool(self) -> str:
        """Name of its NodePool."""
        return self.labels.get(NODE_POOL_LABEL, "")

    def present_at(self, time: datetime) -> bool:
        """Whether it was there at that time, as far as we knew."""
        return self.first_seen <= time and (self.gone is None or self.gone > time)


class Replay:
    """The cluster as the lines read so far tell it.

    Attributes:
        start: The recorder's START line, empty before it.
        stopped: Why the recorder ended; empty while it records.
        time: When the last line was received.
        prices: USD an hour by offering.
        queue: The recorder's QUEUE lines with their times.
        nodes: Name of a node -> its excerpt, also when it is gone.
        claims: All NodeClaims ever seen.
        marks: The playbook's own lines, and the recorder's GAP lines.
        ready: Scenario -> (time, number of ready pods) at each change.
        unschedulable: Scenario -> (time, name of the pod) for each pod that had no home.
        events: Karpenter's events as (time, excerpt).
        pods: Uid -> pod of those that are there.
        pods_added: Scenario -> (time, uid) of each pod ever seen.
        node_pools: Name of a NodePool -> (time, excerpt) at each change.
    """

    def __init__(self) -> None:
        self.start: Line = {}
        self.stopped = ""
        self.time = datetime.min
        self.prices: dict[Offering, float] = {}
        self.queue: list[tuple[datetime, Line]] = []
        self.nodes: dict[str, Line] = {}
        self._nodes_gone: set[str] = set()
        self.claims: dict[str, NodeClaim] = {}
        self._objects: dict[tuple[str, str], Line] = {}
        self.marks: list[Line] = []
        self.ready: dict[str, list[tuple[datetime, int]]] = {}
        self.unschedulable: dict[str, list[tuple[datetime, str]]] = {}
        self.events: list[tuple[datetime, Line]] = []
        self.pods: dict[str, Pod] = {}
        self._claims_by_node: dict[str, NodeClaim] = {}
        self.pods_added: dict[str, list[tuple[datetime, str]]] = {}
        self.node_pools: dict[str, list[tuple[datetime, Line]]] = {}

    def apply(self, lines: Iterable[Line]) -> None:
        """Take in more lines."""
        for _ in self.steps(lines):
            pass

    def steps(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Take in lines one by one; yields each when its effect can be seen."""
        for line in lines:
            self.time = parse_time(line["received"])
            self._apply(line)
            yield line

    def _apply(self, line: Line) -> None:
        match line["type"]:
            case "START":
                self.start = line
            case "SYNCED":
                pass
            case "STOP":
                self.stopped = line["reason"]
            case "PRICE":
                self.prices[Offering(line["instanceType"], line["capacityType"], line["zone"])] = line["pricePerHour"]
            case "QUEUE":
                self.queue.append((self.time, line))
            case "ADDED" | "MODIFIED" | "DELETED":
                self._change(line["kind"], line["object"], deleted=line["type"] == "DELETED")
            case _:
                self.marks.append(line)

    def _change(self, kind: str, found: Line, *, deleted: bool) -> None:
        name = found["metadata"]["name"]
        if kind == "Pod":
            self._pod(found, deleted=deleted)
        elif kind == "NodeClaim":
            self._node_claim(found, deleted=deleted)
        elif kind == "Node" and deleted:
            self._nodes_gone.add(name)
        elif kind == "Node":
            self.nodes[name] = found
            self._nodes_gone.discard(name)
        elif kind == "Event":
            self.events.append((self.time, found))
        else:
            self._objects.pop((kind, name), None)
            if not deleted:
                self._objects[kind, name] = found
            if kind == "NodePool":
                self.node_pools.setdefault(name, []).append((self.time, found))

    def _pod(self, found: Line, *, deleted: bool) -> None:
        metadata = found["metadata"]
        scenario = metadata.get("labels", {}).get(SCENARIO_LABEL, "")
        if metadata["uid"] not in self.pods:
            self.pods_added.setdefault(scenario, []).append((self.time, metadata["uid"]))
        pod = self.pods.setdefault(metadata["uid"], Pod(metadata["name"], metadata.get("namespace", ""), scenario))
        conditions = {condition["type"]: condition for condition in found.get("conditions", ())}
        was_ready, pod.node = pod.ready, found.get("nodeName", pod.node)
        pod.ready = (
            not deleted and "deletionTimestamp" not in metadata and conditions.get("Ready", {}).get("status") == "True"
        )
        if conditions.get("PodScheduled", {}).get("reason") == "Unschedulable" and not deleted:
            self.unschedulable.setdefault(scenario, []).append((self.time, pod.name))
        if pod.ready != was_ready:
            self.ready.setdefault(scenario, []).append((self.time, self._ready_pods(scenario) + pod.ready - was_ready))
        # One that is gone had the name before: the pod's own NodeClaim has not told its node yet.
        claim = self._claims_by_node.get(pod.node or "")
        if claim and not claim.gone:
            claim.hosted.add(scenario)
        if deleted:
            del self.pods[metadata["uid"]]

    def _node_claim(self, found: Line, *, deleted: bool) -> None:
        metadata = found["metadata"]
        claim = self.claims.setdefault(
            metadata["name"],
            NodeClaim(metadata["name"], {}, metadata.get("creationTimestamp", ""), self.time),
        )
        claim.labels = metadata.get("labels", claim.labels)
        claim.node = found.get("nodeName", claim.node)
        if cpu := found.get("capacity", {}).get("cpu"):
            claim.cpus = quantity(cpu)
        for condition in found.get("conditions", ()):
            claim.conditions[condition["type"]] = condition
            if condition["status"] == "True":
                claim.reached.setdefault(condition["type"], self.time)
        if "deletionTimestamp" in metadata or deleted:
            claim.deleting = claim.deleting or self.time
        if deleted:
            claim.gone = claim.gone or self.time
        # Addresses are given out again, and with them the names of nodes.
        owner = self._claims_by_node.get(claim.node or "")
        if claim.node and owner is not claim and (owner is None or owner.gone):
            self._claims_by_node[claim.node] = claim
            claim.hosted.update(pod.scenario for pod in self.pods.values() if pod.node == claim.node)

    def _ready_pods(self, scenario: str) -> int:
        counts = self.ready.get(scenario)
        return counts[-1][1] if counts else 0

    def claims_of(self, scenario: Scenario) -> list[NodeClaim]:
        """The story's NodeClaims, oldest first: of its NodePools, and any other that its pods ran on."""
        begun = self.begun(scenario)
        return [
            claim
            for claim in self.claims.values()
            if scenario.name in claim.hosted
            or (claim.node_pool in scenario.node_pools and (claim.gone is None or (begun and claim.gone > begun)))
        ]

    def begun(self, scenario: Scenario) -> datetime | None:
        """When the story began; None before."""
        return next(
            (
                parse_time(mark["received"])
                for mark in self.marks
                if mark["type"] == "STORY" and mark["scenario"] == scenario.name
            ),
            None,
        )

    def exists(self, kind: str, name: str) -> bool:
        """Whether a NodePool or node class is there."""
        return (kind, name) in self._objects

    def conditions(self, kind: str, name: str) -> dict[str, Line]:
        """Type -> condition of a NodePool or node class."""
        found = self._objects.get((kind, name), {})
        return {condition["type"]: condition for condition in found.get("conditions", ())}

    def node_class(self, node_pool: str) -> tuple[str, str]:
        """Kind and name of the node class that a NodePool refers to; empty where the timeline does not tell."""
        reference = self._objects.get(("NodePool", node_pool), {}).get("nodeClassRef", {})
        return str(reference.get("kind", "")), str(reference.get("name", ""))

    def ready_now(self, scenario: Scenario) -> int:
        """How many of its pods are ready."""
        return self._ready_pods(scenario.name)

    def price(self, claim: NodeClaim) -> float | None:
        """USD an hour of a NodeClaim; None where it is not known."""
        return self.prices.get(claim.offering) if claim.offering else None

    def labels(self, claim: NodeClaim) -> dict[str, str]:
        """Labels of a NodeClaim's node, empty before it is registered."""
        labels: dict[str, str] = self.nodes.get(claim.node or "", {}).get("metadata", {}).get("labels", {})
        return labels

    def taints(self, claim: NodeClaim) -> set[str]:
        """Keys of the taints on a NodeClaim's node, empty before it is registered."""
        return {taint["key"] for taint in self.nodes.get(claim.node or "", {}).get("taints", ())}

    def has_node(self, claim: NodeClaim) -> bool:
        """Whether a NodeClaim's node is there."""
        ours = self._claims_by_node.get(claim.node or "") is claim
        return ours and claim.node in self.nodes and claim.node not in self._nodes_gone

    def simulated(self, claim: NodeClaim) -> bool:
        """Whether a fake kubelet played the node, so that its boot time says nothing."""
        return bool(self.nodes.get(claim.node or "", {}).get("simulated"))


def quantity(text: str | int) -> Decimal:
    """A quantity of the API, such as 1930m or 100Gi, in cores or bytes."""
    # Imported here because the client takes longer to load than all the rest, and few lines need it.
    from kubernetes.utils.quantity import parse_quantity

    return Decimal(parse_quantity(text))
