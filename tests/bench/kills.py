"""What becomes of a run of which one process is killed with SIGKILL: `make bench-kills`.

Each case runs one story from nothing (`run`: up, story, destroy), kills a process at one of those moments, and then
looks at what was said, after how long, what is still there, and whether the next `up` works. Not a test: it prints a
table, in an hour or so; `--process` and `--moment` choose cases.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from rehearsal.session.daemon import read
from rehearsal.session.deployment import PROJECT
from rehearsal.state.folder import StackFolder
from tests.rehearsal.conftest import RehearsedStack, new_stack

STORY = "eks-cheapest-fit"
MOMENTS = ("up", "story", "destroy")
ENGINES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "karpenter")
# Words of the command line, of what is no engine.
COMMANDS = {
    "pulumi": r"\bpulumi (up|destroy) ",
    "policy-pack": r"pulumi\.policy ",
    "ansible-playbook": r"ansible-playbook .*scale_test\.yml",
    # Not the wrapper that Ansible keeps beside it.
    "recorder": r"^\S+ \S*AnsiballZ_karpstack_recorder\.py",
}
PROCESSES = ("command", "daemon", *ENGINES, *COMMANDS)
# Why a process is not there at a moment.
ABSENT = {
    ("ansible-playbook", "up"): "runs in stories",
    ("ansible-playbook", "destroy"): "runs in stories",
    ("recorder", "up"): "runs in stories",
    ("recorder", "destroy"): "runs in stories",
    ("pulumi", "story"): "runs in up and destroy",
    ("policy-pack", "story"): "runs in up",
    ("policy-pack", "destroy"): "runs in up",
}
LIMIT = 400.0
# So that a process is killed at work and not while it loads.
AGE = 1.0


@dataclass(frozen=True)
class Outcome:
    """What came of a case; seconds from the kill."""

    noticed: float | None
    ended: float | None
    code: int | None
    said: str
    left: list[str]
    next_up: str


def main() -> int:
    """Run the cases and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.kills", description=__doc__)
    parser.add_argument("--process", action="append", choices=PROCESSES, help="only this one; can be repeated")
    parser.add_argument("--moment", action="append", choices=MOMENTS, help="only this one; can be repeated")
    parser.add_argument("--no-next", action="store_true", help="do not try whether the next `up` works")
    options = parser.parse_args()
    table = Table(title=f"kill -9 in `run eks --scenarios {STORY}`", title_justify="left")
    for column in ("killed", "at", "noticed", "ended", "code", "said", "left", "next up"):
        table.add_column(column, overflow="fold")
    console = Console(width=180)
    for moment in options.moment or MOMENTS:
        for name in options.process or PROCESSES:
            if why := ABSENT.get((name, moment)):
                table.add_row(name, moment, "", "", "", f"[dim]not there: {why}[/]", "", "")
                continue
            found = case(name, moment, next_up=not options.no_next)
            row = (
                *(seconds(found.noticed), seconds(found.ended), str(found.code)),
                *(found.said, ", ".join(found.left) or "nothing", found.next_up),
            )
            table.add_row(name, moment, *row)
            console.print(name, moment, *row, sep=" | ", markup=False)
    console.print(table)
    return 0


def case(name: str, moment: str, *, next_up: bool) -> Outcome:
    """Kill one process at one moment."""
    with tempfile.TemporaryDirectory() as temporary:
        stack = new_stack(Path(temporary))
        report = Path(temporary) / "report"
        output = Path(temporary) / "output"
        with output.open("wb") as stream:
            command = psutil.Popen(
                [
                    *(sys.executable, "-m", "rehearsal", "run", stack.folder.stack, "--scenarios", STORY),
                    *("--state", str(stack.folder.root.parent), "--config-file", str(stack.configuration)),
                    *("--report", str(report)),
                ],
                cwd=PROJECT,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            victim = awaited(command, name, moment, stack.folder, report)
            if victim is None:
                return Outcome(None, None, command.poll(), f"never there: {last(output)}", [], "")
            victim.kill()
            outcome = watched(command, name, stack, output, next_up=next_up)
        finally:
            if command.poll() is None:
                command.kill()
            stack.command("down", "--force")
        return outcome


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
    pattern = rf"/{name}[^/ ]*( |$)" if name in ENGINES else COMMANDS[name]
    return next((found for found, line in of(folder) if re.search(pattern, line)), None)


def of(folder: StackFolder) -> Iterator[tuple[psutil.Process, str]]:
    """Processes that know of the folder by command line, environment or working folder; each with its command line."""
    for found in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            line = " ".join(found.cmdline())
            known = [line, found.cwd(), *found.environ().values()]
            if found.status() != psutil.STATUS_ZOMBIE and any(str(folder.root) in text for text in known):
                yield found, line


def watched(command: psutil.Popen, name: str, stack: RehearsedStack, output: Path, *, next_up: bool) -> Outcome:
    """Follow the run from the kill to the end and beyond."""
    killed = time.monotonic()
    noticed = ended = None
    while time.monotonic() < killed + LIMIT:
        info = read(stack.folder)
        if noticed is None and info and (info.crashes or info.lost):
            noticed = time.monotonic() - killed
        if command.poll() is not None and ended is None:
            ended = time.monotonic() - killed
            noticed = noticed if noticed is not None or name == "command" else ended
            if name != "command":
                break
        # Of a killed command, the rest of the run is to notice.
        if ended is not None and not list(of(stack.folder)):
            noticed = time.monotonic() - killed
            break
        if ended is not None and time.monotonic() > killed + 30:
            break
        time.sleep(0.05)
    left = [f"{found.pid} {line[:60]}{listening(found)}" for found, line in of(stack.folder)]
    text = said(output)
    again = ""
    if next_up:
        result = stack.command("up")
        again = "works" if result.returncode == 0 else result.stdout[-200:]
    return Outcome(noticed, ended, command.poll(), text, left, again)


def listening(found: psutil.Process) -> str:
    """How many ports a process listens on, as text."""
    with contextlib.suppress(psutil.Error):
        ports = [one for one in found.net_connections("tcp") if one.status == psutil.CONN_LISTEN]
        return f" ({len(ports)} ports)" if ports else ""
    return ""


def said(output: Path) -> str:
    """The first line of the last error, or the last line at all."""
    lines = [line for line in output.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("engine crash:", "error:"))]
    return " / ".join(dict.fromkeys(line[:110] for line in errors)) or last(output)


def last(output: Path) -> str:
    """The last line of the output."""
    return next((line for line in reversed(output.read_text(errors="replace").splitlines()) if line.strip()), "")[:110]


def seconds(value: float | None) -> str:
    """As text."""
    return "" if value is None else f"{value:.1f} s"


if __name__ == "__main__":
    sys.exit(main())
