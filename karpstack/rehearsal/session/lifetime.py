"""A stack's rehearsal from its beginning: brought up, watched over while a command works on it, and forgotten."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from karpstack.rehearsal.cluster.startup_taints import permanent_taints
from karpstack.rehearsal.engines import EngineSet
from karpstack.rehearsal.engines.builder import ensure
from karpstack.rehearsal.host.processes import stop_marked
from karpstack.rehearsal.session import crashes, daemon, descriptions, hints, lock, other_program
from karpstack.rehearsal.session.deployment import CommandError, Deployment
from karpstack.rehearsal.session.stack_file import StackFile
from karpstack.rehearsal.session.terminal import print_message
from karpstack.rehearsal.state import ownership
from karpstack.rehearsal.state.folder import StackFolder
from karpstack.text.packaged import PROGRAM, is_program


@dataclass(frozen=True)
class Tools:
    """What starts programs for a command on a stack.

    Attributes:
        build: Returns the engines that clouds and releases need, and builds the missing ones.
        start: Starts the daemon of a stack.
        deploy: Returns Pulumi's and Ansible's commands on a stack.
    """

    build: Callable[[Collection[str], Collection[str]], EngineSet] = ensure
    start: Callable[[StackFolder, StackFile, EngineSet], daemon.StartingDaemon] = daemon.start
    deploy: Callable[[StackFolder, EngineSet, daemon.DaemonInfo, Path], Deployment] = Deployment


#: The tools of a real command.
TOOLS: Final = Tools()


@contextmanager
def locked_folder(folder: StackFolder, command: str, patience: float = 0.5) -> Iterator[None]:
    """Make the stack's folder if it is missing, and lock the stack for other commands.

    Args:
        patience: Seconds for which its lock is asked for again.

    Raises:
        lock.BusyError: Somebody else works on it.
        ownership.OwnershipError: The folder is somebody else's.
    """
    ownership.claim(folder)
    with lock.held(folder, command, patience):
        crashes.skip_earlier_crashes(folder)
        # Whoever held the lock before is gone: what it had started, and could not end any more, goes too.
        if left := stop_marked(folder):
            print_message(f"Stopped what an earlier command had left: {', '.join(sorted(set(left)))}.")
        yield


def bring_up(
    folder: StackFolder,
    stack_file: StackFile,
    program: Path = PROGRAM,
    *,
    keep: bool,
    stay: bool,
    judged: bool = True,
    tools: Tools = TOOLS,
) -> None:
    """Start the daemon unless it runs, then `pulumi up`. What this call started, it stops when it fails.

    Args:
        keep: Whether the daemon is to stay also after a failure.
        stay: Whether it is to stay when this command has ended.
    """
    if stack_file.other_program:
        other_program.check(program)
    for sentence in permanent_taints(stack_file.node_pools()):
        print_message(f"{sentence}.")
    descriptions.check_stack(stack_file)
    if is_program(program):  # another one's settings are its own
        descriptions.check_before_building(stack_file)
    engines = tools.build([stack_file.cloud], stack_file.releases)
    running = daemon.running(folder)
    if running:
        if running.described != stack_file.described:
            raise CommandError(
                f"what {stack_file.network.name} or {stack_file.cluster.name} describes has changed since the "
                f"rehearsal of {folder.stack} came up, whose account has it as it was; nothing was updated. Take it "
                f"down first: {hints.command('down', folder)}"
            )
        print_message(f"The rehearsal of {folder.stack} is running (pid {running.pid}); updating it.")
        deployment = tools.deploy(folder, engines, running, program)
        with watched(folder):
            deployment.prepare(stack_file)
            _update(deployment, stack_file, judged=judged, tools=tools)
        return
    remove_earlier_state(folder)
    started = time.monotonic()
    with watched(folder, stop_on_failure=not keep):
        starting, deployment = start(folder, stack_file, engines, program, tools=tools)
        if keep:
            starting.stay()
        _update(deployment, stack_file, judged=judged, tools=tools)
        if stay and not keep:
            starting.stay()
    print_message(f"pulumi up finished after {time.monotonic() - started:.1f} s in all.")


def _update(deployment: Deployment, stack_file: StackFile, *, judged: bool, tools: Tools) -> None:
    """Update the stack; before that, check that the rehearsal has all that a program of others needs."""
    if stack_file.other_program:
        asked = deployment.survey(stack_file)
        asked.check_versions()
        deployment.check_charts(tools.build([asked.cloud], asked.releases))
    deployment.up(judged=judged and not stack_file.other_program)


def start(
    folder: StackFolder,
    stack_file: StackFile,
    engines: EngineSet,
    program: Path = PROGRAM,
    *,
    asked: bool = False,
    tools: Tools = TOOLS,
) -> tuple[daemon.StartingDaemon, Deployment]:
    """Start the daemon; it, and what can be deployed on it. Where the account itself is `asked`, it is waited for."""
    starting = tools.start(folder, stack_file, engines)
    tools.deploy(folder, engines, starting.info, program).prepare(stack_file)  # while the daemon gets ready
    # What files describe is made first, and may be refused: Pulumi would only see that nobody listens any more.
    whole = asked or stack_file.network.is_file() or stack_file.cluster.is_file()
    return starting, tools.deploy(folder, engines, starting.ready() if whole else starting.listening(), program)


@contextmanager
def watched(folder: StackFolder, *, stop_on_failure: bool = False) -> Iterator[None]:
    """Tell of the engines' crashes however the block ends; take down what is left when the rehearsal is lost."""
    try:
        yield
    except BaseException as error:
        crashes.report_new(folder)
        if stop_on_failure or isinstance(error, daemon.LostError):
            print_message(f"Stopping; logs stay in {folder.logs}.")
            daemon.stop(folder)
        raise
    crashes.report_new(folder)


def report_daemon_end(folder: StackFolder) -> None:
    """Report a daemon that has ended unexpectedly."""
    info = daemon.read(folder)
    if info and info.ready and not info.lost:
        try:
            daemon.check(folder)
        except daemon.LostError as error:
            print_message(str(error))


def remove_earlier_state(folder: StackFolder) -> None:
    """Remove what an earlier rehearsal left: its account is gone, so its state describes nothing."""
    daemon.stop(folder)
    ownership.clear(folder)
