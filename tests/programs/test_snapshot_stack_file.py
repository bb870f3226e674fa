"""A stack file from a snapshot, as the program itself judges it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from karpstack.snapshot.reading import load
from karpstack.snapshot.stack_file import refusal, stack_file
from tests.unit.command_line import karpstack

main = karpstack("snapshot")

ROOT = Path(__file__).resolve().parents[2]
EKS = ROOT / "Pulumi.eks.yaml"
SMALL = ROOT / "examples" / "snapshots" / "20-pods.json"


def test_what_the_program_takes_is_not_refused() -> None:
    assert refusal(stack_file(load(SMALL).snapshot, EKS).text) == ""
    assert refusal((ROOT / "Pulumi.aks-nap.yaml").read_text()) == ""


def test_one_that_the_program_would_refuse_is_not_written_unless_that_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = json.loads(SMALL.read_text())
    data["nodePools"][0]["spec"]["disruption"]["consolidateAfter"] = "soon"
    snapshot, output = tmp_path / "snapshot.json", tmp_path / "base.yaml"
    snapshot.write_text(json.dumps(data))
    given = ["stack-file", str(snapshot), "--like", str(EKS), "--output", str(output)]
    assert main(given) == 2
    said = capsys.readouterr().err
    assert f"error: {output}: the stack file is not written, because the program would refuse it" in said
    assert "consolidateAfter" in said
    assert not output.exists()
    assert main([*given, "--unchecked"]) == 0
    assert "soon" in output.read_text()
