"""Programs of which only the beginning is read, as with `| head`, say nothing about it."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from karpstack.text import output
from karpstack.text.codes import Code, reported

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "command",
    [
        "--help",
        "compare --help",
        "snapshot check examples/snapshots/200-pods.json",  # less than a buffer: written when the program ends
        "snapshot schema",  # more than that
        "whatif schema",
    ],
)
def test_output_that_nobody_reads_is_no_error(command: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as unread:
        ended = subprocess.run(
            [sys.executable, "-m", "karpstack", *command.split()],
            cwd=ROOT,
            stdout=unread,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert ended.stderr.decode() == ""
    assert ended.returncode == 141


def test_a_closed_output_is_no_error() -> None:
    ended = subprocess.run(
        ["sh", "-c", '"$0" -m karpstack version >&-', sys.executable], cwd=ROOT, stderr=subprocess.PIPE, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, b"")


SHOW = [sys.executable, "-m", "karpstack", "snapshot", "show", "examples/snapshots/20-pods.json"]


def test_an_output_that_cannot_be_written_is_an_error_in_words() -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(SHOW, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (
        ended.stderr == "error: not everything could be written (No space left on device); make room, and try again\n"
    )
    assert ended.returncode == 3


def test_a_full_output_is_no_file_that_a_command_was_given() -> None:
    """Which each command knows an exit code for, with another fix."""

    @reported({OSError: Code.WRONG})
    def command(name: str | None) -> int:
        raise OSError(errno.ENOSPC, "no room", name)

    assert command("out.json") == Code.WRONG
    with pytest.raises(OSError, match="no room"):
        command(None)


@pytest.mark.parametrize(
    ("command", "written", "said"),
    [
        ("scenario new first --folder scenarios", "scenarios/first.yml", "make room there, or give another path"),
        (
            "network mine --config-file Pulumi.mine.yaml",
            "Pulumi.mine.network.json",
            "--output, --report or --review if it has",
        ),
    ],
)
def test_a_file_for_which_there_is_no_room_is_named_and_not_left(
    tmp_path: Path, command: str, written: str, said: str
) -> None:
    shutil.copy(ROOT / "Pulumi.eks.yaml", tmp_path / "Pulumi.mine.yaml")
    started = [sys.executable, "-P", "-m", "karpstack", *command.split()]
    full = ["bash", "-c", 'ulimit -f 0; exec "$@"', "-", *started]  # as on a full disk, files have room for nothing
    ended = subprocess.run(full, cwd=tmp_path, capture_output=True, text=True, check=False)
    words = " ".join(ended.stderr.split())
    assert written in words
    assert "Traceback" not in words
    assert said in words
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "Pulumi.mine.yaml"]
    assert subprocess.run(started, cwd=tmp_path, capture_output=True, check=False).returncode == 0  # with room again


def test_a_terminal_without_utf_8_gets_escapes() -> None:
    variables = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    ended = subprocess.run(SHOW, cwd=ROOT, env=variables, capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert b"20 pods in 7 workloads" in ended.stdout


def test_another_pipe_that_breaks_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail() -> int:
        raise BrokenPipeError("the daemon's")

    monkeypatch.setattr(sys, "stdout", (tmp_path / "output").open("w"))
    with pytest.raises(BrokenPipeError, match="the daemon's"):
        output.run(fail)
