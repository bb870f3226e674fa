"""Long-running operations: what was accepted and is done a little later.

Nothing runs in the background. An operation has a time at which it ends; whoever looks at the store after that time
finds it ended (`Operations.settle`), and whoever must wait does so on `Operations.wait`, which `close` ends at once.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from karpstack.karpenter import clock
from karpstack.rehearsal.azure.arm.errors import ArmError


@dataclass(frozen=True)
class Durations:
    """How long ARM takes for what it does not do at once, in seconds; chosen, not measured.

    Attributes:
        cluster: To create, update or delete a managed cluster. Azure takes minutes.
        agent_pool: The same for an agent pool.
        virtual_machine: To create a VM. It ends before the kubelet registers (`Timing.node_boot`).
        deletion: To delete a VM or a network interface.
    """

    cluster: float = 2.0
    agent_pool: float = 1.0
    virtual_machine: float = 1.0
    deletion: float = 0.5

    @classmethod
    def none(cls) -> Durations:
        """Everything at once, for tests."""
        return cls(0, 0, 0, 0)


@dataclass
class Operation:
    """One operation.

    Attributes:
        id: GUID, part of the URL at which a client asks for it.
        resource: Key of the resource.
        ends: Monotonic time of its end.
        finish: What happens at its end.
        error: Why it fails at its end; None when it succeeds.
        done: Whether the end was reached and `finish` was called.
    """

    resource: str
    ends: float
    finish: Callable[[], None]
    error: ArmError | None = None
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    done: bool = False

    @property
    def status(self) -> str:
        """As ARM says it."""
        if not self.done:
            return "InProgress"
        return "Failed" if self.error else "Succeeded"


class Operations:
    """The operations of one subscription; its lock is the store's."""

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self._operations: dict[str, Operation] = {}
        self._closed = threading.Event()

    def begin(
        self, resource: str, seconds: float, finish: Callable[[], None], error: ArmError | None = None
    ) -> Operation:
        """Start an operation; one that takes no time has ended when this returns."""
        operation = Operation(resource, clock.monotonic() + seconds, finish, error)
        with self._lock:
            self._operations[operation.id] = operation
            self.settle()
        return operation

    def get(self, identifier: str) -> Operation | None:
        """The operation of an id, in its present state."""
        with self._lock:
            self.settle()
            return self._operations.get(identifier)

    def settle(self) -> None:
        """Finish what is due, in the order of its end."""
        with self._lock:
            now = clock.monotonic()
            due = [operation for operation in self._operations.values() if not operation.done and operation.ends <= now]
            for operation in sorted(due, key=lambda operation: operation.ends):
                operation.done = True
                operation.finish()

    def wait(self, operation: Operation) -> None:
        """Wait until an operation ends.

        Raises:
            ArmError: It failed.
            RuntimeError: The subscription was stopped meanwhile.
        """
        remaining = operation.ends - clock.monotonic()
        if remaining > 0 and clock.wait(self._closed, remaining):
            raise RuntimeError(f"the subscription was stopped while an operation on {operation.resource} was running")
        self.settle()
        if operation.error:
            raise operation.error

    def close(self) -> None:
        """End all waiting."""
        self._closed.set()
