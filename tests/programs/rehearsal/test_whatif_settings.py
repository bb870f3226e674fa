"""Settings that the program refuses are told before a what-if starts anything."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from karpstack.rehearsal.whatif import command
from karpstack.text.packaged import PROGRAM

EKS = PROGRAM / "Pulumi.eks.yaml"


@pytest.mark.parametrize("wrong_is", ["base", "change"])
def test_a_typo_is_told_at_once(wrong_is: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def rehearse(*_: object, **__: object) -> int:
        raise AssertionError("something was started")

    content = yaml.safe_load(EKS.read_text())
    content["config"]["karpstack:nodePools"] = {"default": {"disruption": {"consolidationPolice": "WhenEmpty"}}}
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(yaml.dump(content))
    base, change = (wrong, EKS) if wrong_is == "base" else (EKS, wrong)
    asked = command.WhatifOptions("eks", str(base), changes=[str(change)], output=tmp_path / "answers")
    assert command.run(asked, command.Tools(lambda *_: "", rehearse=rehearse)) == 2
    said = capsys.readouterr().err
    assert f"wrong: the program refuses {wrong}" in said
    assert "did you mean consolidationPolicy?" in said
