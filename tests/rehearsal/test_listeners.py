"""Nobody else gets in: what listens is declared, and answers neither another user nor a page in a browser."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from rehearsal import listeners
from tests.rehearsal import listening
from tests.rehearsal.conftest import RehearsedStack

needs_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the kernel's tables in /proc")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def only_what_is_declared_listens(stack: RehearsedStack) -> None:
    """Compare the list with what the kernel says."""
    declared = {listener.address for listener in listeners.declared(stack.folder, stack.info)}
    assert listening.sockets_of_the_kernel(stack) == declared
    for address in declared:
        if address.startswith("unix:"):
            folder = Path(address.removeprefix("unix:")).parent.stat()
            assert (folder.st_uid, folder.st_mode & 0o077) == (os.geteuid(), 0), address
        else:
            assert address.startswith("127.0.0.1:")
    shown = stack.succeed("status")
    assert "not declared" not in shown, shown


def a_stranger_gets_nothing(stack: RehearsedStack) -> None:
    """Ask everything as another user: without secrets, and with all of them."""
    ours = listening.probes_with_secrets(stack)
    assert [outcome[:3] for outcome in listening.outcomes(ours)] == ["200"] * len(ours), (
        "the probes themselves are good"
    )
    probes = [*listening.probes_of_everything(stack), *ours, *listening.probes_of_files(stack)]
    got = zip(probes, listening.outcomes(probes, listening.NOBODY), strict=True)
    assert [(probe, outcome) for probe, outcome in got if not listening.is_nothing(outcome)] == []


@needs_linux
def test_only_what_is_declared_listens(eks: RehearsedStack) -> None:
    only_what_is_declared_listens(eks)


@needs_root
def test_a_stranger_gets_nothing(eks: RehearsedStack) -> None:
    a_stranger_gets_nothing(eks)
