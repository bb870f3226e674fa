"""Tests that need nothing but Python: whatever they call starts no process and connects to nobody else's machine."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

_PROCESSES = {"os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "subprocess.Popen"}
_CONNECTIONS = {"socket.connect", "socket.sendmsg", "socket.sendto"}
_NETWORK = {socket.AF_INET, socket.AF_INET6}
_THIS_MACHINE = {"127.0.0.1", "::1", "::ffff:127.0.0.1", "localhost"}
_watching = False


@contextmanager
def alone() -> Iterator[None]:
    """Refuse processes, and connections to other machines."""
    global _watching
    _watching = True
    try:
        yield
    finally:
        _watching = False


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watching:
        return
    if event in _PROCESSES:
        what = f"a process ({event}: {arguments[1] if event == 'subprocess.Popen' else arguments[:1]})"
    elif event in _CONNECTIONS and _leaves(*arguments):
        what = f"a connection to {arguments[1]}"
    else:
        return
    # No `Exception`, so that the code under test does not catch it.
    pytest.fail(f"{what} in a tier that has none; a test that needs it belongs to tests/programs or tests/rehearsal")


def _leaves(by: socket.socket, address: Any) -> bool:
    return by.family in _NETWORK and bool(address) and address[0] not in _THIS_MACHINE


# There is no way to take an audit hook back: it is there once in each process, and looks away outside of `alone`.
sys.addaudithook(_refuse)
