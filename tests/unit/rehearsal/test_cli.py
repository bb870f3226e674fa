"""The command line: which scenarios `run` asks the playbook for, what `review` starts and stops, what is refused."""

from __future__ import annotations

import errno
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psutil
import pytest

from karpstack.rehearsal import commands
from karpstack.rehearsal.engines import releases
from karpstack.rehearsal.session import daemon, lifetime, lock
from karpstack.rehearsal.session.deployment import PROJECT, CommandError
from karpstack.rehearsal.session.stack_file import StackFile
from karpstack.rehearsal.session.terminal import tell
from karpstack.rehearsal.state import ownership
from karpstack.rehearsal.state.folder import StackFolder
from karpstack.rehearsal.whatif import command as whatif
from karpstack.text import files
from tests.unit.command_line import karpstack


def main(words: list[str]) -> int:
    """Run a command on the simulated account."""
    return karpstack()([*words, "--rehearsed"] if words[0] == "preflight" else words)


MINE = str(Path("mine").resolve())


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The variables of each playbook that `run` plays on a stack that is up."""
    found: list[dict[str, str]] = []

    def play(_: object, __: StackFolder, variables: dict[str, str]) -> int:
        found.append(variables)
        return 0

    monkeypatch.setattr(commands, "_play", play)
    monkeypatch.setattr("karpstack.rehearsal.session.daemon.running", lambda _: object())
    return found


@pytest.mark.parametrize(
    ("arguments", "variables"),
    [
        ([], {"scenario_labels": "walk-through"}),
        (["--labels", "fault,scale"], {"scenario_labels": "fault,scale"}),
        (["--labels", "all"], {}),
        (["--scenarios", "drift,budget"], {"scenarios": "drift,budget"}),
        (["--scenario-dir", "mine"], {"scenario_dir": MINE}),
        (["--scenario-dir", "mine", "--labels", "a"], {"scenario_dir": MINE, "scenario_labels": "a"}),
    ],
)
def test_run_asks_for_what_is_wanted(
    played: list[dict[str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    variables: dict[str, str],
) -> None:
    report = tmp_path / "report"
    monkeypatch.setattr(Path, "glob", lambda *_: [Path("one.yml")])  # of the folder of scenarios
    assert main(["run", "eks", "--state", str(tmp_path), "--report", str(report), *arguments]) == 0
    assert played == [{**variables, "report_dir": str(report)}]


def test_names_and_labels_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "eks", "--scenarios", "drift", "--labels", "fault"]) == 2
    assert "so one would have no effect" in capsys.readouterr().err


class Started:
    """A daemon that was started, and what was asked of it in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, code: int = 0) -> None:
        self.calls: list[str] = []
        self.info = object()
        self._code = code
        for module in (commands, lifetime):
            monkeypatch.setattr(module, "ensure", lambda clouds, earlier: clouds)
            monkeypatch.setattr(module, "Deployment", lambda *_: self)
        monkeypatch.setattr(lifetime, "forget", lambda folder: self.calls.append("forget"))
        monkeypatch.setattr("karpstack.rehearsal.host.limits.check", lambda folder: None)
        monkeypatch.setattr("karpstack.rehearsal.session.daemon.start", lambda *_: self)
        monkeypatch.setattr("karpstack.rehearsal.session.daemon.stop", lambda folder: self.calls.append("stop"))

    def listening(self) -> object:
        return self.info

    def ready(self) -> object:
        self.calls.append("ready")
        return self.info

    def look(self, stack_file: StackFile, form: str) -> int:
        self.calls.append(f"look {stack_file.path.name}")
        return self._code

    def prepare(self, stack_file: StackFile) -> None:
        self.calls.append("prepare")

    def review(self, stack_file: StackFile, output: Path, configuration: str = "", *, updated: bool = False) -> int:
        what = "review of the update" if updated else "review"
        self.calls.append(f"{what} {stack_file.path.name} {output.name} {Path(configuration).name}".strip())
        if self._code < 0:
            raise KeyboardInterrupt
        return self._code


UP, DOWN = (lambda _: object()), (lambda _: None)
REVIEW, LOOK = "review Pulumi.eks.yaml out", "look Pulumi.eks.yaml"
NOT_UP = "eks is not up. Checking the simulated account, which has only"


@pytest.mark.parametrize(
    ("command", "running", "said", "code", "calls"),
    [
        *(("review --output OUT", DOWN, code, code, ["forget", "prepare", REVIEW, "stop"]) for code in (0, 1, 2)),
        ("review --output OUT", DOWN, -1, 130, ["forget", "prepare", REVIEW, "stop"]),
        (
            "review --output OUT --policy-pack-config policies/production.json",
            *(UP, 0, 0, ["prepare", f"{REVIEW} production.json"]),
        ),
        *(("preflight", DOWN, code, code, ["forget", "prepare", "ready", LOOK, "stop"]) for code in (0, 1, 2)),
        *(("preflight", UP, code, code, ["prepare", LOOK]) for code in (0, 1, 2)),
    ],
)
def test_what_a_look_started_it_stops_and_what_ran_before_it_leaves(
    command: str,
    running: Callable[[object], object],
    said: int,
    code: int,
    calls: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    started = Started(monkeypatch, said)
    monkeypatch.setattr("karpstack.rehearsal.session.daemon.running", running)
    name, *more = command.replace("OUT", str(tmp_path / "out")).split()
    assert main([name, "eks", "--state", str(tmp_path), *more]) == code
    assert started.calls == calls
    assert (NOT_UP in capsys.readouterr().err) == (command == "preflight" and running is DOWN)


COMMANDS = ("up", "run", "review", "preflight", "env", "rights", "status", "down")
#: Of them, those that work on a stack, one at a time.
WORKING = ("up", "run", "review", "preflight", "down")


@pytest.fixture
def untouched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing may be built, started or stopped."""

    def never(*_: object, **__: object) -> object:
        raise AssertionError("began to work")

    for name in ("ensure", "Deployment"):
        monkeypatch.setattr(commands, name, never)
        monkeypatch.setattr(lifetime, name, never)
    monkeypatch.setattr(lifetime, "forget", never)
    monkeypatch.setattr(commands, "_play", never)
    for name in ("start", "stop"):
        monkeypatch.setattr(daemon, name, never)


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", ["x[/y]", "../eks", "/etc", ".."])
def test_a_name_that_no_stack_can_have_is_refused_first(
    command: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, name, "--state", str(tmp_path / "state")]) == 2
    assert f"stack = {name!r}" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@contextmanager
def somebody_elses(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True)
    (folder / "thesis.tex").write_text("years of work")
    yield
    assert [path.name for path in folder.iterdir()] == ["thesis.tex"]


@contextmanager
def exchangeable(folder: Path) -> Iterator[None]:
    ownership.claim(StackFolder("eks", folder))
    folder.parents[1].chmod(0o777)
    yield


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    made = StackFolder("eks", folder)
    ownership.claim(made)
    with lock.held(made, "karpstack up eks"):
        yield


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    ("state", "words", "command"),
    [
        *((somebody_elses, "was not made by the rehearsal", command) for command in COMMANDS),
        *((exchangeable, "chmod go-w", command) for command in COMMANDS),
        *((locked, "`karpstack up eks`", command) for command in WORKING),
    ],
)
def test_a_state_folder_that_cannot_be_used_is_refused_and_left(
    state: Callable[[Path], AbstractContextManager[None]],
    words: str,
    command: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with state(tmp_path / "state" / "eks"):
        assert main([command, "eks", "--state", str(tmp_path / "state")]) == (3 if state is locked else 2)
    assert words in capsys.readouterr().err


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("command", ["up", "run"])
def test_another_kubernetes_version_is_refused_before_anything_starts(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configuration = tmp_path / "Pulumi.eks.yaml"
    configuration.write_text(
        'config: {"karpstack:cloud": aws, "aws:region": us-east-1, "karpstack:cluster": {version: "1.30"}}'
    )
    state = ["--state", str(tmp_path / "state"), "--config-file", str(configuration)]
    assert main([command, "eks", *state]) == 2
    assert (
        f'cluster.version = "1.30": the rehearsal has Kubernetes {" and ".join(releases("kubernetes"))}'
        in capsys.readouterr().err
    )


def test_status_takes_no_lock_and_shows_who_has_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = StackFolder("eks", tmp_path / "eks")
    ownership.claim(folder)
    with lock.held(folder, "karpstack up eks"):
        assert main(["status", "eks", "--state", str(tmp_path)]) == 1
    assert "`karpstack up eks` (process" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["", "[]", '{"pid": "x"}', '{"pid": 1, "started": 1.0, "cloud": "aws"}'])
def test_a_broken_daemon_json_is_no_daemon(content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = StackFolder("eks", tmp_path / "eks")
    ownership.claim(folder)
    folder.run_file.write_text(content)
    assert main(["status", "eks", "--state", str(tmp_path)]) == 1
    assert main(["env", "eks", "--state", str(tmp_path)]) == 3
    assert main(["down", "eks", "--state", str(tmp_path)]) == 0
    assert "eks: nothing is running" in capsys.readouterr().out
    assert not folder.run_file.exists()


def test_a_folder_without_scenarios_is_refused_before_anything_starts(
    played: list[dict[str, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "eks", "--state", str(tmp_path / "state"), "--scenario-dir", str(tmp_path)]) == 2
    assert "has no scenario (*.yml), so nothing would be tested" in " ".join(capsys.readouterr().err.split())
    assert not played
    assert not (tmp_path / "state").exists()


def test_no_report_is_named_that_was_not_written(
    played: list[dict[str, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "eks", "--state", str(tmp_path), "--report", str(tmp_path / "report")]) == 0
    assert "No report was written" in capsys.readouterr().err


@pytest.mark.parametrize("before", ["", "of an earlier run"])
def test_a_report_is_named_whatever_the_machines_clock_says(
    before: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The clock went back by an hour while the stories ran."""
    page = tmp_path / "report" / "report.html"

    def play(*_: object) -> int:
        files.write(page, "new")
        an_hour_ago = time.time() - 3600
        os.utime(page, (an_hour_ago, an_hour_ago))
        return 0

    monkeypatch.setattr(commands, "_play", play)
    monkeypatch.setattr("karpstack.rehearsal.session.daemon.running", lambda _: object())
    page.parent.mkdir()
    if before:
        page.write_text(before)
    assert main(["run", "eks", "--state", str(tmp_path / "state"), "--report", str(page.parent)]) == 0
    assert "Report: " in capsys.readouterr().err


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(("command", "option"), [("run", "--report"), ("review", "--output")])
def test_nothing_is_written_where_others_could_lay_links(
    command: str, option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    folder.chmod(0o777)
    assert main([command, "eks", "--state", str(tmp_path / "state"), option, str(folder)]) == 2
    assert f"another folder with {option}" in " ".join(capsys.readouterr().err.split())


def test_a_python_without_the_environment_says_what_to_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "karpstack.rehearsal.commands")
    monkeypatch.delattr("karpstack.rehearsal.commands")
    monkeypatch.setitem(sys.modules, "psutil", None)
    assert main(["status", "eks"]) == 3
    assert re.search("lacks the module psutil, .*make environment", capsys.readouterr().err)


@pytest.mark.parametrize("length", [10, 100_000], ids=["at the end", "at once"])
def test_output_that_nobody_reads_is_no_error(
    length: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As by `karpstack status eks | head -1`."""

    def say(*_: object, **__: object) -> int:
        print("x" * length)
        return 0

    monkeypatch.setattr(commands, "status", say)
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as unread:
        monkeypatch.setattr(sys, "stdout", unread)
        assert main(["status", "eks", "--state", str(tmp_path)]) == 141
    assert capsys.readouterr().err == ""


def test_another_pipe_that_breaks_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def break_(*_: object, **__: object) -> int:
        raise BrokenPipeError("the daemon's")

    monkeypatch.setattr(commands, "status", break_)
    monkeypatch.setattr(sys, "stdout", (tmp_path / "output").open("w"))
    with pytest.raises(BrokenPipeError, match="the daemon's"):
        main(["status", "eks", "--state", str(tmp_path)])


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("command", ["status", "down"])
@pytest.mark.parametrize(
    ("stack", "words"), [("ekz", "did you mean eks?"), ("nobodys", "the stacks here are: aks-nap")]
)
def test_a_stack_that_there_is_not_is_an_error(
    command: str, stack: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, stack, "--state", str(tmp_path)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"there is no stack {stack}: no Pulumi.{stack}.yaml, and no rehearsal in" in said
    assert words in said


def test_what_runs_after_its_state_was_deleted_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = psutil.Process()
    monkeypatch.setattr(daemon, "find", lambda _: [lost])
    assert main(["status", "mine", "--state", str(tmp_path)]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "mine: its state is lost, but " in said
    assert str(lost.pid) in said
    assert "down mine" in said


def test_what_commands_of_a_deleted_state_had_started_is_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(commands, "stop_marked", lambda _: ["pulumi"])
    assert main(["down", "eks", "--state", str(tmp_path)]) == 0
    assert "nothing is running; stopped what was left: pulumi" in capsys.readouterr().out


def test_an_interrupted_run_says_that_what_was_up_before_stays(
    played: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "_play", interrupted)
    assert main(["run", "eks", "--state", str(tmp_path), "--report", str(tmp_path / "report")]) == 130
    said = " ".join(capsys.readouterr().err.split())
    assert "eks was up before and stays up." in said
    assert "Report:" not in said


@pytest.mark.parametrize(("code", "words"), [(0, ""), (1, "did not pass")])
def test_an_update_writes_the_review_anew(
    code: int, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    started = Started(monkeypatch, code)
    monkeypatch.setattr(lifetime, "bring_up", lambda *_, **__: started.calls.append("up"))
    monkeypatch.setattr(commands, "_deployment", lambda *_: started)
    command = ["up", "eks", "--state", str(tmp_path / "state")]
    assert main([*command, "--review", str(tmp_path / "out")]) == 0
    assert started.calls == ["up", "review of the update Pulumi.eks.yaml out"]
    assert words in capsys.readouterr().err
    assert main([*command, "--no-review"]) == 0
    assert started.calls[2:] == ["up"]


@pytest.mark.parametrize("command", ["up", "run", "review", "preflight", "whatif", "network"])
def test_a_stack_file_that_is_missing_has_one_exit_code(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In all commands, and another one than a story that failed or a rule that is broken."""
    monkeypatch.setattr(whatif, "_accept", lambda *_: None)
    given = ["--config-file", str(tmp_path / "no")]
    if command == "whatif":
        given = ["--base", "", "--project", str(tmp_path), "--output", str(tmp_path / "out")]
    assert main([command, "mine", *given]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_what_if_of_a_stack_with_a_typo_is_refused_although_files_are_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(PROJECT / "Pulumi.eks.yaml")
    given = ["whatif", "ekss", "--base", file, "--change", file, "--output", str(tmp_path)]
    assert main(given) == 2
    assert "did you mean eks?" in capsys.readouterr().err


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("command", ["up", "run", "review", "preflight", "whatif", "down"])
def test_a_checkout_that_cannot_be_written_is_named_and_no_traceback(
    command: str, number: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number), str(tmp_path / ".rehearsal"))

    (tmp_path / "eks").mkdir()
    monkeypatch.setattr(ownership, "claim", refuse)
    monkeypatch.setattr(ownership, "place_results", refuse)
    given = ["--base", "Pulumi.eks.yaml"] if command == "whatif" else ["--state", str(tmp_path)]
    assert main([command, "eks", *given]) == 3
    said = " ".join(capsys.readouterr().err.split())
    assert f"{os.strerror(number)} ({tmp_path}/.rehearsal), so nothing more was done;" in said
    assert "--state DIR, and --output, --report or --review DIR" in said


def test_a_machine_that_has_run_out_is_named_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "daemon.json"))

    monkeypatch.setattr(lifetime, "bring_up", full)
    assert main(["up", "eks", "--state", str(tmp_path), "--no-review"]) == 3
    assert "make room, or put the state elsewhere" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("option", ["--quiet", "--verbose", None])
def test_a_quiet_command_prints_errors_alone(
    option: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KARPSTACK_VERBOSITY", "")

    def fail(*_: object, **__: object) -> None:
        tell("going on")
        raise CommandError("no")

    monkeypatch.setattr(lifetime, "bring_up", fail)
    given = ["up", "eks", "--state", str(tmp_path), "--no-review", *([option] if option else [])]
    assert main(given) == 1
    assert capsys.readouterr().err == ("" if option == "--quiet" else "going on\n") + "error: no\n"
