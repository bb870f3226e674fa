"""`make bench NAME=truths`: whether the answers of what-ifs are those that were worked out by hand (tests/truths)."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import yaml

from karpstack.components.documents.manifests import AKS_NODE_CLASS, DEFAULT_NODE_CLASS, EC2_NODE_CLASS
from karpstack.scale_test.acting.cluster import Cluster
from karpstack.scale_test.recording.timeline import Reader
from karpstack.text.packaged import IMPORT_ROOT
from tests.bench.shared import columns, up
from tests.bench.shared import show as show_table
from tests.rehearsal.conftest import RehearsedStack
from tests.truths import writing
from tests.truths.cases import STACKS, Case, Change, Expected, batches, load
from tests.truths.judging import Verdict, lines_of, verdict

_OUTPUT: Final = IMPORT_ROOT / "build" / "truths"
_READY_SECONDS: Final = 60.0
_PATIENCE: Final = 900  # seconds for which a side may settle
_TIMEOUT: Final = 3600.0


def main() -> int:
    """Run cases, print what came of them; 1 if one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help="names of cases, of their files or of stacks (default: all)")
    parser.add_argument("--output", type=Path, default=_OUTPUT, help="folder for what is seen (default: build/truths)")
    parser.add_argument("--judge", action="store_true", help="run nothing: judge again what is in the folder")
    parser.add_argument("--no-change", action="store_true", help="change nothing: nothing may happen to any cluster")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that a stack that is up is taken down
    cases = chosen(options.cases)
    if options.no_change:
        cases = [unchanged(case) for case in cases]
    verdicts = judged(cases, options.output) if options.judge else run(cases, options.output)
    show(verdicts)
    return int(any(one.word == "wrong" for one in verdicts))


def chosen(names: Sequence[str]) -> list[Case]:
    """Return the cases that are asked for."""
    files = load()
    every = [case for cases in files.values() for case in cases]
    known = {**files, **{stack: [one for one in every if one.stack == stack] for stack in STACKS}}
    known |= {case.name: [case] for case in every}
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(f"no case, file or stack is called {', '.join(unknown)}; see tests/truths/cases")
    wanted = {case.name for name in names for case in known[name]} if names else {case.name for case in every}
    return [case for case in every if case.name in wanted]


def unchanged(case: Case) -> Case:
    """Return a case that changes nothing, so that nothing may happen."""
    return case.model_copy(update={"change": Change(), "answer": Expected(moved=0, preempted=0, came=[])})


def run(cases: Sequence[Case], output: Path) -> list[Verdict]:
    """Run cases, each stack once, and judge them."""
    for stack in STACKS:
        if mine := [case for case in cases if case.stack == stack]:
            with TemporaryDirectory() as folder, up(Path(folder), stack, **features(stack)) as rehearsed:
                for batch in batches(mine):
                    rehearse(rehearsed, batch, output)
    return judged(cases, output)


def features(name: str) -> dict[str, Any]:
    """Settings by which a stack has all features, and consolidates at once."""
    pools = yaml.safe_load((IMPORT_ROOT / f"Pulumi.{name}.yaml").read_text())["config"]["karpstack:nodePools"]
    gates = ("nodeOverlay", "staticCapacity") if name == "eks" else ()
    return {
        **{f"karpstack:nodePools/{pool}/disruption/consolidateAfter": "0s" for pool in pools},
        **{f"karpstack:karpenter/featureGates/{gate}": True for gate in gates},
    }


def rehearse(stack: RehearsedStack, batch: Sequence[Case], output: Path) -> None:
    """Ask the what-ifs of cases in one cluster, and leave for each its own timeline and answer."""
    started = time.monotonic()
    print(f"{stack.folder.stack}: {len(batch)} cases: {', '.join(case.name for case in batch)}", flush=True)
    cluster = Cluster(stack.folder.kubeconfig)
    default = node_class(cluster, batch[0])
    made = list(objects(batch, default))
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        put(folder / "snapshot.json", writing.snapshot(batch, stack.info.region))
        put(folder / "change.json", [step for case in batch for step in writing.steps(case, default)])
        try:
            for one in made:
                cluster.create(one)
            wait_until_ready(cluster, made)
            play(stack, folder)
        finally:
            for one in (*made, *(overlay for case in batch for overlay in writing.overlays(case))):
                if live := cluster.read(one):
                    cluster.delete(one, live["metadata"]["uid"])
        lines = list(Reader(folder / "timeline.jsonl").new_lines())
    for case in batch:
        mine = output / case.name
        mine.mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps(line) + "\n" for line in lines_of(case, lines))
        (mine / "timeline.jsonl").write_text(text)
        put(mine / "snapshot.json", writing.snapshot([case], stack.info.region))
    # Nothing of a batch may be left for the next one.
    wait_while(lambda: [one["metadata"]["name"] for one in made if cluster.read(one)], "there", 5 * _READY_SECONDS)
    print(f"{stack.folder.stack}: {time.monotonic() - started:.0f} s", flush=True)


def node_class(cluster: Cluster, case: Case) -> dict[str, Any]:
    """Return the stack's own node class as it is."""
    kind = EC2_NODE_CLASS if case.stack == "eks" else AKS_NODE_CLASS
    wanted = {
        "apiVersion": f"{kind.group}/{kind.version}",
        "kind": kind.kind,
        "metadata": {"name": DEFAULT_NODE_CLASS},
    }
    return {**(cluster.read(wanted) or {}), **wanted}


def objects(batch: Sequence[Case], default: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield node classes and NodePools of cases as they are before the changes."""
    for case in batch:
        yield from writing.node_classes(case, case.classes, default)
        yield from writing.node_pools(case, case.pools)


def wait_until_ready(cluster: Cluster, made: Sequence[Mapping[str, Any]]) -> None:
    """Wait until Karpenter takes the NodePools for ready, and static ones have their nodes."""
    pools = [one for one in made if one["kind"] == "NodePool"]
    wait_while(lambda: [text for one in pools if (text := unready(cluster, one))], "not ready", _READY_SECONDS)


def wait_while(left: Callable[[], Sequence[str]], what: str, seconds: float) -> None:
    end = time.monotonic() + seconds
    while waiting := left():
        if time.monotonic() > end:
            raise SystemExit(f"{what} after {seconds:g} s: {'; '.join(waiting)}")
        time.sleep(1)


def unready(cluster: Cluster, pool: Mapping[str, Any]) -> str:
    """Return why a NodePool is not ready; empty if it is."""
    live = cluster.read(pool) or {}
    status, name = live.get("status", {}), pool["metadata"]["name"]
    conditions = {one["type"]: one for one in status.get("conditions") or ()}
    if conditions.get("Ready", {}).get("status") != "True":
        return f"{name} ({[one for one in conditions.values() if one['status'] != 'True']})"
    missing = (pool["spec"].get("replicas") or 0) - (status.get("nodes") or 0)
    return f"{name} ({missing} nodes are missing)" if missing > 0 else ""


def play(stack: RehearsedStack, folder: Path) -> None:
    """Run the playbook of a what-if."""
    variables = {
        "report_dir": str(folder),
        "snapshot": str(folder / "snapshot.json"),
        "nodes": "as-is",
        "change": f"{sys.executable} -m tests.truths.change {folder / 'change.json'}",
        "candidate": "truths",
        "patience": str(_PATIENCE),
    }
    done = stack.by_hand("ansible-playbook", "playbooks/whatif.yml", "-e", json.dumps(variables), timeout=_TIMEOUT)
    if done.returncode:
        raise SystemExit(done.stdout)


def put(path: Path, content: object) -> None:
    """Write a file of JSON."""
    path.write_text(json.dumps(content, indent=1) + "\n")


def judged(cases: Sequence[Case], output: Path) -> list[Verdict]:
    """Judge cases by the timelines in a folder."""
    return [verdict(case, output / case.name) for case in cases]


def show(verdicts: Sequence[Verdict]) -> None:
    table = columns("Answers against those worked out by hand", "case|the answer is|how it differs")
    for one in verdicts:
        table.add_row(one.case.name, one.word, "\n".join(one.texts))
    words = [one.word for one in verdicts]
    show_table(table, ", ".join(f"{words.count(word)} {word}" for word in ("right", "wrong", "not decided")))


if __name__ == "__main__":
    sys.exit(main())
