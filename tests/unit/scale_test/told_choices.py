"""Timelines about one decision, for the tests: NodePools, pods, and the NodeClaim that they got."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from karpstack.scale_test.labels import SCENARIO_LABEL
from karpstack.scale_test.recording.timeline import Line

STORY = "eks-cheapest-fit"  # whose NodePool is TAKEN
TAKEN = "cheapest-fit"
BEGIN = datetime(2026, 11, 22, 20, 0, tzinfo=UTC)
ARM = {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}
ON_DEMAND = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
SPOT = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}


def types(*names: str, least: int = 0) -> Line:
    """A NodeClaim's requirement on its instance type."""
    few = {"minValues": least} if least else {}
    return {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(names), **few}


class Choices:
    """Collects lines, one a second."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self._seconds = 0.0
        self.add("START", kubernetes="v1.36.3", prices=True)
        self.begin()

    def begin(self) -> None:
        """The story begins."""
        self.add("STORY", scenario=STORY)

    def add(self, type_: str, **content: Any) -> None:
        """A line, a second after the one before."""
        self.lines.append({"type": type_, "received": self.clock(), **content})
        self._seconds += 1

    def wait(self, seconds: float) -> None:
        """Nothing happens."""
        self._seconds += seconds

    def clock(self) -> str:
        """Now."""
        return (BEGIN + timedelta(seconds=self._seconds)).isoformat()

    def node_class(self, *zones: str) -> None:
        """The node class, with subnets in these zones."""
        self._changed("EC2NodeClass", "default", zones=list(zones))

    def pool(
        self,
        name: str = TAKEN,
        *requirements: Line,
        labels: Mapping[str, str] | None = None,
        taints: Iterable[Line] = (),
        ready: str = "True",
        going: bool = False,
        type_: str = "ADDED",
        **spec: Any,
    ) -> None:
        """A NodePool."""
        template = {
            "metadata": {"labels": dict(labels or {})},
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "requirements": list(requirements),
                "taints": list(taints),
            },
        }
        self._changed(
            "NodePool",
            name,
            type_=type_,
            metadata={"deletionTimestamp": self.clock()} if going else {},
            conditions=[{"type": "Ready", "status": ready}],
            spec={"template": template, **spec},
        )

    def pod(
        self,
        name: str = "pod",
        selector: Mapping[str, str] | None = None,
        *,
        tolerations: list[Line] | None = None,
        terms: list[Line] | None = None,
        old: bool = False,
        cpu: float = 1.0,
    ) -> None:
        """A pod that waits; `old`: as a recorder of 0.1 wrote it."""
        once: dict[str, Any] = {} if old else {"tolerations": tolerations or [], "nodeSelectorTerms": terms or []}
        self._changed(
            "Pod",
            name,
            metadata={"labels": {SCENARIO_LABEL: STORY}, "namespace": "other"},
            nodeSelector=dict(selector or {}),
            requests={"cpu": cpu, "memory": 2.0**30},
            **once,
        )

    def claim(
        self,
        *requirements: Line,
        name: str = "claim",
        pool: str = TAKEN,
        bought: tuple[str, str, str] | None = ("m5.large", "on-demand", "us-east-1a"),
        old: bool = False,
        cpu: str = "2",
        **once: Any,
    ) -> None:
        """A NodeClaim, launched at once; `old`: as a recorder of 0.1 wrote it."""
        keys = ("node.kubernetes.io/instance-type", "karpenter.sh/capacity-type", "topology.kubernetes.io/zone")
        labels = {"karpenter.sh/nodepool": pool, **dict(zip(keys, bought or (), strict=False))}
        told = {} if old else {"requirements": list(requirements), "requests": {"cpu": 1.0}, **once}
        self._changed("NodeClaim", name, metadata={"labels": labels}, capacity={"cpu": cpu, "memory": "8Gi"}, **told)

    def nominated(self, pod: str = "pod", claim: str = "claim") -> None:
        """The controller's event on a pod."""
        self.event("Pod", pod, "Nominated", f"Pod should schedule on: nodeclaim/{claim}")

    def event(self, kind: str, name: str, reason: str, message: str) -> None:
        """An event of the controller."""
        about = {"kind": kind, "name": name, "uid": f"{kind}-{name}"}
        self._changed("Event", f"{name}.{len(self.lines)}", involvedObject=about, reason=reason, message=message)

    def unavailable(self, *names: str, kind: str = "on-demand", zone: str = "us-east-1a", key: str = "became") -> None:
        """The metrics were asked what is unavailable; `key`: whether it became so, or ceased to be."""
        changes = {"became": {}, "ceased": {}, key: {kind: {zone: list(names)}} if names else {}}
        self.add("UNAVAILABLE", **changes)

    def chosen(self, name: str, back: bool) -> None:
        """The controller chooses a node for a disruption, or takes that back."""
        claims = (line["object"] for line in self.lines if line.get("kind") == "NodeClaim")
        claim = next(one for one in claims if one["metadata"]["name"] == name)
        reason = {"type": "DisruptionReason", "status": "True", "lastTransitionTime": self.clock(), "reason": "Drifted"}
        self.add("MODIFIED", kind="NodeClaim", object=claim | {"conditions": [] if back else [reason]})

    def end(self) -> list[Line]:
        """All of it."""
        self.add("END", scenario=STORY)
        return self.lines

    def _changed(
        self, kind: str, name: str, *, type_: str = "ADDED", metadata: Mapping[str, Any] | None = None, **more: Any
    ) -> None:
        created = {"name": name, "uid": f"{kind}-{name}", "creationTimestamp": self.clock(), **(metadata or {})}
        self.add(type_, kind=kind, apiTime=self.clock(), object={"metadata": created, **more})


_NAMES = {"ARM": ARM, "ON_DEMAND": ON_DEMAND, "SPOT": SPOT, "STORY": STORY}


def meant(given: Any, names: Mapping[str, Any]) -> Any:
    """What a row of a table names: `types m5.large`, `zone us-east-1a`, or one of some names."""
    if isinstance(given, dict):
        return {key: meant(value, names) for key, value in given.items()}
    if isinstance(given, list):
        return [meant(one, names) for one in given]
    if not isinstance(given, str):
        return given
    word, *more = given.split()
    match word:
        case "types":
            return types(*more)
        case "zone":
            return {"key": "topology.kubernetes.io/zone", "operator": "In", "values": more}
    return (_NAMES | dict(names)).get(given, given)


def called(lines: Choices, calls: Iterable[list[Any]], names: Mapping[str, Any]) -> None:
    """Make the lines of a row: each call by its name, with a mapping at the end for arguments with names."""
    for call, *given in calls:
        arguments = meant(given, names)
        # One with an operator is a requirement.
        named = (
            arguments.pop() if arguments and isinstance(arguments[-1], dict) and "operator" not in arguments[-1] else {}
        )
        getattr(lines, call)(*arguments, **named)
