"""The controller's process after it ended by itself: it comes back as a kubelet would bring it back."""

from __future__ import annotations

import itertools
import queue
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rehearsal.cluster import controller as module
from rehearsal.cluster.controller import LABEL, Controller
from rehearsal.host.processes import EngineCrashError
from rehearsal.state.folder import StackFolder
from tests.unit.rehearsal.cluster_world import World

PODS = f"/api/v1/pods?{LABEL}"
BACK_OFF = 0.1


class Tries:
    """Stands in for the start of the process: says what is to come of each try, and when it was made."""

    def __init__(self, *problems: str) -> None:
        self.problems = list(problems)
        self.made: queue.Queue[float] = queue.Queue()

    def begin(self, pod: dict[str, Any]) -> str:
        self.made.put(time.monotonic())
        return self.problems.pop(0) if self.problems else ""


def pod(name: str = "karpenter-1", template: str = "a") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "kube-system",
            "uid": name,
            "labels": {"pod-template-hash": template},
            "creationTimestamp": "2026-11-21T10:00:00Z",
        },
        "spec": {"nodeName": "system"},
    }


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def lost() -> queue.Queue[str]:
    """The engines that were said to be lost."""
    return queue.Queue()


@pytest.fixture
def controller(
    tmp_path: Path, world: World, lost: queue.Queue[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Controller]:
    monkeypatch.setattr(module, "_FIRST_BACK_OFF", BACK_OFF)
    found = Controller(
        StackFolder("test", tmp_path).create(),
        cast(Any, SimpleNamespace(stop=lambda *_: None, lose=lost.put)),
        cast(Any, SimpleNamespace(program=lambda name: Path("/karpenter"))),
        world.objects(),
        cast(Any, SimpleNamespace(controller_engine="karpenter-azure")),
        "https://127.0.0.1:6443",
        b"",
    )
    found.start()
    yield found
    found.stop()


def test_it_is_started_again_with_growing_patience(
    controller: Controller, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = Tries("no token", "no token", "no token")
    monkeypatch.setattr(controller, "_begin", tries.begin)
    world.happen(PODS, "ADDED", pod())
    made = [tries.made.get(timeout=5) for _ in range(4)]
    first, second, third = (later - earlier for earlier, later in itertools.pairwise(made))
    assert BACK_OFF <= first < second < third
    for _ in range(3):
        assert world.created.get(timeout=5)["message"] == "no token"
    # It runs: nobody starts it again.
    with pytest.raises(queue.Empty):
        tries.made.get(timeout=8 * BACK_OFF)
    assert controller.problem == ""


def test_one_that_crashed_and_never_starts_again_is_lost(
    controller: Controller, world: World, lost: queue.Queue[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = Tries("", *["no token"] * 9)

    def begin(pod: dict[str, Any]) -> str:
        problem = tries.begin(pod)
        if not problem:
            controller._engine = cast(Any, SimpleNamespace(pid=1, check=ended))
            controller._feed.after(0.0, "look", {"pid": 1})
        return problem

    monkeypatch.setattr(controller, "_begin", begin)
    world.happen(PODS, "ADDED", pod())
    for _ in range(4):
        assert lost.empty()
        tries.made.get(timeout=5)
    assert lost.get(timeout=5) == "karpenter-azure"


def ended() -> None:
    raise EngineCrashError("karpenter-azure exited with code 2")


class HostedTries:
    """Stands in for the start of the cloud's own process: the first try and those at `running` come up and crash."""

    def __init__(self, controller: Controller, *running: int) -> None:
        self._controller = controller
        self._running = running
        self.count = 0
        self.made: queue.Queue[int] = queue.Queue()

    def start(self, container: object) -> tuple[str, Any]:
        self.count += 1
        self.made.put(self.count)
        if self.count not in self._running:
            return "no API server", None
        engine = SimpleNamespace(pid=self.count, check=ended)
        self._controller._engine = cast(Any, engine)
        return "", engine


@pytest.mark.parametrize(("running", "tried"), [((1,), 5), ((1, 3), 7)])
def test_the_clouds_own_is_started_again_until_it_never_starts(
    controller: Controller,
    lost: queue.Queue[str],
    monkeypatch: pytest.MonkeyPatch,
    running: tuple[int, ...],
    tried: int,
) -> None:
    monkeypatch.setattr(module, "_LONGEST_BACK_OFF", BACK_OFF)
    monkeypatch.setattr(module, "_SECONDS_BETWEEN_LOOKS", 0.0)
    tries = HostedTries(controller, *running)
    monkeypatch.setattr(controller, "_start", tries.start)
    assert controller.host("kube-system", {}, "token") == ""
    assert controller.hosted
    assert lost.get(timeout=5) == "karpenter-azure"
    # Three failures in a row are forgiven, whatever came before.
    assert tries.count == tried - 1


def test_the_clouds_own_that_was_switched_off_is_not_started_again(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SECONDS_BETWEEN_LOOKS", 0.0)
    tries = HostedTries(controller, 1)
    monkeypatch.setattr(controller, "_start", tries.start)
    controller.host("kube-system", {}, "token")
    controller.end_hosted()
    assert not controller.hosted
    tries.made.get(timeout=5)
    with pytest.raises(queue.Empty):
        tries.made.get(timeout=3 * BACK_OFF)


def test_one_that_was_switched_off_and_on_is_not_begun_again_for_the_crash_of_the_first(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SECONDS_BETWEEN_LOOKS", 0.0)
    tries = HostedTries(controller, 1, 2)
    monkeypatch.setattr(controller, "_start", tries.start)
    controller.host("kube-system", {}, "token")
    deadline = time.monotonic() + 5
    while not controller.problem and time.monotonic() < deadline:  # until the crash is noticed
        time.sleep(0.005)
    monkeypatch.setattr(controller, "_look", lambda pid: None)  # the second stays
    controller.end_hosted()
    assert controller.host("kube-system", {}, "token") == ""
    assert controller.problem == ""
    time.sleep(4 * BACK_OFF)
    assert tries.count == 2


def test_one_that_never_ran_is_not_lost_but_waits_to_be_mended(
    controller: Controller, world: World, lost: queue.Queue[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LONGEST_BACK_OFF", BACK_OFF)
    tries = Tries(*["no token"] * 9)
    monkeypatch.setattr(controller, "_begin", tries.begin)
    world.happen(PODS, "ADDED", pod())
    for _ in range(6):
        tries.made.get(timeout=5)
    assert lost.empty()


def test_a_changed_template_is_tried_without_patience(
    controller: Controller, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller, "_back_off", 60.0)
    tries = Tries("no token")
    monkeypatch.setattr(controller, "_begin", tries.begin)
    world.happen(PODS, "ADDED", pod())
    tries.made.get(timeout=5)
    mended = pod("karpenter-2", "b")
    mended["metadata"]["creationTimestamp"] = "2026-11-21T10:00:01Z"
    world.happen(PODS, "ADDED", mended)
    tries.made.get(timeout=5)
