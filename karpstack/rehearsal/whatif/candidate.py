"""One change, rehearsed from nothing: the base comes up, the workload settles, the change is applied, all is judged."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from karpstack.rehearsal.cluster.controller import DAYS
from karpstack.rehearsal.cluster.provider.objects import NODES_STAY
from karpstack.rehearsal.engines import EngineSet
from karpstack.rehearsal.engines.builder import ensure
from karpstack.rehearsal.session import daemon, lifetime, speed
from karpstack.rehearsal.session.deployment import CommandError, Deployment
from karpstack.rehearsal.session.fetched_prices import PRICES, of_region
from karpstack.rehearsal.session.stack_file import StackFile
from karpstack.rehearsal.session.terminal import print_message
from karpstack.rehearsal.session.waits import Waits
from karpstack.rehearsal.state.folder import StackFolder
from karpstack.rehearsal.whatif.progress import Progress
from karpstack.rehearsal.whatif.sources import Source
from karpstack.text import answer_files
from karpstack.text.files import OutputError
from karpstack.text.packaged import IMPORT_ROOT, PLAYBOOKS


@dataclass(frozen=True)
class Life:
    """What the changed cluster lives through once it has settled.

    Attributes:
        span: How long, in its own time.
        curve: A daily curve of replicas; None where they stay.
        image_every: After how long, each time, the cloud publishes a newer image of nodes; nothing for never.
    """

    span: timedelta
    curve: Path | None
    image_every: timedelta


@dataclass(frozen=True)
class Question:
    """What is asked of every candidate.

    Attributes:
        stack: Name of the stack.
        base: What is there before.
        workloads: The snapshot whose workload is loaded.
        nodes: Whose nodes the base has: `as-is` or `fresh`, as playbooks/whatif.yml says.
        waits: How waits are shortened.
        patience: Seconds until a side that has not settled is judged as it is.
        judge: More arguments for `karpstack whatif report`.
        life: What the changed cluster lives through; None for nothing.
        prices: File of prices; None for none.
    """

    stack: str
    base: Source
    workloads: Path
    nodes: str
    waits: Waits
    patience: int
    judge: tuple[str, ...] = ()
    life: Life | None = None
    prices: Path | None = None


def rehearse(question: Question, change: Source, results: Path, *, keep: bool) -> int:
    """Rehearse one change and write its answer; the exit code of `karpstack whatif report`.

    Args:
        results: Folder of the timeline and the answer, made.

    Raises:
        CommandError: A side did not come up, or the playbook failed.
    """
    folder = StackFolder(question.stack, results / "state" / question.stack)
    base, changed = (replace(side.stack_file, waits=question.waits) for side in (question.base, change))
    with lifetime.locked_folder(folder, f"karpstack whatif {question.stack}"):
        if daemon.running(folder):
            raise CommandError(
                f"the stack of an earlier what-if of {change.name} is up still, with its workload on it, so this one "
                f"would not begin from nothing; take it down first: {_down(question, folder)}"
            )
        ensure([changed.cloud], changed.releases)
        started = time.monotonic()
        os.environ[NODES_STAY] = "1"  # for the daemon
        os.environ[PRICES] = str(question.prices or "")
        if question.life:
            os.environ[DAYS] = "1"  # for the daemon
        highest: float | None = speed.ceiling(os.environ)
        while highest:
            os.environ[speed.VARIABLE] = f"{highest:g}"
            code = _recorded(question, change, (base, changed), folder, results, keep=keep)
            # Days are not recorded again: the answer says how late timers were, and hours are what counts there.
            highest = None if code or keep or question.life else speed.slower(results, highest)
    if code:
        raise CommandError(f"the what-if of {change.name} has no answer; its log, and the engines': {folder.logs}")
    if keep:
        print_message(f"The stack stays up, until: {_down(question, folder)}")
    else:
        _remove(folder)
    print_message(f"Rehearsed after {time.monotonic() - started:.0f} s in all.")
    return judge_recording(question, results)


def _remove(folder: StackFolder) -> None:
    with suppress(OSError):  # a folder that cannot be removed stays
        shutil.rmtree(folder.root)
        folder.root.parent.rmdir()  # unless somebody else has something there


def _recorded(
    question: Question,
    change: Source,
    sides: tuple[StackFile, StackFile],
    folder: StackFolder,
    results: Path,
    *,
    keep: bool,
) -> int:
    """Bring the base up, apply the change and record both; the exit code of the playbook."""
    base, changed = sides
    try:
        answer_files.forget(results)
    except OutputError as error:
        raise CommandError(str(error)) from error
    print_message(f"The base, {question.base.name}, comes up.")
    try:
        lifetime.bring_up(folder, base, question.base.program, keep=keep, stay=keep, judged=False)
        with lifetime.watched(folder, stop_on_failure=not keep):
            return _play(question, change, changed, folder, results)
    finally:
        if not keep:
            daemon.stop(folder)


def _down(question: Question, folder: StackFolder) -> str:
    """The command that takes a what-if's stack down."""
    return f"karpstack down {question.stack} --force --state {folder.root.parent}"


def judge_recording(question: Question, results: Path) -> int:
    """Judge the recording, write the answer, and return the exit code."""
    command = [
        sys.executable,
        "-m",
        "karpstack",
        "whatif",
        "report",
        str(results),
        "--snapshot",
        str(question.workloads),
    ]
    return subprocess.run(
        [*command, *question.judge], cwd=IMPORT_ROOT, stdin=subprocess.DEVNULL, check=False
    ).returncode


def _play(question: Question, change: Source, changed: StackFile, folder: StackFolder, results: Path) -> int:
    engines, info = EngineSet.current(), daemon.require(folder)
    events = folder.logs / "change-events.jsonl"
    if change.new_image:
        command = [sys.executable, "-m", "karpstack", "story", "publish-image"]
    else:
        command = Deployment(folder, engines, info, change.program).change(changed, events)
    variables = {
        "report_dir": str(results),
        "snapshot": str(question.workloads),
        "nodes": question.nodes,
        "candidate": change.name,
        "base": question.base.name,
        "change": shlex.join(command),
        "change_events": "" if change.new_image else str(events),
        "change_dir": str(IMPORT_ROOT if change.new_image else change.program),
        "patience": str(question.patience),
        "settings": json.dumps(
            {
                **_settings(question.waits, question.base.stack_file, changed),
                "soldAt": sold_at(question.prices, changed),
                "nodeOverlays": question.base.stack_file.has_node_overlays() or changed.has_node_overlays(),
                "notes": list(dict.fromkeys((*question.base.notes, *change.notes))),
                "unseen": list(change.unseen),
            }
        ),
        **(_lived(question.life) if question.life else {}),
        "remove": "false",  # all of the stack ends with it
    }
    progress = Progress(results / "progress.txt")
    playbook = PLAYBOOKS / "whatif.yml"
    return Deployment(folder, engines, info).play(playbook, variables, meanwhile=progress.print_progress)


def _lived(life: Life) -> Mapping[str, str]:
    """Return what the playbook is told of a life."""
    return {
        "live_seconds": f"{life.span.total_seconds():.0f}",
        "image_seconds": f"{life.image_every.total_seconds():.0f}",
        "curve": str(life.curve or ""),
    }


def sold_at(prices: Path | None, side: StackFile) -> str | None:
    """Return the region at whose given prices the simulated cloud sells; None where it sells at its own."""
    return side.region if of_region(prices, side.cloud, side.region) else None


def _settings(waits: Waits, *sides: StackFile) -> Mapping[str, object]:
    """What the timeline is told of shortened waits; where both sides have a NodePool, of the later one's."""
    pools = waits.changed_settings(*(side.configuration() for side in sides))
    return {"waitFactor": waits.factor, "at": waits.at.isoformat() if waits.at else None, "pools": pools}
