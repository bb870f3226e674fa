"""Timelines that are made up, of a few pods and nodes: what tests need of what a recorder would have written."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from karpstack.scale_test.judging.replay import Replay
from karpstack.scale_test.judging.steps import StepRun
from karpstack.scale_test.recording.timeline import Line, parse_time
from karpstack.scale_test.scenarios.scenario import Scenario

NODE_POOL: dict[str, Any] = {"template": {"spec": {"nodeClassRef": {"kind": "EC2NodeClass", "name": "full"}}}}
BEGIN = parse_time("2026-11-21T10:00:00+00:00")


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


class Told:
    """A timeline of one scenario.

    Args:
        scenario: The scenario.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self._lines: list[tuple[float, Line]] = [(0, {"type": "STORY", "scenario": scenario.name})]

    def pod(
        self,
        name: str,
        workload: str,
        seconds: float,
        *,
        node: str | None = None,
        ready: bool = True,
        going: bool = False,
        phase: str = "Running",
        **more: Any,
    ) -> None:
        """How a pod is from a moment on."""
        labels = {**self.scenario.labels, "karpstack.io/workload": workload}
        metadata: dict[str, Any] = {"name": name, "namespace": "full", "uid": name, "labels": labels}
        if going:
            metadata["deletionTimestamp"] = at(seconds).isoformat()
        conditions = [{"type": "Ready", "status": str(ready and node is not None)}]
        if node:
            conditions.append({"type": "PodScheduled", "status": "True"})
            more["nodeName"] = node
        self._add(seconds, "Pod", {"metadata": metadata, "conditions": conditions, "phase": phase, **more})

    def node(self, name: str, seconds: float, *, reason: str = "", terminating: bool = False, **labels: str) -> None:
        """How a node is from a moment on; `labels` with their dots and slashes as __."""
        reached = ("Launched", "Registered", "Initialized", *(["InstanceTerminating"] * terminating))
        conditions = [{"type": kind, "status": "True"} for kind in reached]
        if reason:
            conditions.append({"type": "DisruptionReason", "status": "True", "reason": reason})
        written = {_LABELS[key]: value for key, value in {"pool": "full", **labels}.items()}
        claim = {"metadata": {"name": name, "uid": name, "labels": written}, "conditions": conditions, "nodeName": name}
        self._add(seconds, "NodeClaim", claim)

    def node_pool(self, name: str, seconds: float, spec: Line) -> None:
        """How a NodePool is from a moment on."""
        ready = [{"type": "Ready", "status": "True"}]
        self._add(seconds, "NodePool", {"metadata": {"name": name, "uid": name}, "conditions": ready, "spec": spec})

    def gone(self, kind: str, name: str, seconds: float) -> None:
        """An object is gone."""
        last = next(line for _, line in reversed(self._lines) if line.get("kind") == kind and _name(line) == name)
        self._lines.append((seconds, {**last, "type": "DELETED"}))

    def settled(self, image: str) -> None:
        """Two nodes, two pods of web and one of batch are there."""
        self.node_pool("full", 0, NODE_POOL)
        self.node("a", 1, zone="us-east-1a", capacity="spot")
        self.node("b", 1, zone="us-east-1b", capacity="on-demand")
        self.pod("web-1", "web", 2, node="a", image=image)
        self.pod("web-2", "web", 2, node="b", image=image)
        self.pod("batch-1", "batch", 2, node="b", image=image, priorityClassName="high")

    def moved(self, pod: str, workload: str, seconds: float) -> None:
        """A pod leaves its node, and another one takes its place a second later."""
        self.pod(pod, workload, seconds, node="a", going=True)
        self.pod(f"{pod}-new", workload, seconds + 1, node="b", image="registry.k8s.io/pause:3.10")

    def budgets(self, seconds: float, *budgets: dict[str, Any]) -> None:
        """Which disruption budgets the NodePool has from a moment on."""
        self.node_pool("full", seconds, NODE_POOL | {"disruption": {"budgets": list(budgets)}})

    def waiting(self, priority_class: str, until: float | None) -> None:
        """A pod of a PriorityClass waits for its node until a moment, or for ever."""
        self.pod(priority_class, "web", 5, priorityClassName=priority_class)
        if until is not None:
            self.pod(priority_class, "web", until, node="a", priorityClassName=priority_class)

    def run(self, index: int, requested: float, ended: float) -> StepRun:
        """A step between two moments."""
        replay = Replay()
        lines = sorted(self._lines, key=lambda line: line[0])
        replay.apply(line | {"received": at(seconds).isoformat()} for seconds, line in lines if seconds <= ended)
        return StepRun(replay, self.scenario, index, at(requested), at(ended))

    def _add(self, seconds: float, kind: str, excerpt: Line) -> None:
        self._lines.append((seconds, {"type": "MODIFIED", "kind": kind, "object": excerpt}))


def _name(line: Line) -> str:
    return str(line["object"]["metadata"]["name"])


_LABELS = {
    "pool": "karpenter.sh/nodepool",
    "zone": "topology.kubernetes.io/zone",
    "capacity": "karpenter.sh/capacity-type",
}
