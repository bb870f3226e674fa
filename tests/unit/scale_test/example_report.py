"""A report of schema 2 of any size, computed from a small model of a run, so that all its parts agree.

Pods come, wait for nodes, run and go; nodes boot, serve and are disrupted. Series, percentiles, costs and packing
are then counted from those times, as the real report counts them from the timeline.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

START = datetime(2026, 11, 21, 3, 53, 59, tzinfo=UTC)
TYPES = {  # vCPUs, GiB, USD per hour
    "c6g.2xlarge": (8, 16, 0.0896),
    "c7g.4xlarge": (16, 32, 0.1902),
    "m6g.4xlarge": (16, 64, 0.2118),
    "c6g.large": (2, 4, 0.0231),
}
PERCENTS = (50, 70, 90, 99, 100)


@dataclass
class Pod:
    """Times of a pod, seconds after the story's start."""

    created: float
    nominated: float
    scheduled: float
    running: float
    gone: float


@dataclass
class Node:
    """Times and make of a node."""

    name: str
    instance_type: str
    zone: str
    times: dict[str, float | None]
    disruption: str | None = None
    pods: list[Pod] = field(default_factory=list)

    @property
    def price(self) -> float:
        return TYPES[self.instance_type][2]

    def at(self, phase: str) -> float:
        found = self.times[phase]
        assert found is not None
        return found


@dataclass(frozen=True)
class Example:
    """What run is to be made up.

    Attributes:
        pods: Pods of each story.
        nodes: Nodes of each story.
        slower: Factor of all waiting times.
        dearer: Factor of all prices.
        failing: Names of the stories that fail.
        simulated: Whether the times of booting come from a fake.
    """

    pods: int = 300
    nodes: int = 20
    slower: float = 1.0
    dearer: float = 1.0
    failing: tuple[str, ...] = ()
    simulated: bool = True
    stories: tuple[str, ...] = ("eks-burst", "eks-interruption")
    seed: int = 5

    def but(self, **changes: Any) -> Example:
        """The same with something changed."""
        return replace(self, **changes)

    def report(self) -> dict[str, Any]:
        """The content of report.json."""
        found = []
        begin = START + timedelta(seconds=8)
        for index, name in enumerate(self.stories):
            story = _story(self, name, begin, random.Random(f"{self.seed}{index}"))  # noqa: S311
            found.append(story)
            begin += timedelta(seconds=story["seconds"] + 3)
        seconds = (begin - START).total_seconds()
        samples = [
            [t, int(90e6 + 60e6 * (1 - math.exp(-t / 60)) + 4e6 * math.sin(t / 7)), round(0.2 * t**0.9, 3), 0]
            for t in (float(5 * step) for step in range(int(seconds // 5)))
        ]
        return {
            "schema": 2,
            "stack": "eks",
            "passed": all(story["passed"] for story in found),
            "started": START.isoformat(),
            "ended": begin.isoformat(),
            "seconds": round(seconds, 3),
            "versions": {"kubernetes": "v1.36.3", "karpenter": "1.14.1", "karpstack": "0.1.0"},
            "environment": {
                "cloud": "aws",
                "region": "us-east-1",
                "clusterName": "karpstack-eks",
                "kind": "eks",
                "simulated": self.simulated,
            },
            "thresholds": {"default": {"within": 300, "costRatio": 1.5}},
            "gaps": [],
            "controller": {
                "samples": samples,
                "peak_memory_bytes": max(sample[1] for sample in samples),
                "cpu_seconds": samples[-1][2],
                "api_errors": 0,
                "restarts": 0,
            },
            "stories": found,
        }


def timeline(lines: int = 400) -> dict[int, str]:
    """Lines of a timeline by number."""
    return {
        number: json.dumps(
            {
                "type": "MODIFIED",
                "received": f"2026-11-21T03:54:{number % 60:02d}.120000+00:00",
                "kind": "NodeClaim",
                "apiTime": None,
                "object": {"metadata": {"name": f"burst-x{number}"}, "conditions": [{"type": "Launched"}]},
            }
        )
        for number in range(1, lines + 1)
    }


def _story(example: Example, name: str, begin: datetime, chance: random.Random) -> dict[str, Any]:
    nodes = _nodes(example, name, chance)
    pods = [pod for node in nodes for pod in node.pods]
    wanted_up, wanted_down = 1.0, max(pod.running for pod in pods) + 12.0
    interrupted = nodes[0] if "interruption" in name else None
    for pod in pods:
        pod.gone = wanted_down + chance.uniform(0.5, 3)
    last_pod = max(pod.gone for pod in pods)
    for node in nodes:
        disrupted = last_pod + chance.uniform(5, 9)
        node.disruption = "Empty"
        if node is interrupted:
            disrupted, node.disruption = wanted_down - 8, "Interrupted"
        drained = disrupted + chance.uniform(0.4, 2) * example.slower
        node.times |= {"disrupted": disrupted, "drained": drained, "gone": drained + chance.uniform(1, 4)}
    seconds = max(node.at("gone") for node in nodes) + 1.5
    failing = name in example.failing
    steps: list[dict[str, Any]] = [
        {"index": 1, "title": f"step 1 (scale to {len(pods)})", "requested": wanted_up, "ended": wanted_down - 0.5},
        {"index": 2, "title": "step 2 (scale to 0)", "requested": wanted_down, "ended": seconds - 0.5},
    ]
    for step in steps:
        step |= {"outcome": "rest", "seconds": _r(step["ended"] - step["requested"])}
    cost = _cost_series(nodes, pods, example.dearer)
    return {
        "name": name,
        "description": {
            "eks-burst": f"{len(pods)} pods at once get spot nodes, and the nodes go when the pods are gone.",
            "eks-interruption": "A spot instance is taken back: a replacement is running before the notice is over.",
        }.get(name, "A story."),
        "passed": not failing,
        "started": begin.isoformat(),
        "ended": (begin + timedelta(seconds=seconds)).isoformat(),
        "seconds": _r(seconds),
        "tags": ["spot", "burst"],
        "configuration": {
            "nodePools": {
                name: {
                    "template": {
                        "spec": {
                            "requirements": [
                                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
                                {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]},
                            ]
                        }
                    },
                    "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "5s"},
                }
            },
            "workload": {"namespace": name, "deployment": {"name": "inflate", "requests": {"cpu": "900m"}}},
        },
        "steps": steps,
        "assertions": _assertions(name, steps, nodes, seconds, failing),
        "nodeclaims": [_node_claim(example, name, node, begin) for node in nodes],
        "phases": _phases(nodes, pods, wanted_up, wanted_down),
        "durations": _durations(example, nodes, pods),
        "reached": _reached(nodes, pods, wanted_up),
        "pending_pod_seconds": _r(sum(pod.running - pod.created for pod in pods)),
        "series": {
            "pods": _steps_of(
                [(wanted_up, (len(pods), 0, 0)), (wanted_down, (-len(pods), 0, 0))]
                + [(pod.created, (0, 0, 1)) for pod in pods]
                + [(pod.running, (0, 1, -1)) for pod in pods]
                + [(pod.gone, (0, -1, 0)) for pod in pods]
            ),
            "nodes": _steps_of(
                [(node.at("registered"), (1, 0)) for node in nodes]
                + [(node.at("initialized"), (0, 1)) for node in nodes]
                + [(node.at("disrupted"), (0, -1)) for node in nodes]
                + [(node.at("gone"), (-1, 0)) for node in nodes]
            ),
            "cost": cost,
        },
        "cost": _cost(cost, seconds),
        "packing": {"cpu": 0.871, "memory": 0.412},
        "consolidation": {
            "step": 2,
            "first_action": 6.2,
            "last_gone": _r(seconds - wanted_down - 1.5),
            "saving_per_hour": 1.92,
        },
        "interruptions": [
            {
                "nodeclaim": interrupted.name,
                "kind": "interruption",
                "t": _r(interrupted.at("disrupted") - 0.6),
                "replacement_running": _r(7.31 * example.slower),
            }
        ]
        if interrupted
        else [],
        "faults": [
            {
                "t": _r(interrupted.at("disrupted") - 0.7),
                "kind": "interruption",
                "detail": {"nodeClaim": interrupted.name, "instance": "i-0f3a5c"},
            },
            {"t": _r(wanted_down + 4), "kind": "kill-controller", "detail": {}},
        ]
        if interrupted
        else [],
        "controller_restarts": 1 if interrupted else 0,
    }


def _nodes(example: Example, name: str, chance: random.Random) -> list[Node]:
    types = list(TYPES)
    nodes = []
    for index in range(example.nodes):
        created = 1.0 + (1.6 + chance.uniform(0.0, 1.2)) * example.slower
        launched = created + chance.lognormvariate(0.3, 0.3) * example.slower
        registered = launched + (5 if example.simulated else 31) * chance.uniform(0.98, 1.15) * example.slower
        initialized = registered + chance.uniform(0.8, 2.4) * example.slower
        times: dict[str, float | None] = {
            "created": created,
            "launched": launched,
            "registered": registered,
            "initialized": initialized,
        }
        kind = types[min(int(chance.expovariate(1.3)), len(types) - 1)]
        nodes.append(Node(f"{name}-{chance.randbytes(3).hex()}", kind, f"us-east-1{'abc'[index % 3]}", times))
    for index in range(example.pods):
        node = nodes[index % len(nodes)]
        pod_created = 1.0 + chance.uniform(0.1, 1.4) * (1 + example.pods / 2000)
        nominated = max(pod_created + 0.2, node.at("created") - chance.uniform(0, 0.3))
        scheduled = node.at("initialized") + chance.uniform(0.1, 1.5) * example.slower
        running = scheduled + chance.lognormvariate(-0.2, 0.35) * example.slower
        node.pods.append(Pod(pod_created, nominated, scheduled, running, 0))
    return nodes


def _assertions(
    name: str, steps: Sequence[dict[str, Any]], nodes: Sequence[Node], seconds: float, failing: bool
) -> list[dict[str, Any]]:
    where = "timeline.jsonl"

    def one(step: int | None, what: str, expected: str, seen: str, passed: bool = True) -> dict[str, Any]:
        prefix = f"{steps[step - 1]['title']}, " if step else ""
        return {
            "name": prefix + what,
            "expected": expected,
            "seen": seen,
            "passed": passed,
            "where_to_look": where if passed else f"{where}, evidence/{name}/, `kubectl describe nodeclaim`",
            "step": step,
            "lines": [3, 9, 27, 141],
        }

    return [
        one(1, "time", "at rest within 120 s", f"at rest after {seconds / 2:.1f} s"),
        one(1, "number of nodes", f"{len(nodes)}", f"{len(nodes)}"),
        one(1, "capacity type", "spot", "on-demand (2 of them)" if failing else "spot", not failing),
        one(2, "number of nodes", "0", "0"),
        one(None, "clean-up", "no NodePool and no NodeClaim of the story left", "none"),
    ]


def _node_claim(example: Example, name: str, node: Node, begin: datetime) -> dict[str, Any]:
    vcpus, memory, price = TYPES[node.instance_type]
    times = {key: None if value is None else _r(value) for key, value in node.times.items()}

    def absolute(key: str) -> str | None:
        value = times[key]
        return None if value is None else (begin + timedelta(seconds=value)).isoformat()

    return {
        "name": node.name,
        "instance_type": node.instance_type,
        "zone": node.zone,
        "capacity_type": "spot",
        "nodepool": name,
        "price_per_hour": price * example.dearer,
        **{key: absolute(key) for key in ("created", "launched", "registered", "initialized", "gone")},
        "simulated": example.simulated,
        "vcpus": vcpus,
        "memory_bytes": memory * 2**30,
        "node": f"ip-10-0-{len(node.pods)}-17.ec2.internal",
        "t": times,
        "disruption": node.disruption,
        "price_source": "controller",
    }


def _phases(nodes: Sequence[Node], pods: Sequence[Pod], up: float, down: float) -> list[dict[str, Any]]:
    def one(step: int, phase: str, times: Iterable[float], requested: float) -> dict[str, Any]:
        found = sorted(times)
        return {
            "step": step,
            "phase": phase,
            "n": len(found),
            "first": _r(found[0] - requested),
            "last": _r(found[-1] - requested),
            "at": (START + timedelta(seconds=found[-1])).isoformat(),
        }

    stay = [node for node in nodes if node.at("disrupted") > down]
    return [
        one(1, "pods_created", (pod.created for pod in pods), up),
        one(1, "pods_nominated", (pod.nominated for pod in pods), up),
        *(
            one(1, f"nodeclaims_{phase}", (node.at(phase) for node in nodes), up)
            for phase in ("created", "launched", "registered", "initialized")
        ),
        one(1, "pods_ready", [max(pod.running for pod in pods)], up),
        one(1, "at_rest", [down - 0.5], up),
        one(2, "nodeclaims_disrupted", (node.at("disrupted") for node in stay), down),
        one(2, "nodeclaims_gone", (node.at("gone") for node in stay), down),
        one(2, "at_rest", [max(node.at("gone") for node in stay) + 1], down),
    ]


def _durations(example: Example, nodes: Sequence[Node], pods: Sequence[Pod]) -> list[dict[str, Any]]:
    def between(first: str, second: str) -> list[float]:
        return [node.at(second) - node.at(first) for node in nodes]

    values = {
        "pod_pending_to_nominated": [pod.nominated - pod.created for pod in pods],
        "pod_nominated_to_scheduled": [pod.scheduled - pod.nominated for pod in pods],
        "pod_scheduled_to_running": [pod.running - pod.scheduled for pod in pods],
        "pod_pending_to_running": [pod.running - pod.created for pod in pods],
        "nodeclaim_created_to_launched": between("created", "launched"),
        "nodeclaim_launched_to_registered": between("launched", "registered"),
        "nodeclaim_registered_to_initialized": between("registered", "initialized"),
        "node_disrupted_to_drained": between("disrupted", "drained"),
        "node_drained_to_gone": between("drained", "gone"),
    }
    faked = {
        "pod_scheduled_to_running",
        "pod_pending_to_running",
        "nodeclaim_launched_to_registered",
        "nodeclaim_registered_to_initialized",
    }
    return [
        {
            "phase": phase,
            "simulated": example.simulated and phase in faked,
            "n": len(found),
            **{f"p{percent}": _percentile(found, percent) for percent in (50, 90, 99)},
            "max": _r(max(found)),
            "values": sorted(_r(value) for value in found),
        }
        for phase, found in values.items()
    ]


def _percentile(values: Sequence[float], percent: int) -> float:
    return _r(sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)])


def _reached(nodes: Sequence[Node], pods: Sequence[Pod], up: float) -> list[dict[str, Any]]:
    found = {"pods": [pod.running for pod in pods], "nodes": [node.at("initialized") for node in nodes]}
    return [
        {"step": 1, "kind": kind, "percent": percent, "seconds": _r(_percentile(times, percent) - up)}
        for kind, times in found.items()
        for percent in PERCENTS
    ]


def _steps_of(changes: Iterable[tuple[float, tuple[int, ...]]]) -> list[list[float]]:
    rows: list[list[float]] = []
    for t, change in sorted(changes):
        before = rows[-1][1:] if rows else [0.0] * len(change)
        rows.append([_r(t), *(round(old + more) for old, more in zip(before, change, strict=True))])
    return rows


def _cost_series(nodes: Sequence[Node], pods: Sequence[Pod], dearer: float) -> list[list[float]]:
    each = sum(node.price for node in nodes) * 0.84 / len(pods)
    changes = [(node.at("launched"), node.price * dearer, 0.0) for node in nodes]
    changes += [(node.at("gone"), -node.price * dearer, 0.0) for node in nodes]
    changes += [(pod.created, 0.0, each) for pod in pods] + [(pod.gone, 0.0, -each) for pod in pods]
    rows, cost, bound = [], 0.0, 0.0
    for t, more, needed in sorted(changes):
        cost, bound = max(cost + more, 0.0), max(bound + needed, 0.0)
        rows.append([_r(t), round(cost, 6), round(bound, 6)])
    return rows


def _cost(series: Sequence[Sequence[float]], seconds: float) -> dict[str, Any]:
    usd = bound = 0.0
    for row, after in zip(series, [*series[1:], [seconds, 0, 0]], strict=True):
        usd += row[1] * (after[0] - row[0]) / 3600
        bound += row[2] * (after[0] - row[0]) / 3600
    return {
        "usd": round(usd, 6),
        "bound_usd": round(bound, 6),
        "ratio": round(usd / bound, 4),
        "peak_usd_per_hour": max(row[1] for row in series),
        "unknown": [],
        "no_bound": None,
    }


def _r(value: float) -> float:
    return round(value, 3)
