"""How much of a scale test is waiting that nobody here can shorten: `make bench NAME=stories`.

Such waiting is the time in which, in a story,

- a machine is bought, boots and joins: from a step's request to the last NodeClaim that was made for it;
- Karpenter lets a node be (consolidateAfter, its validation, a budget, an age): from a step's request to the last
  disruption in it;
- a node is drained and its machine ends;
- the scenario asks for time: `hold`, and the length of a churn.

All else is ours: Ansible, gates, pods that start, looks at what is left, the report.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from karpstack.scale_test.scenarios.scenario import Scenario, load
from tests.bench.shared import columns, show
from tests.rehearsal.conftest import ROOT

Interval = tuple[float, float]


def main(folder: Path) -> int:
    report = json.loads((folder / "report.json").read_text())
    scenarios = {scenario.name: scenario for scenario in load(ROOT / "playbooks" / "scenarios")}
    stories = [
        (one["name"], one["seconds"], length(unavoidable(one, scenarios[one["name"]]))) for one in report["stories"]
    ]
    everything = "all, from the recorder's start to its end (aim: <= 1.3)"
    table = columns(f"{report['stack']}: time of the stories against unavoidable waits", "story", "seconds|waits|ratio")
    for name, seconds, waited in (*stories, (everything, report["seconds"], sum(waited for _, _, waited in stories))):
        table.add_row(name, f"{seconds:.0f}", f"{waited:.0f}", f"{seconds / waited:.2f}" if waited else "")
    show(table)
    return 0


def unavoidable(story: dict[str, Any], scenario: Scenario) -> Iterator[Interval]:
    """The stretches of a story, in seconds after its start, that nobody here can shorten; they may overlap."""
    times = [claim["t"] for claim in story["nodeclaims"]]
    for step in story["steps"]:
        begin, end = step["requested"], step["ended"]
        for moment in ("initialized", "disrupted"):
            within = [t[moment] for t in times if t[moment] is not None and begin <= t[moment] <= end]
            if within:
                yield begin, max(within)
        wanted = scenario.steps[step["index"] - 1]
        yield end - wanted.expect.hold, end
        if wanted.churn:
            yield begin, begin + wanted.churn.seconds
    for t in times:
        leaving = t["disrupted"] if t["disrupted"] is not None else t["drained"]
        if leaving is not None and t["gone"] is not None:
            yield leaving, t["gone"]


def length(intervals: Iterable[Interval]) -> float:
    """Seconds that are in one interval at least."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(intervals):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
