"""EKS's last log lines, which are written when their cluster is gone already.

What a control plane logged at its end arrives late. EKS's service-linked role makes the log group again for it where
the group was deleted meanwhile: without a limit on the age of its lines, and in the way of whoever makes it next.
"""

from __future__ import annotations

import threading
from typing import Any

from karpstack.karpenter import clock


class LastLines:
    """The log groups that EKS makes again."""

    def __init__(self, account_id: str, region: str, delay: float, turn: threading.RLock) -> None:
        """Follow clusters of an account; `delay` in seconds, `turn` is held while moto's models are changed."""
        self._account_id = account_id
        self._region = region
        self._delay = delay
        self._turn = turn
        self._pending: list[threading.Event] = []

    def follow(self, cluster: str) -> None:
        """Write the last lines of a cluster that has just been deleted, after the delay."""
        self._pending.append(clock.after(self._delay, lambda: self._write(f"/aws/eks/{cluster}/cluster")))

    def stop(self) -> None:
        """Write no more; safe to call twice."""
        for cancelled in self._pending:
            cancelled.set()
        self._pending.clear()

    def _write(self, group: str) -> None:
        from moto.logs.models import logs_backends

        backend: Any = logs_backends[self._account_id][self._region]
        with self._turn:
            if group not in backend.groups:
                backend.create_log_group(group, {})
