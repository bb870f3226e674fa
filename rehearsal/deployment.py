"""Runs Pulumi and Ansible on a rehearsed stack: the environment of their commands, and the commands.

The program learns nothing of the rehearsal: providers, backend and kubeconfig reach it from outside, by the
environment that `environment` returns.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from rehearsal.command import call
from rehearsal.daemon import DaemonInfo
from rehearsal.engines import EngineSet
from rehearsal.folder import StackFolder
from rehearsal.stack_file import StackFile

PROJECT = Path(__file__).resolve().parent.parent


class CommandError(Exception):
    """A command of the rehearsal failed; its own output has said why."""


def environment(folder: StackFolder, engines: EngineSet, info: DaemonInfo) -> dict[str, str]:
    """The variables that point pulumi, kubectl, ansible-playbook and AWS clients at one rehearsed stack."""
    path = [str(Path(sys.executable).parent), str(engines.root / "bin"), *os.environ.get("PATH", "").split(os.pathsep)]
    pulumi = engines.program("pulumi").parent
    if pulumi != engines.root / "bin":
        path.insert(0, str(pulumi))
    found = {
        "PATH": os.pathsep.join(dict.fromkeys(path)),
        "PULUMI_HOME": str(folder.pulumi / "home"),
        "PULUMI_BACKEND_URL": f"file://{folder.pulumi / 'state'}",
        # Guards the simulated account's state alone, which lives and dies with this folder.
        "PULUMI_CONFIG_PASSPHRASE": "rehearsal",
        "PULUMI_STACK": folder.stack,
        "PULUMI_OPTION_CONFIG_FILE": str(folder.stack_configuration),
        "PULUMI_DEBUG_PROVIDERS": ",".join(f"{name}:{port}" for name, port in info.providers.items()),
        "PULUMI_SKIP_UPDATE_CHECK": "1",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "1",
        "KARPSTACK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH", "")])),
        "KUBECONFIG": str(folder.kubeconfig),
        "K8S_AUTH_KUBECONFIG": str(folder.kubeconfig),
        "ANSIBLE_HOME": str(folder.root / "ansible"),
        "ANSIBLE_LOCAL_TEMP": str(folder.root / "ansible" / "tmp"),
        "ANSIBLE_CONFIG": str(PROJECT / "ansible.cfg"),
        "HELM_CACHE_HOME": str(folder.root / "helm" / "cache"),
        "HELM_CONFIG_HOME": str(folder.root / "helm" / "config"),
        "HELM_DATA_HOME": str(folder.root / "helm" / "data"),
        **info.variables,
    }
    if folder.metrics_address.is_file():
        found["KARPSTACK_METRICS_URL"] = folder.metrics_address.read_text()
    return {key: value for key, value in found.items() if value}


class Deployment:
    """Pulumi's and Ansible's commands on one rehearsed stack."""

    def __init__(self, folder: StackFolder, engines: EngineSet, info: DaemonInfo) -> None:
        self._folder = folder
        self._pulumi = engines.program("pulumi")
        self._environment = {**os.environ, **environment(folder, engines, info)}

    def prepare(self, stack_file: StackFile) -> None:
        """Lay down the stack's configuration and make its state, unless it is there; needs no provider.

        Raises:
            CommandError: Pulumi could not make the stack.
        """
        backend = self._folder.pulumi / "state"
        backend.mkdir(parents=True, exist_ok=True)
        stack_file.copy_to(self._folder.stack_configuration)
        if not (backend / ".pulumi").exists():
            # `stack init` knows no --config-file and writes its salt beside Pulumi.yaml: beside a copy, then.
            shutil.copyfile(PROJECT / "Pulumi.yaml", self._folder.pulumi / "Pulumi.yaml")
            self._run("stack", "init", self._folder.stack, "--no-select", folder=self._folder.pulumi)

    def up(self) -> None:
        """Create or update the stack, judged by the policy pack.

        Raises:
            CommandError: Pulumi or a policy refused.
        """
        self._run("up", "--yes", "--skip-preview", "--suppress-outputs", "--policy-pack", str(PROJECT / "policies"))

    def destroy(self) -> None:
        """Destroy everything that the stack created.

        Raises:
            CommandError: Something could not be deleted.
        """
        self._run("destroy", "--yes", "--skip-preview", "--suppress-outputs")

    def play(self, playbook: Path, variables: Mapping[str, str], *more: str) -> int:
        """Run a playbook and return its exit code; Ansible takes the variables' values as they are, as no templates."""
        given = json.dumps({key: {"__ansible_unsafe": value} for key, value in variables.items()})
        ansible = Path(sys.executable).parent / "ansible-playbook"
        return call([str(ansible), str(playbook), "-e", given, *more], self._environment, PROJECT)

    def review(self, stack_file: StackFile, output: Path, configuration: Path) -> int:
        """Preview the stack and write the review's documents; the exit code of `policies/review`.

        Args:
            stack_file: The stack's configuration, to which findings are pinned.
            output: Folder of the documents.
            configuration: Configuration of the policy pack.
        """
        command = [sys.executable, str(PROJECT / "policies" / "review"), "--stack", self._folder.stack]
        command += ["--config-file", str(stack_file.path), "--output", str(output)]
        return call([*command, "--policy-pack-config", str(configuration)], self._environment, PROJECT)

    def _run(self, *arguments: str, folder: Path = PROJECT) -> None:
        command = [str(self._pulumi), *arguments, "--non-interactive", "--color", _colour()]
        code = call(command, self._environment, folder)
        if code:
            raise CommandError(f"`pulumi {' '.join(arguments)}` failed (exit code {code})")


def _colour() -> str:
    return "always" if sys.stdout.isatty() and "NO_COLOR" not in os.environ else "never"
