"""The playbook of the scale test up to its choice of scenarios: what runs nothing fails, and says why."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from tests.programs.playbook import ROOT, play

OUTPUTS = {
    "cloud": "aws",
    "karpenterVersion": "1.15.1",
    "nodePools": ["apps"],
    "nodeClasses": ["default"],
    "defaultNodePools": [],
}


def scale_test(folder: Path, *more: str, **variables: str) -> tuple[int, str]:
    """Exit code and output, each run of blanks one blank."""
    (folder / "outputs.json").write_text(json.dumps(OUTPUTS))
    given = ["-e", f"stack_outputs=@{folder}/outputs.json", "-e", "stack=mine"]
    code, output = play("scale_test.yml", folder, *given, *more, **variables)
    return code, " ".join(output.split())


def test_ansibles_own_tags_are_refused_for_they_would_leave_out_all(tmp_path: Path) -> None:
    code, output = scale_test(tmp_path, "--tags", "walk-through")
    assert code != 0, output
    assert "nothing would be done" in output
    assert "-e scenario_labels=walk-through" in output


def test_a_relative_folder_is_found_and_nothing_that_suits_is_an_error(tmp_path: Path) -> None:
    scenario = yaml.safe_load((ROOT / "playbooks" / "scenarios" / "eks-limit.yml").read_text())
    scenario["existingNodePools"] = ["default"]
    (tmp_path / "sc2").mkdir()
    (tmp_path / "sc2" / "eks-limit.yml").write_text(yaml.safe_dump(scenario))
    code, output = scale_test(tmp_path, "--check", "-e", "scenario_dir=sc2")
    assert code != 0, output
    assert "none can be run here, so nothing would be tested: eks-limit: existingNodePools: the stack has no" in output


def test_a_variable_that_nobody_reads_is_refused_where_its_name_is_near(tmp_path: Path) -> None:
    others = ["-e", "region=eu-west-1", "-e", "ansible_become=false"]
    code, output = scale_test(tmp_path, "--check", "-e", "scenario=drift", "-e", "labels=fault", *others)
    assert code != 0, output
    assert "-e scenario: no variable of this playbook, so it would have no effect; did you mean scenarios?" in output
    assert (
        "-e labels: no variable of this playbook, so it would have no effect; did you mean scenario_labels?" in output
    )
    assert "-e region" not in output
    assert "-e ansible_become" not in output


def test_a_pulumi_that_is_not_there_is_said(tmp_path: Path) -> None:
    code, output = scale_test(tmp_path, "--check", "-e", "stack_outputs=", PATH="/usr/bin:/bin")
    assert code != 0, output
    assert "The stack is not up" in output
    assert "there is no program pulumi in PATH" in output


def test_the_outputs_are_those_of_the_stack_that_is_named(tmp_path: Path) -> None:
    """A report with the name of one stack told of the selected one."""
    (tmp_path / "bin").mkdir()
    pulumi = tmp_path / "bin" / "pulumi"
    pulumi.write_text(
        f"""#!/bin/sh
echo "$@" >> {tmp_path}/asked
case "$*" in *"--stack mine"*) cat {tmp_path}/outputs.json;; *) echo '{{"cloud": "azure"}}';; esac
"""
    )
    pulumi.chmod(0o755)
    path = f"{pulumi.parent}:/usr/bin:/bin"
    code, output = scale_test(tmp_path, "--check", "-e", "stack_outputs=", "-e", "scenarios=eks-limit", PATH=path)
    assert code != 0, output
    assert (tmp_path / "asked").read_text() == "stack output --json --non-interactive --stack mine\n"
    assert "the stack has no NodePool 'default', so no node could be launched; use of apps" in output
