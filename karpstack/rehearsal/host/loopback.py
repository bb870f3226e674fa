"""A server in a thread of its own, on the loopback interface: what the rehearsal's HTTP servers have in common.

What is served, and in which protocol, is the business of whoever makes the server; who may ask is `guard`'s.
"""

from __future__ import annotations

import threading

from karpstack.rehearsal.host.guard import LOOPBACK, OwnUserServer

# How soon `stop` is noticed.
_SECONDS_BETWEEN_LOOKS = 0.1


class Loopback:
    """A server that listens already; its requests are answered from `start` on."""

    def __init__(self, server: OwnUserServer, name: str) -> None:
        """`name` names the thread."""
        self._server = server
        self._thread = threading.Thread(
            target=server.serve_forever, args=(_SECONDS_BETWEEN_LOOKS,), name=name, daemon=True
        )

    @property
    def url(self) -> str:
        """`http://127.0.0.1:<port>`."""
        return f"http://{LOOPBACK}:{self._server.server_address[1]}"

    def start(self) -> None:
        """Answer requests."""
        self._thread.start()

    def stop(self) -> None:
        """Close the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)
