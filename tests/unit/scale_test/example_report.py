"""A report of schema 2: a made-up run of two stories, which is kept as a file, and what can be different in it."""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

_KEPT = Path(__file__).with_name("example.report.json.gz")
PODS, NODES = 300, 20  # of each story that is kept
#: Keys of a story in which each number is a time.
_TIMES = (
    *("requested", "ended", "seconds", "t", "first", "last", "replacement_running", "pending_pod_seconds", "values"),
    *("p50", "p90", "p99", "max"),
)


@dataclass(frozen=True)
class Example:
    """What run is to be made up.

    Attributes:
        pods: Pods of each story, by their durations.
        nodes: Nodes of each story.
        slower: Factor of all times.
        dearer: Factor of all prices.
        failing: Names of the stories that fail.
        simulated: Whether the times of booting come from a fake.
        stories: Their names; those that are not kept are as the first one.
    """

    pods: int = PODS
    nodes: int = NODES
    slower: float = 1.0
    dearer: float = 1.0
    failing: tuple[str, ...] = ()
    simulated: bool = True
    stories: tuple[str, ...] = ("eks-burst", "eks-interruption")

    def but(self, **changes: Any) -> Example:
        """The same with something changed."""
        return replace(self, **changes)

    def report(self) -> dict[str, Any]:
        """The content of report.json."""
        report: dict[str, Any] = json.loads(gzip.decompress(_KEPT.read_bytes()))
        kept = {story["name"]: story for story in report["stories"]}
        first = json.dumps(kept["eks-burst"])
        report["stories"] = [kept.get(name) or json.loads(first.replace("eks-burst", name)) for name in self.stories]
        for story in report["stories"]:
            self._change(story)
        report["environment"]["simulated"] = self.simulated
        report["passed"] = all(story["passed"] for story in report["stories"])
        return report

    def _change(self, story: dict[str, Any]) -> None:
        chance = random.Random(story["name"])  # noqa: S311
        claims = story["nodeclaims"]
        story["nodeclaims"] = [
            claims[index % NODES] | {"name": claims[index % NODES]["name"] + f"-{index // NODES}" * (index >= NODES)}
            for index in range(self.nodes)
        ]
        for times in story["durations"]:
            count = self.pods if times["phase"].startswith("pod_") else self.nodes
            times["values"] = sorted(chance.choices(times["values"], k=count))
            times["n"] = count
            times["simulated"] &= self.simulated
        if self.pods > PODS:
            rows, more = story["series"]["pods"], self.pods // PODS
            story["series"]["pods"] = [[round(row[0] + n * 1e-4, 4), *row[1:]] for row in rows for n in range(more)]
        for claim in story["nodeclaims"]:
            claim["simulated"] = self.simulated
            claim["price_per_hour"] *= self.dearer
        for key in ("usd", "ratio", "peak_usd_per_hour"):
            story["cost"][key] = round(story["cost"][key] * self.dearer, 6)
        for row in story["series"]["cost"]:
            row[1] = round(row[1] * self.dearer, 6)
        if self.slower != 1:
            _scale(story, self.slower)
        if story["name"] in self.failing:
            story["passed"] = False
            story["assertions"][2] |= {
                "seen": "on-demand (2 of them)",
                "passed": False,
                "where_to_look": f"timeline.jsonl, evidence/{story['name']}/, `kubectl describe nodeclaim`",
            }


def _scale(part: Any, factor: float, key: str = "") -> Any:
    """Multiply the times in a part of a story, in place."""
    if isinstance(part, dict):
        for name, inner in part.items():
            part[name] = _scale(inner, factor, key if key == "t" else name)
    elif isinstance(part, list):
        if key in ("pods", "nodes", "cost"):
            return [[round(row[0] * factor, 3), *row[1:]] for row in part]
        return [_scale(inner, factor, key) for inner in part]
    elif isinstance(part, (int, float)) and not isinstance(part, bool) and key in _TIMES:
        return round(part * factor, 3)
    return part


def timeline(lines: int = 400) -> dict[int, str]:
    """Lines of a timeline by number."""
    line = {"type": "MODIFIED", "kind": "NodeClaim", "apiTime": None}
    return {
        number: json.dumps(
            line
            | {"received": f"2026-11-21T03:54:{number % 60:02d}.120000+00:00"}
            | {"object": {"metadata": {"name": f"burst-x{number}"}, "conditions": [{"type": "Launched"}]}}
        )
        for number in range(1, lines + 1)
    }
