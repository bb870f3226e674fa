"""The command line: which scenarios `run` asks the playbook for."""

from __future__ import annotations

from pathlib import Path

import pytest

from rehearsal import cli
from rehearsal.folder import StackFolder


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The variables of each playbook that `run` plays on a stack that is up."""
    found: list[dict[str, str]] = []

    def play(_: StackFolder, variables: dict[str, str]) -> int:
        found.append(variables)
        return 0

    monkeypatch.setattr(cli, "_play", play)
    monkeypatch.setattr("rehearsal.daemon.running", lambda _: object())
    return found


@pytest.mark.parametrize(
    ("arguments", "variables"),
    [
        ([], {"scenario_tags": "walk-through"}),
        (["--tags", "fault,scale"], {"scenario_tags": "fault,scale"}),
        (["--tags", "all"], {}),
        (["--scenarios", "drift,budget"], {"scenarios": "drift,budget"}),
        (["--scenario-dir", "mine"], {"scenario_dir": str(Path("mine").resolve())}),
        (
            ["--scenario-dir", "mine", "--tags", "a"],
            {"scenario_dir": str(Path("mine").resolve()), "scenario_tags": "a"},
        ),
    ],
)
def test_run_asks_for_what_is_wanted(
    played: list[dict[str, str]], tmp_path: Path, arguments: list[str], variables: dict[str, str]
) -> None:
    report = tmp_path / "report"
    assert cli.main(["run", "eks", "--state", str(tmp_path), "--report", str(report), *arguments]) == 0
    assert played == [{**variables, "report_dir": str(report)}]


def test_names_and_tags_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["run", "eks", "--scenarios", "drift", "--tags", "fault"])
    assert "not allowed with" in capsys.readouterr().err
