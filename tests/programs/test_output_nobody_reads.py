"""Programs of which only the beginning is read, as with `| head`, say nothing about it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "command",
    [
        "preflight --help",
        "pull_request --help",
        "real_run --help",
        "rehearsal --help",
        "review --help",
        "scale_test --help",
        "snapshot check examples/snapshots/200-pods.json",  # less than a buffer: written when the program ends
        "snapshot schema",  # more than that
        "whatif schema",
    ],
)
def test_output_that_nobody_reads_is_no_error(command: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as unread:
        program, *arguments = command.split()
        ended = subprocess.run(
            [sys.executable, "-m", f"karpstack.{program}", *arguments],
            cwd=ROOT,
            stdout=unread,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert ended.stderr.decode() == ""
    assert ended.returncode == (0 if "--help" in command else 141)  # argparse does not notice
