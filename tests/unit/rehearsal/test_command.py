"""Commands that are run on our terminal: their end, and what they hear of an interrupt."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rehearsal.command import call

ROOT = Path(__file__).resolve().parents[3]
# Says that it is there, and how often it was interrupted when it ends.
CHILD = """
import signal, sys, time
heard = 0
def interrupted(*_):
    global heard
    heard += 1
signal.signal(signal.SIGINT, interrupted)
print("ready", flush=True)
while not heard:
    time.sleep(0.01)
time.sleep(0.2)
print(f"heard {heard}", flush=True)
"""
PARENT = f"""
import os, signal, sys
from pathlib import Path
from rehearsal.command import call
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
try:
    call([sys.executable, "-c", {CHILD!r}], os.environ, Path.cwd())
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_the_exit_code_is_the_commands(tmp_path: Path) -> None:
    assert call([sys.executable, "-c", "raise SystemExit(3)"], os.environ, tmp_path) == 3


@pytest.mark.parametrize("whole_group", [True, False], ids=["as a terminal does", "as kill does"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_hears_of_an_interrupt_once_and_ends_by_itself(number: signal.Signals, whole_group: bool) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as parent:
        assert parent.stdout
        try:
            assert parent.stdout.readline() == "ready\n"
            (os.killpg if whole_group else os.kill)(parent.pid, number)
            output, _ = parent.communicate(timeout=20)
        finally:
            parent.kill()
    assert output == "heard 1\ninterrupted\n"
