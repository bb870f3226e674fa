"""Whose is the other end of a loopback connection? The kernel knows: each of its sockets has a user.

A port of the loopback interface is open to every user of the machine. A server of the rehearsal asks here about each
connection and answers those of its own user alone.
"""

from __future__ import annotations

import logging
import os
import socket
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil

#: Address and port.
Address = tuple[str, int]

_LOG = logging.getLogger(__name__)

# -- linux/sock_diag.h and linux/inet_diag.h: a question about one socket of TCP
_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST = 1
_NO_COOKIE = b"\xff" * 8
_HEADER = struct.Struct("=IHHII")
# Family, protocol, extensions, states; then the socket.
_REQUEST = struct.Struct("=BBBxI")
# Ports and addresses of both ends, in network order, interface, cookie.
_SOCKET = struct.Struct("!HH16s16s4x8s")
# State; user, inode; the rest repeats the question, or counts bytes.
_ANSWER = struct.Struct(f"=xBxx{_SOCKET.size}x12xII")
_ANSWER_SECONDS = 1.0

_ESTABLISHED = 1
_LISTENING = "0A"
#: The kernel's tables of connections. A socket that is meant for both protocols shows IPv4 addresses in the second.
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_MAPPED = "0000000000000000FFFF0000"
# Where no table can be read, each process of ours is looked at, which takes too long to be done for each of many calls.
_SECONDS_REMEMBERED = 1.0


@dataclass(frozen=True)
class _End:
    """One end of a connection as the kernel has it."""

    state: int
    uid: int
    inode: int

    @property
    def ours(self) -> bool:
        # A socket without an inode belongs to no process any more, and its user is shown as 0 whoever it was.
        return self.state == _ESTABLISHED and self.inode != 0 and self.uid == os.geteuid()


def is_own(client: Address, server: Address) -> bool:
    """Whether the client's end of a connection belongs to the user of this process.

    What cannot be told is no: another user's, another machine's, a connection that is being closed.

    Args:
        client: Address and port of the client, IPv4.
        server: Address and port of the server, as the client sees it.
    """
    try:
        if not sys.platform.startswith("linux"):
            return _is_of_own_process(client, server)
        end = (_asked if _kernel_can_be_asked() else _looked_up)(client, server)
    except (OSError, ValueError, struct.error, psutil.Error) as error:
        _LOG.warning("whose connection %s:%d is cannot be told, so it is refused: %s", *client, error)
        return False
    return end is not None and end.ours


def is_own_listener(port: int) -> bool:
    """Whether this user's processes, and nobody else's, listen at a loopback port."""
    if not sys.platform.startswith("linux"):
        return any(port == each for process in _own_processes() for each in _listening(process))
    found = [
        int(columns[7])
        for table in _TABLES
        for columns in map(str.split, table.read_text().splitlines()[1:] if table.exists() else ())
        if columns[3] == _LISTENING and int(columns[1].rpartition(":")[2], 16) == port
    ]
    return bool(found) and set(found) == {os.geteuid()}


def _own_processes() -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.uids().effective == os.geteuid():
                yield process


def _listening(process: psutil.Process) -> list[int]:
    with suppress(psutil.Error):
        return [each.laddr[1] for each in process.net_connections("tcp") if each.status == psutil.CONN_LISTEN]
    return []


def is_established(connection: socket.socket) -> bool:
    """Whether an accepted connection is still whole; where the kernel does not tell, it is taken to be."""
    if not hasattr(socket, "TCP_INFO"):
        return True
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == _ESTABLISHED


def _asked(client: Address, server: Address) -> _End | None:
    """Ask the kernel about this very socket (sock_diag(7)): some microseconds."""
    addresses = [socket.inet_aton(client[0]), socket.inet_aton(server[0])]
    wanted = _SOCKET.pack(client[1], server[1], *addresses, _NO_COOKIE)
    request = _REQUEST.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, 0xFFFFFFFF) + wanted
    header = _HEADER.pack(_HEADER.size + len(request), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(_ANSWER_SECONDS)
        kernel.sendto(header + request, (0, 0))
        answer = kernel.recv(4096)
    if _HEADER.unpack_from(answer)[1] != _SOCK_DIAG_BY_FAMILY:
        return None  # an error: there is no such socket
    # Where there is no such connection this may be a socket that listens at the client's address; its state says so.
    return _End(*_ANSWER.unpack_from(answer, _HEADER.size))


@cache
def _kernel_can_be_asked() -> bool:
    """Whether it answers about a connection of our own; some sandboxes have no sock_diag."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        with socket.create_connection(address) as client:
            try:
                end = _asked(client.getsockname(), address)
            except (OSError, struct.error):
                return False
    return end is not None and end.ours


def _looked_up(client: Address, server: Address) -> _End | None:
    """Look into the kernel's tables of connections: some milliseconds."""
    ends = [_hexadecimal(client), _hexadecimal(server)]
    for table, prefix in zip(_TABLES, ("", _MAPPED), strict=True):
        wanted = [prefix + end for end in ends]
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            columns = line.split()
            if columns[1:3] == wanted:
                return _End(int(columns[3], 16), int(columns[7]), int(columns[9]))
    return None


def _hexadecimal(address: Address) -> str:
    """An address as the tables have it: the machine's order of bytes."""
    (number,) = struct.unpack("=I", socket.inet_aton(address[0]))
    return f"{number:08X}:{address[1]:04X}"


_remembered: dict[tuple[Address, Address], float] = {}


def _is_of_own_process(client: Address, server: Address) -> bool:
    """Look for the connection among those of our user's processes; elsewhere than on Linux."""
    now = time.monotonic()
    for connection in [each for each, until in _remembered.items() if until <= now]:
        _remembered.pop(connection, None)
    if (client, server) in _remembered:
        return True
    for process in psutil.process_iter():
        try:
            if process.uids().effective == os.geteuid() and any(
                each.status == psutil.CONN_ESTABLISHED and (each.laddr, each.raddr) == (client, server)
                for each in process.net_connections("tcp")
            ):
                _remembered[client, server] = now + _SECONDS_REMEMBERED
                return True
        except psutil.Error:
            continue
    return False
