"""Rehearsed stacks for tests: the same commands that people use, in state folders of their own."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import psutil
import pytest
import yaml
from kubernetes import client, config, watch

from karpstack.rehearsal.session.daemon import DaemonInfo, read
from karpstack.rehearsal.state.folder import StackFolder

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 540.0
#: What a developer may have in the environment. No rehearsal uses it, and no trace of it may be left (see `canaries`).
IN_THE_ENVIRONMENT = {
    "ARM_CLIENT_SECRET": "canary-arm-RbZyD2fGQ7vKqLp9",
    "AWS_SECRET_ACCESS_KEY": "canary-aws-hT4wJx8sNcUe0YmA",
    "AWS_SESSION_TOKEN": "canary-sts-9BvXo3kEwPzL5tRd",
    "GITHUB_TOKEN": "canary-git-Uq6nFi1aVgHs7CjM",
    "PULUMI_ACCESS_TOKEN": "canary-pul-yK0eWb4rTxOd8ZlP",
}


@dataclass
class RehearsedStack:
    """One stack of the rehearsal, driven by its commands in the folder of its program."""

    folder: StackFolder
    configuration: Path
    project: Path = ROOT

    def words(self, name: str, *arguments: str) -> list[str]:
        """The words of `karpstack COMMAND STACK ...`."""
        extra = ["--config-file", str(self.configuration)] if name in ("up", "run", "review") else []
        extra += ["--no-review"] if name == "up" else []  # it goes to the checkout, which tests share
        state = ["--state", str(self.folder.root.parent)]
        return [sys.executable, "-m", "karpstack", name, self.folder.stack, *state, *extra, *arguments]

    def command(self, name: str, *arguments: str, timeout: float = LIMIT) -> subprocess.CompletedProcess[str]:
        """Run `karpstack COMMAND STACK ...`; its output is merged."""
        return self._run(self.words(name, *arguments), os.environ | IN_THE_ENVIRONMENT, timeout)

    def _run(
        self, command: Sequence[str], environment: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.project,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
        )

    def succeed(self, *arguments: str) -> str:
        """Like `command`, but it must succeed."""
        result = self.command(*arguments)
        assert result.returncode == 0, f"{arguments}:\n{result.stdout}"
        return result.stdout

    def made(self) -> set[str]:
        """Types of what the stack has in the cloud, by its state, such as `aws:iam/role:Role`; also when it fell."""
        (state,) = (self.folder.pulumi / "state" / ".pulumi" / "stacks").glob(f"*/{self.folder.stack}.json")
        latest = json.loads(state.read_text())["checkpoint"]["latest"] or {}
        types = {str(one["type"]) for one in latest.get("resources") or ()}
        return {one for one in types if one.startswith(("aws:", "azure-native:"))}

    @property
    def info(self) -> DaemonInfo:
        """What the daemon says of itself."""
        info = read(self.folder)
        assert info is not None
        return info

    @property
    def variables(self) -> dict[str, str]:
        """The variables that `env` prints, on top of ours."""
        found = dict(os.environ)
        for line in self.succeed("env").splitlines():
            if line.startswith("export "):
                name, value = line.removeprefix("export ").split("=", 1)
                found[name] = "".join(shlex.split(value))  # by no shell: other users see command lines
        return found

    def by_hand(self, *command: str, timeout: float = LIMIT) -> subprocess.CompletedProcess[str]:
        """Run a command in the environment that `env` prints."""
        return self._run(command, self.variables, timeout)

    def done(self, *command: str, timeout: float = LIMIT) -> str:
        """Like `by_hand`, but the command must succeed; what it printed."""
        result = self.by_hand(*command, timeout=timeout)
        assert result.returncode == 0, result.stdout
        return result.stdout

    def findings(self) -> list[tuple[str, str, str]]:
        """Check, severity and text of what `preflight` finds."""
        given = ("--config-file", str(self.configuration), "--format", "json")
        result = self.by_hand(sys.executable, "-m", "karpstack", "preflight", self.folder.stack, *given)
        checks = json.loads(result.stdout)["checks"]
        found = [(one["name"], each["severity"], each["what"]) for one in checks for each in one["findings"]]
        assert result.returncode == any(severity == "error" for _, severity, _ in found), result.stdout
        return found

    def outputs(self) -> dict[str, Any]:
        """The stack's outputs; secrets stay hidden."""
        result = self.done("pulumi", "stack", "output", "--json", "--non-interactive")
        return dict(json.loads(result))

    def aws(self, service: str) -> Any:
        """A client of the simulated account."""
        variables = self.info.variables
        return boto3.client(
            service,
            endpoint_url=variables["AWS_ENDPOINT_URL"],
            region_name=self.info.region,
            aws_access_key_id=variables["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=variables["AWS_SECRET_ACCESS_KEY"],
        )

    def api(self) -> Any:
        """A client of the cluster, with administrator's rights."""
        return config.new_client_from_config(str(self.folder.kubeconfig))

    def configure(self, **changes: Any) -> None:
        """Change the stack's configuration; a dotted path as key, `None` removes."""
        content = yaml.safe_load(self.configuration.read_text())
        for path, value in changes.items():
            *parents, last = path.split("/")
            place = content["config"]
            for parent in parents:
                place = place.setdefault(parent, {})
            if value is None:
                place.pop(last, None)
            else:
                place[last] = value
        self.configuration.write_text(yaml.safe_dump(content, sort_keys=False))

    def configured(self, key: str) -> Any:
        """A value of the stack's configuration."""
        return yaml.safe_load(self.configuration.read_text())["config"][key]

    def mend(self, *changed: str) -> None:
        """A refresh shows what is broken, and an update puts it right: `1 created`, for example."""
        self.done("pulumi", "refresh", "--yes", "--skip-preview", "--non-interactive")
        output = self.succeed("up")  # with the configuration of the file, which a test may have changed since
        assert all(words in output for words in changed), output

    def failing_story(self, folder: Path, name: str, *, within: float) -> str:
        """Run the first step of a scenario, written for whatever this stack is, with little patience.

        Returns:
            All that the failure says: what is printed, the report's assertions, the evidence.
        """
        folder.mkdir(parents=True, exist_ok=True)
        scenario = yaml.safe_load((ROOT / "playbooks" / "scenarios" / f"{name}.yml").read_text())
        scenario["stacks"] = [self.folder.stack]
        if scenario.get("nodePools"):
            scenario.pop("existingNodePools", None)  # other environments lack them
        scenario["steps"] = scenario["steps"][:1]
        scenario["steps"][0]["expect"]["within"] = within
        (folder / f"{name}.yml").write_text(yaml.safe_dump(scenario))
        report = folder / "report"
        result = self.by_hand(
            "ansible-playbook", "playbooks/scale_test.yml", "-e", f"scenario_dir={folder}", "-e", f"report_dir={report}"
        )
        assert result.returncode != 0, result.stdout
        assert (report / "report.json").is_file(), result.stdout
        (story,) = json.loads((report / "report.json").read_text())["stories"]
        assert not story["passed"]
        evidence = "".join(path.read_text() for path in (report / "evidence").rglob("*.yml"))
        return result.stdout + json.dumps(story["assertions"]) + evidence

    def scale(self, name: str, namespace: str, replicas: int) -> None:
        """Scale a Deployment."""
        client.AppsV1Api(self.api()).patch_namespaced_deployment_scale(
            name, namespace, {"spec": {"replicas": replicas}}
        )

    def wait_for(self, plural: str, group: str, predicate: Any, timeout: int = 120) -> Any:
        """Wait on a watch until an object of a custom resource satisfies the predicate; the object, or None."""
        api = client.CustomObjectsApi(self.api())
        stream = watch.Watch()
        for event in stream.stream(api.list_cluster_custom_object, group, "v1", plural, timeout_seconds=timeout):
            if predicate(event["object"]):
                stream.stop()
                return event["object"]
        return None


def descendants(info: DaemonInfo) -> list[psutil.Process]:
    """The daemon and all its children."""
    daemon = psutil.Process(info.pid)
    return [daemon, *daemon.children(recursive=True)]


def new_stack(folder: Path, stack: str = "eks") -> RehearsedStack:
    """A stack that is not up yet, with its own copy of the configuration: unprotected, so that it goes at once."""
    configuration = folder / f"Pulumi.{stack}.yaml"
    shipped = (ROOT / f"Pulumi.{stack}.yaml").read_text()
    configuration.write_text(shipped.replace("deletionProtection: true", "deletionProtection: false"))
    return RehearsedStack(StackFolder(stack, folder / "state" / stack), configuration)


@pytest.fixture(scope="package")
def eks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RehearsedStack]:
    """The healthy EKS environment; whoever changes it puts it right again."""
    yield from brought_up(tmp_path_factory, "eks")


def brought_up(tmp_path_factory: pytest.TempPathFactory, name: str) -> Iterator[RehearsedStack]:
    """A stack for a fixture: up, and stopped at the end."""
    stack = new_stack(tmp_path_factory.mktemp(name), name)
    try:
        stack.succeed("up")
        yield stack
    finally:
        stack.command("down", "--force")


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[RehearsedStack]:
    """An EKS environment of a test's own, not up yet."""
    stack = new_stack(tmp_path)
    yield stack
    stack.command("down", "--force")


def preview_as_production(stack: RehearsedStack) -> str:
    """Preview a stack that is up under the production settings of the policy pack; it must pass.

    The output from the policies on, which names each finding.
    """
    configuration = str(ROOT / "policies" / f"{stack.folder.stack}.json")
    result = stack.done(
        *("pulumi", "preview", "--non-interactive"),
        *("--policy-pack", str(ROOT / "policies"), "--policy-pack-config", configuration),
    )
    assert "can't run policy" not in result, result
    return result.partition("Policies:")[2]


def changed_example(
    folder: Path, example: str, stack: str, changed: str, change: Callable[[Any], object]
) -> RehearsedStack:
    """A stack of an example, with what one of the files beside it describes changed.

    Args:
        folder: Where it is put.
        example: Folder under examples/.
        stack: Its name.
        changed: Which file: `network`, `cluster`.
        change: Changes that file's content.
    """
    for file in (ROOT / "examples" / example).glob(f"Pulumi.{stack}.*"):
        (folder / file.name).write_text(file.read_text())
    described = folder / f"Pulumi.{stack}.{changed}.json"
    content = json.loads(described.read_text())
    change(content)
    described.write_text(json.dumps(content))
    return RehearsedStack(StackFolder(stack, folder / "state" / stack), folder / f"Pulumi.{stack}.yaml")


#: Previews a group of bad resources; takes the group and, where it is not production's, a configuration of the pack.
Preview = Callable[..., "subprocess.CompletedProcess[str]"]


def previewing_bad_resources(stack: RehearsedStack, folder: Path, config: Mapping[str, str]) -> Iterator[Preview]:
    """For a fixture: a stack of the program bad_resources beside one that is up, with the cloud's `config`."""
    variables = {
        **stack.variables,
        "PULUMI_STACK": "bad-resources",
        "PULUMI_OPTION_CONFIG_FILE": str(folder / "Pulumi.bad-resources.yaml"),
        # The program's folder is the engine's; the pack is in the checkout.
        "PYTHONPATH": str(ROOT) + os.pathsep + os.environ.get("PYTHONPATH", ""),
    }

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["pulumi", *command, "--non-interactive"],
            cwd=ROOT / "tests" / "rehearsal" / "bad_resources",
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT,
        )

    def previewed(
        group: str, configuration: Path = ROOT / "policies" / "production.json"
    ) -> subprocess.CompletedProcess[str]:
        arguments = ("--policy-pack", str(ROOT / "policies"), "--policy-pack-config", str(configuration))
        return run("preview", "--config", f"group={group}", *arguments)

    for command in (
        ("stack", "init", "bad-resources"),
        *(("config", "set", key, value) for key, value in config.items()),
        ("config", "set", "--secret", "kubeconfig", stack.folder.kubeconfig.read_text()),
    ):
        result = run(*command)
        assert result.returncode == 0, result.stdout
    yield previewed
    run("stack", "rm", "--yes", "--force")


def refused_for(preview: subprocess.CompletedProcess[str]) -> set[str]:
    """Names of the mandatory rules for which a preview was refused; it must have been."""
    assert preview.returncode != 0, preview.stdout
    found = set(re.findall(r"- \[mandatory\] \[severity: \w+\]  ([a-z0-9-]+)  \(", preview.stdout))
    assert found, preview.stdout
    return found
