"""Replays a timeline: what the cluster looked like after each line, and the history that a story needs.

States facts only; whether they are what a scenario expects is judged in `assertions`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Final

from karpstack.karpenter import fact_dates, images

from ..labels import SCENARIO_LABEL
from ..market.prices import Offering, PriceSource, offering_of
from ..market.quantities import amount
from ..recording.timeline import Line, parse_time
from ..scenarios.scenario import Scenario

NODE_POOL_LABEL = "karpenter.sh/nodepool"
_NOMINATED_FOR = re.compile(r"nodeclaim/([a-z0-9.-]+)")
DISRUPTION_REASON = "DisruptionReason"
#: A label that only the DaemonSet controller gives, and to pods alone.
OF_DAEMON_SETS: Final = "pod-template-generation"


@dataclass
class Pod:
    """A pod of a workload through its life; times are those of receipt.

    Attributes:
        name: Its name.
        namespace: Its namespace.
        scenario: Name of the scenario that it belongs to.
        seen: When we learnt of it.
        uid: Its uid.
        cpu: CPUs that it asks for.
        memory: Bytes that it asks for.
        requests: All that it asks for: resource -> amount.
        node_selector: Labels that its node must have.
        labels: Its labels.
        priority_class: Name of its PriorityClass; empty where it has none.
        image: Image of its first container; empty where the timeline does not tell.
        tolerations: Its tolerations, without those that every pod has; None where the timeline does not tell.
        node_selector_terms: Terms of the node affinity that it requires, of which one must hold; None where the
            timeline does not tell.
        node: Name of its node.
        succeeded: Whether it has done its work, as a Job's does.
        finished: When we learnt that it ran to its end, well or not.
        ready: Whether it serves, so not while it is being deleted.
        nominated: When the controller said where it should go.
        unschedulable: When the scheduler first found no node for it.
        scheduled: When it got its node.
        running: When it first served.
        turns: When it began to serve, and when it ceased to: each time, and whether it serves from then on.
        leaving: When it began to go, or was gone.
        disruption: Why it is to go, by its condition DisruptionTarget, such as EvictionByEvictionAPI or
            PreemptionByScheduler; empty where it has none.
        do_not_disrupt: The value of its annotation `karpenter.sh/do-not-disrupt`; empty without it.
        grace_seconds: Its terminationGracePeriodSeconds; None where the timeline does not tell.
    """

    name: str
    namespace: str
    scenario: str
    seen: datetime
    uid: str = ""
    cpu: float = 0.0
    memory: float = 0.0
    requests: dict[str, float] = field(default_factory=dict)
    node_selector: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    priority_class: str = ""
    image: str = ""
    tolerations: list[Line] | None = None
    node_selector_terms: list[Line] | None = None
    node: str | None = None
    succeeded: bool = False
    finished: datetime | None = None
    ready: bool = False
    nominated: datetime | None = None
    unschedulable: datetime | None = None
    scheduled: datetime | None = None
    running: datetime | None = None
    turns: list[tuple[datetime, bool]] = field(default_factory=list)
    leaving: datetime | None = None
    disruption: str = ""
    do_not_disrupt: str = ""
    grace_seconds: float | None = None

    @property
    def left(self) -> datetime | None:
        """When it ceased to ask for room: finished, began to go or was gone.

        The scheduler takes no account of pods whose phase is Succeeded or Failed (`newPodInformer` in pkg/scheduler of
        k8s.io/kubernetes), nor does Karpenter (`IsTerminal` in pkg/utils/pod of sigs.k8s.io/karpenter 1.15).
        """
        return min((time for time in (self.finished, self.leaving) if time), default=None)

    @property
    def of_daemon_set(self) -> bool:
        """Whether it is a DaemonSet's, by the label that only those have."""
        return OF_DAEMON_SETS in self.labels

    def present_at(self, time: datetime) -> bool:
        """Whether it was there and not going, as far as we knew."""
        return self.seen <= time and (self.leaving is None or self.leaving > time)


@dataclass
class NodeClaim:
    """A NodeClaim through its life.

    Attributes:
        labels: Its labels, from which instance type, zone and so on are read.
        cpus: CPUs of its instance, once launched.
        memory: Bytes of memory of its instance, once launched.
        capacity: All that its instance has, in Kubernetes' words, once launched.
        allocatable: What of it pods may have, once known.
        termination_grace_period: After which its pods are deleted whatever forbids it, in Kubernetes' words; empty
            without one.
        termination_time: When that is, where Karpenter has written it down.
        do_not_disrupt: The value of its annotation `karpenter.sh/do-not-disrupt`; empty without it.
        stands_for: The node of a snapshot for which it was made; empty for others.
        expire_after: For how long it may live, in Kubernetes' words; `Never` if it may for ever.
        requirements: What it may be launched as, in Karpenter's words; None where the timeline does not tell.
        requests: What its pods and DaemonSets ask for: resource -> amount.
        min_values_relaxed: Whether Karpenter went below the minValues of its NodePool.
        nominated: Uids of pods of which the controller's events said that they should go there.
        node: Name of its node, once registered.
        own_node: That node as it was last told of; empty before. A later node may have got its name, which follows its
            address.
        created: By the API's clock.
        conditions: Type of condition -> the condition.
        first_seen: When we learnt of it.
        reached: Type of condition -> when we learnt that it is true.
        chosen: When the controller chose it for a disruption, and when it took that back: each time, and whether it is
            chosen from then on.
        deleting: When we learnt that it is to go.
        gone: When we learnt that it is gone.
        hosted: Scenarios whose pods were on its node.
    """

    name: str
    labels: dict[str, str]
    created: str
    first_seen: datetime
    cpus: Decimal | None = None
    memory: int | None = None
    capacity: Line = field(default_factory=dict)
    allocatable: Line = field(default_factory=dict)
    termination_grace_period: str = ""
    termination_time: datetime | None = None
    do_not_disrupt: str = ""
    stands_for: str = ""
    expire_after: str = "Never"
    requirements: list[Line] | None = None
    requests: dict[str, float] = field(default_factory=dict)
    min_values_relaxed: bool = False
    nominated: set[str] = field(default_factory=set)
    node: str | None = None
    own_node: Line = field(default_factory=dict)
    conditions: dict[str, Line] = field(default_factory=dict)
    reached: dict[str, datetime] = field(default_factory=dict)
    chosen: list[tuple[datetime, bool]] = field(default_factory=list)
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

    @property
    def disrupted(self) -> datetime | None:
        """When the controller had decided that it is to go, or someone deleted it; None while it is to stay."""
        return self.reached.get(DISRUPTION_REASON, self.deleting)

    def staying_at(self, time: datetime) -> bool:
        """Whether it was neither chosen for a disruption nor to go at that time, as far as we knew.

        Where Karpenter looks for room, it leaves out the others (`SimulateScheduling` and `markDisrupted` in
        pkg/controllers/disruption of sigs.k8s.io/karpenter 1.15).
        """
        chosen = next((chosen for since, chosen in reversed(self.chosen) if since <= time), False)
        return not chosen and not (self.deleting and self.deleting <= time)

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
        price_sources: Where each of them is from.
        cheapest: Capacity type -> instance type -> USD an hour in the cheapest zone, of all that the controller could
            launch; empty where it does not say.
        unavailable: The recorder's UNAVAILABLE lines with their times.
        controller: The recorder's CONTROLLER lines with their times.
        faults: The playbook's FAULT lines with their times.
        queue: The recorder's QUEUE lines with their times.
        nodes: Name of a node -> its excerpt, also when it is gone.
        clock: Mean speed of cluster time (`speed`) and worst lateness of a timer in seconds of it (`late`); None
            where it was real time.
        rehearsed: Whether a fake kubelet played a node, so that the cloud is a rehearsal's.
        claims: All NodeClaims ever seen.
        marks: The playbook's own lines, and the recorder's GAP lines.
        ready: Scenario -> (time, number of ready pods) at each change.
        unschedulable: Scenario -> (time, name of the pod) for each pod that had no home.
        events: Karpenter's events as (time, excerpt).
        told: (kind, name) of a Node or NodeClaim -> its events, each with the time of its receipt.
        pods: Uid -> pod of those that are there.
        all_pods: Uid -> pod of all ever seen.
        pods_added: Scenario -> (time, uid) of each pod ever seen.
        pod_budgets: Namespace and name of a PodDisruptionBudget -> its excerpt, of those that are there.
        node_pools: Name of a NodePool -> (time, excerpt) at each change; the last one of a pool that was deleted says
            that it is `gone`.
    """

    def __init__(self) -> None:
        self.start: Line = {}
        self.stopped = ""
        self.time = datetime.min
        self.prices: dict[Offering, float] = {}
        self.price_sources: dict[Offering, PriceSource] = {}
        self.cheapest: dict[str, dict[str, float]] = {}
        self.unavailable: list[tuple[datetime, Line]] = []
        self.controller: list[tuple[datetime, Line]] = []
        self.faults: list[tuple[datetime, Line]] = []
        self.queue: list[tuple[datetime, Line]] = []
        self.nodes: dict[str, Line] = {}
        self.rehearsed = False
        self.clock: dict[str, float] | None = None
        self._nodes_gone: set[str] = set()
        self.claims: dict[str, NodeClaim] = {}
        self._objects: dict[tuple[str, str], Line] = {}
        self._node_pool_specs: dict[str, Line] = {}
        self._max_pods: dict[tuple[str, str], int] = {}
        self._zones: dict[tuple[str, str], tuple[str, ...]] = {}
        self._disks: dict[tuple[str, str], float | None] = {}
        self._images: set[str] = set()
        self._nominated: dict[str, set[str]] = {}
        self.marks: list[Line] = []
        self.ready: dict[str, list[tuple[datetime, int]]] = {}
        self.unschedulable: dict[str, list[tuple[datetime, str]]] = {}
        self.events: list[tuple[datetime, Line]] = []
        self.events_by_object: dict[tuple[str, str], list[tuple[datetime, Line]]] = {}
        self.pods: dict[str, Pod] = {}
        self.all_pods: dict[str, Pod] = {}
        self._claims_by_node: dict[str, NodeClaim] = {}
        self.pods_added: dict[str, list[tuple[datetime, str]]] = {}
        self.node_pools: dict[str, list[tuple[datetime, Line]]] = {}
        self.pod_budgets: dict[tuple[str, str], Line] = {}

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
                self.clock = line.get("clock")
            case "PRICE":
                offering = Offering(line["instanceType"], line["capacityType"], line["zone"])
                self.prices[offering] = line["pricePerHour"]
                self.price_sources[offering] = line.get("source", "controller")
            case "PRICES":
                for capacity_type, prices in line["cheapest"].items():
                    self.cheapest.setdefault(capacity_type, {}).update(prices)
            case "UNAVAILABLE":
                self.unavailable.append((self.time, line))
            case "CONTROLLER":
                self.controller.append((self.time, line))
            case "FAULT":
                self.faults.append((self.time, line))
            case "QUEUE":
                self.queue.append((self.time, line))
            case "ADDED" | "MODIFIED" | "DELETED":
                self._change(line["kind"], line["object"], deleted=line["type"] == "DELETED")
            case _:
                self.marks.append(line)

    def _change(self, kind: str, excerpt: Line, *, deleted: bool) -> None:
        name = excerpt["metadata"]["name"]
        if kind == "Pod":
            self._pod(excerpt, deleted=deleted)
        elif kind == "NodeClaim":
            self._node_claim(excerpt, deleted=deleted)
        elif kind == "PodDisruptionBudget":
            key = excerpt["metadata"].get("namespace", ""), name
            self.pod_budgets.pop(key, None)
            if not deleted:
                self.pod_budgets[key] = excerpt
        elif kind == "Node" and deleted:
            self._nodes_gone.add(name)
        elif kind == "Node":
            self.nodes[name] = excerpt
            self.rehearsed = self.rehearsed or bool(excerpt.get("simulated"))
            self._nodes_gone.discard(name)
            owner = self._claims_by_node.get(name)
            if owner and not owner.gone:
                owner.own_node = excerpt
        elif kind == "Event":
            if not deleted:  # they go by themselves an hour later, or with their namespace
                self._event(excerpt)
        else:
            self._objects.pop((kind, name), None)
            if "spec" in excerpt:
                self._node_pool_specs[name] = excerpt["spec"]
            if "maxPods" in excerpt:
                self._max_pods[kind, name] = excerpt["maxPods"]
            self._images.update(excerpt.get("images", ()))
            if "zones" in excerpt:
                self._zones[kind, name] = tuple(excerpt["zones"])
            if not deleted:
                self._objects[kind, name] = excerpt
                self._disks[kind, name] = excerpt.get("disk")
            if kind == "NodePool":
                self.node_pools.setdefault(name, []).append((self.time, excerpt | {"gone": deleted}))

    def _event(self, event: Line) -> None:
        self.events.append((self.time, event))
        about = event["involvedObject"]
        if about.get("kind") == "Pod":
            if event.get("reason") == "Nominated" and (named := _NOMINATED_FOR.search(event.get("message", ""))):
                # The event may come before the NodeClaim.
                self._nominated.setdefault(named[1], set()).add(about.get("uid", ""))
            pod = self.all_pods.get(about.get("uid", ""))
            # One that has a node is nominated for where it moves when that one is consolidated.
            if pod and pod.scheduled is None and event.get("reason") == "Nominated":
                pod.nominated = pod.nominated or self.time
        else:
            self.events_by_object.setdefault((about.get("kind", ""), about.get("name", "")), []).append(
                (self.time, event)
            )

    def _pod(self, excerpt: Line, *, deleted: bool) -> None:
        metadata = excerpt["metadata"]
        scenario = metadata.get("labels", {}).get(SCENARIO_LABEL, "")
        if metadata["uid"] not in self.pods:
            self.pods_added.setdefault(scenario, []).append((self.time, metadata["uid"]))
            self.pods[metadata["uid"]] = self.all_pods[metadata["uid"]] = _new_pod(excerpt, scenario, self.time)
        pod = self.pods[metadata["uid"]]
        conditions = {condition["type"]: condition for condition in excerpt.get("conditions", ())}
        was_ready, pod.node = pod.ready, excerpt.get("nodeName", pod.node)
        pod.do_not_disrupt = excerpt.get("doNotDisrupt", "")
        pod.succeeded = pod.succeeded or excerpt.get("phase") == "Succeeded"
        if excerpt.get("phase") in ("Succeeded", "Failed"):
            pod.finished = pod.finished or self.time
        pod.ready = (
            not deleted and "deletionTimestamp" not in metadata and conditions.get("Ready", {}).get("status") == "True"
        )
        if conditions.get("PodScheduled", {}).get("status") == "True":
            pod.scheduled = pod.scheduled or self.time
        if (target := conditions.get("DisruptionTarget", {})).get("status") == "True":
            pod.disruption = str(target.get("reason") or "")
        if pod.ready:
            pod.running = pod.running or self.time
        if deleted or "deletionTimestamp" in metadata:
            pod.leaving = pod.leaving or self.time
        if conditions.get("PodScheduled", {}).get("reason") == "Unschedulable" and not deleted:
            pod.unschedulable = pod.unschedulable or self.time
            self.unschedulable.setdefault(scenario, []).append((self.time, pod.name))
        if pod.ready != was_ready:
            pod.turns.append((self.time, pod.ready))
            self.ready.setdefault(scenario, []).append((self.time, self._ready_pods(scenario) + pod.ready - was_ready))
        # One that is gone had the name before: the pod's own NodeClaim has not told its node yet.
        claim = self._claims_by_node.get(pod.node or "")
        if claim and not claim.gone:
            claim.hosted.add(scenario)
        if deleted:
            del self.pods[metadata["uid"]]

    def _node_claim(self, excerpt: Line, *, deleted: bool) -> None:
        metadata = excerpt["metadata"]
        claim = self.claims.setdefault(
            metadata["name"],
            NodeClaim(
                metadata["name"],
                {},
                metadata.get("creationTimestamp", ""),
                self.time,
                nominated=self._nominated.setdefault(metadata["name"], set()),
            ),
        )
        claim.labels = metadata.get("labels", claim.labels)
        claim.node = excerpt.get("nodeName", claim.node)
        if cpu := excerpt.get("capacity", {}).get("cpu"):
            claim.cpus = Decimal(f"{amount(cpu):g}")
        if memory := excerpt.get("capacity", {}).get("memory"):
            claim.memory = int(amount(memory))
        claim.capacity = excerpt.get("capacity", claim.capacity)
        claim.allocatable = excerpt.get("allocatable", claim.allocatable)
        claim.termination_grace_period = excerpt.get("terminationGracePeriod", claim.termination_grace_period)
        if written := excerpt.get("terminationTime"):
            claim.termination_time = parse_time(written)
        claim.do_not_disrupt = excerpt.get("doNotDisrupt", "")
        claim.stands_for = excerpt.get("standsFor", claim.stands_for)
        claim.expire_after = excerpt.get("expireAfter", claim.expire_after)
        claim.requirements = excerpt.get("requirements", claim.requirements)
        claim.requests = excerpt.get("requests", claim.requests)
        claim.min_values_relaxed = excerpt.get("minValuesRelaxed", claim.min_values_relaxed)
        if DISRUPTION_REASON not in {condition["type"] for condition in excerpt.get("conditions", ())} and not deleted:
            # The controller takes it back where a disruption did not come to pass.
            claim.conditions.pop(DISRUPTION_REASON, None)
            claim.reached.pop(DISRUPTION_REASON, None)
        chosen = claim.chosen[-1][1] if claim.chosen else False
        for condition in excerpt.get("conditions", ()):
            claim.conditions[condition["type"]] = condition
            if condition["status"] == "True":
                claim.reached.setdefault(condition["type"], self.time)
        if (DISRUPTION_REASON in claim.reached) != chosen:
            claim.chosen.append((self.time, not chosen))
        if "deletionTimestamp" in metadata or deleted:
            claim.deleting = claim.deleting or self.time
        if deleted:
            claim.gone = claim.gone or self.time
        # Addresses are given out again, and with them the names of nodes.
        owner = self._claims_by_node.get(claim.node or "")
        if claim.node and owner is not claim and (owner is None or owner.gone):
            self._claims_by_node[claim.node] = claim
            if claim.node not in self._nodes_gone:
                claim.own_node = self.nodes.get(claim.node, {})
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
        excerpt = self._objects.get((kind, name), {})
        return {condition["type"]: condition for condition in excerpt.get("conditions", ())}

    def node_pool_spec(self, name: str) -> Line | None:
        """The `spec` of a NodePool, also when it is gone; None where the timeline does not tell."""
        return self._node_pool_specs.get(name)

    def node_pool_at(self, name: str, time: datetime) -> Line | None:
        """A NodePool as it was at a moment; None where it was not there, as far as the timeline tells."""
        history = self.node_pools.get(name, ())
        excerpt = next((excerpt for at, excerpt in reversed(history) if at <= time), None)
        return None if excerpt is None or excerpt["gone"] else excerpt

    def node_class_max_pods(self, kind: str, name: str) -> int | None:
        """How many pods a node class lets a node have, where it says so."""
        return self._max_pods.get((kind, name))

    def node_class_zones(self, kind: str, name: str) -> tuple[str, ...] | None:
        """The zones in which a node class has subnets; None where the timeline does not tell."""
        return self._zones.get((kind, name))

    def node_class_disk(self, kind: str, name: str) -> float | None:
        """How many bytes of ephemeral storage a node of a node class has at most; None where that is not known."""
        return self._disks.get((kind, name))

    @property
    def assumed_images(self) -> str:
        """A sentence on images of node classes that the facts do not know; empty without one."""
        return images.assumed(self._images, str(self.start.get("kubernetes") or ""), fact_dates.today())

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

    def price_simulated(self, claim: NodeClaim) -> bool:
        """Whether the price of a NodeClaim is a rule of the rehearsal's and no market's: that of spot is."""
        return bool(self.rehearsed and claim.offering and claim.offering.capacity_type == "spot")

    def price_source(self, claim: NodeClaim) -> PriceSource | None:
        """Where the price of a NodeClaim is from; None where it is not known."""
        return self.price_sources.get(claim.offering) if claim.offering else None

    def allocatable(self, claim: NodeClaim) -> Line:
        """What pods may have of a NodeClaim's node, empty where nothing tells."""
        quantities: Line = claim.own_node.get("allocatable") or claim.allocatable
        return quantities

    def labels(self, claim: NodeClaim) -> dict[str, str]:
        """Labels of a NodeClaim's node, empty before it is registered."""
        labels: dict[str, str] = claim.own_node.get("metadata", {}).get("labels", {})
        return labels

    def taints(self, claim: NodeClaim) -> set[str]:
        """Keys of the taints on a NodeClaim's node, empty before it is registered."""
        return {taint["key"] for taint in claim.own_node.get("taints", ())}

    def has_node(self, claim: NodeClaim) -> bool:
        """Whether a NodeClaim's node is there."""
        ours = self._claims_by_node.get(claim.node or "") is claim
        return ours and claim.node in self.nodes and claim.node not in self._nodes_gone

    def nodes_of_no_pool(self) -> list[Line]:
        """Nodes that are there and that no NodeClaim became, as those of managed node groups."""
        return [node for name, node in self.nodes.items() if name not in self._nodes_gone | self._claims_by_node.keys()]

    def simulated(self, claim: NodeClaim) -> bool:
        """Whether a fake kubelet played the node, so that its boot time says nothing."""
        return bool(claim.own_node.get("simulated"))


def _new_pod(excerpt: Line, scenario: str, time: datetime) -> Pod:
    metadata, requests = excerpt["metadata"], excerpt.get("requests", {})
    return Pod(
        metadata["name"],
        metadata.get("namespace", ""),
        scenario,
        seen=time,
        uid=metadata["uid"],
        cpu=requests.get("cpu", 0.0),
        memory=requests.get("memory", 0.0),
        requests=requests,
        node_selector=excerpt.get("nodeSelector", {}),
        labels=metadata.get("labels", {}),
        priority_class=excerpt.get("priorityClassName", ""),
        image=excerpt.get("image", ""),
        tolerations=excerpt.get("tolerations"),
        node_selector_terms=excerpt.get("nodeSelectorTerms"),
        grace_seconds=excerpt.get("terminationGracePeriodSeconds"),
    )
