"""Whether fast stories tell the same as stories in real time: `make bench NAME=clock`.

All stories of each stack run fast and are compared with `real_time/<stack>.json`, what was decided in real time: the
verdict, the nodes, and the reasons for which nodes went, in the order of it. Dollars and seconds are printed beside
them. Exit code 1 if a story differs.

`CASES="eks"` compares one stack. `CASES="eks --record"` runs it in real time, for an hour or so, and writes its file.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from karpstack.rehearsal.session import speed
from tests.bench.shared import columns, run_stories, show, temporary

_STACKS: Final = ("eks", "aks-nap", "aks-self-hosted")
_REAL_TIME: Final = Path(__file__).with_name("real_time")


def main() -> int:
    """Compare stacks with what was recorded of them, or record them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stacks", nargs="*", default=_STACKS, help="names of stacks (default: all)")
    parser.add_argument("--record", action="store_true", help="run them in real time, and write what was decided")
    options = parser.parse_args()
    with temporary() as folder:
        if options.record:
            for stack in options.stacks:
                record(stack, run_stories(stack, folder / stack, "--labels", "all", "--speed", "1"))
            return 0
        return compare({stack: timed(stack, folder) for stack in options.stacks})


def record(stack: str, *reports: Mapping[str, Any]) -> None:
    """Write what was decided in the stories of reports; of a story that is in two, what the later one says."""
    stories = {story["name"]: outcome(story) for report in reports for story in report["stories"]}
    _REAL_TIME.mkdir(exist_ok=True)
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(one)}" for name, one in stories.items())
    (_REAL_TIME / f"{stack}.json").write_text(f"{{\n{lines}\n}}\n")


def compare(fast: Mapping[str, tuple[Mapping[str, Any], float]]) -> int:
    """Print how fast stories differ from those in real time; 1 if one was decided otherwise."""
    table = columns("Stories in real time, and fast", "story|same|nodes", "USD|fast|cluster s|fast")
    different, walls = 0, []
    for stack, (report, wall) in fast.items():
        found = {story["name"]: outcome(story) for story in report["stories"]}
        for name, real in json.loads((_REAL_TIME / f"{stack}.json").read_text()).items():
            other = found.get(name, {"decided": None, "usd": 0, "seconds": 0})
            same = real["decided"] == other["decided"]
            different += not same
            nodes = f"{len(real['decided'][1])}: {', '.join(sorted({str(one[0]) for one in real['decided'][1]}))}"
            figures = (
                *(f"{one['usd']:.5f}" for one in (real, other)),
                *(f"{one['seconds']:.0f}" for one in (real, other)),
            )
            table.add_row(f"{stack} {name}", "yes" if same else difference(real, other), nodes, *figures)
        kept = report.get("clock") or {"speed": 1.0, "late": 0.0}
        walls.append(
            f"{stack}: {wall:.0f} s by the wall; mean speed {kept['speed']:.1f}, no timer later than "
            f"{kept['late']:.2f} s of cluster time"
        )
    show(table, *walls)
    return 1 if different else 0


def timed(stack: str, folder: Path) -> tuple[Mapping[str, Any], float]:
    """The report of a stack's fast stories, and the seconds of all of it by the machine's clock."""
    began = time.monotonic()
    report = run_stories(stack, folder / stack, "--labels", "all", "--speed", f"{speed.DEFAULT:g}")
    wall = time.monotonic() - began
    print(f"{stack}: {wall:.0f} s", flush=True)
    return report, wall


def outcome(story: Mapping[str, Any]) -> dict[str, Any]:
    """What is compared of a story, and the figures beside it."""
    usd = (story.get("cost") or {}).get("usd") or 0
    return {"decided": decided(story), "usd": round(usd, 5), "seconds": round(story["seconds"])}


def difference(real: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """In which of verdict, nodes and reasons a story differs."""
    if other["decided"] is None:
        return "not run"
    parts = zip(("verdict", "nodes", "reasons"), real["decided"], other["decided"], strict=True)
    return ", ".join(name for name, one, two in parts if one != two)


def decided(story: Mapping[str, Any]) -> list[Any]:
    """What was decided in a story: its verdict, the nodes that came, and why nodes went, in the order of it.

    Nodes that come together have no order. What goes after the last step goes because the story's objects are removed:
    for which of several reasons is chance.
    """
    claims = story.get("nodeclaims", [])
    ended = max((step["ended"] or 0.0 for step in story.get("steps", [])), default=0.0)
    gone = [claim for claim in claims if claim["t"].get("disrupted") is not None and claim["t"]["disrupted"] < ended]
    return [
        story.get("passed"),
        sorted([str(claim["instance_type"]), claim["capacity_type"]] for claim in claims),
        [claim["disruption"] for claim in sorted(gone, key=lambda claim: claim["t"]["disrupted"])],
    ]


if __name__ == "__main__":
    sys.exit(main())
