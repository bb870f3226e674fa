"""Cluster time: one function of the machine's time in all processes, which nobody goes round."""

from __future__ import annotations

import ast
import queue
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from karpstack.karpenter import clock
from tests.unit.test_arrows import modules

#: Modules that ask the machine's clock, and why what they measure is no cluster time.
REAL: Final = {
    "components/aks/node_bootstrap.py": "the calendar of a token that the program writes",
    "components/kubernetes/accepted.py": "patience with a cloud's API",
    "components/kubernetes/live.py": "patience with a cloud's API",
    "components/last_state.py": "patience with Pulumi's engine",
    "karpenter/clock.py": "it is what makes cluster time of it",
    "pull_request/github.py": "GitHub's limits",
    "playbooks/plugins/module_utils/actions/real_run.py": "how long a command took",
    "preflight/aws/asking.py": "patience with a cloud's API",
    "preflight/aws/charts.py": "patience with a registry",
    "preflight/refresh/price_list.py": "the date of what the cloud said",
    "real_run/guard.py": "processes of this machine",
    "real_run/stages.py": "processes of this machine",
    "rehearsal/commands.py": "dates of files",
    "rehearsal/cluster/provider/api.py": "patience with this machine: nothing here takes as long",
    "rehearsal/engines/builder.py": "how long compiling takes",
    "rehearsal/engines/manifest.py": "dates of files",
    "rehearsal/engines/pulling.py": "how long pulling takes",
    "rehearsal/host/peers.py": "how long what the kernel said is kept",
    "rehearsal/host/processes.py": "processes of this machine",
    "rehearsal/session/daemon.py": "processes of this machine",
    "rehearsal/session/lifetime.py": "how long a command took",
    "rehearsal/session/lock.py": "patience with another command",
    "rehearsal/session/removal.py": "how often a person is told something",
    "rehearsal/session/speed.py": "it measures this machine",
    "rehearsal/whatif/candidate.py": "how long a command took",
    "rehearsal/whatif/candidates.py": "how long a command took",
    "rehearsal/whatif/manifests.py": "patience with a command",
    "scale_test/judging/live.py": "how often a file is looked at",
    "scale_test/recording/following.py": "patience with an API server",
    "scale_test/recording/metrics.py": "how long the controller took to answer",
    "scale_test/recording/process.py": "a process of this machine",
    "scale_test/recording/recorder.py": "what the controller spends on answers",
    "scale_test/stack_lock.py": "patience with another command",
    "text/answers.py": "patience with a server",
    "text/exec_plugin.py": "when a login ends",
    "scale_test/acting/living.py": "how long the rehearsal of some days took",
}
_CALLS: Final = {"time", "monotonic", "sleep", "time_ns", "monotonic_ns", "perf_counter"}


@pytest.fixture
def page(tmp_path: Path) -> Iterator[clock.Page]:
    made = clock.Page.create(tmp_path / "clock")
    clock.follow(made)
    yield made
    clock.follow(None)


def test_without_a_page_cluster_time_is_the_machines() -> None:
    assert abs(clock.now() - time.time()) < 1
    assert abs(clock.monotonic() - time.monotonic()) < 1
    assert clock.speed() == 1


def test_time_begins_as_the_machines(page: clock.Page) -> None:
    assert abs(clock.now() - time.time()) < 0.5
    assert abs(clock.utcnow().timestamp() - time.time()) < 0.5


def test_a_wait_takes_as_much_less_as_time_is_faster(page: clock.Page) -> None:
    page.set_speed(50)
    time.sleep(2 * clock.NOTICE)
    began, real = clock.monotonic(), time.monotonic()
    clock.sleep(5)
    assert clock.monotonic() - began >= 5
    assert time.monotonic() - real < 2.5


@pytest.mark.parametrize("wait", ["event", "queue"])
def test_waits_with_a_limit_keep_cluster_time(page: clock.Page, wait: str) -> None:
    page.set_speed(50)
    time.sleep(2 * clock.NOTICE)
    real = time.monotonic()
    if wait == "event":
        assert not clock.wait(threading.Event(), 5)
    else:
        with pytest.raises(queue.Empty):
            clock.get(queue.SimpleQueue(), 5)
    assert time.monotonic() - real < 2.5


def test_time_is_continuous_and_never_goes_back_whatever_the_speed(page: clock.Page, tmp_path: Path) -> None:
    stop, faults = threading.Event(), []

    def read() -> None:
        other, last = clock.Page(tmp_path / "clock"), 0
        while not stop.is_set():
            if (now := other.monotonic_ns()) < last or (last and now - last > 64 * 2_000_000_000):
                faults.append((last, now))
            last = now

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for speed in (8, 1, 64, 2, 8, 1):
        page.set_speed(speed)
    stop.set()
    for reader in readers:
        reader.join()
    assert not faults


def test_every_process_sees_the_same_time(page: clock.Page, tmp_path: Path) -> None:
    page.set_speed(8)
    real = time.monotonic_ns() + 10**10
    assert clock.Page(tmp_path / "clock").monotonic_ns(real) == page.monotonic_ns(real)


def test_somebody_who_waits_is_seen_until_they_end(page: clock.Page) -> None:
    assert not page.is_waited_for()
    with clock.waiting():
        assert page.is_waited_for()
    assert not page.is_waited_for()


def test_another_file_is_no_clock(tmp_path: Path) -> None:
    (tmp_path / "clock").write_bytes(bytes(4096))
    with pytest.raises(ValueError, match="no page of a clock"):
        clock.Page(tmp_path / "clock")


def test_only_named_modules_ask_the_machines_clock() -> None:
    found = {
        f"{module}.py" for module, path in modules() if _asks_the_machine(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found == REAL.keys(), "ask karpstack.karpenter.clock where cluster time is meant, or give the reason here"


def _asks_the_machine(module: ast.Module) -> bool:
    imported = {
        alias.asname or alias.name
        for node in ast.walk(module)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name == "time"
    }
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and node.module == "time":
            return True
        if not isinstance(node, ast.Attribute):
            continue
        owner = node.value
        if isinstance(owner, ast.Name) and owner.id in imported and node.attr in _CALLS:
            return True
        if node.attr in ("now", "utcnow", "today") and "datetime" in ast.unparse(owner):
            return True
    return False
