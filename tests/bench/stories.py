"""How much of a scale test is waiting that nobody here can shorten: `make bench-stories`.

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

from rich.console import Console
from rich.table import Table

from scale_test.scenarios.scenario import Scenario, load

_SCENARIOS = Path(__file__).resolve().parents[2] / "playbooks" / "scenarios"

Interval = tuple[float, float]


def main(folder: Path) -> int:
    """Print the ratio for each story and for all together."""
    report = json.loads((folder / "report.json").read_text())
    scenarios = {scenario.name: scenario for scenario in load(_SCENARIOS)}
    table = Table(title=f"{report['stack']}: time of the stories against unavoidable waits", title_justify="left")
    table.add_column("story")
    for column in ("seconds", "waits", "ratio"):
        table.add_column(column, justify="right")

    def row(name: str, seconds: float, waited: float) -> None:
        table.add_row(name, f"{seconds:.0f}", f"{waited:.0f}", f"{seconds / waited:.2f}" if waited else "")

    waits = 0.0
    for story in report["stories"]:
        waited = length(unavoidable(story, scenarios[story["name"]]))
        waits += waited
        row(story["name"], story["seconds"], waited)
    table.add_section()
    row("all, from the recorder's start to its end (aim: <= 1.3)", report["seconds"], waits)
    Console(width=100).print(table)
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
