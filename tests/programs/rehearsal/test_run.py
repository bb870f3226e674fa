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
