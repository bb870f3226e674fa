"""Timelines of what-ifs made up where no recorded story has what a test is about, in the recorder's own form."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from karpstack.scale_test.labels import SCENARIO_LABEL, WORKLOAD_LABEL
from karpstack.scale_test.recording.timeline import Line, excerpt
from karpstack.whatif.labels import SCENARIO
from tests.unit.whatif.told import STACK

START = datetime(2026, 11, 23, 9, 30, tzinfo=UTC)  # a Monday
# A few instance types, so that the lower bound is found at once; of spot nobody says a price here.
FAMILY = {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["m5"]}
ON_DEMAND = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
NODE_CLASS = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
BEGINS, ENDS = 100.0, 400.0  # seconds after the start: of the change
#: Of a node.
SIZE = {"cpu": "2", "memory": "8Gi"}
SIZES = {"capacity": SIZE, "allocatable": SIZE}


def conditions_of(true: dict[str, str]) -> list[dict[str, str]]:
    """True conditions, with their reasons."""
    return [{"type": kind, "status": "True", "reason": why} for kind, why in true.items()]


def at(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat(timespec="microseconds")


class Made:
    """Collects lines; all times are seconds after the start."""

    def __init__(self) -> None:
        self._lines: list[tuple[float, Line]] = [(0.0, {"type": "START", "kubernetes": "v1.36.3", "stack": STACK})]
        self.add(1, "STORY", scenario=SCENARIO)

    def add(self, seconds: float, type_: str, **content: Any) -> None:
        self._lines.append((seconds, {"type": type_, **content}))

    def pool(
        self, name: str = "default", seconds: float = 2, *, deleted: bool = False, life: str = "720h", **spec: Any
    ) -> None:
        """A NodePool from a moment on; `deleted` is one that waits for its nodes."""
        spec = {
            "disruption": {"consolidateAfter": "30s", "consolidationPolicy": "WhenEmptyOrUnderutilized"},
            "template": {
                "spec": {"requirements": [FAMILY, ON_DEMAND], "nodeClassRef": NODE_CLASS, "expireAfter": life}
            },
            **spec,
        }
        metadata = {"name": name, **({"deletionTimestamp": at(seconds)} if deleted else {})}
        kept = {"conditions": [], "nodeClassRef": spec["template"]["spec"].get("nodeClassRef", {}), "spec": spec}
        self.add(seconds, "ADDED", kind="NodePool", object={"metadata": metadata, **kept})

    def node_class(self, seconds: float = 2, **spec: Any) -> None:
        """The EC2NodeClass `default` from a moment on, as the recorder keeps it."""
        item = {"metadata": {"name": "default"}, "spec": {"amiSelectorTerms": [{"alias": "al2023@latest"}], **spec}}
        self.add(seconds, "ADDED", kind="EC2NodeClass", object=excerpt("EC2NodeClass", item))

    def node(
        self,
        name: str,
        seconds: float = 10,
        *,
        type_: str = "m5.large",
        capacity: str = "on-demand",
        zone: str = "us-east-1a",
        pool: str = "default",
        price: float | None = 0.096,
        disrupted: float | None = None,
        reason: str = "Drifted",
        deleting: float | None = None,
        terminating: float | None = None,
        gone: float | None = None,
        conditions: dict[str, str] | None = None,
        simulated: bool = False,
        drifted: float = 110,
        has: dict[str, str] = SIZE,
        **asks: Any,
    ) -> None:
        """A NodeClaim and its node `ip-<name>`; `conditions` are true ones, with a reason, Drifted from `drifted` on.

        `has` is its capacity, `asks` what else the recorder keeps of the NodeClaim, such as `terminationGracePeriod`.
        """
        labels = {
            "karpenter.sh/nodepool": pool,
            "node.kubernetes.io/instance-type": type_,
            "karpenter.sh/capacity-type": capacity,
            "topology.kubernetes.io/zone": zone,
        }
        true = {kind: kind for kind in ("Launched", "Registered", "Initialized")} | (conditions or {})
        drift = {"Drifted": true.pop("Drifted")} if "Drifted" in true else {}

        def claim(when: float, type_: str, more: dict[str, str], **metadata: Any) -> None:
            self.add(
                when,
                type_,
                kind="NodeClaim",
                object={
                    "metadata": {"name": name, "labels": labels, "creationTimestamp": at(seconds), **metadata},
                    "conditions": conditions_of(true | more),
                    "nodeName": f"ip-{name}",
                    **{**SIZES, "capacity": has, **asks},
                },
            )

        claim(seconds, "ADDED", {})
        if drift:
            true |= drift
            claim(max(seconds, drifted), "MODIFIED", {})
        node = {"metadata": {"name": f"ip-{name}"}, "allocatable": SIZE, **({"simulated": True} if simulated else {})}
        self.add(seconds, "ADDED", kind="Node", object=node)
        if price is not None:
            self.add(seconds, "PRICE", instanceType=type_, capacityType=capacity, zone=zone, pricePerHour=price)
        if going := {} if disrupted is None else {"DisruptionReason": reason}:
            claim(disrupted or 0, "MODIFIED", going)
        if deleting is not None:
            claim(deleting, "MODIFIED", going, deletionTimestamp=at(deleting))
        if terminating is not None:
            going["InstanceTerminating"] = "InstanceTerminating"
            claim(terminating, "MODIFIED", going, deletionTimestamp=at(deleting or terminating))
        if gone is not None:
            claim(gone, "DELETED", going, deletionTimestamp=at(gone))

    def nodes(self, count: int, **asks: Any) -> None:
        """Several nodes that are alike."""
        for index in range(count):
            self.node(f"like-{index}", **asks)

    def pod(
        self,
        name: str,
        node: str | None = None,
        seconds: float = 5,
        *,
        workload: str = "web",
        namespace: str = "shop",
        unschedulable: float | None = None,
        scheduled: float = 12,
        leaving: float | None = None,
        disruption: str | None = None,
        cpu: float = 0.5,
        memory: float = 2**30,
        labels: dict[str, str] | None = None,
        **asks: Any,
    ) -> None:
        """A pod; `asks` is what else the recorder keeps of it, such as `nodeSelector` and `tolerations`."""
        own = {SCENARIO_LABEL: SCENARIO, WORKLOAD_LABEL: workload, **(labels or {})}

        def pod(when: float, type_: str, condition: dict[str, str], node: str | None = None, **metadata: Any) -> None:
            self.add(
                when,
                type_,
                kind="Pod",
                object={
                    "metadata": {"name": name, "namespace": namespace, "uid": name, "labels": own, **metadata},
                    "conditions": [{"type": "PodScheduled", **condition}],
                    **({"nodeName": f"ip-{node}"} if node else {}),
                    "requests": {"cpu": cpu, "memory": memory},
                    **asks,
                },
            )

        pod(seconds, "ADDED", {"status": "False"})
        if unschedulable is not None:
            pod(unschedulable, "MODIFIED", {"status": "False", "reason": "Unschedulable"})
        if node:
            pod(scheduled, "MODIFIED", {"status": "True"}, node)
        if leaving is not None:
            pod(leaving, "MODIFIED", {"status": "True"}, node, deletionTimestamp=at(leaving))
            if disruption:  # the API server writes it before it deletes the pod
                target = {"type": "DisruptionTarget", "status": "True", "reason": disruption}
                self._lines[-1][1]["object"]["conditions"].append(target)

    def budget(self, name: str, namespace: str = "shop", seconds: float = 6, **kept: Any) -> None:
        """A PodDisruptionBudget; `kept` is what the recorder keeps of it. It selects all pods of its namespace."""
        metadata = {"name": name, "namespace": namespace}
        budget = {"metadata": metadata, "conditions": [], "selector": {}, "disruptionsAllowed": 0, **kept}
        self.add(seconds, "ADDED", kind="PodDisruptionBudget", object=budget)

    def event(self, seconds: float, kind: str, name: str, reason: str, message: str) -> None:
        self.add(
            seconds,
            "ADDED",
            kind="Event",
            object={
                "metadata": {"name": f"{name}.{seconds}"},
                "involvedObject": {"kind": kind, "name": name, "uid": name},
                "reason": reason,
                "message": message,
            },
        )

    def lines(self, **phases: dict[str, Any]) -> list[Line]:
        """All, with PHASE lines; what those say besides is as in `told.lines`. One that is None is left out."""
        times = {
            "settings": 3.0,
            "loaded": 20.0,
            "base-settled": 90.0,
            "change-begins": BEGINS,
            "change-applied": 130.0,
            "change-settled": ENDS,
        }
        said = {name.replace("_", "-"): content for name, content in phases.items()}
        marks: list[tuple[float, Line]] = [
            (seconds, {"type": "PHASE", "phase": name, **said.get(name, {})})
            for name, seconds in times.items()
            if (name != "settings" or name in said) and not said.get(name, {}).get("missing")
        ]
        ordered = sorted([*self._lines, *marks], key=lambda pair: pair[0])
        return [{"type": line["type"], "received": at(seconds), **line} for seconds, line in ordered]
