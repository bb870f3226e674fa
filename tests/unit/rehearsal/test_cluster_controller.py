"""The controller's process follows its pods: which of them it belongs to, how it ends and when it starts again."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from karpstack.rehearsal.cluster.cloud import ControllerIdentityError
from karpstack.rehearsal.cluster.controller import DAYS, LABEL, Controller
from karpstack.rehearsal.cluster.controller_endpoint import ControllerEndpoint
from karpstack.rehearsal.cluster.objects import ApiError, Object
from karpstack.rehearsal.host.processes import EngineCrashError, wait_until
from karpstack.rehearsal.state.folder import StackFolder
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
    """Stands in for `Engines`: tells of every start (port and token of its metrics), stop (its grace) and loss.

    Attributes:
        runs: Numbers of the starts that come up, from 1; None for all.
        brief: Whether those crash as soon as they are ready.
    """

    def __init__(self) -> None:
        self.told: queue.Queue[tuple[str, Any]] = queue.Queue()
        self.lost: queue.Queue[str] = queue.Queue()
        self.runs: Collection[int] | None = None
        self.brief = False
        self.count = 0
        self.environment: Mapping[str, str] = {}
        self._running: Process | None = None

    def start(self, name: str, command: Sequence[str], *, environment: Mapping[str, str], vital: bool) -> Process:
        assert not vital  # a kubelet would start it again
        self.count += 1
        self._running = Process(self.count)
        self._running.crashed = self.runs is not None and self.count not in self.runs
        self.environment = environment
        self.told.put(("start", (environment["METRICS_PORT"], environment["KARPSTACK_METRICS_TOKEN"])))
        return self._running

    def ready(self) -> bool:
        if self._running is None or self._running.crashed:
            return False
        self._running.crashed = self.brief
        return True

    def crash(self) -> None:
        if self._running:
            self._running.crashed = True

    def stop(self, name: str, grace: float = 5.0) -> None:
        if self._running:
            self._running = None
            self.told.put(("stop", grace))

    def lose(self, name: str) -> None:
        self.lost.put(name)


class Programs:
    def controller(self, name: str, release: str) -> Path:
        return Path(name)


class TheCloud(UnaskedCloud):
    """One whose answers to the next tries are given; and when it was asked."""

    def __init__(self) -> None:
        self.problems: list[Exception] = []
        self.tries: queue.Queue[float] = queue.Queue()
        self.asked: Callable[[], object] = lambda: None

    def controller_environment(self, *arguments: Any) -> dict[str, str]:
        self.asked()
        self.tries.put(time.monotonic())
        if self.problems:
            raise self.problems.pop(0)
        return {}


BACK_OFF = 0.1
NO_TOKEN = ControllerIdentityError("no token")
FORBIDDEN = ApiError(403, "Forbidden", "no")


class Impatient(Controller):
    between_looks = 0.01
    back_off = (BACK_OFF, 300.0)


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
        self.controller = Impatient(
            StackFolder("test", folder).create(),
            self.processes,  # type: ignore[arg-type]
            Programs(),  # type: ignore[arg-type]
            self.world.objects(),
            self.cloud,
            "https://127.0.0.1:1",
            b"",
            lambda pod: pod["metadata"]["labels"].get("app.kubernetes.io/instance") != "of somebody else",
        )
        self.controller.start()

    def happen(self, kind: str, item: Object) -> None:
        self.world.happen(PODS, kind, item)

    def told(self) -> tuple[str, Any]:
        return self.processes.told.get(timeout=5)

    def host(self, *running: int) -> None:
        """Let the cloud run it; those starts come up, and crash."""
        self.processes.runs, self.processes.brief = running, True
        assert self.controller.host("kube-system", {}, "token") == ""
        assert self.controller.hosted

    def ready(self) -> str:
        """Name of the next pod that is told to be ready; the lease is skipped."""
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
    made = Rig(tmp_path)
    monkeypatch.setattr(ControllerEndpoint, "ready", lambda _: made.processes.ready())
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


def test_a_pod_that_is_of_no_release_is_not_followed(rig: Rig) -> None:
    """The label alone is anybody's: a scenario's, or that of a file that describes a cluster."""
    labels = {"app.kubernetes.io/instance": "of somebody else"}
    rig.happen("ADDED", pod("a"))
    assert rig.told()[0] == "start"
    for kind in ("ADDED", "MODIFIED", "DELETED"):
        rig.happen(kind, pod("z", created="10:09", labels=labels))
    assert rig.quiet()


def in_container(**container: Any) -> Object:
    made = pod("a")
    made["spec"]["containers"][0] |= container
    return made


#: Where the SDK of AWS finds a `credential_process` in the pod's own environment, and what else leads a program away.
LEADING_AWAY = {
    "AWS_CONFIG_FILE": "/proc/self/environ",
    "ZZ": "x\n[default]\ncredential_process = sh -c id",
    **dict.fromkeys(("AWS_SHARED_CREDENTIALS_FILE", "AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ROLE_ARN"), "x"),
    **dict.fromkeys(("AWS_EC2_METADATA_DISABLED", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ACCESS_KEY_ID"), ""),
    **dict.fromkeys(("PATH", "HOME", "LD_PRELOAD", "GODEBUG", "SSL_CERT_FILE", "KUBECONFIG"), "/evil"),
    "LOG_OUTPUT_PATHS": "stdout,/home/mona/.bashrc",
    "AWS_REGION": "evil.example/",
}


def test_of_a_pods_variables_karpenters_options_alone_reach_the_process(rig: Rig) -> None:
    options = {"FEATURE_GATES": "NodeRepair=true", "CLUSTER_NAME": "mine", "LOG_ERROR_OUTPUT_PATHS": "stderr"}
    options |= {"HTTPS_PROXY": "http://proxy.example:3128", "NO_PROXY": "169.254.170.23"}  # of a stack behind a proxy
    given = {**LEADING_AWAY, **options}
    rig.happen("ADDED", in_container(env=[{"name": name, "value": value} for name, value in given.items()]))
    assert rig.told()[0] == "start"
    environment = rig.processes.environment
    assert {name: environment[name] for name in options} == options
    assert not {name for name, value in LEADING_AWAY.items() if environment.get(name) == value}


@pytest.mark.parametrize("argument", ["--log-output-paths=/home/mona/.bashrc", "--kubeconfig=/x", "--x", "sh", "-c"])
def test_an_argument_that_is_no_option_of_karpenter_is_refused(rig: Rig, argument: str) -> None:
    rig.happen("ADDED", in_container(args=["--log-level=debug", argument]))
    wait_until(lambda: "is no option of Karpenter" in rig.controller.problem, "the refusal", 5.0)
    assert rig.quiet()


@pytest.mark.parametrize(("days", "disabled"), [("", None), ("1", "true")])
def test_a_lease_is_kept_unless_days_are_skipped(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, days: str, disabled: str | None
) -> None:
    monkeypatch.setenv(DAYS, days)
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
    rig.cloud.problems = [ApiError(503, "ServiceUnavailable", "the API server is starting")]
    rig.happen("ADDED", pod("a"))
    assert rig.told()[0] == "start"
    assert rig.controller.problem == ""


def test_a_start_that_is_refused_is_said_at_once_and_made_again(rig: Rig) -> None:
    rig.cloud.problems = [FORBIDDEN]
    rig.happen("ADDED", pod("a"))
    said = rig.world.created.get(timeout=5)
    assert said["reason"] == "BackOff"
    assert said["message"] == rig.controller.lasting_problem == "the Karpenter controller cannot start: no"
    assert rig.told()[0] == "start"
    assert rig.ready() == "a"
    assert rig.controller.problem == ""


def test_a_pod_that_takes_anothers_place_has_some_tries(rig: Rig) -> None:
    """While a Deployment rolls out, it is an old one that may not start any more, and goes in a moment."""
    for name in ("a", "b"):
        rig.happen("ADDED", pod(name))
        assert rig.ready() == name
    rig.cloud.problems = [FORBIDDEN] * 9
    rig.happen("MODIFIED", pod("a", deletionTimestamp="10:02"))
    for tries in range(3):
        assert rig.world.created.get(timeout=5)["reason"] == "BackOff"
        wait_until(lambda: rig.controller.problem != "", "the refusal", 5.0)
        told = rig.controller.lasting_problem
        assert (told == "") == (tries < 2), tries


def test_the_problem_of_a_template_is_not_the_next_ones(rig: Rig) -> None:
    """A release looks at any moment: also while the new pod's process starts, which takes seconds."""
    rig.processes.runs = ()
    rig.happen("ADDED", pod("a"))
    rig.world.created.get(timeout=5)
    assert rig.controller.problem
    looked = []
    rig.cloud.asked = lambda: looked.append(rig.controller.lasting_problem)
    rig.processes.runs = None
    rig.happen("ADDED", pod("b", "two", "10:01"))
    assert rig.ready() == "b"
    assert looked[-1] == ""


def test_nobody_gives_up_on_a_controller_that_crashed_once(rig: Rig) -> None:
    rig.processes.runs = (2,)
    rig.happen("ADDED", pod("a"))
    assert rig.world.created.get(timeout=5)["message"] == rig.controller.problem == "the role has no effect"
    assert rig.controller.lasting_problem == ""
    assert rig.ready() == "a"
    assert rig.controller.problem == ""


def test_a_controller_that_crashes_again_is_given_up(rig: Rig) -> None:
    rig.processes.runs = (3,)
    rig.happen("ADDED", pod("a"))
    for _ in range(2):
        rig.world.created.get(timeout=5)
    assert rig.controller.lasting_problem == "the role has no effect"


def test_it_is_started_again_with_growing_patience(rig: Rig) -> None:
    rig.cloud.problems = [NO_TOKEN] * 3
    rig.happen("ADDED", pod("a"))
    first, second, third = (
        after - before for before, after in pairwise(rig.cloud.tries.get(timeout=5) for _ in range(4))
    )
    assert BACK_OFF <= first < second < third
    for _ in range(3):
        assert "cannot start: no token" in rig.world.created.get(timeout=5)["message"]
    with pytest.raises(queue.Empty):  # it runs: nobody starts it again
        rig.cloud.tries.get(timeout=8 * BACK_OFF)
    assert rig.controller.problem == ""


def test_a_crash_is_one_although_the_api_server_is_away(rig: Rig) -> None:
    """Until it answers, the pods cannot be told that they are not ready, which is tried again and again."""
    rig.happen("ADDED", pod("a"))
    assert rig.told()[0] == "start"
    assert rig.ready() == "a"
    rig.world.away = 8
    rig.processes.crash()
    assert rig.told()[0] == "stop"
    assert rig.told()[0] == "start"
    assert rig.world.created.get(timeout=5)["message"] == "the role has no effect"


def test_patience_is_new_after_a_long_run(rig: Rig) -> None:
    rig.controller.back_off = (BACK_OFF, BACK_OFF / 2)
    rig.happen("ADDED", pod("a"))
    assert (rig.told()[0], rig.ready()) == ("start", "a")
    rig.controller._back_off = 60.0
    time.sleep(2 * BACK_OFF)
    rig.processes.crash()
    assert [rig.told()[0], rig.told()[0]] == ["stop", "start"]


def test_one_that_crashed_and_never_starts_again_is_lost(rig: Rig) -> None:
    rig.processes.brief = True
    rig.happen("ADDED", pod("a"))
    assert rig.told()[0] == "start"
    rig.cloud.problems = [NO_TOKEN] * 9
    for _ in range(4):
        assert rig.processes.lost.empty()
        rig.cloud.tries.get(timeout=5)
    assert rig.processes.lost.get(timeout=5) == "karpenter-aws"


def test_one_that_never_ran_is_not_lost_but_waits_to_be_mended(rig: Rig) -> None:
    rig.controller.back_off = (BACK_OFF, BACK_OFF)
    rig.cloud.problems = [NO_TOKEN] * 9
    rig.happen("ADDED", pod("a"))
    for _ in range(6):
        rig.cloud.tries.get(timeout=5)
    assert rig.processes.lost.empty()


def test_a_changed_template_is_tried_without_patience(rig: Rig) -> None:
    rig.controller.back_off = (60.0, 60.0)
    rig.cloud.problems = [NO_TOKEN]
    rig.happen("ADDED", pod("a"))
    rig.cloud.tries.get(timeout=5)
    rig.happen("ADDED", pod("b", "two", "10:01"))
    rig.cloud.tries.get(timeout=5)


@pytest.mark.parametrize(("running", "tried"), [((1,), 4), ((1, 3), 6)])
def test_the_clouds_own_is_started_again_until_it_never_starts(rig: Rig, running: tuple[int, ...], tried: int) -> None:
    rig.controller.back_off = (BACK_OFF, BACK_OFF)
    rig.host(*running)
    assert rig.processes.lost.get(timeout=5) == "karpenter-aws"
    # Three failures in a row are forgiven, whatever came before.
    assert rig.processes.count == tried


def test_the_clouds_own_that_was_switched_off_is_not_started_again(rig: Rig) -> None:
    rig.host(1)
    rig.controller.end_hosted()
    assert not rig.controller.hosted
    time.sleep(3 * BACK_OFF)
    assert rig.processes.count == 1


def test_one_that_was_switched_off_and_on_is_not_begun_again_for_the_crash_of_the_first(rig: Rig) -> None:
    rig.host(1, 2)
    deadline = time.monotonic() + 5
    while not rig.controller.problem and time.monotonic() < deadline:  # until the crash is noticed
        time.sleep(0.005)
    rig.processes.brief = False  # the second stays
    rig.controller.end_hosted()
    assert rig.controller.host("kube-system", {}, "token") == ""
    assert rig.controller.problem == ""
    time.sleep(4 * BACK_OFF)
    assert rig.processes.count == 2
