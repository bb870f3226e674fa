"""What a what-if takes: `make bench NAME=whatif`. Not a test: nothing fails when a machine is slow.

First a cluster comes to rest: made pods run on nodes that Karpenter chose, consolidated, and are read back as a
snapshot, nodes and all, as a user's cluster would be. Of that snapshot one question is asked, which drifts the nodes of
a NodePool: with one candidate several times over, and with two at once.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import yaml

from karpstack.rehearsal.engines import EngineSet
from karpstack.rehearsal.session import daemon
from karpstack.rehearsal.session.deployment import environment
from karpstack.rehearsal.state.folder import StackFolder
from karpstack.snapshot.examples import made
from karpstack.snapshot.reading import write
from karpstack.text.packaged import IMPORT_ROOT
from tests.bench.shared import columns, show, temporary

_BASE = IMPORT_ROOT / "examples" / "whatif" / "base.yaml"
_STACK = "eks"
#: The least generation of instances that the NodePool `general` takes, in each candidate; 4 in the base.
_GENERATIONS = (5, 6)
_ASKED = ("--wait-factor", "6")


@dataclass(frozen=True)
class Run:
    """One what-if: seconds, the most bytes that all its processes had resident, and an answer for each candidate."""

    seconds: float
    memory: int
    answers: Sequence[Mapping[str, Any]]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.whatif", description=__doc__)
    parser.add_argument("--pods", type=int, default=1000, help="of the cluster, its DaemonSets' included (1000)")
    parser.add_argument("--cpus", type=int, help="the most that an instance has in any NodePool (unlimited)")
    parser.add_argument("--policy", default="WhenEmptyOrUnderutilized", help="of all NodePools (%(default)s)")
    parser.add_argument("--times", type=int, default=5, help="how often it is asked with one candidate (5)")
    parser.add_argument("--no-both", action="store_true", help="do not ask it with two candidates at once, too")
    options = parser.parse_args()
    with temporary() as folder:
        write_stack = partial(stack_file, cpus=options.cpus, policy=options.policy)
        base = write_stack(folder / "base.yaml")
        asked = [*_ASKED, "--workloads", str(settle(folder, base, options.pods))]
        candidates = [
            write_stack(folder / f"generation-{generation}.yaml", generation=generation) for generation in _GENERATIONS
        ]
        single = [ask(folder / str(number), base, candidates[:1], asked) for number in range(options.times)]
        both = None if options.no_both else ask(folder / "both", base, candidates, asked)
        print_figures(single, both)
    return 0


def settle(folder: Path, base: Path, pods: int) -> Path:
    """Bring a rehearsed cluster to rest, on which so many made pods run; the snapshot of it."""
    workload, snapshot = folder / "made.json", folder / "settled.json"
    write(made(pods), workload)
    run = ask(folder / "rest", base, [base], [*_ASKED, "--workloads", str(workload), "--nodes", "fresh", "--keep"])
    (state,) = (folder / "rest").glob(f"*/state/{_STACK}")
    variables = environment(StackFolder(_STACK, state), EngineSet.current(), daemon.require(StackFolder(_STACK, state)))
    try:
        subprocess.run(
            ["ansible-playbook", "playbooks/snapshot.yml", "-e", f"out={snapshot}"],
            cwd=IMPORT_ROOT,
            env={**os.environ, **variables},
            check=True,
            stdout=subprocess.DEVNULL,
        )
    finally:
        subprocess.run([*_command("down"), "--force", "--state", str(state.parent)], cwd=IMPORT_ROOT, check=True)
    print(f"{pods} pods came to rest in a what-if of {run.seconds:.0f} s", flush=True)
    return snapshot


def stack_file(path: Path, *, cpus: int | None, policy: str, generation: int | None = None) -> Path:
    """Write the base, or a candidate whose NodePool `general` takes later generations alone; its path."""
    stack = yaml.safe_load(_BASE.read_text())
    for name, pool in stack["config"]["karpstack:nodePools"].items():
        pool["disruption"]["consolidationPolicy"] = policy
        requirements = pool["template"]["spec"]["requirements"]
        if cpus is not None:
            requirements.append(
                {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Lt", "values": [str(cpus + 1)]},
            )
        if generation is not None and name == "general":
            (requirement,) = (one for one in requirements if one["key"] == "karpenter.k8s.aws/instance-generation")
            requirement["values"] = [str(generation)]
    path.write_text(yaml.safe_dump(stack, sort_keys=False))
    return path


def ask(output: Path, base: Path, candidates: Sequence[Path], more: Sequence[str]) -> Run:
    """Run a what-if; its limits are not this one's business."""
    changes = [argument for one in candidates for argument in ("--change", str(one))]
    command = [*_command("whatif"), "--base", str(base), *changes, "--output", str(output), *more]
    started, memory = time.monotonic(), 0
    process = psutil.Popen(command, cwd=IMPORT_ROOT, stdout=subprocess.DEVNULL)
    while process.poll() is None:
        memory = max(memory, resident(process))
        time.sleep(1)  # a sample; nothing is waited for
    seconds = time.monotonic() - started
    files = [*output.rglob("whatif.json")]
    if len(files) != len(candidates):
        raise SystemExit(f"{' '.join(command)}: {len(files)} answers, exit status {process.returncode}")
    print(f"{' and '.join(one.stem for one in candidates)}: {seconds:.0f} s", flush=True)
    return Run(seconds, memory, [json.loads(file.read_text()) for file in files])


def resident(process: psutil.Process) -> int:
    """Resident memory of a process and all that it started, in bytes."""
    total = 0
    for each in (process, *process.children(recursive=True)):
        with suppress(psutil.Error):  # it has ended
            total += each.memory_info().rss
    return total


def print_figures(single: Sequence[Run], both: Run | None) -> None:
    answers = [run.answers[0] for run in single]
    seconds = statistics.median(run.seconds for run in single)
    base = answers[0]["before"]
    table = columns(f"{os.cpu_count()} cores, {base['pods']} pods on {base['nodes']} nodes", "figure|measured|aim")
    table.add_row(f"an answer, the median of {len(single)}", f"{seconds:.0f} s", "< 480 s for 1,000 pods on 60 nodes")
    memory = max(run.memory for run in single)
    table.add_row("resident memory", f"{memory / 2**30:.1f} GiB", "< 4 GiB for 5,000 pods on 300 nodes")
    if both:
        table.add_row("a second candidate at once", f"{both.seconds / seconds - 1:+.0%}", "< +60 %")
        table.add_row("resident memory with it", f"{both.memory / 2**30:.1f} GiB", "")
    for side in ("before", "after"):
        for figure, unit in (("nodes", "nodes"), ("knownUsdPerHour", "$/h")):
            values = [answer[side][figure] for answer in answers]
            table.add_row(f"{side} the change", f"{min(values):g} to {max(values):g} {unit}", "")
    show(table)


def _command(name: str) -> list[str]:
    return [sys.executable, "-m", "karpstack", name, _STACK]


if __name__ == "__main__":
    sys.exit(main())
