"""The package karpstack in a program of another repository: its provider makes the cluster, and keeps it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.rehearsal.conftest import ROOT, RehearsedStack, new_stack

PACKAGE = ROOT / "components"
PROJECT = "name: shop\nruntime: python\npackages: {{karpstack: {package}}}\n"
#: What a generated SDK does.
PROGRAM = """
import json
from pathlib import Path
import pulumi

outputs, args = json.loads(Path("properties.json").read_text())
made = pulumi.ComponentResource(
    "karpstack:index:EksEnvironment", "shop", {**dict.fromkeys(outputs), **args}, remote=True
)
for name in outputs:
    pulumi.export(name, getattr(made, name))
"""
#: The package without the rules on settings: the engine and the hooks are left.
UNRULED = f"""
import runpy
from karpstack.components.settings import eks_identity
eks_identity.destroying = lambda *_, **__: ()
runpy.run_path({str(PACKAGE)!r}, run_name="__main__")
"""


def write_program(folder: Path, package: Path = PACKAGE, **changes: Any) -> RehearsedStack:
    """A program that gives the package the settings of the shipped stack file, and changes."""
    component = json.loads((PACKAGE / "schema.json").read_text())["resources"]["karpstack:index:EksEnvironment"]
    stack = replace(new_stack(folder), project=folder)
    config = yaml.safe_load(stack.configuration.read_text())["config"]
    settings = {name.removeprefix("karpstack:"): value for name, value in config.items()}
    args = {name: settings[name] for name in component["inputProperties"] if name in settings} | changes
    stack.configure(**{"karpstack:name": None})  # which Pulumi would take for a setting of the provider: its name
    (folder / "Pulumi.yaml").write_text(PROJECT.format(package=package))
    (folder / "__main__.py").write_text(PROGRAM)
    (folder / "properties.json").write_text(json.dumps([sorted(component["properties"]), args]))
    return stack


@pytest.fixture(scope="module")
def packaged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RehearsedStack]:
    stack = write_program(tmp_path_factory.mktemp("packaged"))
    try:
        stack.succeed("up")
        yield stack
    finally:
        stack.command("down", "--force")


@pytest.fixture
def unruled(tmp_path: Path) -> Path:
    folder = tmp_path / "unruled"
    folder.mkdir()
    (folder / "PulumiPlugin.yaml").write_text("runtime: python\n")
    (folder / "__main__.py").write_text(UNRULED)
    return folder


def run(stack: RehearsedStack, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run Pulumi on the stack, with the program of a folder."""
    options = ("--non-interactive", "--cwd", str(folder), "--config-file", str(stack.configuration))
    return stack.by_hand("pulumi", *command, *options)


def test_a_program_has_the_environment_of_the_package(packaged: RehearsedStack) -> None:
    outputs = packaged.outputs()
    assert (outputs["clusterName"], outputs["kubeconfig"]) == ("karpstack-eks", "[secret]")
    assert outputs["nodePools"] == ["default"]
    again = run(packaged, packaged.project, "preview", "--expect-no-changes")
    assert again.returncode == 0, again.stdout


def test_a_change_of_one_line_is_an_error_at_preview(packaged: RehearsedStack, tmp_path: Path) -> None:
    write_program(tmp_path, name="other")
    refused = run(packaged, tmp_path, "preview")
    assert refused.returncode != 0
    assert 'karpstack:name = "other", was "karpstack-eks"' in refused.stdout, refused.stdout
    assert "has a problem: 1 change of the configuration would destroy" in refused.stdout, refused.stdout


def test_what_no_rule_knows_a_hook_of_the_provider_refuses(
    packaged: RehearsedStack, tmp_path: Path, unruled: Path
) -> None:
    write_program(tmp_path, unruled, name="other")
    refused = run(packaged, tmp_path, "preview")
    assert refused.returncode != 0
    lost = "shop-cluster-control-plane (aws:eks/cluster:Cluster) would be replaced"
    assert lost in refused.stdout, refused.stdout
