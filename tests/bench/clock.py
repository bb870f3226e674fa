"""Whether fast stories tell the same as stories in real time: `make bench-clock`.

The stories of each stack run once in real time and once fast. For each story the verdict, the nodes in the order in
which they came, and the reasons in the order in which they went are compared; dollars and seconds are printed beside
them. Exit code 1 if a story differs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from rehearsal.session import speed
from rehearsal.session.deployment import PROJECT

_STACKS: Final = ("eks", "aks-nap", "aks-self-hosted")


@dataclass(frozen=True)
class Run:
    """One run of a stack's stories.

    Attributes:
        wall: Seconds by the machine's clock, from nothing to nothing.
        speed: Mean speed of the cluster's clock.
        late: Worst lateness of a timer, in seconds of cluster time.
        stories: The report's stories by name.
    """

    wall: float
    speed: float
    late: float
    stories: Mapping[str, Mapping[str, Any]]


def main() -> int:
    """Run, compare and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.clock", description=__doc__)
    parser.add_argument("--stacks", nargs="+", default=_STACKS, help=f"default: {' '.join(_STACKS)}")
    parser.add_argument("--labels", default="walk-through", help="stories with one of these labels (walk-through)")
    parser.add_argument("--speed", type=speed.checked_argument, default=speed.DEFAULT, help="the fast one (8)")
    options = parser.parse_args()
    table = Table(title="Stories in real time, and fast", title_justify="left")
    for column in ("story", "same", "nodes", "USD", "fast", "cluster s", "fast"):
        table.add_column(column, justify="left" if column in ("story", "same", "nodes") else "right", overflow="fold")
    different, walls = 0, []
    with tempfile.TemporaryDirectory() as temporary:
        for stack in options.stacks:
            real, fast = (run(stack, options.labels, at, Path(temporary)) for at in (1.0, options.speed))
            for name, story in real.stories.items():
                other = fast.stories.get(name, {})
                same = decided(story) == decided(other)
                different += not same
                nodes = ", ".join(claim["instance_type"] or "?" for claim in story["nodeclaims"])
                table.add_row(name, "yes" if same else f"[bold]{decided(other)}[/]", nodes, *_figures(story, other))
            walls.append(
                f"{stack}: {real.wall:.0f} s and {fast.wall:.0f} s by the wall, {fast.wall / real.wall:.2f}; "
                f"mean speed {fast.speed:.1f}, no timer later than {fast.late:.2f} s of cluster time"
            )
    console = Console(width=160)
    console.print(table)
    console.print("\n".join(walls))
    return 1 if different else 0


def run(stack: str, labels: str, at: float, folder: Path) -> Run:
    """Run the stories of a stack from nothing."""
    report, began = folder / f"{stack}-{at:g}", time.monotonic()
    command = [sys.executable, "-m", "rehearsal", "run", stack, "--labels", labels, "--speed", f"{at:g}"]
    places = ["--state", str(folder / "state"), "--report", str(report)]
    subprocess.run([*command, *places], cwd=PROJECT, check=False, stdout=subprocess.DEVNULL)
    wall = time.monotonic() - began
    print(f"{stack} at {at:g}: {wall:.0f} s", flush=True)
    found = json.loads((report / "report.json").read_text())
    kept = found.get("clock") or {"speed": 1.0, "late": 0.0}
    return Run(wall, kept["speed"], kept["late"], {story["name"]: story for story in found["stories"]})


def decided(story: Mapping[str, Any]) -> object:
    """What was decided in a story: its verdict, the nodes as they came, and why they went, in the order of it."""
    claims = story.get("nodeclaims", [])
    gone = sorted((claim for claim in claims if claim.get("gone") is not None), key=lambda claim: claim["gone"])
    return (
        story.get("passed"),
        [(claim["instance_type"], claim["capacity_type"]) for claim in claims],
        [claim["disruption"] for claim in gone],
    )


def _figures(story: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    dollars = [f"{(one.get('cost') or {}).get('usd') or 0:.5f}" for one in (story, other)]
    return [*dollars, f"{story['seconds']:.0f}", f"{other.get('seconds', 0):.0f}"]


if __name__ == "__main__":
    sys.exit(main())
