"""Actions of a what-if: create its nodes and pods, wait until they settle, let days pass."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final, Literal

from kubernetes.config import ConfigException

from karpstack.karpenter import clock
from karpstack.scale_test.acting.cluster import Cluster, ClusterError
from karpstack.scale_test.acting.living import PlannedEvent
from karpstack.scale_test.acting.living import live as let_live
from karpstack.scale_test.acting.ownership import TakenError, make, remove
from karpstack.scale_test.acting.rehearsal_control import RehearsalControl, RehearsalError
from karpstack.scale_test.judging.live import Live
from karpstack.scale_test.recording.process import RecorderError
from karpstack.scale_test.recording.timeline import TimelineError, Writer
from karpstack.scale_test.scenarios.curve import CurveError, load
from karpstack.snapshot.objects import objects
from karpstack.snapshot.portability import Place
from karpstack.snapshot.reading import SnapshotError
from karpstack.snapshot.reading import load as load_snapshot
from karpstack.snapshot.unevictable import unevictable
from karpstack.whatif import base_nodes, existing, leftovers, placing, recheck, settling
from karpstack.whatif.labels import LABELS, SCENARIO
from karpstack.whatif.replica_curve import ReplicaCurve

from . import FailedError, Result

ERRORS: Final = (
    *(ClusterError, ConfigException, CurveError, RecorderError, RehearsalError, SnapshotError),
    *(TakenError, TimelineError),
)
_REHEARSAL: Final = "KARPSTACK_REHEARSAL_URL"
_SETTLES: Final = {"base-settled": "The base settles", "change-settled": "The change settles"}
_PATIENCE: Final = 300  # seconds without another node, or until all is gone


def make_nodes(snapshot: Path, stack_outputs: Result) -> Result:
    """Create a NodeClaim for each node of a NodePool in the snapshot, and wait until Karpenter has launched it.

    Karpenter does not disrupt these nodes until `make_workload` has put the pods of the snapshot on them.
    """
    made = base_nodes.make(Cluster(), load_snapshot(snapshot).snapshot, _place(stack_outputs), _PATIENCE)
    return {"changed": bool(made.nodes), "of": made.of, "nodes": made.nodes, "left_out": made.left_out}


def remove_nodes() -> Result:
    """Remove the nodes of `make_nodes`, and wait until they are gone."""
    removed = base_nodes.remove(Cluster(), _PATIENCE)
    return {"changed": bool(removed), "nodes": removed}


def make_workload(snapshot: Path, stack_outputs: Result, nodes: Literal["as-is", "fresh"]) -> Result:
    """Create the workload of a snapshot: pods that are scheduled but run no program.

    Workloads that the cluster already has, such as Cilium, are created only as far as the snapshot requests more. With
    `as-is`, pods are put on the nodes of `make_nodes`. From then on, Karpenter may disrupt these nodes.
    """
    taken, passed_over = load_snapshot(snapshot)
    cluster = Cluster()
    loaded = objects(taken, LABELS, _place(stack_outputs), existing.existing(cluster))
    placed = placing.PlacementResult(0, 0)
    if standing := base_nodes.standing(cluster) if nodes == "as-is" else {}:
        with placing.hold_pods(cluster):
            made = dict(make(cluster, loaded.objects, leftovers.OTHERWISE))
            placed = placing.place(cluster, loaded.workloads, base_nodes.managed(cluster, taken) | standing)
        base_nodes.allow_disruption(cluster)
    else:
        made = dict(make(cluster, loaded.objects, leftovers.OTHERWISE))
    counted = (workload for workload in loaded.workloads.values() if workload.controller.kind != "DaemonSet")
    notes = [*passed_over, *loaded.notes]
    if placed.without_room:
        notes.append(
            f"{placed.without_room} pods had no room on the node that they were on, which has a little less here; the "
            "scheduler chose another"
        )
    return {
        "changed": bool(made),
        "pods": sum(workload.replicas for workload in counted),
        "placed": placed.pods,
        "left_out": notes,
        "unevictable": unevictable(taken),
        "others": existing.load(cluster),
    }


def remove_workload(snapshot: Path, stack_outputs: Result) -> Result:
    """Remove the objects with the labels of a what-if, of any snapshot, and wait until they are gone."""
    taken, cluster = load_snapshot(snapshot).snapshot, Cluster()
    placing.remove_policy(cluster)
    existing.remove(cluster)
    before = leftovers.workload(cluster, objects(taken, LABELS, _place(stack_outputs)).objects)
    done = remove(cluster, before, [SCENARIO], {}, _PATIENCE)
    return {"changed": bool(done.removed), "left_out": done.kept}


def _place(outputs: Result) -> Place:
    return Place(str(outputs.get("cloud", "")), str(outputs.get("region", "")))


def settled(timeline: Path, patience: int, progress: Path, phase: Literal["base-settled", "change-settled"]) -> Result:
    """Wait until nothing changes for longer than consolidateAfter and Karpenter's pauses; write it into the timeline.

    Meanwhile a pod in the namespace default is created and removed, so that Karpenter evaluates the cluster again.
    """
    ask, tell = partial(recheck.ask, Cluster()), _appending(progress, _SETTLES[phase])
    rest = settling.wait(Live(timeline), patience, ask, tell)
    told: Result = {"seconds": rest.seconds, "quiet": rest.quiet, "needed": rest.needed}
    told |= {key: value for key, value in {"left": rest.left, "gaveUp": rest.gave_up}.items() if value}
    with Writer(timeline) as writer:
        writer.write("PHASE", phase=phase, **told)
    return {"changed": False, **asdict(rest)}


def live(timeline: Path, seconds: int, image_seconds: int, progress: Path, curve: Path | None = None) -> Result:
    """Let days pass on a rehearsed cluster. Time in which nothing changes is skipped.

    Replicas follow a daily curve, and every `image_seconds` the cloud publishes a newer node image.
    """
    if not (url := os.environ.get(_REHEARSAL, "")):
        raise FailedError(
            f"{_REHEARSAL} is not set, so there is no clock that could run ahead; a week can only be rehearsed: "
            "karpstack whatif STACK --base .. --for 7d"
        )
    control, begin = RehearsalControl(url), clock.utcnow()
    end = begin + timedelta(seconds=seconds)
    day = load(curve) if curve else None
    replicas = ReplicaCurve(Cluster(), day) if day else None
    with Writer(timeline) as writer:

        def publish(_: object) -> None:
            writer.write("PHASE", phase="image-published", images=control.publish_image())

        turns = (begin, *day.turns(begin, end)) if day else ()
        planned = [PlannedEvent(at, replicas.turn) for at in turns] if replicas else []
        if every := timedelta(seconds=image_seconds):
            planned += [PlannedEvent(begin + count * every, publish) for count in range(1, -(-(end - begin) // every))]
        writer.write("PHASE", phase="life-begins", curve=day.factors if day else None)
        tell = _appending(progress, "The cluster lives")
        lived = let_live(Live(timeline), end, planned, settling.WATCHED, control.skip, tell)
        told = {"realSeconds": lived.real_seconds, "skippedSeconds": lived.skipped_seconds, "skips": lived.skips}
        writer.write("PHASE", phase="life-ends", **told)
    return {"changed": True, **asdict(lived)}


def _appending(progress: Path, what: str) -> Callable[[str], None]:
    """Return a function that appends progress to a file."""

    def tell(said: str) -> None:
        with progress.open("a") as file:
            file.write(f"{what}, {said}\n")

    return tell
