"""Programs of which only the beginning is read, as with `| head`, say nothing about it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from karpstack.text import output

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


def test_another_pipe_that_breaks_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail() -> int:
        raise BrokenPipeError("the daemon's")

    monkeypatch.setattr(sys, "stdout", (tmp_path / "output").open("w"))
    with pytest.raises(BrokenPipeError, match="the daemon's"):
        output.run(fail)
