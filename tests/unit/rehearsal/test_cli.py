"""The command line: what is refused before anything starts."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from karpstack.rehearsal.engines import releases
from karpstack.rehearsal.session import lock
from karpstack.rehearsal.state import ownership
from karpstack.rehearsal.state.folder import StackFolder
from karpstack.text.packaged import PROGRAM
from tests.unit.command_line import karpstack
from tests.unit.rehearsal.test_stack_file import GOOD, write


def main(words: list[str]) -> int:
    """Run a command on the simulated account."""
    return karpstack()([*words, "--rehearsed"] if words[0] == "preflight" else words)


def test_names_and_labels_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "eks", "--scenarios", "drift", "--labels", "fault"]) == 2
    assert "so one would have no effect" in capsys.readouterr().err


COMMANDS = ("up", "run", "review", "preflight", "env", "rights", "status", "down")
#: Of them, those that work on a stack, one at a time.
WORKING = ("up", "run", "review", "preflight", "down")


@pytest.fixture
def untouched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be built or started: there are no engines, and no Go."""
    monkeypatch.setenv("KARPSTACK_CACHE", str(tmp_path.parent / "no-engines"))
    monkeypatch.setenv("PATH", "")


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
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "eks", "--state", str(tmp_path / "state"), "--scenario-dir", str(tmp_path)]) == 2
    assert "has no scenario (*.yml), so nothing would be tested" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "state").exists()


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


def test_a_what_if_of_a_stack_with_a_typo_is_refused_although_files_are_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(PROGRAM / "Pulumi.eks.yaml")
    given = ["whatif", "ekss", "--base", file, "--change", file, "--output", str(tmp_path)]
    assert main(given) == 2
    assert "did you mean eks?" in capsys.readouterr().err


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("command", ["up", "run", "review", "preflight", "down"])
def test_a_checkout_that_cannot_be_written_is_named_and_no_traceback(
    command: str, number: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number), str(tmp_path / ".rehearsal"))

    (tmp_path / "eks").mkdir()
    monkeypatch.setattr(Path, "mkdir", refuse)
    assert main([command, "eks", "--state", str(tmp_path)]) == 3
    said = " ".join(capsys.readouterr().err.split())
    assert f"{os.strerror(number)} ({tmp_path}/.rehearsal), so nothing more was done;" in said
    assert "with --state, --output, --report or --review" in said


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("option", ["--quiet", "--verbose", None])
def test_a_quiet_command_prints_errors_alone(
    option: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KARPSTACK_VERBOSITY", "")
    taints = {"template": {"spec": {"startupTaints": [{"key": "ours", "effect": "NoSchedule"}]}}}
    written = write(tmp_path, {"config": GOOD["config"] | {"karpstack:nodePools": {"default": taints}}})
    (tmp_path / "Pulumi.yaml").touch()
    monkeypatch.chdir(tmp_path)
    assert main(["up", "eks", "--config-file", str(written), "--no-review", *([option] if option else [])]) == 3
    before, _, error = capsys.readouterr().err.partition("error: ")
    assert before.startswith("NodePool default: nobody lifts") == (option != "--quiet")
    assert error.startswith("Go is needed")
