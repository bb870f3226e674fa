"""What up, run, down, status, env, rights, review and preflight do on a simulated stack; each returns its exit code.

Reads plain values and talks to people; the work is done by `rehearsal.session.daemon` and
`rehearsal.session.deployment`. `rehearsal.networks.command` and `rehearsal.whatif.command` have two more commands.
"""

from __future__ import annotations

import difflib
import json
import os
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Final

import psutil
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from karpstack.karpenter import clock
from karpstack.rehearsal import recorded_rights
from karpstack.rehearsal.cluster.controller import DAYS
from karpstack.rehearsal.engines import EngineSet
from karpstack.rehearsal.host import limits, user_environment
from karpstack.rehearsal.host.processes import marked, stop_marked
from karpstack.rehearsal.rights import completeness, reasons
from karpstack.rehearsal.session import crashes, daemon, descriptions, hints, lifetime, lock, other_program, speed
from karpstack.rehearsal.session.deployment import (
    PROTECTION,
    CommandError,
    Deployment,
    environment,
    has_protection_setting,
    protected,
)
from karpstack.rehearsal.session.lifetime import TOOLS, Tools
from karpstack.rehearsal.session.removal import NotCheckedError
from karpstack.rehearsal.session.reporting import rehearsing, say_error
from karpstack.rehearsal.session.stack_file import StackFile
from karpstack.rehearsal.session.terminal import console, print_message
from karpstack.rehearsal.state import ownership
from karpstack.rehearsal.state.folder import StackFolder
from karpstack.text import files, refusals
from karpstack.text.codes import Code, reported
from karpstack.text.names import stack_name
from karpstack.text.packaged import PACKAGE, PLAYBOOKS, SCENARIOS
from karpstack.text.projects import find_project
from karpstack.text.shown import visible

# The stories that are run unless others are asked for: the published walk-throughs, a minute or two.
_WALK_THROUGH = "walk-through"
_ALL = "all"
# What the review calls the policy pack without a configuration.
_BASELINE = "baseline"
_REASONS: Final = PACKAGE / "components" / "documents" / "unused_rights.json"


@dataclass(frozen=True)
class Target:
    """The stack that a command works on, and where its files are.

    Attributes:
        stack: Its name.
        state: Folder of all stacks' state; `.rehearsal` of the project if None.
        config_file: The stack's configuration; `Pulumi.<stack>.yaml` of the project if None.
        command: Name of the command, for others that wait for it.
        given_project: Folder with Pulumi.yaml; found from the current folder upward if None.
        any_program: Whether the folder may have a program that is not karpstack's.
        tools: What starts programs.
    """

    stack: str
    state: Path | None = None
    config_file: Path | None = None
    command: str = ""
    given_project: Path | None = None
    any_program: bool = False
    tools: Tools = TOOLS

    def __post_init__(self) -> None:
        """Refuse a name that would lead to another folder."""
        stack_name(self.stack)

    @cached_property
    def project(self) -> Path:
        """The folder with Pulumi.yaml."""
        return self.given_project.resolve() if self.given_project else find_project()

    def stack_file(self) -> StackFile:
        """Read the configuration."""
        file = self.config_file or self.project / f"Pulumi.{self.stack}.yaml"
        return StackFile.load(file.resolve(), any_program=self.any_program)

    def folder(self) -> StackFolder:
        """Return the stack's folder, which is ours if it exists."""
        folder = StackFolder(self.stack, ownership.place(self.state or self.project / ".rehearsal") / self.stack)
        ownership.check(folder)
        return folder

    def results(self, given: Path | None, kind: str, option: str) -> Path:
        """Return the folder for what a command writes: `build/<kind>/<stack>` of the project if not given."""
        return ownership.place_results(given or self.project / "build" / kind / self.stack, option)

    @contextmanager
    def alone(self, patience: float = 0.5) -> Iterator[StackFolder]:
        """Give the stack's folder, made if it does not exist, while no other command works on the stack."""
        folder = self.folder()
        with lifetime.locked_folder(folder, f"karpstack {self.command} {folder.stack}", patience):
            yield folder


@rehearsing()
def up(
    target: Target,
    *,
    review_folder: Path | None = None,
    write_review: bool = True,
    keep: bool = False,
    highest_speed: float | None = None,
    days: bool = False,
) -> int:
    """Bring the stack up: engines, control plane, `pulumi up` with the policy pack."""
    _set_clock(highest_speed, days=days)
    stack_file = target.stack_file()
    stack_file.check_versions()  # before engines are built, which may take a quarter of an hour
    with target.alone() as folder:
        write_review = write_review and not stack_file.other_program  # the pack did not judge it
        output = target.results(review_folder, "review", "--review") if write_review else None
        lifetime.bring_up(folder, stack_file, target.project, keep=keep, stay=True, tools=target.tools)
        if output:
            _review_again(target, folder, stack_file, output)
    where = f" --program {shlex.quote(str(target.given_project))}" if target.any_program else ""
    where = escape(where + (f" --state {shlex.quote(str(target.state))}" if target.state else ""))
    console.print(
        f'[bold green]{folder.stack} is up.[/] By hand: [bold]eval "$(karpstack env {folder.stack}{where})"[/]; '
        f"scale tests: [bold]karpstack run {folder.stack}{where}[/]",
        soft_wrap=True,
    )
    return Code.GOOD


def _set_clock(highest_speed: float | None, *, days: bool) -> None:
    """Hand the options of the clock on to the rehearsals that this process starts."""
    speed.apply(highest_speed)
    if days:
        os.environ[DAYS] = "1"


def _review_again(target: Target, folder: StackFolder, stack_file: StackFile, output: Path) -> None:
    """Write the review again, with everything known; the update has passed, whatever the review says."""
    try:
        with lifetime.watched(folder):
            code = _deployment(target, folder).review(stack_file, output, updated=True)
    except CommandError as error:
        print_message(
            f"{error}, so there is no review of {folder.stack} as it is; again: karpstack review {folder.stack}"
        )
        return
    if code:
        print_message(f"The review of {folder.stack} as it is did not pass; what it says stands above.")


@rehearsing()
def run(
    target: Target,
    *,
    scenarios: str = "",
    labels: str | None = None,
    scenario_dir: Path | None = None,
    report: Path | None = None,
    check_report: Callable[[Path], object] = lambda _: None,
    keep: bool = False,
    highest_speed: float | None = None,
    days: bool = False,
) -> int:
    """Run the stack's scale tests and write the report; bring the stack up before, if it is not, and down after.

    `check_report` refuses, with a ValueError, a folder of which the playbook would refuse to remove an older report.
    """
    _set_clock(highest_speed, days=days)
    stack_file = target.stack_file()
    if scenarios and labels:
        raise ValueError(
            "--scenarios and --labels both choose scenarios, so one would have no effect; give one of them"
        )
    if scenario_dir and not any(scenario_dir.glob("*.yml")):
        raise ValueError(
            f"--scenario-dir {scenario_dir} has no scenario (*.yml), so nothing would be tested; name the "
            "folder of yours, or leave the option out for playbooks/scenarios"
        )
    if stack_file.other_program and not scenario_dir:
        raise ValueError(
            "the shipped scenarios are written for karpstack's own clusters, whose nodes wait for Cilium, so that they "
            "would fail on this one; write your own and name their folder: --scenario-dir FOLDER"
        )
    with target.alone() as folder:
        results = target.results(report, "rehearsal", "--report")
        check_report(results)
        return _run_alone(target, folder, stack_file, _choice(scenarios, labels, scenario_dir), results, keep=keep)


def _run_alone(
    target: Target, folder: StackFolder, stack_file: StackFile, choice: dict[str, str], report: Path, *, keep: bool
) -> int:
    page, found = report / "report.html", report / "report.json"
    before = {file: _version(file) for file in (page, found)}
    ours = daemon.running(folder) is None
    if ours:
        stack_file.check_versions()
        _check_scenarios(choice)
        lifetime.bring_up(folder, stack_file, target.project, keep=keep, stay=keep, tools=target.tools)
    try:
        with lifetime.watched(folder, stop_on_failure=ours and not keep):
            variables = {**choice, "report_dir": str(report)}
            if stack_file.other_program:
                described = other_program.outputs(folder, stack_file)
                files.write(folder.described_outputs, json.dumps(described), private=True)
                variables["stack_outputs"] = f"@{folder.described_outputs}"
            code = _play_in_time(target, folder, variables, report)
    except KeyboardInterrupt:
        if not ours:
            print_message(
                f"{folder.stack} was up before and stays up. What the interrupted story made is removed by the next "
                f"run, and by: {hints.command('down', folder)}"
            )
        raise
    judged = _version(found) not in (None, before[found])
    if judged and "scenario_dir" not in choice:
        completeness.note(folder.recorded_scenarios, completeness.ended(found))
    if ours and not keep:
        _end(target, folder)
    print_message(
        f"Report: {page}"
        if _version(page) not in (None, before[page])
        else f"No report was written; what is in {report} is of an earlier run, if at all."
    )
    if not code:
        return Code.GOOD
    # Without a report the playbook failed before it could judge: its own output says why.
    return Code.NO if judged else Code.UNKNOWN


def _version(file: Path) -> tuple[int, int] | None:
    """Return what changes whenever a file is written, and not when the machine's clock is set; None without one."""
    if not file.is_file():
        return None
    status = file.stat()
    return status.st_ino, status.st_mtime_ns


def _choice(scenarios: str, labels: str | None, scenario_dir: Path | None) -> dict[str, str]:
    """The playbook's variables that say which scenarios to run."""
    found = {}
    if scenario_dir:
        found["scenario_dir"] = str(scenario_dir.resolve())
    if scenarios:
        found["scenarios"] = scenarios
    elif (chosen := labels or (_ALL if scenario_dir else _WALK_THROUGH)) != _ALL:
        found["scenario_labels"] = chosen
    return found


def _check_scenarios(choice: dict[str, str]) -> None:
    """Refuse scenarios before a stack is made for them; the playbook refuses what only the stack can tell."""
    folder = [choice["scenario_dir"]] if "scenario_dir" in choice else []
    chosen = [f"--names={choice.get('scenarios', '')}", f"--labels={choice.get('scenario_labels', '')}"]
    if refused := refusals.refusal("scenario", "check", *folder, *chosen):
        raise ValueError(refused)


@rehearsing(failed=Code.UNKNOWN)
def review(target: Target, *, output: Path | None = None, policy_pack_config: str = "", form: str = "text") -> int:
    """Preview the stack with the policy pack and write the review; start no cluster and change nothing."""
    stack_file = target.stack_file()
    with target.alone() as folder:
        documents = target.results(output, "review", "--output")
        configuration = policy_pack_config
        if configuration and configuration != _BASELINE:
            configuration = str(Path(configuration).resolve())
        with _played(target, folder, stack_file) as deployment:
            return deployment.review(stack_file, documents, configuration, form=form)


@rehearsing(failed=Code.UNKNOWN)
def preflight(target: Target, *, form: str = "text") -> int:
    """Check the simulated account before `up`, as `karpstack preflight` checks a real one; change nothing."""
    stack_file = target.stack_file()
    with target.alone() as folder:
        if not daemon.running(folder):
            print_message(
                f"{folder.stack} is not up. Checking the simulated account, which has only what files next to the "
                f"stack file describe; `karpstack preflight {folder.stack}` checks yours."
            )
        with _played(target, folder, stack_file, asked=True) as deployment:
            return deployment.preflight(stack_file, form)


@contextmanager
def _played(target: Target, folder: StackFolder, stack_file: StackFile, *, asked: bool = False) -> Iterator[Deployment]:
    """Commands on a stack that may not be up; what this starts to play its account, it stops.

    Its providers wait for the account by themselves; commands by which it is `asked` wait here.
    """
    descriptions.check_stack(stack_file)
    if stack_file.cluster.is_file():
        stack_file.check_versions()  # of a cluster that runs; of one's own any version is previewed
    tools = target.tools
    engines = tools.build([stack_file.cloud], stack_file.releases_of_preview)
    running = daemon.running(folder)
    try:
        with lifetime.watched(folder):
            if running:
                deployment = tools.deploy(folder, engines, running, target.project)
                deployment.prepare(stack_file)
            else:
                lifetime.remove_earlier_state(folder)
                _, deployment = lifetime.start(folder, stack_file, engines, target.project, asked=asked, tools=tools)
            yield deployment
    finally:
        if not running:
            daemon.stop(folder)


def _play_in_time(target: Target, folder: StackFolder, variables: dict[str, str], report: Path) -> int:
    """Run the scale tests; once more, slower, where this machine could not keep up."""
    playbook = PLAYBOOKS / "scale_test.yml"
    code = _deployment(target, folder).play(playbook, variables)
    if folder.clock.exists():
        page, highest = clock.Page(folder.clock), speed.ceiling(os.environ)
        while again := speed.slower(report, highest):
            page.limit = highest = again
            code = _deployment(target, folder).play(playbook, variables)
    return code


@rehearsing()
def env(target: Target) -> int:
    """Print the exports with which pulumi, kubectl, helm and ansible-playbook work on the stack by hand."""
    # What follows in the shell shall not reach what it was pointed at before, even where the stack is not up.
    print(f"unset {' '.join(user_environment.real_account(os.environ))}")
    try:
        folder = target.folder()
        variables = environment(folder, EngineSet.current(), daemon.require(folder))
    except BaseException:  # whatever it was: nothing of the rehearsal follows, so nothing else may
        print(f"export KUBECONFIG={os.devnull} PULUMI_BACKEND_URL=file://{os.devnull}\nfalse")
        raise
    for key, value in sorted((variables | {lock.VARIABLE: str(folder.lock)}).items()):
        print(f"export {key}={shlex.quote(value)}")
    return Code.GOOD


@rehearsing()
@reported(dict.fromkeys((reasons.ReasonsError, recorded_rights.RecordingError, OSError), Code.WRONG), say_error)
def rights(
    target: Target,
    *,
    recordings: Sequence[Path] = (),
    reasons_file: Path | None = None,
    distil: Path | None = None,
    form: str = "text",
) -> int:
    """Show which permissions the controller used in the last rehearsal, and which nothing used."""
    from karpstack.rehearsal.rights import checking, distilling, review, review_output

    folder = target.folder()
    found = checking.checked(recorded_rights.read(list(recordings) or [folder.rights]))
    lacking = []
    if not recordings:
        found = replace(found, scenarios=completeness.noted(folder.recorded_scenarios))
        lacking = ["what down asks, for the stack is up"] if daemon.running(folder) else []
    if distil:
        files.check_output(distil, "--distil", "recording", recorded_rights.begins_as_one)
        files.write(distil, recorded_rights.text(distilling.distilled(found)))
    lacking = [*completeness.lacking(found, SCENARIOS), *lacking]
    judged = review.review(found, reasons.read(reasons_file or _REASONS, found.cloud), lacking)
    if form == "json":
        print(json.dumps(judged.shown, indent=2))
    elif form == "markdown":
        print(review_output.markdown(judged))
    else:
        Console().print(review_output.tables(judged), soft_wrap=True)  # lines below the tables are not folded
    return Code.NO if judged.problems else Code.GOOD


@rehearsing()
def status(target: Target, *, form: str = "text") -> int:
    """Show the engines of the stack, their memory, where they log, and what listens to whom."""
    from karpstack.rehearsal.session import listeners

    folder = target.folder()
    _check_known(target, folder)
    info = daemon.running(folder)
    if holder := lock.holder(folder):
        print_message(f"{folder.stack}: {lock.described(holder)} is working on it")
    if form == "json":
        engines = [{"name": name, "pid": pid, "memoryBytes": memory} for name, pid, memory in _engines(info)]
        crashed = info.crashes if info else []
        shown = {"stack": folder.stack, "up": bool(info), "engines": engines, "crashes": crashed}
        print(json.dumps(shown | {"logs": str(folder.logs)}, indent=2))
        return Code.GOOD if info and not crashed else Code.NO
    if not info:
        print(
            f"{folder.stack}: down" + (f" (logs of the last rehearsal: {folder.logs})" if folder.logs.is_dir() else "")
        )
        crashes.report_all(folder)
        lifetime.report_daemon_end(folder)
        if full := limits.shortage(folder.root):
            print_message(full)
        if not holder:
            _report_orphans(folder)
        return Code.NO
    table = Table(title=f"{folder.stack}: up, {info.cloud} {info.region}", title_justify="left")
    for column in ("engine", "pid", "memory", "log"):
        table.add_column(column, justify="right" if column in ("pid", "memory") else "left", overflow="fold")
    total = 0
    for name, pid, memory in _engines(info):
        total += memory
        table.add_row(escape(name), str(pid), f"{memory / 2**20:.0f} MiB", escape(f"{name}.log"))
    table.add_section()
    table.add_row("all", "", f"{total / 2**20:.0f} MiB", "")
    Console().print(table)
    if folder.clock.exists() and (ahead := clock.Page(folder.clock).time_ns() / 1e9 - time.time()) >= 1:
        ahead_by = timedelta(seconds=int(ahead))
        print_message(f"Cluster time is {ahead_by} ahead of this machine's; `kubectl` of `env` shows right ages.")
    print(visible(f"Logs are in {folder.logs}"))  # by no table, which would cut the path in two
    if folder.judge.is_file():
        print(visible(f"The last `karpstack up` was judged by {folder.judge.read_text()}"))
    Console().print(listeners.table(folder, info))
    crashes.report_all(folder)
    return Code.NO if info.crashes else Code.GOOD


def _engines(info: daemon.DaemonInfo | None) -> Iterator[tuple[str, int, int]]:
    """Yield the name, process id and memory in bytes of each engine that runs."""
    if info is None:
        return
    processes = psutil.Process(info.pid)
    for process in [processes, *processes.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            name = "daemon" if process.pid == info.pid else Path(process.exe()).name
            yield name, process.pid, process.memory_info().rss


def _report_orphans(folder: StackFolder) -> None:
    """Tell of processes that run although nothing in the state folder tells of them, or that is gone."""
    found = [one for daemon_ in daemon.find(folder) for one in (daemon_, *daemon_.children(recursive=True))]
    found += [one for one in marked(folder) if one not in found]
    memory = 0
    for one in found:
        with suppress(psutil.Error):
            memory += one.memory_info().rss
    if found:
        print_message(
            f"{folder.stack}: its state is lost, but {len(found)} of its processes run ({memory / 2**20:.0f} MiB, "
            f"pid {', '.join(str(one.pid) for one in found)}); end them with: {hints.command('down', folder)}"
        )


def _check_known(target: Target, folder: StackFolder) -> None:
    """Refuse a stack of which there is nothing: neither a file, nor a rehearsal, nor what is left of one."""
    if folder.root.exists() or (target.project / f"Pulumi.{folder.stack}.yaml").is_file():
        return
    if daemon.find(folder) or marked(folder):
        return
    files = (path.name.removeprefix("Pulumi.").removesuffix(".yaml") for path in target.project.glob("Pulumi.*.yaml"))
    rehearsed = (path.parent.name for path in folder.root.parent.glob(f"*/{folder.marker.name}"))
    known = sorted({*files, *rehearsed})
    near = difflib.get_close_matches(folder.stack, known, 1)
    raise ValueError(
        f"there is no stack {folder.stack}: no Pulumi.{folder.stack}.yaml, and no rehearsal in {folder.root.parent}; "
        + (f"did you mean {near[0]}?" if near else f"the stacks here are: {', '.join(known)}")
    )


@rehearsing()
def down(target: Target, *, force: bool = False) -> int:
    """Destroy the stack with `pulumi destroy` and stop all engines."""
    folder = target.folder()
    _check_known(target, folder)
    if not folder.root.exists():
        return _nothing_to_take_down(folder)
    patience = 0.5
    if force and (ended := lock.end_holder(folder)):
        print_message(f"Ended {lock.described(ended)}, which was working on {folder.stack}.")
        patience = 5.0  # a playbook's lock is free a moment after its end
    with target.alone(patience):
        if not daemon.running(folder):
            return _nothing_to_take_down(folder)
        if force:
            daemon.stop(folder)
        else:
            deployment = _deployment(target, folder)
            try:
                _lift_protection(folder, deployment)
            except CommandError as error:
                raise _stays(folder, error) from error
            _refuse_protected(folder)
            _take_down(folder, deployment)
    print(f"{folder.stack}: down")
    return Code.GOOD


def _lift_protection(folder: StackFolder, deployment: Deployment) -> None:
    """Do what a real stack needs before `pulumi destroy`, where its own setting protects the cluster."""
    names = protected(folder)
    if names and has_protection_setting(folder):
        print_message(
            f"{', '.join(names)} is protected: an update sets {PROTECTION} to false first, as before `pulumi destroy`."
        )
        deployment.lift_protection()


def _refuse_protected(folder: StackFolder) -> None:
    """Say so before anything is deleted: Pulumi deletes, without a preview, all that goes before what is protected."""
    if names := protected(folder):
        raise ValueError(
            f"{', '.join(names)} is protected, so nothing was deleted; take the protection out of the program, "
            f"`{hints.command('up', folder)}`, and then down, or give up the rehearsal as it is: "
            f"{hints.command('down --force', folder)}"
        )


def _nothing_to_take_down(folder: StackFolder) -> int:
    left = [*daemon.stop(folder), *stop_marked(folder)]
    print(f"{folder.stack}: nothing is running" + (f"; stopped what was left: {', '.join(left)}" if left else ""))
    return Code.GOOD


def _end(target: Target, folder: StackFolder) -> None:
    """Take down what a run has brought up; what something else protects ends as it is."""
    deployment = _deployment(target, folder)
    _lift_protection(folder, deployment)
    if names := protected(folder):
        print_message(f"{', '.join(names)} is protected, so nothing is destroyed; the rehearsal ends as it is.")
        daemon.stop(folder)
        return
    try:
        _destroy(folder, deployment)
    finally:
        daemon.stop(folder)


def _take_down(folder: StackFolder, deployment: Deployment) -> None:
    """Destroy the stack and stop its engines; what cannot be destroyed stays, so that somebody can see to it."""
    _report_blockers(deployment, "In the way of `pulumi destroy`, which is tried all the same:")
    try:
        _destroy(folder, deployment)
    except CommandError as error:
        raise _stays(folder, error) from error
    except BaseException:
        print_message(f"{folder.stack} is given up: its engines stop, and what was not destroyed is gone with them.")
        daemon.stop(folder)
        raise
    daemon.stop(folder)


def _stays(folder: StackFolder, error: CommandError) -> CommandError:
    return CommandError(
        f"{error}; {folder.stack} and its engines stay up. See to what is in the way, and go on: "
        f"{hints.command('down', folder)}; or give it up as it is: {hints.command('down --force', folder)}"
    )


def _destroy(folder: StackFolder, deployment: Deployment) -> None:
    """Destroy the stack, and tell what was in the way if that fails."""
    with lifetime.watched(folder):
        try:
            deployment.destroy()
        except CommandError:
            # The look may take long: whoever breaks it off has not given up what could not be destroyed.
            with suppress(KeyboardInterrupt):
                _report_blockers(deployment, "What is in the way now:")
            raise


def _report_blockers(deployment: Deployment, heading: str) -> None:
    print_message("Looking for what is in the way of `pulumi destroy`.")  # minutes, where an API server hangs
    try:
        found = deployment.hindrances()
    except NotCheckedError as error:
        print_message(f"What is in the way of `pulumi destroy` is not known: {error}")
        return
    if found:
        print_message("\n".join([heading, *(f"  {one}" for one in found)]))


def _deployment(target: Target, folder: StackFolder) -> Deployment:
    """Commands on a stack that is up."""
    return target.tools.deploy(folder, EngineSet.current(), daemon.require(folder), target.project)
