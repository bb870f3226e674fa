"""Whether fast stories tell the same as stories in real time: `make bench NAME=clock`.

The stories of each stack run once in real time and once fast. For each story the verdict, the nodes in the order in
which they came, and the reasons in the order in which they went are compared; dollars and seconds are printed beside
them. Exit code 1 if a story differs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from karpstack.rehearsal.session import speed
from tests.bench.shared import columns, run_stories, show, temporary

_STACKS: Final = ("eks", "aks-nap", "aks-self-hosted")


def main() -> int:
    table = columns("Stories in real time, and fast", "story|same|nodes", "USD|fast|cluster s|fast")
    different, walls = 0, []
    with temporary() as folder:
        for stack in _STACKS:
            (real, real_wall), (fast, fast_wall) = (timed(stack, at, folder) for at in (1.0, speed.DEFAULT))
            others = {story["name"]: story for story in fast["stories"]}
            for story in real["stories"]:
                other = others.get(story["name"], {})
                same = decided(story) == decided(other)
                different += not same
                nodes = ", ".join(claim["instance_type"] or "?" for claim in story["nodeclaims"])
                dollars = [f"{(one.get('cost') or {}).get('usd') or 0:.5f}" for one in (story, other)]
                seconds = [f"{one.get('seconds', 0):.0f}" for one in (story, other)]
                table.add_row(story["name"], "yes" if same else str(decided(other)), nodes, *dollars, *seconds)
            kept = fast.get("clock") or {"speed": 1.0, "late": 0.0}
            walls.append(
                f"{stack}: {real_wall:.0f} s and {fast_wall:.0f} s by the wall, {fast_wall / real_wall:.2f}; "
                f"mean speed {kept['speed']:.1f}, no timer later than {kept['late']:.2f} s of cluster time"
            )
    show(table, *walls)
    return 1 if different else 0


def timed(stack: str, at: float, folder: Path) -> tuple[Mapping[str, Any], float]:
    """The report of a stack's stories at a speed, and the seconds of all of it by the machine's clock."""
    began = time.monotonic()
    report = run_stories(stack, folder / f"{stack}-{at:g}", "--labels", "walk-through", "--speed", f"{at:g}")
    wall = time.monotonic() - began
    print(f"{stack} at {at:g}: {wall:.0f} s", flush=True)
    return report, wall


def decided(story: Mapping[str, Any]) -> object:
    """What was decided in a story: its verdict, the nodes as they came, and why they went, in the order of it."""
    claims = story.get("nodeclaims", [])
    gone = sorted((claim for claim in claims if claim.get("gone") is not None), key=lambda claim: claim["gone"])
    return (
        story.get("passed"),
        [(claim["instance_type"], claim["capacity_type"]) for claim in claims],
        [claim["disruption"] for claim in gone],
    )


if __name__ == "__main__":
    sys.exit(main())
