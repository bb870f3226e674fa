"""The playbook of a real run, with false programs: what it runs on which stack, and what it leaves alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.programs.playbook import play

PROGRAM = """#!/bin/sh
echo "$(basename "$0") $*" >> {folder}/calls
case "$*" in
*cost*json*) echo '{{"minutes": 60}}' ;;
*"stack export"*) cat {folder}/export ;;
*preflight*) {preflight} ;;
esac
"""


def real_run(folder: Path, *more: str, resources: list[str], preflight: str = "true") -> tuple[int, str, list[str]]:
    """Run it; the exit code, the output, and what it called."""
    (folder / "bin").mkdir()
    for name in ("pulumi", "kubectl", "karpstack", "ansible-playbook"):
        program = folder / "bin" / name
        program.write_text(PROGRAM.format(folder=folder, preflight=preflight))
        program.chmod(0o755)
    stack = {"type": "pulumi:pulumi:Stack"}
    deployment = {"resources": [stack, *({"type": one} for one in resources)]} if resources else {}
    (folder / "export").write_text(json.dumps({"version": 3, "deployment": deployment}))
    ours = {"real_run_karpstack": [f"{folder}/bin/karpstack"], "real_run_playbook": [f"{folder}/bin/ansible-playbook"]}
    given = {**ours, "stack": "mine", "run_dir": f"{folder}/the run", "whatif": []}
    path = f"{folder}/bin:/usr/bin:/bin"
    code, output = play("real_run.yml", folder, "-e", json.dumps(given), *more, PATH=path, KARPSTACK_REHEARSAL_URL="")
    calls = (folder / "calls").read_text().splitlines() if (folder / "calls").exists() else []
    return code, " ".join(output.split()), calls


def test_what_is_checked_is_what_is_brought_up_and_destroyed(tmp_path: Path) -> None:
    """Pulumi had the stack's own file, and the checks another one."""
    code, output, calls = real_run(tmp_path, "-e", "config_file=other.yaml", resources=[])
    assert code == 0, output
    of_pulumi = [call for call in calls if call.startswith("pulumi")]
    assert of_pulumi == [
        "pulumi stack export --stack mine",
        "pulumi up --yes --stack mine --config-file other.yaml",
        "pulumi stack output kubeconfig --show-secrets --stack mine",
        "pulumi destroy --yes --stack mine --config-file other.yaml",
    ]
    assert all("--config-file other.yaml" in call for call in calls if " preflight" in call or " left" in call)
    (stories,) = (call for call in calls if "scale_test.yml" in call)
    assert json.loads(stories.partition(" -e ")[2]) == {
        "stack": "mine",
        "report_dir": f"{tmp_path}/the run/report",
        "scenario_labels": "walk-through",
    }


@pytest.mark.parametrize("resources", [["aws:eks/cluster:Cluster"], ["pulumi:providers:aws"]])
def test_a_stack_that_has_something_is_not_taken(resources: list[str], tmp_path: Path) -> None:
    """A colleague's run would be destroyed, or one that is needed."""
    code, output, calls = real_run(tmp_path, resources=resources, preflight="exit 1")
    assert code != 0, output
    assert ("has resources, and this run would destroy them" in output) == ("cluster" in str(resources).lower())
    assert [call for call in calls if call.startswith("pulumi")] == ["pulumi stack export --stack mine"]


def test_before_up_nothing_is_destroyed(tmp_path: Path) -> None:
    """An ended login made preflight fail, and then the stack was destroyed."""
    code, output, calls = real_run(tmp_path, resources=[], preflight="exit 3")
    assert code != 0, output
    assert [call for call in calls if "pulumi" in call or " left" in call] == ["pulumi stack export --stack mine"]
    assert "preflight failed" in output
