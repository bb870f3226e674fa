"""The process of a policy pack: `python -m pulumi.policy`, run by a copy of a process that has loaded the SDK already.

A new Python would take half a second of each judged update to load it again. The copy is made before its original has
threads, for gRPC's would not work in it, and waits. It ends with its original when no pack is asked for.

Changes in pulumi_policy: what a resource's message says is read once, and not for each rule, which was half of the time
that judging takes. Each rule is given a copy of its own as before.
"""

from __future__ import annotations

import io
import json
import marshal
import os
import runpy
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

from google.protobuf import json_format

_MODULE = "pulumi.policy"


class PackProcess:
    """A process that waits to become a policy pack's.

    Attributes:
        stdout: What the pack writes; it ends with the pack.
        stderr: Likewise.
    """

    def __init__(self) -> None:
        """Start it, from a process with one thread. In the copy, this ends with SystemExit."""
        orders, self._orders = os.pipe()
        outputs = os.pipe(), os.pipe()
        self._pid = os.fork()
        if not self._pid:
            os.close(self._orders)  # or it would wait for itself
            _become(orders, [writer for _, writer in outputs])
        for ours in (orders, *(writer for _, writer in outputs)):
            os.close(ours)
        self.stdout: IO[bytes]
        self.stderr: IO[bytes]
        self.stdout, self.stderr = (os.fdopen(reader, "rb") for reader, _ in outputs)

    def run(self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        """Let it run the pack of a folder.

        Args:
            arguments: The engine's, for the module.
            folder: The pack.
            environment: All that the pack's process has.
        """
        order = {"arguments": [*arguments, str(folder)], "folder": str(folder), "environment": dict(environment)}
        with os.fdopen(self._orders, "w") as orders, suppress(BrokenPipeError):  # it was killed; `wait` tells
            json.dump(order, orders)

    def terminate(self) -> None:
        """Ask it to end; nothing happens when it has."""
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGTERM)

    def wait(self) -> int:
        """Wait for its end; its exit code, as `subprocess` has it."""
        _, status = os.waitpid(self._pid, 0)
        return os.waitstatus_to_exitcode(status)


def read_once() -> None:
    """Have pulumi_policy read each message once; nothing happens where there is none."""
    try:
        from pulumi_policy import policy
    except ImportError:  # then the pack says so
        return
    known: dict[bytes, bytes] = {}

    def message_to_dict(message: Any) -> Any:
        content: bytes = message.SerializeToString()
        if content not in known:
            known[content] = marshal.dumps(json_format.MessageToDict(message))
        return marshal.loads(known[content])  # noqa: S302 - written by this process

    # All of that module that it uses.
    vars(policy)["json_format"] = SimpleNamespace(MessageToDict=message_to_dict)


def _become(orders: int, outputs: Sequence[int]) -> None:
    # The engine's interrupts reach the whole group: while there is nothing to put in order, it just ends.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with os.fdopen(orders) as stream:
        order = stream.read()
    if not order:  # the original has ended
        sys.exit(0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    pack = json.loads(order)
    for number, writer in enumerate(outputs, 1):
        os.dup2(writer, number)
        os.close(writer)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    # As `python -u` has it: the engine waits for the first line.
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), write_through=True)
    os.environ.clear()
    os.environ.update(pack["environment"])
    os.chdir(pack["folder"])
    sys.path[0] = pack["folder"]
    sys.argv = [_MODULE, *pack["arguments"]]
    read_once()
    runpy.run_module(_MODULE, run_name="__main__", alter_sys=True)
    sys.exit(0)
