"""The application as a whole: help, wrong words, exit codes, and what it imports."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.core import TyperGroup

from karpstack.cli.application import SECTIONS, built
from karpstack.text.codes import Code
from tests.unit.command_line import karpstack, parsed

ROOT = Path(__file__).resolve().parents[3]
main = karpstack()


def commands(group: TyperGroup, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        found = words if name == "stack" else (*words, name)
        if isinstance(command, TyperGroup):
            yield from commands(command, found)
        else:
            yield found


COMMANDS = sorted(commands(built()))


def test_all_commands_are_there() -> None:
    assert len(COMMANDS) == len(set(COMMANDS)) > 45
    assert {("up",), ("whatif",), ("whatif", "report"), ("preflight",), ("preflight", "rights")} < set(COMMANDS)


def test_each_command_is_in_one_section_of_the_help() -> None:
    assert sorted(name for names in SECTIONS.values() for name in names) == sorted(built().commands)


@pytest.mark.parametrize("words", ["whatif eks --nodes all", "preflight eks --format pdf"])
def test_a_usage_omits_the_name_of_a_default_command(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == Code.WRONG
    said = capsys.readouterr().err
    stack = "[STACK]" if words.startswith("whatif") else "STACK"
    assert f"Usage: karpstack {words.split()[0]} [OPTIONS] {stack}\n" in said
    assert f"Help: karpstack {words.split()[0]} --help" in said


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_each_command_has_a_help_with_an_example_that_it_takes(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert main([*words, "--help"]) == Code.GOOD
    shown = capsys.readouterr().out
    assert shown.startswith(f"Usage: karpstack {' '.join(words)} ")
    assert "\x1b" not in shown
    example = re.search(r"^Example:\n((?:  .*\n?)+)", shown, re.MULTILINE)
    assert example, shown
    for line in example[1].splitlines():
        command = re.search(r"karpstack ([^>#)]*)", line)
        assert command
        parsed(command[1].split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "Usage: karpstack"),
        ("chek", "No such command 'chek'"),
        ("snapshot chek", "Did you mean 'check'"),
        ("up", "Missing argument 'STACK'"),
        ("up eks --kep", "Possible options: --help, --keep"),
        ("up eks aks", "unexpected extra argument(s) (aks)"),
        ("up ../eks", "name the stack with 1 to 100 letters"),
        ("up -- -eks", "name the stack with 1 to 100 letters"),
        ("up [red]", "'[red]'"),
        ("run eks --speed 0", "is no number from 1"),
        ("whatif", "neither --base nor --change is given"),
        ("whatif eks --change nodepools:x", "without --workloads there is no cluster"),
        ("preflight eks --format pdf", "'pdf' is not one of 'text', 'json'"),
        ("preflight rights eks --account 12", "give its 12 digits"),
        ("review eks --update events", "without --live they would have no effect"),
        ("explain pod-cidr-too-smal", "the nearest are eks-pod-cidr-too-small"),
        ("facts aws EAST", "is no region"),
        ("pull-request comment --stacks {", "no JSON list of names of stacks"),
        ("engines build Pulumi.none.yaml", "there is no stack file Pulumi.none.yaml"),
    ],
)
def test_wrong_words_are_refused_with_a_sentence(
    words: str, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_REPOSITORY", "owner/name")
    assert main(words.split()) == Code.WRONG
    shown = capsys.readouterr()
    assert said in shown.err
    assert "Traceback" not in shown.err
    assert shown.out == ""


@pytest.mark.parametrize("command", ["up eks", "status eks", "review eks", "network eks"])
def test_without_a_project_the_fix_is_named(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(command.split()) == Code.WRONG
    assert f"{tmp_path}: neither this folder nor one above it has a Pulumi.yaml" in " ".join(
        capsys.readouterr().err.split("\n")
    )


def test_a_project_is_found_from_a_folder_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Pulumi.yaml").touch()
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert main(["up", "mine"]) == Code.WRONG
    assert f"{tmp_path}/Pulumi.mine.yaml" in capsys.readouterr().err


def test_a_stack_may_have_the_name_of_a_command() -> None:
    assert parsed(["preflight", "stack", "destroy"])[1]["stack"] == "destroy"
    assert parsed(["whatif", "--base", "report", "eks"])[1]["stack"] == "eks"
    assert parsed(["whatif", "report", "folder"])[0] == "karpstack whatif report"


def test_explain_knows_every_kind_of_finding(capsys: pytest.CaptureFixture[str]) -> None:
    for code, words in (
        ("eks-pod-cidr-too-small", "a stack file"),
        ("account-not-allowed", "an account or a cluster"),
        ("dns-label", "a scenario file"),
        ("node-pool-limits", "a rule of the policy pack"),
    ):
        assert main(["explain", code]) == Code.GOOD
        shown = capsys.readouterr().out
        assert words in shown
        assert "Fix: " in shown


@pytest.mark.parametrize("shell", ["zsh", "fish"])  # bash is asked for its version: tests/programs
def test_each_shell_gets_a_script_and_the_names_of_stacks(
    shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == Code.GOOD
    assert "_KARPSTACK_COMPLETE" in capsys.readouterr().out
    monkeypatch.setenv("_KARPSTACK_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "karpstack whatif aks")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    assert main([]) == Code.GOOD
    assert "aks-nap" in capsys.readouterr().out


def test_an_interrupt_is_no_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("karpstack.rehearsal.doctor.doctor", lambda form: signal.raise_signal(signal.SIGTERM))
    assert main(["doctor"]) == Code.INTERRUPTED
    assert capsys.readouterr().err == "Interrupted.\n"
