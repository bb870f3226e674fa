"""The sides of a what-if: files, refs, and what is neither; and several candidates side by side."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import psutil
import pytest

from karpstack.rehearsal.whatif import candidates, command
from karpstack.rehearsal.whatif.candidate import Question
from karpstack.rehearsal.whatif.sources import WORKING_TREE, Most, Source, SourceError, folder_of_ref, source
from karpstack.text.names import folder_name
from karpstack.text.packaged import PROGRAM

EKS = PROGRAM / "Pulumi.eks.yaml"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with two commits of a program, of which the first has no stack file."""
    folder = tmp_path / "repository"
    folder.mkdir()

    def git(*arguments: str) -> None:
        who = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
        subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)

    git("init", "--initial-branch=main")
    (folder / "Pulumi.yaml").write_text("name: p\nruntime: python\n")
    git("add", ".")
    git("commit", "-m", "a program")
    git("tag", "empty")
    (folder / EKS.name).write_text(EKS.read_text())
    git("add", ".")
    git("commit", "-m", "a stack")
    (folder / EKS.name).write_text("what nobody has committed")
    return folder


def test_a_ref_is_the_whole_program_as_it_was_and_the_checkout_is_left_alone(repository: Path, tmp_path: Path) -> None:
    found = source("main", "eks", tmp_path / "sources", repository)
    assert found.program.is_relative_to(tmp_path / "sources")
    assert (found.program / "Pulumi.yaml").is_file()
    assert found.stack_file.path == found.program / EKS.name
    assert found.stack_file.region == "us-east-1"
    assert (repository / EKS.name).read_text() == "what nobody has committed"
    listed = subprocess.run(["git", "-C", str(repository), "worktree", "list"], capture_output=True, text=True)
    assert len(listed.stdout.splitlines()) == 1


def test_a_file_is_one_before_it_is_a_ref(tmp_path: Path) -> None:
    file = tmp_path / "main"
    file.write_text(EKS.read_text())
    found = source(str(file), "eks", tmp_path)
    assert (found.program, found.stack_file.path, found.name) == (PROGRAM, file, "main")


def test_a_file_that_is_also_a_ref_is_refused(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    (repository / "main").write_text(EKS.read_text())
    with pytest.raises(SourceError, match=r"is a path and a git ref .*write \./main for the path, or [0-9a-f]{40} for"):
        source("main", "eks", tmp_path / "sources", repository)
    assert source("./main", "eks", tmp_path, repository).stack_file.path == repository / "main"


def commit(folder: Path, name: str, content: bytes) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)
    who = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
    for words in (("add", name), ("commit", "-m", "a file")):
        subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


def test_a_ref_is_laid_down_without_memory_for_its_files(repository: Path, tmp_path: Path) -> None:
    commit(repository, "zeros", bytes(24 * 2**20))
    tracemalloc.start()
    found = source("main", "eks", tmp_path / "sources", repository, Most(listed=2**16))  # a buffer is as large
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found.program / "zeros").stat().st_size == 24 * 2**20
    assert most < 12 * 2**20


def test_a_ref_with_too_large_or_too_many_files_is_refused(repository: Path, tmp_path: Path) -> None:
    commit(repository, "zeros", bytes(3 * 2**20))
    with pytest.raises(SourceError, match=r"3 MiB of files, so it is too large .* \(at most 1 MiB\)"):
        source("main", "eks", tmp_path / "sources", repository, Most(files=2**20))
    with pytest.raises(SourceError, match="has too many files"):
        source("main", "eks", tmp_path / "sources", repository, Most(listed=100))
    assert not list((tmp_path / "sources").glob("*/*"))


def test_a_kustomization_gets_no_large_files_of_its_repository(repository: Path, tmp_path: Path) -> None:
    commit(repository, "zeros", bytes(17 * 2**20))
    commit(repository, "overlay/kustomization.yaml", b"resources: []\n")
    folder = folder_of_ref(repository, "main:overlay", tmp_path / "sources")
    assert [one.name for one in folder.iterdir()] == ["kustomization.yaml"]
    assert sorted(one.name for one in folder.parent.iterdir() if one.is_file()) == [EKS.name, "Pulumi.yaml"]


@pytest.mark.parametrize(
    ("lost", "said"), [("main:nodepools/a.yaml", "lacks nodepools/a.yaml"), ("main:nodepools", "")]
)
def test_a_ref_whose_files_are_not_all_here_is_refused(lost: str, said: str, repository: Path, tmp_path: Path) -> None:
    commit(repository, "nodepools/a.yaml", b"kind: NodePool\n")
    found = subprocess.run(
        ["git", "-C", str(repository), "rev-parse", lost], check=True, capture_output=True, text=True
    )
    (repository / ".git" / "objects" / found.stdout[:2] / found.stdout[2:].strip()).unlink()
    with pytest.raises(SourceError, match=said or "git ls-tree"):
        source("main", "eks", tmp_path / "sources", repository)


def test_submodules_of_a_ref_are_named(repository: Path, tmp_path: Path) -> None:
    head = subprocess.run(
        ["git", "-C", str(repository), "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    )
    added = f"160000,{head.stdout.strip()},lib"
    who = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
    for words in (("update-index", "--add", "--cacheinfo", added), (*who, "commit", "-m", "a submodule")):
        subprocess.run(["git", "-C", str(repository), *words], check=True, capture_output=True)
    assert source("main", "eks", tmp_path / "new", repository).notes == (
        "'main': files of submodules are not included: lib",
    )
    assert source("main~1", "eks", tmp_path / "old", repository).notes == ()


def test_nothing_is_the_checkout_as_it_is(tmp_path: Path) -> None:
    assert source("", "eks", tmp_path).name == WORKING_TREE


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("no-such", "neither a file or folder nor a git ref"),
        ("--output=x", "neither a file or folder nor a git ref"),
        ("empty", "a git ref .* without Pulumi.eks.yaml"),
    ],
)
def test_what_is_neither_is_refused(given: str, said: str, repository: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=said):
        source(given, "eks", tmp_path / "sources", repository)


def test_a_ref_that_links_out_of_itself_is_refused_and_nothing_is_left(repository: Path, tmp_path: Path) -> None:
    (repository / "out").symlink_to("/etc/passwd")
    who = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
    for arguments in (("add", "out"), ("commit", "-m", "a link")):
        subprocess.run(["git", "-C", str(repository), *who, *arguments], check=True, capture_output=True)
    with pytest.raises(SourceError, match="a link out of the repository is refused"):
        source("HEAD", "eks", tmp_path / "sources", repository)
    assert not [path for path in (tmp_path / "sources").rglob("*") if not path.is_dir()]


@pytest.mark.parametrize("below", ["", "clusters/production"])
def test_a_ref_is_of_the_repository_in_which_the_command_is_run(
    below: str, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stack files alone are made by karpstack's program."""
    folder = repository / below
    folder.mkdir(parents=True, exist_ok=True)
    (repository / "Pulumi.yaml").unlink()
    (folder / "Pulumi.mine.yaml").write_text(EKS.read_text().replace("us-east-1", "eu-west-1"))
    who = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
    for arguments in (("add", "."), ("commit", "-m", "stack files alone")):
        subprocess.run(["git", "-C", str(repository), *who, *arguments], check=True, capture_output=True)
    (folder / "Pulumi.mine.yaml").write_text("what nobody has committed")
    asked: list[str] = []

    def rehearse(question: Question, side: Source, *_: object, **__: object) -> int:
        base = question.base
        asked.extend((base.stack_file.region, str(base.program), side.stack_file.path.parent.name))
        return 0

    monkeypatch.chdir(folder)
    given = command.WhatifOptions("mine", "HEAD", changes=["main"], output=tmp_path / "out")
    assert command.run(given, command.Tools(lambda *_: "", lambda _: "", rehearse)) == 0
    assert asked == ["eu-west-1", str(PROGRAM), folder_name(f"{below}/")]


def test_what_is_too_long_for_a_file_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="neither a file or folder nor a git ref"):
        source("x" * 300, "eks", tmp_path)


def test_a_name_can_be_a_folders() -> None:
    assert folder_name("origin/feature/../x y") == "origin-feature-..-x-y"
    assert folder_name("../..") == "unnamed"
    assert len(folder_name("x" * 500)) == 60


def test_as_many_run_at_once_as_the_memory_holds_and_all_are_run(tmp_path: Path) -> None:
    assert 1 <= candidates.side_by_side(1000) <= (os.cpu_count() or 1)
    commands = [(name, ["--no-such"], tmp_path / name) for name in ("a", "b", "c")]
    assert candidates.rehearse_all(commands, 2).codes == {"a": 2, "b": 2, "c": 2}
    assert "Usage" in (tmp_path / "c" / "rehearsal.log").read_text()


def test_a_log_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("years of work")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "rehearsal.log").symlink_to(tmp_path / "precious")
    assert candidates.rehearse_all([("a", ["--no-such"], tmp_path / "a")]).codes == {"a": 2}
    assert (tmp_path / "precious").read_text() == "years of work"
    assert "Usage" in (tmp_path / "a" / "rehearsal.log").read_text()


def test_nothing_begins_when_the_time_is_over(tmp_path: Path) -> None:
    outcome = candidates.rehearse_all([("a", ["--no-such"], tmp_path / "a")], minutes=0)
    assert (outcome.codes, outcome.interrupted) == ({}, False)
    assert outcome.missing == {"a": "the time limit was reached before it started"}
    assert not (tmp_path / "a").exists()


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the arguments of a what-if be a program and its arguments."""
    fake = tmp_path / "python"
    fake.write_text('#!/bin/sh\nshift 2\nexec "$@"\n')
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake))


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("deaf", [False, True])
def test_an_interrupt_keeps_what_has_ended_and_leaves_no_process(tmp_path: Path, *, deaf: bool) -> None:
    said = []

    def say(text: str) -> None:
        said.append(text)
        if "finished" in text or ("Stopping" in text and deaf):
            raise KeyboardInterrupt

    endless = ["env", "--ignore-signal=INT", "sleep", "600"] if deaf else ["sleep", "600"]
    commands = [("done", ["true"]), ("runs", endless), ("waits", ["true"])]
    named = [(name, words, tmp_path / name) for name, words in commands]
    outcome = candidates.rehearse_all(named, 2, say=say, grace=0.2)
    assert (outcome.codes, outcome.interrupted) == ({"done": 0}, True)
    assert outcome.missing["runs"].startswith("the command was interrupted")
    assert str(tmp_path / "runs" / "rehearsal.log") in outcome.missing["runs"]
    assert outcome.missing["waits"] == "the command was interrupted before it started"
    assert not [one for one in psutil.Process().children(recursive=True) if "600" in one.cmdline()]


@pytest.mark.usefixtures("programs")
def test_the_time_limit_stops_those_that_run(tmp_path: Path) -> None:
    outcome = candidates.rehearse_all([("runs", ["sleep", "600"], tmp_path / "runs")], minutes=0.01)
    assert (outcome.codes, outcome.interrupted) == ({}, False)
    assert outcome.missing["runs"].startswith("the time limit was reached")
