"""How much runs of the same thing differ: `make bench-spread`, which the margins of the comparison follow from.

The walk-through of one stack runs several times from nothing, on an otherwise idle machine. Each report is compared
with each other by the rules that ship: every difference that they find is none. What the comparison reads of the
reports is kept beside its tests, which then hold the rules against it (`--keep`).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

from rehearsal.session.deployment import PROJECT
from scale_test.reports.comparison import Difference, compare, parse_rules, written

#: What `--keep` writes.
KEPT = PROJECT / "tests" / "unit" / "scale_test" / "spread.json"
_RULES = PROJECT / "playbooks" / "vars" / "comparison.yml"
_READ = ("name", "passed", "pending_pod_seconds", "cost", "packing")


def main() -> int:
    """Run, compare and print; 1 if two runs of the same thing were not called the same."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.spread", description=__doc__)
    parser.add_argument("--stack", default="eks")
    parser.add_argument("--runs", type=int, default=5, help="how many (5)")
    parser.add_argument("--reports", type=Path, nargs="+", metavar="FOLDER", help="of runs that were made already")
    parser.add_argument("--keep", action="store_true", help=f"write {KEPT.relative_to(PROJECT)}")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folders = options.reports or list(run(options.stack, options.runs, Path(temporary)))
        reports = [condensed(json.loads((folder / "report.json").read_text())) for folder in folders]
    if options.keep:
        KEPT.write_text(json.dumps(reports, indent=1) + "\n")
    return show(reports)


def run(stack: str, runs: int, folder: Path) -> Iterator[Path]:
    """The folder of each run's report, when it is there."""
    for number in range(1, runs + 1):
        report = folder / str(number)
        command = [sys.executable, "-m", "rehearsal", "run", stack, "--labels", "walk-through"]
        places = ["--state", str(folder / "state"), "--report", str(report)]
        subprocess.run([*command, *places], cwd=PROJECT, check=True, stdout=subprocess.DEVNULL)
        print(f"{number} of {runs}: {json.loads((report / 'report.json').read_text())['seconds']:.0f} s", flush=True)
        yield report


def condensed(report: Mapping[str, Any]) -> dict[str, Any]:
    """What the comparison reads of a report; of objects, only how many there are of which kind."""
    stories = [
        {key: story[key] for key in _READ}
        | {
            "configuration": {"workload": (story["configuration"] or {}).get("workload")},
            "steps": [{"title": step["title"]} for step in story["steps"]],
            "durations": [{**times, "values": []} for times in story["durations"]],
            "reached": [level for level in story["reached"] if level["percent"] == 100],
            "interruptions": [{"replacement_running": one["replacement_running"]} for one in story["interruptions"]],
            "nodeclaims": [
                {key: claim[key] for key in ("instance_type", "capacity_type")} for claim in story["nodeclaims"]
            ],
        }
        for story in report["stories"]
    ]
    kept = {key: report[key] for key in ("schema", "stack", "versions", "environment", "controller")}
    return {**kept, "thresholds": None, "stories": stories}


def show(reports: Sequence[Mapping[str, Any]]) -> int:
    """Print what differs, and return the exit status."""
    rules = parse_rules(yaml.safe_load(_RULES.read_text())["comparison_rules"])
    seen: dict[tuple[str, str], list[Difference]] = defaultdict(list)
    verdicts = []
    # Both ways round: a share of what was before depends on which was.
    for before, after in [*combinations(reports, 2), *combinations(reports[::-1], 2)]:
        comparison = compare(before, after, rules)
        verdicts.append(comparison.verdict)
        for name, differences in (
            *((story.name, story.differences) for story in comparison.stories),
            ("Karpenter's controller", comparison.controller),
        ):
            for difference in differences:
                seen[name, difference.name].append(difference)
    table = Table(title=f"{len(reports)} runs of the same thing, in pairs", title_justify="left")
    for column in ("story", "value", "least", "most", "furthest apart", "called a difference"):
        table.add_column(column, justify="left" if column in ("story", "value") else "right")
    for (story, name), pairs in seen.items():
        judged = [pair for pair in pairs if pair.verdict != "not judged"]
        values = [value for pair in judged for value in (pair.before, pair.after) if value is not None]
        if not values:
            continue
        called = sum(pair.verdict != "the same" for pair in judged)
        table.add_row(
            *(story, name, written(min(values), judged[0].unit), written(max(values), judged[0].unit)),
            f"{max(abs(pair.change or 0) for pair in judged):.0%}",
            f"[bold]{called} of {len(judged)}[/]" if called else "",
        )
    console = Console(width=160)
    console.print(table)
    same = verdicts.count("the same")
    console.print(f"{same} of {len(verdicts)} pairs are called the same.")
    return 0 if same == len(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
