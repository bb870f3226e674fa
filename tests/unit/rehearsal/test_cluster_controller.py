"""The controller's process follows its pods: which of them it belongs to, how it ends and when it starts anew."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from rehearsal.cluster import controller as module
from rehearsal.cluster.controller import LABEL, Controller
from rehearsal.cluster.controller_endpoint import ControllerEndpoint
from rehearsal.cluster.objects import ApiError, Object
from rehearsal.host.processes import EngineCrashError
from rehearsal.state.folder import StackFolder
from tests.unit.rehearsal.cluster_world import UnaskedCloud, World

PODS = f"/api/v1/pods?{LABEL}"


class Process:
    """It runs, unless it has crashed."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.crashed = False

    def check(self) -> None:
        if self.crashed:
            raise EngineCrashError("the role has no effect")


class Processes:
    """Stands in for `Engines`: tells of every start (port and token of its metrics) and stop (its grace)."""

    def __init__(self) -> None:
        self.told: queue.Queue[tuple[str, Any]] = queue.Queue()
        self._running: Process | None = None
        self.crash_at_start = 0
        self.environment: Mapping[str, str] = {}
        self._pids = iter(range(1, 100))

    def start(self, name: str, command: Sequence[str], *, environment: Mapping[str, str], vital: bool) -> Process:
        assert not vital  # a kubelet would start it again
        self._running = Process(next(self._pids))
        if self.crash_at_start:
            self.crash_at_start -= 1
            self._running.crashed = True
        self.environment = environment
        self.told.put(("start", (environment["METRICS_PORT"], environment["KARPSTACK_METRICS_TOKEN"])))
        return self._running

    @property
    def ready(self) -> bool:
        return self._running is not None and not self._running.crashed

    def stop(self, name: str, grace: float = 5.0) -> None:
        if self._running:
            self._running = None
            self.told.put(("stop", grace))


class Programs:
    def controller(self, name: str, release: str) -> Path:
        return Path(name)


class TheCloud(UnaskedCloud):
    problem: Exception | None = None

    def controller_environment(self, *arguments: Any) -> dict[str, str]:
        if self.problem:
            problem, self.problem = self.problem, None
            raise problem
        return {}


def pod(uid: str, template: str = "one", created: str = "10:00", **metadata: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": uid,
            "namespace": "kube-system",
            "uid": uid,
            "labels": {"pod-template-hash": template},
            "creationTimestamp": f"2026-01-01T{created}:00Z",
            **metadata,
        },
        "spec": {"nodeName": "node", "containers": [{"name": "controller"}]},
    }


class Rig:
    def __init__(self, folder: Path) -> None:
        self.world, self.processes, self.cloud = World(), Processes(), TheCloud()
        self.world.present["/api/v1/namespaces/kube-system/serviceaccounts/default"] = {"metadata": {}}
        self.controller = Controller(
            StackFolder("test", folder).create(),
            self.processes,  # type: ignore[arg-type]
            Programs(),  # type: ignore[arg-type]
            self.world.objects(),
            self.cloud,
            "https://127.0.0.1:1",
            b"",
        )
        self.controller.start()

    def happen(self, kind: str, item: Object) -> None:
        self.world.happen(PODS, kind, item)

    def told(self) -> tuple[str, Any]:
        return self.processes.told.get(timeout=5)

    def ready(self) -> str:
        """Name of the next pod that is told to be ready; the lease is passed over."""
        while True:
            path, _ = self.world.patched.get(timeout=5)
            if "/pods/" in path:
                return path.rsplit("/", 1)[-1]

    def quiet(self) -> bool:
        try:
            self.processes.told.get(timeout=0.2)
        except queue.Empty:
            return True
        return False


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    monkeypatch.setattr(module, "_FIRST_BACK_OFF", 0.1)
    monkeypatch.setattr(module, "create_token", lambda *arguments: "token")
    made = Rig(tmp_path)
    monkeypatch.setattr(ControllerEndpoint, "ready", lambda _: made.processes.ready)
    yield made
    made.controller.stop()


def test_one_process_for_all_pods_of_a_template(rig: Rig) -> None:
    rig.happen("ADDED", pod("a"))
    assert rig.told()[0] == "start"
    assert rig.ready() == "a"
    rig.happen("ADDED", pod("b", created="10:01"))
    assert rig.ready() == "b"
    rig.happen("DELETED", pod("b"))
    assert rig.quiet()


@pytest.mark.parametrize(("days", "disabled"), [("", None), ("1", "true")])
def test_a_lease_is_kept_unless_days_are_skipped(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, days: str, disabled: str | None
) -> None:
    monkeypatch.setenv(module.DAYS, days)
    rig.happen("ADDED", pod("a"))
    assert rig.told()[0] == "start"
    assert rig.processes.environment.get("DISABLE_LEADER_ELECTION") == disabled


def test_a_pod_that_is_deleted_takes_the_process_with_it(rig: Rig) -> None:
    rig.happen("ADDED", pod("a"))
    _, metrics = rig.told()
    rig.happen("MODIFIED", pod("a", deletionTimestamp="10:02"))
    assert rig.told() == ("stop", 5.0)
    rig.happen("DELETED", pod("a", deletionTimestamp="10:02"))
    assert rig.quiet()
    rig.happen("ADDED", pod("b", created="10:02"))
    assert rig.told() == ("start", metrics)  # where they are, and for whom, does not change
    assert rig.ready() == "a"
    assert rig.ready() == "b"


def test_a_pod_that_is_deleted_without_grace_kills_the_process(rig: Rig) -> None:
    rig.happen("ADDED", pod("a"))
    assert rig.told()[0] == "start"
    rig.happen("DELETED", pod("a"))
    assert rig.told() == ("stop", 0.0)
    rig.happen("ADDED", pod("b", created="10:02"))
    assert rig.told()[0] == "start"
    rig.happen("MODIFIED", pod("b", deletionTimestamp="10:02"))
    assert rig.told() == ("stop", 5.0)


def test_another_pod_takes_over(rig: Rig) -> None:
    rig.happen("ADDED", pod("a"))
    assert rig.told()[0] == "start"
    rig.happen("ADDED", pod("b", created="10:01"))
    assert rig.quiet()
    rig.happen("DELETED", pod("a"))
    assert rig.told() == ("stop", 0.0)
    assert rig.told()[0] == "start"


def test_another_template_is_another_process(rig: Rig) -> None:
    rig.happen("ADDED", pod("a"))
    assert rig.told()[0] == "start"
    rig.happen("ADDED", pod("b", "two", "10:01"))
    assert [rig.told()[0], rig.told()[0]] == ["stop", "start"]
    rig.happen("DELETED", pod("a", deletionTimestamp="10:02"))
    assert rig.quiet()


def test_a_start_that_meets_an_api_server_that_is_away_is_made_again(rig: Rig) -> None:
    rig.cloud.problem = ApiError(503, "ServiceUnavailable", "the API server is starting")
    rig.happen("ADDED", pod("a"))
    assert rig.told()[0] == "start"
    assert rig.controller.problem == ""


def test_a_start_that_is_refused_is_said_and_made_again(rig: Rig) -> None:
    rig.cloud.problem = ApiError(403, "Forbidden", "no")
    rig.happen("ADDED", pod("a"))
    said = rig.world.created.get(timeout=5)
    assert said["reason"] == "BackOff"
    assert "cannot start: no" in said["message"]
    assert rig.told()[0] == "start"
    assert rig.ready() == "a"
    assert rig.controller.problem == ""


def test_nobody_gives_up_on_a_controller_that_crashed_once(rig: Rig) -> None:
    rig.processes.crash_at_start = 1
    rig.happen("ADDED", pod("a"))
    assert rig.world.created.get(timeout=5)["message"] == rig.controller.problem == "the role has no effect"
    assert rig.controller.lasting_problem == ""
    assert rig.ready() == "a"
    assert rig.controller.problem == ""


def test_a_controller_that_crashes_again_is_given_up(rig: Rig) -> None:
    rig.processes.crash_at_start = 2
    rig.happen("ADDED", pod("a"))
    for _ in range(2):
        rig.world.created.get(timeout=5)
    assert rig.controller.lasting_problem == "the role has no effect"


def test_what_keeps_a_controller_from_being_started_is_told_at_once(rig: Rig) -> None:
    rig.cloud.problem = ApiError(403, "Forbidden", "no")
    rig.happen("ADDED", pod("a"))
    rig.world.created.get(timeout=5)
    assert rig.controller.lasting_problem == "the Karpenter controller cannot start: no"
