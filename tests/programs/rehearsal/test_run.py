"""`karpstack run`, up to what it refuses before anything starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_an_unknown_scenario_is_refused_before_a_stack_is_made_for_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "karpstack", "run", "eks", "--scenarios", "eks-cheapest-fitt"]
    refused = subprocess.run([*command, "--state", str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert refused.returncode == 2
    assert "did you mean eks-cheapest-fit?" in " ".join(refused.stderr.split())
    assert not (tmp_path / "eks" / "daemon.json").exists()


def test_a_folder_with_another_report_is_refused_before_a_stack_is_made_for_it(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "report.html").write_text("mine")
    command = [sys.executable, "-m", "karpstack", "run", "eks", "--report", str(tmp_path / "mine")]
    # An unknown scenario is refused later, also before a stack is made.
    command += ["--scenarios", "eks-cheapest-fitt", "--state", str(tmp_path / "state")]
    refused = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"error: --report {tmp_path}/mine: has report.html, but no timeline.jsonl")
    assert (tmp_path / "mine" / "report.html").read_text() == "mine"
