"""The recorder against a server that knows its version and a controller's metrics."""

from __future__ import annotations

import json
import re
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs

import pytest

from karpstack.karpenter.instance_types import Facts
from karpstack.scale_test.acting.cluster import Cluster, ClusterError
from karpstack.scale_test.connecting import connect
from karpstack.scale_test.market.prices import Table
from karpstack.scale_test.recording import metrics, recorder, request
from karpstack.scale_test.recording.following import BrokenError, Follower, Resource
from karpstack.scale_test.recording.timeline import Line, Reader, Writer, parse_time
from tests import synthetic
from tests.serving import serving
from tests.unit.preflight.fake_server import FakeServer
from tests.unit.preflight.test_false_clouds import DRIPS, false_cloud

VERSION = dict.fromkeys(
    (
        "major",
        "minor",
        "gitVersion",
        "gitCommit",
        "gitTreeState",
        "buildDate",
        "goVersion",
        "compiler",
        "platform",
    ),
    "v1.36.3",
)
PODS = "/api/v1/pods"
PRICE = "karpenter_cloudprovider_instance_type_offering_price_estimate"
AVAILABLE = "karpenter_cloudprovider_instance_type_offering_available"
SHORT = AVAILABLE + '{{instance_type="{}",capacity_type="spot",zone="a"}} {}\n'
PRICED = PRICE + '{{instance_type="m5.large",capacity_type="{}",zone="{}"}} {}\n'
METRICS = f"""\
process_resident_memory_bytes 1000
process_cpu_seconds_total 2.5
process_start_time_seconds 3
controller_runtime_active_workers{{controller="interruption"}} 0
controller_runtime_reconcile_errors_total{{controller="interruption"}} 4
{PRICED.format("on-demand", "a", 0.096)}{PRICED.format("on-demand", "b", 0.097)}karpenter_pods_state 1
"""


ACTIVE_ALONE = b"controller_runtime_active_workers 1\n"


class Handler(BaseHTTPRequestHandler):
    server: Server
    encoding = "utf-8"

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if path == "/metrics" and self.server.refusals:
            self.server.refusals -= 1
            return
        self.server.paths.append(path)
        self.server.authorizations.append((path, self.headers["Authorization"]))
        if path == "/metrics":
            body = self.server.tell(set(parse_qs(query).get("name[]", [])))
        elif path == PODS:
            body = json.dumps({"items": [], "metadata": {"resourceVersion": "1"}})
            if "watch" in query:
                time.sleep(0.1)
                body = ""
        else:
            body = json.dumps(VERSION)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body.encode(self.encoding))

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    """Serves both, after it has refused to tell metrics a few times, and an empty list; notes what it was asked for."""

    refusals = 0
    without_prices = 0  # so many answers have none yet
    seconds = 0.0  # until it answers
    pace = recorder.Pace()  # of the recorder that reads it

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.paths: list[str] = []
        self.authorizations: list[tuple[str, str | None]] = []
        self.asked: list[set[str]] = []

    def tell(self, names: set[str]) -> str:
        self.asked.append(names)
        time.sleep(self.seconds)
        if self.without_prices:
            self.without_prices -= 1
            names = names - {PRICE}
        return "".join(f"{line}\n" for line in METRICS.splitlines() if re.split(r"[ {]", line)[0] in names)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(Server()) as running:
        yield running


def kubeconfig_of(folder: Path, url: str) -> Path:
    named = {
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "x", **named}))
    return path


class Recording:
    """A recorder at work, and what it has written so far."""

    def __init__(
        self, folder: Path, server: Server, table: Table | None = None, token: str = "", owner: int | None = None
    ) -> None:
        self._owner = owner
        path = folder / "timeline.jsonl"
        self._writer = Writer(path)
        self._reader = Reader(path)
        self._lines: list[Line] = []
        self.recorder = recorder.Recorder(
            self._writer,
            (Resource("Pod", PODS),),
            kubeconfig_of(folder, server.url),
            f"{server.url}/metrics",
            table,
            metrics_token=token,
            pace=server.pace,
        )

    def __enter__(self) -> Self:
        self._running = threading.Thread(target=self.recorder.run, args=(self._owner,))
        self._running.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._writer:
            self.wait("SYNCED")  # after that nothing is written that is not asked for here
            self.recorder.stop()
            self._running.join()

    def joined(self, seconds: float) -> None:
        """Wait until it has ended, but no longer than that."""
        self._running.join(seconds)

    def lines(self, *types: str) -> list[Line]:
        self._lines += self._reader.new_lines()
        return [line for line in self._lines if not types or line["type"] in types]

    def wait(self, type_: str, count: int = 1) -> list[Line]:
        """Lines of a type, when there are so many or after ten seconds."""
        wait_until(lambda: len(self.lines(type_)) >= count)
        return self.lines(type_)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)


def record(folder: Path, server: Server, until: str, table: Table | None = None) -> list[Line]:
    """What is recorded until a type of line comes."""
    with Recording(folder, server, table) as recording:
        recording.wait(until)
    return recording.lines()


@pytest.fixture
def hurried(server: Server) -> None:
    """The recorder looks at the metrics all the time."""
    server.pace = recorder.Pace(metrics=0.01, prices=0.01, rest=0.01)


def test_what_the_metrics_say_of_the_queue_is_written(tmp_path: Path, server: Server) -> None:
    _, line, *_ = record(tmp_path, server, until="QUEUE")
    assert (line["type"], line["errors"], line["reading"]) == ("QUEUE", 4, False)


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize(("token", "sent"), [("secret", "Bearer secret"), ("", None)])
def test_the_token_goes_to_the_metrics_and_into_no_line(
    tmp_path: Path, server: Server, token: str, sent: str | None
) -> None:
    with Recording(tmp_path, server, token=token) as recording:
        recording.wait("CONTROLLER")
    assert {sent_ for path, sent_ in server.authorizations if path == "/metrics"} == {sent}
    assert {sent_ for path, sent_ in server.authorizations if path != "/metrics"} == {None}
    assert "secret" not in (tmp_path / "timeline.jsonl").read_text()


@pytest.mark.parametrize("refusals", [0, 2])
def test_metrics_that_do_not_answer_are_told_and_asked_again(
    refusals: int, tmp_path: Path, server: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    server.refusals = refusals
    lines = record(tmp_path, server, until="QUEUE")
    assert "QUEUE" in {line["type"] for line in lines}
    assert capfd.readouterr().err.count("/metrics gave no metrics (MaxRetryError") == bool(refusals)


INFINITE = b"".join(
    f"{name} +Inf\n".encode()
    for name in ("process_resident_memory_bytes", "process_cpu_seconds_total", "process_start_time_seconds")
)


@pytest.mark.parametrize(
    "answer", [b"\xff\xfe", PRICE.encode() + b"{ 1\n", b"<html>log in</html>", ACTIVE_ALONE, INFINITE]
)
def test_what_is_no_metrics_is_asked_again(
    answer: bytes, hurried: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, server: Server
) -> None:
    told = server.tell
    answers = [answer.decode("latin-1")]
    monkeypatch.setattr(server, "tell", lambda names: answers.pop() if answers else told(names))
    monkeypatch.setattr(Handler, "encoding", "latin-1")
    assert [line for line in record(tmp_path, server, "QUEUE") if line["type"] == "QUEUE"]


def test_metrics_without_an_end_are_not_read_to_it(monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    monkeypatch.setattr(metrics, "_MOST", 2**20)
    monkeypatch.setattr(server, "tell", lambda _: "x" * 2**22)
    with pytest.raises(ValueError, match="more than 1 MiB"):
        metrics.scrape(f"{server.url}/metrics", prices=False)


@pytest.mark.parametrize("drip", DRIPS)
def test_metrics_that_drip_are_not_waited_for(drip: str) -> None:
    with false_cloud(DRIPS[drip]) as port, pytest.raises(ValueError, match=r"takes longer than 0\.5 s"):
        metrics.scrape(f"http://127.0.0.1:{port}/metrics", prices=False, most=0.5)


def test_a_line_without_an_end_is_not_read_to_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, server: Server
) -> None:
    monkeypatch.setattr(server, "tell", lambda _: "a\n" * 2**20 + "x" * 2**27)
    api = connect(kubeconfig_of(tmp_path, server.url))
    with request.ask(api, Resource("Pod", "/metrics"), {}, (5, 5)) as lines:
        assert [next(lines) for _ in range(2)] == [b"a\n"] * 2
        with pytest.raises(BrokenError, match="more than 64 MiB"):
            list(lines)


def test_a_redirect_to_what_is_no_address_is_an_error(tmp_path: Path) -> None:
    with FakeServer() as redirecting:
        redirecting.headers["Location"] = "http://[::1/x"
        redirecting.otherwise = (307, "")
        kubeconfig = kubeconfig_of(tmp_path, f"http://127.0.0.1:{redirecting.port}")
        with pytest.raises(BrokenError), request.ask(connect(kubeconfig), Resource("Pod", PODS), {}, (5, 5)):
            pass
        with pytest.raises(ClusterError, match=r"is the API server there\?"):
            Cluster(kubeconfig).labelled("v1", "Pod", "a=b")


def test_what_the_metrics_say_of_the_process_is_written(tmp_path: Path, server: Server) -> None:
    lines = record(tmp_path, server, until="CONTROLLER")
    line = next(line for line in lines if line["type"] == "CONTROLLER")
    assert (line["memory_bytes"], line["cpu_seconds"], line["api_errors"], line["started"]) == (1000, 2.5, 0, 3)


@pytest.mark.usefixtures("hurried")
def test_the_controllers_prices_are_asked_for_once(tmp_path: Path, server: Server) -> None:
    """They are by far the most of its metrics; and nothing is asked for that nobody reads."""
    server.without_prices = 2
    with Recording(tmp_path, server) as recording:
        (overview,) = recording.wait("PRICES")
        asked = len(server.asked)
        wait_until(lambda: len(server.asked) >= asked + 5)
        recording.recorder.changed("MODIFIED", "NodeClaim", bought("on-demand", "m5.large", "b"))
        (price,) = recording.lines("PRICE")
    assert overview["cheapest"] == {"on-demand": {"m5.large": 0.096}}
    assert (price["zone"], price["pricePerHour"], price["source"]) == ("b", 0.097, "controller")
    assert [PRICE in names for names in server.asked[:3]] == [True, True, True]
    assert not any(PRICE in names for names in server.asked[asked:])
    assert not any("karpenter_pods_state" in names for names in server.asked)


@pytest.mark.usefixtures("hurried")
def test_prices_are_asked_for_again_for_what_they_lacked(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Recording(tmp_path, server) as recording:
        recording.wait("PRICES")
        recording.recorder.changed("MODIFIED", "NodeClaim", bought("spot", "m5.large", "a"))
        assert recording.lines("PRICE") == []
        monkeypatch.setitem(globals(), "METRICS", METRICS + PRICED.format("spot", "a", 0.03))
        (price,) = recording.wait("PRICE")
    assert (price["capacityType"], price["pricePerHour"]) == ("spot", 0.03)


@pytest.mark.usefixtures("hurried")
def test_what_is_unavailable_is_written_as_it_changes_and_asked_for_by_the_looks_that_there_are(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.pace = replace(server.pace, unavailable=0.0)
    plain = METRICS
    with Recording(tmp_path, server) as recording:
        recording.wait("CONTROLLER", 2)
        assert recording.lines("UNAVAILABLE") == []
        for m5, c5 in ((0, 1), (1, 0)):
            told = SHORT.format("m5.large", m5) + SHORT.format("c5.large", c5)
            monkeypatch.setitem(globals(), "METRICS", plain + told)
            count = len(recording.lines("UNAVAILABLE"))
            recording.wait("UNAVAILABLE", count + 2)
    changes = [(line["became"], line["ceased"]) for line in recording.lines("UNAVAILABLE")]
    first, second = ({"spot": {"a": [f"{size}.large"]}} for size in ("m5", "c5"))
    assert [change for change in changes if any(change)] == [(first, {}), (second, first)]
    assert ({}, {}) in changes, "a look at which nothing changed is told too"


@pytest.mark.usefixtures("hurried")
def test_what_is_unavailable_is_asked_for_twice_a_minute_and_not_where_nobody_publishes_it(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "METRICS", METRICS + SHORT.format("m5.large", 0))
    for cloud, region, asked in (("aws", "us-east-1", 1), ("azure", "westus2", 0)):
        (folder := tmp_path / cloud).mkdir()
        server.asked.clear()
        with Recording(folder, server, Table(Facts.load(cloud), region)) as recording:
            recording.wait("CONTROLLER", 5)
        assert sum(AVAILABLE in names for names in server.asked) == asked


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize(("age", "owner", "priced"), [(0, None, True), (0, 2**22 + 1, False), (80, None, False)])
def test_prices_of_a_controller_that_has_just_started_are_waited_for_at_the_end(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch, age: float, owner: int | None, *, priced: bool
) -> None:
    """Not those of one that has had its time, and not for a playbook that is gone."""
    server.without_prices = 10**9
    monkeypatch.setitem(globals(), "METRICS", METRICS.replace("_seconds 3", f"_seconds {time.time() - age}"))
    with Recording(tmp_path, server, owner=owner) as recording:
        recording.wait("CONTROLLER")
        recording.recorder.changed("MODIFIED", "NodeClaim", bought("on-demand", "m5.large", "a"))
        recording.recorder.stop()
        recording.joined(0.3)
        server.without_prices = 0
    assert bool(recording.lines("PRICE")) is priced


def test_prices_are_read_before_anything_is_watched(tmp_path: Path, server: Server) -> None:
    lines = record(tmp_path, server, until="SYNCED")
    assert [line["type"] for line in lines] == ["START", "QUEUE", "CONTROLLER", "PRICES", "SYNCED"]
    assert server.paths.index("/metrics") < server.paths.index(PODS)


@pytest.mark.parametrize(("times", "longest", "least"), [(10, 30.0, 1.0), (1000, 0.3, 0.3)])
def test_a_controller_that_answers_slowly_is_left_alone_for_longer(
    tmp_path: Path, server: Server, times: int, longest: float, least: float
) -> None:
    server.pace = recorder.Pace(metrics=0.0, rest=times, longest_rest=longest)
    server.seconds = 0.1
    with Recording(tmp_path, server) as recording:
        lines = recording.wait("CONTROLLER", 2)
    first, second = (parse_time(line["received"]) for line in lines[:2])
    assert least <= (second - first).total_seconds() < 30


def bought(capacity_type: str, name: str = "Standard_D8_v4", zone: str = "westus2-1") -> Line:
    labels = {
        "karpenter.sh/capacity-type": capacity_type,
        "node.kubernetes.io/instance-type": name,
        "topology.kubernetes.io/zone": zone,
    }
    return {"metadata": {"name": "claim", "uid": "u", "labels": labels}}


class PricesByTable:
    """A recorder on Azure, whose controller publishes no prices."""

    def __init__(self, folder: Path, region: str = "westus2") -> None:
        self.path = folder / "timeline.jsonl"
        table = Table(Facts.load("azure"), region)
        nobody = "http://127.0.0.1:1"
        kubeconfig = kubeconfig_of(folder, nobody)
        self.recorder = recorder.Recorder(Writer(self.path), (), kubeconfig, f"{nobody}/metrics", table)

    def prices(self) -> list[tuple[str, float, str]]:
        return [
            (line["capacityType"], line["pricePerHour"], line["source"])
            for line in Reader(self.path).new_lines()
            if line["type"] == "PRICE"
        ]


def test_only_prices_of_the_controller_are_waited_for(tmp_path: Path, server: Server) -> None:
    """Those of the table are there at once, or never."""
    for cloud, region, waited_for in (("aws", "us-east-1", True), ("azure", "westus2", False)):
        folder = tmp_path / cloud
        folder.mkdir()
        table = Table(Facts.load(cloud), region)
        start = record(folder, server, until="START", table=table)[0]
        assert start["prices"] is waited_for


def test_a_cloud_whose_controller_publishes_no_prices_has_those_of_the_table(tmp_path: Path) -> None:
    found = PricesByTable(tmp_path)
    for _ in range(2):
        found.recorder.changed("MODIFIED", "NodeClaim", bought("on-demand"))
    assert found.prices() == [("on-demand", 0.384, "table")]


def test_spot_prices_of_the_table_are_a_rehearsals(tmp_path: Path) -> None:
    found = PricesByTable(tmp_path)
    found.recorder.changed("MODIFIED", "NodeClaim", bought("spot"))
    found.recorder.changed("ADDED", "Node", {"metadata": {"name": "real", "uid": "r"}, "simulated": False})
    assert found.prices() == []
    found.recorder.changed("ADDED", "Node", {"metadata": {"name": "fake", "uid": "f"}, "simulated": True})
    ((capacity_type, price, source),) = found.prices()
    assert (capacity_type, source) == ("spot", "table")
    assert 0.15 * 0.384 <= price <= 0.4 * 0.384


def test_a_login_that_a_cluster_repeats_is_masked_in_the_timeline(tmp_path: Path) -> None:
    PricesByTable(tmp_path).recorder.broke_off(
        "Pod", "no answer for long: unknown token Bearer abc123.0123456789abcdef"
    )
    assert "unknown token Bearer ***" in (tmp_path / "timeline.jsonl").read_text()


def test_what_the_table_lacks_has_no_price(tmp_path: Path) -> None:
    found = PricesByTable(tmp_path, region="atlantis")
    found.recorder.changed("MODIFIED", "NodeClaim", bought("on-demand"))
    found.recorder.changed("MODIFIED", "NodeClaim", bought("on-demand", "Standard_Z9"))
    assert found.prices() == []


def test_a_thousand_pods_take_little_memory() -> None:
    """A follower sees each of them listed and changed twice; what it keeps of them is a few megabytes."""
    pages = [
        [{"metadata": {"resourceVersion": "1", "continue": "more" if page < 9 else ""}, "items": items}]
        for page in range(10)
        for items in [[synthetic.pod(number, "pending") for number in range(page * 100, page * 100 + 100)]]
    ]
    answers: list[Iterator[bytes]] = [iter([json.dumps(page[0]).encode()]) for page in pages]
    answers += [
        (
            json.dumps({"type": "MODIFIED", "object": synthetic.pod(number, stage, version=number + 2)}).encode()
            for stage in ("scheduled", "running")
            for number in range(1000)
        )
    ]
    del pages
    stopping = threading.Event()
    told: list[str] = []

    @contextmanager
    def fetch(resource: Resource, query: dict[str, str]) -> Iterator[Iterator[bytes]]:
        if not answers:
            stopping.set()
            raise BrokenError("no more")
        yield answers.pop(0)

    class Listener:
        def changed(self, type_: str, kind: str, kept: Line) -> None:
            told.append(type_)

        def listed(self, kind: str) -> None:
            pass

        def broke_off(self, kind: str, reason: str) -> None:
            pass

    follower = Follower(Resource("Pod", PODS), fetch, Listener(), stopping)
    tracemalloc.start()
    try:
        follower.run()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(told) == 3_000
    assert peak < 12 * 2**20
