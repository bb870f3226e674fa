"""A program that is interrupted before it handles that ends without a traceback; every other error has one."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("program", "code", "said"),
    [
        ("raise KeyboardInterrupt", -signal.SIGINT, ""),
        ("import os, signal; os.kill(os.getpid(), signal.SIGINT)", -signal.SIGINT, ""),
        ("raise ValueError('wrong')", 1, "ValueError: wrong"),
        ("import sys; sys.exit(4)", 4, ""),
        ("import sys; assert sys.argv[1:] == ['a', 'b'] and __name__ == '__main__'", 0, ""),
    ],
)
def test_an_interrupt_has_no_traceback(program: str, code: int, said: str, tmp_path: Path) -> None:
    script = tmp_path / "ansible-playbook"
    script.write_text(program)
    result = subprocess.run(
        [sys.executable, "-m", "karpstack.rehearsal.session.quiet", str(script), "a", "b"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == code
    assert result.stderr.strip().endswith(said)
    assert bool(result.stderr) == bool(said)
