"""The playbook of the first real run, in full, against the simulated account and subscription."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from karpstack.rehearsal.state.folder import StackFolder
from tests.rehearsal.conftest import ROOT, RehearsedStack


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("name", "story"), [("real-eks", "eks-cheapest-fit"), ("real-aks", "nap-default")])
def test_a_real_run_leaves_a_page_and_nothing_else(tmp_path: Path, name: str, story: str) -> None:
    file = tmp_path / f"Pulumi.{name}.yaml"
    file.write_bytes((ROOT / "examples" / "real-run" / file.name).read_bytes())
    stack = RehearsedStack(StackFolder(name, tmp_path / "state" / name), file)
    rehearsed, run = tmp_path / "rehearsed", tmp_path / "run"
    try:
        stack.succeed("up", "--keep")
        stack.done(
            "ansible-playbook",
            *("playbooks/scale_test.yml", "-e", f"scenarios={story}", "-e", f"report_dir={rehearsed}"),
        )
        assert stack.by_hand("pulumi", "destroy", "--yes", "--stack", name).returncode == 0
        result = stack.by_hand(
            "ansible-playbook",
            *("playbooks/real_run.yml", "-e", f"stack={name}", "-e", f"config_file={file}"),
            *("-e", f"rehearsed={rehearsed}", "-e", f"run_dir={run}", "-e", f"scenarios={story}"),
            timeout=1200,
        )
        logs = "\n".join(log.read_text()[-2000:] for log in sorted(run.glob("*.log")))
        assert result.returncode == 0, result.stdout + logs
    finally:
        stack.command("down")
    stages = json.loads((run / "run.json").read_text())["stages"]
    names = ["preflight", "up", "stories", "workload", "snapshot", "cleanup", "predestroy", "destroy", "certificate"]
    assert [one["name"] for one in stages] == names
    assert "nothing is left" in (run / "certificate.log").read_text()
    page = (run / "comparison.md").read_text()
    assert "seconds of destroy" in page
    assert story in page
    assert "karpstack-real-run" not in page
