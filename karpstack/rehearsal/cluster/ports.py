"""Ports of the loopback interface for engines that are told which port to listen on."""

from __future__ import annotations

import socket


class ReservedPort:
    """A port that processes of this user alone can listen on, from the start until `close`.

    The kernel lets several sockets have one port when all ask for that (SO_REUSEPORT) and belong to one user. The one
    here never listens: it holds the port before the engine has started, and while it is started again. An engine that
    does not ask for it cannot listen there.

    Attributes:
        number: The port, chosen by the operating system.
    """

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.number: int = self._socket.getsockname()[1]

    def close(self) -> None:
        """Let others have the port; safe to call twice."""
        self._socket.close()
