"""How much runs of the same thing differ: `make bench NAME=spread`, which the margins of the comparison follow from.

The walk-through of one stack runs five times from nothing, on an otherwise idle machine. Each report is compared with
each other by the rules that ship: every difference that they find is none. What the comparison reads of the reports is
kept beside its tests, which then hold the rules against it (`python -m tests.bench.spread --keep`).
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import yaml

from karpstack.scale_test.reports.comparison import Difference, compare, parse_rules, written
from karpstack.text.packaged import IMPORT_ROOT
from tests.bench.shared import columns, run_stories, show, temporary

#: What `--keep` writes.
KEPT = IMPORT_ROOT / "tests" / "unit" / "scale_test" / "spread.json"
_RUNS = 5
_RULES = IMPORT_ROOT / "playbooks" / "vars" / "comparison.yml"
_READ = ("name", "passed", "pending_pod_seconds", "cost", "packing")


def main(arguments: Sequence[str]) -> int:
    """Run, compare and print; 1 if two runs of the same thing were not called the same."""
    reports = []
    with temporary() as folder:
        for number in range(_RUNS):
            report = run_stories("eks", folder / str(number), "--labels", "walk-through")
            print(f"{number + 1} of {_RUNS}: {report['seconds']:.0f} s", flush=True)
            reports.append(condensed(report))
    if "--keep" in arguments:
        KEPT.write_text(json.dumps(reports, indent=1) + "\n")
    return compared(reports)


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


def compared(reports: Sequence[Mapping[str, Any]]) -> int:
    rules = parse_rules(yaml.safe_load(_RULES.read_text())["comparison_rules"])
    seen: dict[tuple[str, str], list[Difference]] = defaultdict(list)
    verdicts = []
    # Both ways round: a share of what was before depends on which was.
    for before, after in [*combinations(reports, 2), *combinations(reports[::-1], 2)]:
        comparison = compare(before, after, rules)
        verdicts.append(comparison.verdict)
        stories = [(story.name, story.differences) for story in comparison.stories]
        for name, differences in (*stories, ("Karpenter's controller", comparison.controller)):
            for difference in differences:
                seen[name, difference.name].append(difference)
    title = f"{len(reports)} runs of the same thing, in pairs"
    table = columns(title, "story|value", "least|most|furthest apart|called a difference")
    for (story, name), pairs in seen.items():
        judged = [pair for pair in pairs if pair.verdict != "not judged"]
        if values := [value for pair in judged for value in (pair.before, pair.after) if value is not None]:
            called = sum(pair.verdict != "the same" for pair in judged)
            bounds = [written(value, judged[0].unit) for value in (min(values), max(values))]
            apart = f"{max(abs(pair.change or 0) for pair in judged):.0%}"
            table.add_row(story, name, *bounds, apart, f"{called} of {len(judged)}" if called else "")
    same = verdicts.count("the same")
    show(table, f"{same} of {len(verdicts)} pairs are called the same.")
    return 0 if same == len(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
