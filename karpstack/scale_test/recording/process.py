"""Whether a timeline is being recorded: waiting for that, and putting an end to it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from .timeline import Line, Reader, is_recorded

# A file has no portable way to wake its readers; looking at its end costs microseconds.
LOOK_SECONDS = 0.1


class RecorderError(RuntimeError):
    """The recorder does not record, or does not stop."""


def wait_until_recorded(path: Path, timeout: float) -> None:
    """Return when a recorder has read all lists and watches.

    Raises:
        RecorderError: It has not after `timeout` seconds, or it has ended.
    """
    reader = Reader(path)
    seen: dict[str, Line] = {}
    deadline = time.monotonic() + timeout
    while True:
        seen |= {line["type"]: line for line in reader.new_lines()}
        if "STOP" in seen:
            raise RecorderError(_useless(seen["STOP"]["reason"]))
        if "SYNCED" in seen and is_recorded(path):
            return
        if time.monotonic() > deadline:
            raise RecorderError(_useless(f"not all lists read after {timeout:g} s"))
        time.sleep(LOOK_SECONDS)


def _useless(why: str) -> str:
    return (
        f"the recorder does not record ({why}), so nothing could be judged; check that KUBECONFIG reaches "
        "the cluster and that Karpenter's CRDs are installed"
    )


def stop(path: Path, timeout: float) -> bool:
    """Stop the recorder of a timeline and return when it has let go of it; whether there was one.

    Raises:
        RecorderError: It did not stop in `timeout` seconds.
    """
    if not is_recorded(path):
        return False
    pid = next((line["pid"] for line in Reader(path).new_lines() if line["type"] == "START"), None)
    # Of a broken file: 0 and less would be many processes.
    if not isinstance(pid, int) or pid <= 1:
        raise RecorderError(f"{path} is held by a recorder that has not said its process id; end it by hand")
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + timeout
    while is_recorded(path):
        if time.monotonic() > deadline:
            raise RecorderError(f"the recorder, process {pid}, did not stop in {timeout:g} s; end it by hand")
        time.sleep(LOOK_SECONDS)
    return True
