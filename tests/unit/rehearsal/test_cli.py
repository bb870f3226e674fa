"""The command line: which scenarios `run` asks the playbook for, and what `review` starts and stops."""

from __future__ import annotations

from pathlib import Path

import pytest

from rehearsal import cli
from rehearsal.folder import StackFolder
from rehearsal.stack_file import StackFile


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


class Started:
    """A daemon that was started, and what was asked of it in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, code: int = 0) -> None:
        self.calls: list[str] = []
        self.info = object()
        self._code = code
        for name, value in {
            "ensure": object,
            "Deployment": lambda folder, engines, info: self,
            "_forget": lambda folder: self.calls.append("forget"),
            "_tell_crashes": lambda folder: None,
        }.items():
            monkeypatch.setattr(cli, name, value)
        monkeypatch.setattr("rehearsal.limits.check", lambda folder: None)
        monkeypatch.setattr("rehearsal.daemon.start", lambda *_: self)
        monkeypatch.setattr("rehearsal.daemon.stop", lambda folder: self.calls.append("stop"))

    def listening(self) -> object:
        return self.info

    def prepare(self, stack_file: StackFile) -> None:
        self.calls.append("prepare")

    def review(self, stack_file: StackFile, output: Path, configuration: Path) -> int:
        self.calls.append(f"review {stack_file.path.name} {output.name} {configuration.name}")
        if self._code < 0:
            raise KeyboardInterrupt
        return self._code


@pytest.mark.parametrize("code", [0, 1, 2])
def test_review_stops_what_it_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: int) -> None:
    started = Started(monkeypatch, code)
    monkeypatch.setattr("rehearsal.daemon.running", lambda _: None)
    assert cli.main(["review", "eks", "--state", str(tmp_path)]) == code
    assert started.calls == ["forget", "prepare", "review Pulumi.eks.yaml eks examples.json", "stop"]


def test_an_interrupted_review_stops_what_it_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started = Started(monkeypatch, -1)
    monkeypatch.setattr("rehearsal.daemon.running", lambda _: None)
    assert cli.main(["review", "eks", "--state", str(tmp_path)]) == 130
    assert started.calls[-1] == "stop"


def test_review_leaves_what_ran_before(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started = Started(monkeypatch)
    monkeypatch.setattr("rehearsal.daemon.running", lambda _: object())
    production = ["--policy-pack-config", "policies/production.json"]
    assert cli.main(["review", "eks", "--state", str(tmp_path), "--output", str(tmp_path / "out"), *production]) == 0
    assert started.calls == ["prepare", "review Pulumi.eks.yaml out production.json"]
