"""This tier starts no processes and connects to no other machine: a test that tries fails."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable

import pytest

# Reserved for documentation: nobody is there.
ELSEWHERE = ("192.0.2.1", 9)


def udp() -> socket.socket:
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: subprocess.run([sys.executable, "-c", "pass"]),
        lambda: os.system("true"),  # noqa: S605  # it is not run
        lambda: udp().connect(ELSEWHERE),
        lambda: udp().sendto(b"x", ELSEWHERE),
    ],
    ids=["subprocess", "os.system", "connect", "sendto"],
)
def test_what_belongs_to_another_tier_fails(attempt: Callable[[], object]) -> None:
    with pytest.raises(pytest.fail.Exception, match="in a tier that has none"):
        attempt()


def test_this_machine_may_be_spoken_to() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        pass
