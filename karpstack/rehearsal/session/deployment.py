"""Runs Pulumi and Ansible on a rehearsed stack: the environment of their commands, and the commands.

The program learns nothing of the rehearsal: providers, backend and kubeconfig reach it from outside, by the
environment that `environment` returns.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from karpstack.karpenter import clock
from karpstack.rehearsal.cluster.plugins.__main__ import TOKEN_FILE
from karpstack.rehearsal.engines import EngineSet
from karpstack.rehearsal.host import user_environment
from karpstack.rehearsal.host.processes import ending, mark, stop_marked
from karpstack.rehearsal.session import crashes, daemon, other_program, pulumi_by_hand, removal, speed
from karpstack.rehearsal.session.clouds import CLOUDS
from karpstack.rehearsal.session.command import Shown, call
from karpstack.rehearsal.session.daemon import DaemonInfo
from karpstack.rehearsal.session.stack_file import StackFile
from karpstack.rehearsal.session.terminal import QUIET, VERBOSE, print_message, verbosity
from karpstack.rehearsal.state import records
from karpstack.rehearsal.state.folder import StackFolder
from karpstack.text import files, refusals
from karpstack.text.packaged import IMPORT_ROOT, PACKAGE, POLICIES, PROGRAM
from karpstack.text.proxies import LOOPBACK

# Where an installed package lies; Python finds it there by itself.
_INSTALLED = Path(sysconfig.get_path("purelib")).resolve()
#: The setting by which a stack's cluster is protected.
PROTECTION = "karpstack:cluster.deletionProtection"
_CONFIGURATIONS = "policies"  # of a program's folder

# What a scale test makes carries this label (see playbooks/README.md).
_SCALE_TEST = "app.kubernetes.io/part-of=karpstack-scale-test"
_LEFTOVERS = "5m"  # as kubectl has it


# ` +  aws:ec2:Vpc eks-network-vpc creating (0s)`; what failed has stars before the state.
_PROGRESS = re.compile(
    r"[ @+~-]{1,4} *(?P<type>\w[\w.-]*(:[\w./-]+)+) \S+ "
    r"(?P<state>(creat|updat|delet|replac|read|refresh|import|runn)\w*)\b"
)
_DOTS = "@ "
_COMPONENTS = "karpstack:"
_BEGINNINGS = ("creating", "updating", "replacing", "deleting")


@dataclass(frozen=True)
class _PulumiLock:
    """What Pulumi writes into a lock of its file backend, as far as it is read here."""

    pid: int


class CommandError(Exception):
    """A command of the rehearsal failed; its own output has said why."""


def is_progress_line(line: str) -> bool:
    """Whether a line of Pulumi is shown without a terminal: one line of progress for each component."""
    progress = _PROGRESS.match(line)
    if progress is None:
        return not line.startswith(_DOTS)
    # The engine says when a component begins, and not of each when it ends.
    return progress["type"].startswith(_COMPONENTS) and progress["state"] in _BEGINNINGS


def policies(stack: str, program: Path = PROGRAM) -> Path | None:
    """The configuration of the policy pack for a stack, as the review finds it too; None is the pack's baseline."""
    found = program / _CONFIGURATIONS / f"{stack}.json"
    return found if found.is_file() else None


def environment(folder: StackFolder, engines: EngineSet, info: DaemonInfo) -> dict[str, str]:
    """The variables that point pulumi, kubectl, ansible-playbook and clients of the cloud at one rehearsed stack."""
    path = [
        str(PACKAGE / "rehearsal" / "session" / "commands"),
        str(engines.program("pulumi").parent),  # its own language host is beside it
        str(PACKAGE / "rehearsal" / "cluster" / "plugins"),
        str(Path(sys.executable).parent),
        str(engines.program("kubectl").parent),
        *os.environ.get("PATH", "").split(os.pathsep),
    ]
    found = {
        "PATH": os.pathsep.join(dict.fromkeys(path)),
        "PULUMI_HOME": str(folder.pulumi / "home"),
        "PULUMI_BACKEND_URL": (folder.pulumi / "state").as_uri(),  # #, ? and % mean something in a URL
        # Guards the simulated account's state alone, which lives and dies with this folder.
        "PULUMI_CONFIG_PASSPHRASE": "rehearsal",
        "PULUMI_STACK": folder.stack,
        pulumi_by_hand.PULUMI: str(engines.program("pulumi")),
        pulumi_by_hand.COPY: str(folder.stack_configuration),
        pulumi_by_hand.EDITED: _recorded(folder.edited, PROGRAM / f"Pulumi.{folder.stack}.yaml"),
        pulumi_by_hand.PROGRAM: _recorded(folder.program, PROGRAM),
        pulumi_by_hand.PROVIDERS: ",".join(f"{name}:{port}" for name, port in info.providers.items()),
        # `pulumi import` writes it by the packages' schemas, which an attached provider does not have.
        "PULUMI_OPTION_GENERATE_CODE": "false",
        "PULUMI_SKIP_UPDATE_CHECK": "1",
        "PULUMI_DEBUG_COMMANDS": "true",  # without it there is no --event-log
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "1",
        "KARPSTACK_PYTHON": sys.executable,
        "PYTHONPATH": str(IMPORT_ROOT) if IMPORT_ROOT != _INSTALLED else "",
        "KUBECONFIG": str(folder.kubeconfig),
        TOKEN_FILE: str(folder.deployer_token),
        "K8S_AUTH_KUBECONFIG": str(folder.kubeconfig),
        # The user's preferences of kubectl may turn `delete` into a question, which nobody answers here.
        "KUBERC": "off",
        "KUBECACHEDIR": str(folder.root / "kubectl"),
        "ANSIBLE_HOME": str(folder.root / "ansible"),
        "ANSIBLE_LOCAL_TEMP": str(folder.root / "ansible" / "tmp"),
        "ANSIBLE_CONFIG": str(PACKAGE / "ansible.cfg"),
        "HELM_CACHE_HOME": str(folder.root / "helm" / "cache"),
        "HELM_CONFIG_HOME": str(folder.root / "helm" / "config"),
        "HELM_DATA_HOME": str(folder.root / "helm" / "data"),
        **user_environment.WITHOUT_PROFILES,
        "AWS_EC2_METADATA_DISABLED": "true",
        # Without a login: `az` and `gcloud` would be the user's, in the real account.
        "AZURE_CONFIG_DIR": str(folder.root / "az"),
        "CLOUDSDK_CONFIG": str(folder.root / "gcloud"),
        **_no_proxy(),
        clock.VARIABLE: str(folder.clock) if folder.clock.exists() else "",
        **info.variables,
    }
    if folder.metrics_address.is_file():
        found["KARPSTACK_METRICS_URL"] = folder.metrics_address.read_text()
        found["KARPSTACK_METRICS_TOKEN"] = folder.metrics_token.read_text()
    return {key: value for key, value in found.items() if value}


def _no_proxy() -> dict[str, str]:
    """The variables by which no proxy of the user's is asked for what listens on this machine.

    In capitals and in small letters, of which programs read one or the other; what the user excepts stays excepted.
    """
    users = ",".join(os.environ.get(name, "") for name in ("no_proxy", "NO_PROXY")).split(",")
    hosts = ",".join(dict.fromkeys(filter(None, [*LOOPBACK, *map(str.strip, users)])))
    return {"NO_PROXY": hosts, "no_proxy": hosts}


def _recorded(file: Path, default: Path) -> str:
    """The path that a file of the state holds."""
    try:
        return file.read_text()
    except FileNotFoundError:  # brought up before there was a record of it
        return str(default)


def protected(folder: StackFolder) -> list[str]:
    """Names of the resources that Pulumi would not delete, which it finds out when most of the rest is gone."""
    states = (folder.pulumi / "state" / ".pulumi" / "stacks").glob(f"*/{folder.stack}.json")
    try:
        latest = [json.loads(state.read_text())["checkpoint"]["latest"] or {} for state in states]
        resources = [each for state in latest for each in state.get("resources") or ()]
        return [str(each["urn"]).rpartition("::")[2] for each in resources if each.get("protect")]
    except (OSError, ValueError, LookupError, TypeError):
        return []  # what Pulumi's state is like is Pulumi's to say


def has_protection_setting(folder: StackFolder) -> bool:
    """Whether a stack sets the cluster's protection.

    It may be false although the cluster is protected: an update that lifts the protection was interrupted.
    """
    import yaml

    config = yaml.safe_load(folder.stack_configuration.read_text(encoding="utf-8")).get("config") or {}
    section, _, key = PROTECTION.partition(".")
    found = config.get(section)
    return isinstance(found, dict) and isinstance(found.get(key), bool)


class Deployment:
    """Pulumi's and Ansible's commands on one rehearsed stack.

    Args:
        info: The daemon that plays the cloud.
        program: Folder of the Pulumi program, with the configurations of the policy pack.
        run: Runs a command to its end, as `call` does.
    """

    def __init__(
        self,
        folder: StackFolder,
        engines: EngineSet,
        info: DaemonInfo,
        program: Path = PROGRAM,
        run: Callable[..., int] = call,
    ) -> None:
        self._folder = folder
        self._call_program = run
        self._program = program
        self._pulumi = engines.program("pulumi")
        self._kubectl = engines.program("kubectl")
        self._node_classes = CLOUDS[info.cloud].node_classes
        folder.temporary.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._configured = ("--config-file", str(folder.stack_configuration))
        self._environment = {
            **user_environment.allowed(os.environ),
            **user_environment.passed(os.environ),
            **environment(folder, engines, info),
            # Clients write what a kubeconfig holds into files of their own, and leave them when they are killed.
            "TMPDIR": str(folder.temporary),
            **mark(folder),
        }

    def prepare(self, stack_file: StackFile) -> None:
        """Lay down the stack's configuration and make its state, unless it is there; needs no provider.

        Raises:
            CommandError: Pulumi could not make the stack.
        """
        backend = self._folder.pulumi / "state"
        backend.mkdir(parents=True, exist_ok=True)
        stack_file.copy_to(self._folder.stack_configuration)
        for variable, record, path in (
            (pulumi_by_hand.EDITED, self._folder.edited, stack_file.path),
            (pulumi_by_hand.PROGRAM, self._folder.program, self._program.resolve()),
        ):
            files.write(record, str(path), private=True)
            self._environment[variable] = str(path)
        if not (backend / ".pulumi").exists():
            # `stack init` knows no --config-file and writes its salt beside Pulumi.yaml: beside a copy, then.
            shutil.copyfile(self._program / "Pulumi.yaml", self._folder.pulumi / "Pulumi.yaml")
            self._run("stack", "init", self._folder.stack, "--no-select", folder=self._folder.pulumi)

    def survey(self, stack_file: StackFile) -> StackFile:
        """Preview a program that is not karpstack's; return the stack file with the versions that it asks for.

        Raises:
            CommandError: The preview failed.
            other_program.UnsupportedError: The program needs what the rehearsal does not have.
            LostError: The rehearsal has ended meanwhile.
        """
        events = self._folder.preview_events
        events.unlink(missing_ok=True)  # Pulumi appends to an existing file
        attached = self._environment[pulumi_by_hand.PROVIDERS].split(",")
        names = [one.partition(":")[0] for one in attached]
        print_message("Previewing first, to check that the rehearsal has all that the program needs.")
        with other_program.surveyed(self._folder, self._program, names) as ports:
            providers = ",".join([*attached, *(f"{name}:{port}" for name, port in ports.items())])
            preview = ["preview", *self._configured, "--event-log", str(events), "--non-interactive"]
            command = ["env", f"{pulumi_by_hand.PROVIDERS}={providers}", str(self._pulumi), *preview]
            if code := self._call([*command, "--color", _colour()], self._program, self._shown()):
                raise CommandError(f"`pulumi preview` failed (exit code {code}), so nothing was created")
        return other_program.releases(self._folder, stack_file)

    def check_charts(self, engines: EngineSet) -> None:
        """Check that the rehearsal has the charts of the last preview.

        Raises:
            other_program.UnsupportedError: A chart is missing.
        """
        other_program.check_charts(self._folder, engines)

    def up(self, *, judged: bool = True) -> None:
        """Create or update the stack, judged by the policy pack with the stack's configuration of it.

        Args:
            judged: Whether the pack judges it.

        Raises:
            CommandError: Pulumi or a policy refused.
            LostError: The rehearsal has ended meanwhile.
        """
        stack = self._folder.stack
        configuration = policies(stack, self._program) if judged else None
        words = _judge(stack, configuration)
        print_message(
            f"Judged by {words}."
            if judged
            else "Not judged by the policy pack: this is an existing environment, or not karpstack's program."
        )
        self._folder.judge.unlink(missing_ok=True)
        self._folder.update_events.unlink(missing_ok=True)  # Pulumi appends to an existing file
        log = ["--event-log", str(self._folder.update_events)]
        try:
            with speed.waiting(self._folder):
                self._run(*self._up(self._folder.stack_configuration, judged=judged), *log)
        except CommandError as error:
            # Pulumi says of some mistakes in it that there is one, and not which.
            if configuration and (wrong := self._wrong(configuration)):
                raise CommandError(f"{error}: {wrong}") from error
            raise
        if judged:
            files.write(self._folder.judge, words, private=True)

    def change(self, stack_file: StackFile, events: Path) -> list[str]:
        """The command that updates the stack to another configuration of it, for a playbook to give.

        The policy pack does not judge it: that is the review's, and what it would refuse has consequences to know too.

        Args:
            stack_file: That configuration; the stack's own stays laid down as it is.
            events: File for the engine's events.
        """
        copy = self._folder.changed_configuration
        copy.parent.mkdir(exist_ok=True)
        shutil.copyfile(self._folder.stack_configuration, copy)  # with its salt
        stack_file.copy_to(copy)
        # Pulumi knows --event-log with this variable alone.
        return [
            "env",
            "PULUMI_DEBUG_COMMANDS=true",
            str(self._pulumi),
            *self._up(copy, judged=False),
            "--event-log",
            str(events),
            "--non-interactive",
            "--color",
            "never",
        ]

    def _up(self, configuration: Path, *, judged: bool = True) -> list[str]:
        """Pulumi's arguments for an update, which the policy pack judges unless said otherwise."""
        update = ["up", "--yes", "--skip-preview", "--suppress-outputs", "--config-file", str(configuration)]
        if not judged:
            return update
        pack = policies(self._folder.stack, self._program)
        update += ["--policy-pack", str(POLICIES)]
        return [*update, *(("--policy-pack-config", str(pack)) if pack else ())]

    def lift_protection(self) -> None:
        """Set the cluster's protection to false by an update, which a real stack needs before `pulumi destroy` too.

        Raises:
            CommandError: Pulumi refused.
            LostError: The rehearsal has ended meanwhile.
        """
        self._run("config", "set", "--path", PROTECTION, "false", *self._configured)
        self._run(*self._up(self._folder.stack_configuration, judged=False))

    def destroy(self) -> None:
        """Destroy everything that the stack created, after what an interrupted scale test left.

        Raises:
            CommandError: Something could not be deleted.
            LostError: The rehearsal has ended meanwhile.
        """
        self._remove_leftovers()
        progress = removal.Progress(lambda: removal.draining(self._on_the_cluster, self._environment))
        options = ("--yes", "--skip-preview", "--suppress-outputs", *self._configured)
        with speed.waiting(self._folder):
            self._run("destroy", *options, meanwhile=progress.print_progress)
        # Of what is gone there is nothing to review; the logs stay.
        self._folder.update_events.unlink(missing_ok=True)
        self._folder.judge.unlink(missing_ok=True)

    def hindrances(self) -> list[str]:
        """What fails or holds up `destroy`, as the look before it has it.

        Raises:
            NotLookedError: It could not be asked.
        """
        if other_program.is_up(self._folder):  # whose outputs say nothing that could be looked for
            return []
        return removal.find_blockers(
            self._folder.stack, self._folder.stack_configuration, self._program, self._environment
        )

    def play(
        self, playbook: Path, variables: Mapping[str, str], *more: str, meanwhile: Callable[[], None] = lambda: None
    ) -> int:
        """Run a playbook and return its exit code; Ansible takes the variables' values as they are, as no templates.

        Args:
            meanwhile: Is called often, until it has ended.

        Raises:
            CommandError: Ansible was killed.
            LostError: The rehearsal has ended meanwhile.
        """
        # An installed package has no checkout around its playbooks, in which Pulumi could run.
        variables = {"karpstack_project": str(self._program), **variables}
        given = json.dumps({key: {"__ansible_unsafe": value} for key, value in variables.items()})
        ansible = Path(sys.executable).parent / "ansible-playbook"
        command = [
            sys.executable,
            "-m",
            "karpstack.rehearsal.session.quiet",
            str(ansible),
            str(playbook),
            "-e",
            given,
            *more,
        ]
        return self._call(command, meanwhile=meanwhile)

    def review(
        self, stack_file: StackFile, output: Path, configuration: str = "", *, updated: bool = False, form: str = "text"
    ) -> int:
        """Preview the stack and write the review's documents; the exit code of `karpstack review --live`.

        Args:
            stack_file: The stack's configuration, to which findings are pinned.
            configuration: Configuration of the policy pack, a file or `baseline`; the stack's own if empty.
            updated: Whether to write what the last update has made, instead of previewing.
            form: How the answer is printed, as `--format` takes it.

        Raises:
            CommandError: It was killed.
            LostError: The rehearsal has ended meanwhile.
        """
        command = [sys.executable, "-m", "karpstack", "review", self._folder.stack, "--live"]
        command += ["--project", str(self._program)]
        command += ["--config-file", str(stack_file.path), "--output", str(output)]
        command += ["--policy-pack-config", configuration] if configuration else []
        command += ["--update", str(self._folder.update_events)] if updated else []
        command += ["--format", form] if form != "text" else []
        return self._call(command)

    def preflight(self, stack_file: StackFile, form: str = "text") -> int:
        """Check before an update, as the deployer does; the exit code of `karpstack preflight`.

        Args:
            stack_file: The stack's configuration.
            form: How the findings are printed, as `--format` takes it.

        Raises:
            CommandError: It was killed.
            LostError: The rehearsal has ended meanwhile.
        """
        command = [
            sys.executable,
            "-m",
            "karpstack",
            "preflight",
            self._folder.stack,
            "--project",
            str(self._program),
            "--config-file",
            str(stack_file.path),
            "--format",
            form,
        ]
        return self._call(command)

    def _wrong(self, configuration: Path) -> str:
        """What the review says is wrong with a configuration of the pack; empty if nothing."""
        asked = ["review", self._folder.stack, "--live", "--only-configuration"]
        return refusals.refusal(*asked, "--policy-pack-config", str(configuration), variables=self._environment)

    def _remove_leftovers(self) -> None:
        """Remove what a scale test made that was killed: the nodes of its NodePools would keep the stack's node class.

        As the story's own clean-up does it: the namespaces first and without waiting, then the NodePools with their
        NodeClaims, and the node classes when no node is left that has them.
        """
        kubectl = self._on_the_cluster
        kinds = f"namespaces,nodepools.karpenter.sh,{self._node_classes}"
        query = ["get", kinds, "--selector", _SCALE_TEST, "--output", "name"]
        answer = subprocess.run(
            [*kubectl, "--request-timeout=10s", *query], env=self._environment, capture_output=True, text=True
        )
        found = answer.stdout.split()  # none where there is no cluster, or no Karpenter
        if not found:
            return
        print_message(f"Removing what an interrupted scale test left: {', '.join(found)}.")
        # By the label and not by these names: somebody else may have taken one of them meanwhile.
        for kind, how in (
            ("namespaces", "--wait=false"),
            ("nodepools.karpenter.sh", "--cascade=foreground"),
            (self._node_classes, "--cascade=foreground"),
        ):
            removal = ["delete", kind, "--selector", _SCALE_TEST, how, f"--timeout={_LEFTOVERS}"]
            if self._call([*kubectl, *removal]):
                raise CommandError(
                    f"{', '.join(found)} could not be removed in {_LEFTOVERS}, so `pulumi destroy` would wait for ever "
                    "for the nodes; remove it by hand"
                )

    @property
    def _on_the_cluster(self) -> list[str]:
        return [str(self._kubectl), "--kubeconfig", str(self._folder.kubeconfig)]

    def _unlock(self) -> None:
        """Remove locks of the stack's state whose Pulumi was killed; until then, every other one refuses to begin."""
        for path in (self._folder.pulumi / "state" / ".pulumi" / "locks").rglob("*.json"):
            lock = records.read(path, _PulumiLock)
            if not lock or not _runs(lock.pid, path.stat().st_mtime):
                path.unlink(missing_ok=True)

    def _run(self, *arguments: str, folder: Path | None = None, meanwhile: Callable[[], None] = lambda: None) -> None:
        self._unlock()
        command = [str(self._pulumi), *arguments, "--non-interactive", "--color", _colour()]
        shown = self._shown()
        code = self._call(command, folder or self._program, shown, meanwhile)
        if code:
            where = f"; its output is in {shown.log}" if shown and verbosity() == QUIET else ""
            raise CommandError(f"`pulumi {' '.join(arguments)}` failed (exit code {code}){where}")

    def _shown(self) -> Shown | None:
        """Return what is shown of Pulumi's output: all of it on a terminal, news elsewhere; nothing if quiet."""
        keep: dict[str, Callable[[str], bool]] = {QUIET: lambda _: False, VERBOSE: lambda _: True}
        said = verbosity()
        if sys.stdout.isatty() and said != QUIET:
            return None
        return Shown(keep.get(said, is_progress_line), self._folder.logs / "pulumi.log")

    def _call(
        self,
        command: Sequence[str],
        folder: Path = IMPORT_ROOT,
        shown: Shown | None = None,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> int:
        """Run a command for as long as the daemon serves it; nothing that it started outlives it."""

        def check() -> None:
            crashes.report_new(self._folder)
            daemon.check(self._folder)
            meanwhile()

        try:
            code = self._call_program(command, self._environment, folder, check, shown)
        finally:
            stop_marked(self._folder)
        if code < 0:
            raise CommandError(f"{Path(command[0]).name} {ending(code)} before it was done")
        return code


def _judge(stack: str, configuration: Path | None) -> str:
    """Which configuration of the policy pack judges a stack, in the words that the review has for it."""
    if configuration:
        return f"{_CONFIGURATIONS}/{configuration.name}"
    return f"the baseline of the policy pack, for there is no {_CONFIGURATIONS}/{stack}.json"


def _runs(pid: int, since: float) -> bool:
    """Return whether the Pulumi runs that had this id at a time (seconds since the epoch).

    Times alone do not tell: when the machine's clock is set, the start of a process moves and that of a file does not.
    """
    try:
        process = psutil.Process(pid)
        return process.create_time() <= since + 1.0 or process.name() == "pulumi"
    except (psutil.Error, ValueError, OverflowError):
        return False


def _colour() -> str:
    return "always" if sys.stdout.isatty() and "NO_COLOR" not in os.environ else "never"
