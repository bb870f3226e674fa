"""The rehearsal's command line: up, run, review, preflight, whatif, env, rights, network, status, down.

Reads arguments and talks to people; the work is done by `rehearsal.session.daemon` and `rehearsal.session.deployment`.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import psutil
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from karpstack.karpenter import clock
from karpstack.rehearsal import recorded_rights as recording
from karpstack.rehearsal.cluster.controller import DAYS
from karpstack.rehearsal.engines import EngineSet
from karpstack.rehearsal.engines.builder import BuildError, ensure
from karpstack.rehearsal.host import limits, user_environment
from karpstack.rehearsal.host.processes import marked, stop_marked
from karpstack.rehearsal.networks import command as networks
from karpstack.rehearsal.rights import completeness, reasons
from karpstack.rehearsal.session import command, crashes, daemon, descriptions, lifetime, lock, speed
from karpstack.rehearsal.session.deployment import PROJECT, PROTECTION, CommandError, Deployment, environment, protected
from karpstack.rehearsal.session.removal import NotLookedError
from karpstack.rehearsal.session.stack_file import StackFile, StackFileError
from karpstack.rehearsal.session.terminal import console, tell
from karpstack.rehearsal.state import ancestors, ownership
from karpstack.rehearsal.state.folder import StackFolder
from karpstack.rehearsal.whatif import command as whatif
from karpstack.rehearsal.whatif.sources import SourceError
from karpstack.text import files
from karpstack.text.codes import Code
from karpstack.text.names import stack_name
from karpstack.text.output import unread

# The stories that are run unless others are asked for: the published walk-throughs, a minute or two.
_WALK_THROUGH = "walk-through"
_ALL = "all"
# What the review calls the policy pack without a configuration.
_BASELINE = "baseline"
# The exit code where what was given cannot be used, as argparse has it: 1 may mean that a story or a rule failed.
_UNUSABLE = 2


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit code."""
    options = _parser().parse_args(arguments)
    speed.apply(options)
    if vars(options).get("days"):
        os.environ[DAYS] = "1"  # for the daemon
    # A shell that started this in the background has SIGINT ignored, and Python would leave it so.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Whoever ends this command otherwise (a CI job, a terminal that is closed) gets the clean-up of a Ctrl-C.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    limits.no_core_files()
    run: Callable[[argparse.Namespace], int] = options.command
    failed: int = getattr(options, "failed", 1)
    try:
        code = run(options)
        sys.stdout.flush()  # here, where it is told whether somebody reads it
        return code
    except StackFileError as error:
        tell(str(error), heading="error:")
        return _UNUSABLE
    except (
        BuildError,
        CommandError,
        SourceError,
        ancestors.ExposedError,
        limits.LimitError,
        daemon.DaemonError,
        lock.BusyError,
        ownership.OwnershipError,
        reasons.ReasonsError,
        recording.RecordingError,
        TimeoutError,
        ValueError,
    ) as error:
        tell(str(error), heading="error:")
        return failed
    except BrokenPipeError:
        if not unread():
            raise
        return Code.UNREAD
    except (OSError, MemoryError) as error:
        if not (said := limits.exhausted(error)):
            raise
        tell(said, heading="error:")
        return failed
    except KeyboardInterrupt:
        tell("Interrupted.")
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="karpstack",
        description="Rehearse a stack on this machine: the same program, playbooks and policies, run by the real "
        "Pulumi engine, a real kube-apiserver and the real Karpenter controller, without a cloud account.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        found = commands.add_parser(name, help=text, description=text)
        found.add_argument("stack", type=stack_name, help="name of the stack: eks, for Pulumi.eks.yaml")
        found.add_argument(
            "--state",
            type=Path,
            default=PROJECT / ".rehearsal",
            help="folder for the state of all stacks (default: .rehearsal in the checkout)",
        )
        found.set_defaults(command=run, name=name)
        return found

    up = add("up", _up, "Bring the stack up: engines, control plane, `pulumi up` with the policy pack.")
    run = add(
        "run",
        _run,
        "Run the stack's scale tests and write the report; brings the stack up first if it is not, "
        "and then takes it down afterwards.",
    )
    review = add(
        "review",
        _review,
        "Preview the stack with the policy pack and write what is to be reviewed: changes, findings, cost, "
        "permissions. Starts no cluster and changes nothing.",
    )
    look = add(
        "preflight",
        _preflight,
        "Look at the rehearsed account before `up`, as `karpstack preflight` looks at a real one. Changes nothing.",
    )
    # As of `karpstack review --live`: 1 means that a mandatory rule is broken.
    review.set_defaults(failed=_UNUSABLE)
    for parser_ in (up, run, review, look):
        parser_.add_argument(
            "--config-file", type=Path, help="the stack's configuration (default: Pulumi.<stack>.yaml)"
        )
    review.add_argument("--output", type=Path, help="folder for the documents (default: build/review/<stack>)")
    review.add_argument(
        "--policy-pack-config",
        metavar="FILE",
        default="",
        help="configuration of the policy pack, or `baseline` for none (default: policies/<stack>.json, as for `up`, "
        "and the baseline where that is missing)",
    )
    up.add_argument(
        "--review",
        type=Path,
        help="folder for the review of what is up (default: build/review/<stack>, as of `review`)",
    )
    up.add_argument("--no-review", action="store_true", help="write no review")
    for parser_ in (up, run):
        speed.add_argument(parser_)
        parser_.add_argument(
            "--days",
            action="store_true",
            help="let the cluster jump ahead in time, for scenarios with `live`",
        )
        parser_.add_argument("--keep", action="store_true", help="leave the stack running, also after a failure")
    chosen = run.add_mutually_exclusive_group()
    chosen.add_argument("--scenarios", default="", help="names of scenarios, separated by commas")
    chosen.add_argument(
        "--labels",
        help="run the scenarios with one of these labels, separated by commas; `all` for every one that suits the "
        f"stack (default: {_WALK_THROUGH}, and {_ALL} with --scenario-dir)",
    )
    chosen.add_argument("--tags", dest="labels", help=argparse.SUPPRESS)  # until 0.1, but Ansible's are another thing
    run.add_argument("--scenario-dir", type=Path, help="folder of scenarios of your own (default: playbooks/scenarios)")
    run.add_argument("--report", type=Path, help="folder for the report (default: build/rehearsal/<stack>)")
    add(
        "env",
        _env,
        "Print the exports with which pulumi, kubectl, helm and ansible-playbook work on the stack by hand: "
        'eval "$(karpstack env eks)"',
    )
    rights = add(
        "rights",
        _rights,
        "Show which rights the controller used in the last rehearsal of the stack, of those that the stack gave it, "
        "and which nothing used; fails for one that nobody gave a reason for.",
    )
    rights.add_argument(
        "--recording",
        type=Path,
        action="append",
        help="a rights.json, several times for several runs together (default: that of the stack's last rehearsal)",
    )
    rights.add_argument(
        "--reasons",
        type=Path,
        default=PROJECT / "components" / "documents" / "unused_rights.json",
        help="why unused rights stay (default: components/documents/unused_rights.json)",
    )
    rights.add_argument("--distil", type=Path, help="write the recording, without what no right depends on, to a file")
    form = rights.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print the tables of docs/reference/rights.md")
    for name, module in (("whatif", whatif), ("network", networks)):
        asked = commands.add_parser(name, help=module.DESCRIPTION, description=module.DESCRIPTION)
        asked.add_argument("stack", type=stack_name, help="name of the stack: eks, for Pulumi.eks.yaml")
        module.add_arguments(asked)
        asked.set_defaults(command=module.run, failed=module.FAILED)
    add("status", _status, "Show the engines of the stack, their memory, where they log, and what listens to whom.")
    down = add("down", _down, "Destroy the stack with `pulumi destroy` and stop all engines.")
    down.add_argument(
        "--force",
        action="store_true",
        help="stop the engines without destroying the stack first, and whoever is working on it",
    )
    return parser


def _folder(options: argparse.Namespace) -> StackFolder:
    """The stack's folder, which is ours if it is there."""
    folder = StackFolder(options.stack, ownership.place(options.state) / options.stack)
    ownership.check(folder)
    return folder


@contextmanager
def _alone(options: argparse.Namespace, patience: float = 0.5) -> Iterator[StackFolder]:
    """The stack's folder, made if it is not there, with nobody else at work on the stack."""
    folder = _folder(options)
    with lifetime.alone(folder, f"karpstack {options.name} {folder.stack}", patience):
        yield folder


def _stack_file(options: argparse.Namespace) -> StackFile:
    return StackFile.load((options.config_file or PROJECT / f"Pulumi.{options.stack}.yaml").resolve())


def _up(options: argparse.Namespace) -> int:
    stack_file = _stack_file(options)
    stack_file.check_versions()  # before engines are built, which may take a quarter of an hour
    with _alone(options) as folder:
        output = None if options.no_review else _review_folder(folder, options.review, "--review")
        lifetime.bring_up(folder, stack_file, keep=options.keep, stay=True)
        if output:
            _review_again(folder, stack_file, output)
    console.print(
        f'[bold green]{folder.stack} is up.[/] By hand: [bold]eval "$(karpstack env {folder.stack})"[/]; '
        f"scale tests: [bold]karpstack run {folder.stack}[/]",
        soft_wrap=True,
    )
    return 0


def _review_again(folder: StackFolder, stack_file: StackFile, output: Path) -> None:
    """Write the review anew, with everything known; the update has passed, whatever the review says."""
    try:
        with lifetime.watched(folder):
            code = _deployment(folder).review(stack_file, output, updated=True)
    except CommandError as error:
        tell(f"{error}, so there is no review of {folder.stack} as it is; again: karpstack review {folder.stack}")
        return
    if code:
        tell(f"The review of {folder.stack} as it is did not pass; what it says stands above.")


def _run(options: argparse.Namespace) -> int:
    stack_file = _stack_file(options)
    if options.scenario_dir and not any(options.scenario_dir.glob("*.yml")):
        raise ValueError(
            f"--scenario-dir {options.scenario_dir} has no scenario (*.yml), so nothing would be tested; name the "
            "folder of yours, or leave the option out for playbooks/scenarios"
        )
    with _alone(options) as folder:
        return _run_alone(options, folder, stack_file)


def _run_alone(options: argparse.Namespace, folder: StackFolder, stack_file: StackFile) -> int:
    report = ownership.place_results(options.report or PROJECT / "build" / "rehearsal" / folder.stack, "--report")
    page, found = report / "report.html", report / "report.json"
    before = {file: _version(file) for file in (page, found)}
    ours = daemon.running(folder) is None
    choice = _choice(options)
    if ours:
        stack_file.check_versions()
        _check_scenarios(choice)
        lifetime.bring_up(folder, stack_file, keep=options.keep, stay=options.keep)
    try:
        with lifetime.watched(folder, stop_on_failure=ours and not options.keep):
            code = _play_in_time(folder, {**choice, "report_dir": str(report)}, report)
    except KeyboardInterrupt:
        if not ours:
            tell(
                f"{folder.stack} was up before and stays up. What the interrupted story made is removed by the next "
                f"run, and by: karpstack down {folder.stack}"
            )
        raise
    if "scenario_dir" not in choice and _version(found) not in (None, before[found]):
        completeness.note(folder.recorded_scenarios, completeness.ended(found))
    if ours and not options.keep:
        _end(folder)
    tell(
        f"Report: {page}"
        if _version(page) not in (None, before[page])
        else f"No report was written; what is in {report} is of an earlier run, if at all."
    )
    return code


def _version(file: Path) -> tuple[int, int] | None:
    """Return what changes whenever a file is written, and not when the machine's clock is set; None without one."""
    if not file.is_file():
        return None
    status = file.stat()
    return status.st_ino, status.st_mtime_ns


def _choice(options: argparse.Namespace) -> dict[str, str]:
    """The playbook's variables that say which scenarios to run."""
    found = {}
    if options.scenario_dir:
        found["scenario_dir"] = str(options.scenario_dir.resolve())
    if options.scenarios:
        found["scenarios"] = options.scenarios
    elif (labels := options.labels or (_ALL if options.scenario_dir else _WALK_THROUGH)) != _ALL:
        found["scenario_labels"] = labels
    return found


def _check_scenarios(choice: dict[str, str]) -> None:
    """Refuse scenarios before a stack is made for them; the playbook refuses what only the stack can tell."""
    folder = [choice["scenario_dir"]] if "scenario_dir" in choice else []
    chosen = [f"--names={choice.get('scenarios', '')}", f"--labels={choice.get('scenario_labels', '')}"]
    if refused := command.refusal("scenario", "check", *folder, *chosen):
        raise ValueError(refused)


def _review(options: argparse.Namespace) -> int:
    stack_file = _stack_file(options)
    with _alone(options) as folder:
        output = _review_folder(folder, options.output, "--output")
        configuration = options.policy_pack_config
        if configuration and configuration != _BASELINE:
            configuration = str(Path(configuration).resolve())
        with _played(folder, stack_file) as deployment:
            return deployment.review(stack_file, output, configuration)


def _review_folder(folder: StackFolder, said: Path | None, option: str) -> Path:
    return ownership.place_results(said or PROJECT / "build" / "review" / folder.stack, option)


def _preflight(options: argparse.Namespace) -> int:
    stack_file = _stack_file(options)
    with _alone(options) as folder:
        if not daemon.running(folder):
            tell(
                f"{folder.stack} is not up. Looked at is a rehearsed account, which has nothing but what files beside "
                "the stack file describe; what is in the way in yours, `karpstack preflight` tells."
            )
        with _played(folder, stack_file, asked=True) as deployment:
            return deployment.look(stack_file)


@contextmanager
def _played(folder: StackFolder, stack_file: StackFile, *, asked: bool = False) -> Iterator[Deployment]:
    """Commands on a stack that may not be up; what this starts to play its account, it stops.

    Its providers wait for the account by themselves; commands by which it is `asked` wait here.
    """
    descriptions.look(stack_file)
    if stack_file.cluster.is_file():
        stack_file.check_versions()  # of a cluster that runs; of one's own any version is previewed
    engines = ensure([stack_file.cloud], stack_file.releases_of_preview)
    running = daemon.running(folder)
    try:
        with lifetime.watched(folder):
            if running:
                deployment = Deployment(folder, engines, running)
                deployment.prepare(stack_file)
            else:
                lifetime.forget(folder)
                _, deployment = lifetime.start(folder, stack_file, engines, asked=asked)
            yield deployment
    finally:
        if not running:
            daemon.stop(folder)


def _play_in_time(folder: StackFolder, variables: dict[str, str], report: Path) -> int:
    """Run the scale tests; once more, slower, where this machine could not keep up."""
    code = _play(folder, variables)
    if folder.clock.exists():
        page, highest = clock.Page(folder.clock), speed.ceiling(os.environ)
        while again := speed.slower(report, highest):
            page.limit = highest = again
            code = _play(folder, variables)
    return code


def _play(folder: StackFolder, variables: dict[str, str]) -> int:
    return _deployment(folder).play(PROJECT / "playbooks" / "scale_test.yml", variables)


def _env(options: argparse.Namespace) -> int:
    # What follows in the shell shall not reach what it was pointed at before, even where the stack is not up.
    print(f"unset {' '.join(user_environment.real_account(os.environ))}")
    try:
        folder = _folder(options)
        variables = environment(folder, EngineSet.current(), daemon.require(folder))
    except BaseException:  # whatever it was: nothing of the rehearsal follows, so nothing else may
        print(f"export KUBECONFIG={os.devnull} PULUMI_BACKEND_URL=file://{os.devnull}\nfalse")
        raise
    for key, value in sorted((variables | {lock.VARIABLE: str(folder.lock)}).items()):
        print(f"export {key}={shlex.quote(value)}")
    return 0


def _rights(options: argparse.Namespace) -> int:
    from karpstack.rehearsal.rights import checking, distilling, review, shown

    folder = _folder(options)
    found = checking.checked(recording.read(options.recording or [folder.rights]))
    lacking = []
    if not options.recording:
        found = replace(found, scenarios=completeness.noted(folder.recorded_scenarios))
        lacking = ["what down asks, for the stack is up"] if daemon.running(folder) else []
    if options.distil:
        files.check_output(options.distil, "--distil", "recording", recording.begins_as_one)
        files.write(options.distil, recording.text(distilling.distilled(found)))
    lacking = [*completeness.lacking(found, PROJECT / "playbooks" / "scenarios"), *lacking]
    judged = review.review(found, reasons.read(options.reasons, found.cloud), lacking)
    if options.json:
        print(json.dumps(judged.shown, indent=2))
    elif options.markdown:
        print(shown.markdown(judged))
    else:
        Console().print(shown.tables(judged))
    return 1 if judged.problems else 0


def _status(options: argparse.Namespace) -> int:
    from karpstack.rehearsal.session import listeners

    folder = _folder(options)
    _check_known(folder)
    info = daemon.running(folder)
    if holder := lock.holder(folder):
        tell(f"{folder.stack}: {lock.described(holder)} is working on it")
    if not info:
        print(
            f"{folder.stack}: down" + (f" (logs of the last rehearsal: {folder.logs})" if folder.logs.is_dir() else "")
        )
        crashes.say_all(folder)
        lifetime.tell_end(folder)
        if not holder:
            _tell_orphans(folder)
        return 3
    table = Table(title=f"{folder.stack}: up, {info.cloud} {info.region}", title_justify="left")
    for column in ("engine", "pid", "memory", "log"):
        table.add_column(column, justify="right" if column in ("pid", "memory") else "left", overflow="fold")
    total = 0
    processes = psutil.Process(info.pid)
    for process in [processes, *processes.children(recursive=True)]:
        try:
            memory = process.memory_info().rss
            name = "daemon" if process.pid == info.pid else Path(process.exe()).name
        except psutil.NoSuchProcess:
            continue
        total += memory
        table.add_row(escape(name), str(process.pid), f"{memory / 2**20:.0f} MiB", escape(f"{name}.log"))
    table.add_section()
    table.add_row("all", "", f"{total / 2**20:.0f} MiB", "")
    Console().print(table)
    if folder.clock.exists() and (ahead := clock.Page(folder.clock).time_ns() / 1e9 - time.time()) >= 1:
        ahead_by = timedelta(seconds=int(ahead))
        tell(f"Cluster time is {ahead_by} ahead of this machine's; `kubectl` of `env` shows right ages.")
    print(f"Logs are in {folder.logs}")  # by no table, which would cut the path in two
    if folder.judge.is_file():
        print(f"The last `karpstack up` was judged by {folder.judge.read_text()}")
    Console().print(listeners.table(folder, info))
    crashes.say_all(folder)
    return 1 if info.crashes else 0


def _tell_orphans(folder: StackFolder) -> None:
    """Tell of processes that run although nothing in the state folder tells of them, or that is gone."""
    found = [one for daemon_ in daemon.find(folder) for one in (daemon_, *daemon_.children(recursive=True))]
    found += [one for one in marked(folder) if one not in found]
    memory = 0
    for one in found:
        with suppress(psutil.Error):
            memory += one.memory_info().rss
    if found:
        tell(
            f"{folder.stack}: its state is lost, but {len(found)} of its processes run ({memory / 2**20:.0f} MiB, "
            f"pid {', '.join(str(one.pid) for one in found)}); end them with: karpstack down {folder.stack}"
        )


def _check_known(folder: StackFolder) -> None:
    """Refuse a stack of which there is nothing: neither a file, nor a rehearsal, nor what is left of one."""
    if folder.root.exists() or (PROJECT / f"Pulumi.{folder.stack}.yaml").is_file():
        return
    if daemon.find(folder) or marked(folder):
        return
    files = (path.name.removeprefix("Pulumi.").removesuffix(".yaml") for path in PROJECT.glob("Pulumi.*.yaml"))
    rehearsed = (path.parent.name for path in folder.root.parent.glob(f"*/{folder.marker.name}"))
    known = sorted({*files, *rehearsed})
    near = difflib.get_close_matches(folder.stack, known, 1)
    raise ValueError(
        f"there is no stack {folder.stack}: no Pulumi.{folder.stack}.yaml, and no rehearsal in {folder.root.parent}; "
        + (f"did you mean {near[0]}?" if near else f"the stacks here are: {', '.join(known)}")
    )


def _down(options: argparse.Namespace) -> int:
    folder = _folder(options)
    _check_known(folder)
    if not folder.root.exists():
        return _nothing_to_take_down(folder)
    patience = 0.5
    if options.force and (ended := lock.end_holder(folder)):
        tell(f"Ended {lock.described(ended)}, which was working on {folder.stack}.")
        patience = 5.0  # a playbook's lock is free a moment after its end
    with _alone(options, patience):
        if not daemon.running(folder):
            return _nothing_to_take_down(folder)
        if options.force:
            daemon.stop(folder)
        else:
            deployment = _deployment(folder)
            _lift_protection(folder, deployment)
            _refuse_protected(folder)
            _take_down(folder, deployment)
    print(f"{folder.stack}: down")
    return 0


def _lift_protection(folder: StackFolder, deployment: Deployment) -> None:
    """Do what a real stack needs before `pulumi destroy`, where its own setting protects the cluster."""
    names = protected(folder)
    if names and _is_protected_by_setting(folder):
        tell(
            f"{', '.join(names)} is protected: an update sets {PROTECTION} to false first, as before `pulumi destroy`."
        )
        deployment.lift_protection()


def _is_protected_by_setting(folder: StackFolder) -> bool:
    import yaml

    config = yaml.safe_load(folder.stack_configuration.read_text(encoding="utf-8")).get("config") or {}
    section, _, key = PROTECTION.partition(".")
    found = config.get(section)
    return isinstance(found, dict) and found.get(key) is True


def _refuse_protected(folder: StackFolder) -> None:
    """Say so before anything is deleted: Pulumi deletes, without a preview, all that goes before what is protected."""
    if names := protected(folder):
        raise ValueError(
            f"{', '.join(names)} is protected, so nothing was deleted; take the protection out of the program, "
            f"`karpstack up {folder.stack}`, and then down, or give up the rehearsal as it is: karpstack "
            f"down --force {folder.stack}"
        )


def _nothing_to_take_down(folder: StackFolder) -> int:
    left = [*daemon.stop(folder), *stop_marked(folder)]
    print(f"{folder.stack}: nothing is running" + (f"; stopped what was left: {', '.join(left)}" if left else ""))
    return 0


def _end(folder: StackFolder) -> None:
    """Take down what a run has brought up; what something else protects ends as it is."""
    deployment = _deployment(folder)
    _lift_protection(folder, deployment)
    if names := protected(folder):
        tell(f"{', '.join(names)} is protected, so nothing is destroyed; the rehearsal ends as it is.")
        daemon.stop(folder)
        return
    try:
        _destroy(folder, deployment)
    finally:
        daemon.stop(folder)


def _take_down(folder: StackFolder, deployment: Deployment) -> None:
    """Destroy the stack and stop its engines; what cannot be destroyed stays, so that somebody can see to it."""
    _tell_hindrances(deployment, "In the way of `pulumi destroy`, which is tried all the same:")
    try:
        _destroy(folder, deployment)
    except CommandError as error:
        raise CommandError(
            f"{error}; {folder.stack} and its engines stay up. See to what is in the way, and go on: "
            f"karpstack down {folder.stack}; or give it up as it is: karpstack down --force {folder.stack}"
        ) from error
    except BaseException:
        daemon.stop(folder)
        raise
    daemon.stop(folder)


def _destroy(folder: StackFolder, deployment: Deployment) -> None:
    """Destroy the stack, and tell what was in the way if that fails."""
    with lifetime.watched(folder):
        try:
            deployment.destroy()
        except CommandError:
            # The look may take long: whoever breaks it off has not given up what could not be destroyed.
            with suppress(KeyboardInterrupt):
                _tell_hindrances(deployment, "What is in the way now:")
            raise


def _tell_hindrances(deployment: Deployment, heading: str) -> None:
    try:
        found = deployment.hindrances()
    except NotLookedError as error:
        tell(f"What is in the way of `pulumi destroy` is not known: {error}")
        return
    if found:
        tell("\n".join([heading, *(f"  {one}" for one in found)]))


def _deployment(folder: StackFolder) -> Deployment:
    """Commands on a stack that is up."""
    return Deployment(folder, EngineSet.current(), daemon.require(folder))


if __name__ == "__main__":
    sys.exit(main())
