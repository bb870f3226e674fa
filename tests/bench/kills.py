"""What becomes of a run of which one process is killed with SIGKILL: `make bench NAME=kills`.

Each case runs one story from nothing (`run`: up, story, destroy), or takes down a stack that is up (`down`), kills a
process at one of those moments, and then looks at what was said, after how long, what is still there, and whether the
next `up` works. Not a test: it prints a table, in an hour or so; the words `PROCESS` and `MOMENT` as arguments choose
cases.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from karpstack.rehearsal.session.daemon import read
from karpstack.rehearsal.state.folder import StackFolder
from karpstack.text.packaged import IMPORT_ROOT
from tests.bench.shared import columns, show, temporary
from tests.rehearsal.conftest import RehearsedStack, new_stack

STORY = "eks-cheapest-fit"
MOMENTS = ("up", "story", "destroy", "down")
ENGINES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "karpenter")
# Words of the command line, of what is no engine; and the moments at which it is there.
COMMANDS = {
    "pulumi": (r"\bpulumi (up|destroy) ", ("up", "destroy", "down")),
    "policy-pack": (r"pulumi\.policy ", ("up",)),
    "ansible-playbook": (r"ansible-playbook .*scale_test\.yml", ("story",)),
    # Not the wrapper that Ansible keeps beside it.
    "recorder": (r"^\S+ \S*AnsiballZ_recorder\.py", ("story",)),
}
PROCESSES = ("command", "daemon", *ENGINES, *COMMANDS)
LIMIT = 400.0
# So that a process is killed at work and not while it loads.
AGE = 1.0


def main(chosen: Sequence[str]) -> int:
    table = columns(
        f"kill -9 in `run eks --scenarios {STORY}`, and in `down`", "killed|at|noticed|ended|code|said|left|next up"
    )
    for moment in [one for one in MOMENTS if one in chosen] or MOMENTS:
        for name in [one for one in PROCESSES if one in chosen] or PROCESSES:
            there = name not in COMMANDS or moment in COMMANDS[name][1]
            row = case(name, moment) if there else ("", "", "", "it is not there", "", "")
            table.add_row(name, moment, *row)
            show(" | ".join((name, moment, *row)))
    show(table)
    return 0


def case(name: str, moment: str) -> Sequence[str]:
    """Kill one process at one moment: the rest of its row."""
    with temporary() as folder:
        stack = new_stack(folder)
        report, output = folder / "report", folder / "output"
        if moment == "down":
            stack.succeed("up")
            words = stack.words("down")
        else:
            words = stack.words("run", "--scenarios", STORY, "--report", str(report))
        with output.open("wb") as stream:
            command = psutil.Popen(
                words,
                cwd=IMPORT_ROOT,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            victim = awaited(command, name, moment, stack.folder, report)
            if victim is None:
                return "", "", str(command.poll()), f"never there: {said(output)}", "", ""
            victim.kill()
            return watched(command, name, stack, output)
        finally:
            if command.poll() is None:
                command.kill()
            stack.command("down", "--force")


def awaited(command: psutil.Popen, name: str, moment: str, folder: StackFolder, report: Path) -> psutil.Process | None:
    """The process once it is at work at that moment; None when the command ended before."""
    deadline = time.monotonic() + LIMIT
    while command.poll() is None and time.monotonic() < deadline:
        if arrived(moment, folder, report) and (found := process(name, command, folder)):
            with contextlib.suppress(psutil.NoSuchProcess):
                if time.time() - found.create_time() > AGE:
                    return found
        time.sleep(0.05)
    return None


def arrived(moment: str, folder: StackFolder, report: Path) -> bool:
    """Whether the run has come so far."""
    if moment == "up":
        return (folder.logs / "kube-scheduler.log").exists()
    if moment == "story":
        timeline = report / "timeline.jsonl"
        return timeline.is_file() and '"STORY"' in timeline.read_text()
    return any(" destroy " in line for _, line in of(folder))


def process(name: str, command: psutil.Popen, folder: StackFolder) -> psutil.Process | None:
    """A process of the run by its name here, if it is there."""
    if name == "command":
        return psutil.Process(command.pid)
    if name == "daemon":
        info = read(folder)
        return psutil.Process(info.pid) if info and info.alive else None
    pattern = rf"/{name}[^/ ]*( |$)" if name in ENGINES else COMMANDS[name][0]
    return next((found for found, line in of(folder) if re.search(pattern, line)), None)


def of(folder: StackFolder) -> Iterator[tuple[psutil.Process, str]]:
    """Processes that know of the folder by command line, environment or working folder; each with its command line."""
    for found in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            line = " ".join(found.cmdline())
            known = [line, found.cwd(), *found.environ().values()]
            if found.status() != psutil.STATUS_ZOMBIE and any(str(folder.root) in text for text in known):
                yield found, line


def watched(command: psutil.Popen, name: str, stack: RehearsedStack, output: Path) -> Sequence[str]:
    """Follow the run from the kill to the end and beyond: the rest of its row."""
    killed = time.monotonic()
    noticed = ended = None
    while (passed := time.monotonic() - killed) < LIMIT:
        info = read(stack.folder)
        if noticed is None and info and (info.crashes or info.lost):
            noticed = passed
        if command.poll() is not None and ended is None:
            ended = passed
            if name != "command":
                noticed = noticed or ended
                break
        # Of a killed command, the rest of the run is to notice.
        if ended is not None and (not list(of(stack.folder)) or passed > 30):
            noticed = passed if not list(of(stack.folder)) else noticed
            break
        time.sleep(0.05)
    times = ["" if value is None else f"{value:.1f} s" for value in (noticed, ended)]
    left = [f"{found.pid} {line[:60]}" for found, line in of(stack.folder)]
    again = stack.command("up")
    works = "works" if again.returncode == 0 else again.stdout[-200:]
    return *times, str(command.poll()), said(output), ", ".join(left) or "nothing", works


def said(output: Path) -> str:
    """The first line of each error, or the last line at all."""
    lines = [line for line in output.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("engine crash:", "error:"))]
    return " / ".join(dict.fromkeys(line[:110] for line in errors or lines[-1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
