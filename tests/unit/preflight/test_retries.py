"""However long a server asks to wait (`Retry-After`), nobody waits for longer than a question is worth."""

from __future__ import annotations

import ast
import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import urllib3
from kubernetes import client

import karpstack
from karpstack.preflight.azure import charts
from karpstack.preflight.azure.asking import Patience
from karpstack.preflight.finding import NotAskedError
from karpstack.real_run import removal_azure
from karpstack.real_run.leftovers import TAG
from karpstack.scale_test.connecting import connect
from tests.unit.preflight.fake_server import FakeServer
from tests.unit.preflight.test_asking import SERVICES, cluster
from tests.unit.preflight.test_asking_azure import azure

ROOT = Path(karpstack.__file__).parent


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as running:
        running.headers["Retry-After"] = "21600"
        running.otherwise = (429, "{}")
        yield running


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds for which somebody slept, which pass at once."""
    found: list[float] = []
    monkeypatch.setattr(time, "sleep", found.append)
    return found


def of_a_connection(server: FakeServer, folder: Path) -> None:
    cluster(folder, server.port)  # writes the kubeconfig
    client.VersionApi(connect(folder / "kubeconfig")).get_code()


def of_a_cluster(server: FakeServer, folder: Path) -> None:
    cluster(folder, server.port).list(SERVICES)


def of_charts(server: FakeServer, _: Path) -> None:
    charts._status(f"GET http://127.0.0.1:{server.port}/v2/x/manifests/1")


def of_azure(server: FakeServer, _: Path) -> None:
    azure(server).ask("x/read", "/subscriptions/sub/x", "1")


def of_the_kill_switch(server: FakeServer, _: Path) -> None:
    group = {"id": "/subscriptions/a/resourceGroups/mine", "name": "mine", "tags": {TAG: "run"}}
    server.said["/subscriptions/a/resourcegroups"] = (200, json.dumps({"value": [group]}))
    asked = azure(server)
    assert next(removal_azure.remove(asked, asked._login, "run")).startswith("resource group mine stays: 429")


QUESTIONS = [of_a_connection, of_a_cluster, of_charts, of_azure, of_the_kill_switch]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: one.__name__)
def test_nobody_waits_for_as_long_as_a_server_asks(
    question: Callable[[FakeServer, Path], None], server: FakeServer, waited: list[float], tmp_path: Path
) -> None:
    with suppress(NotAskedError, client.ApiException, urllib3.exceptions.HTTPError):
        question(server, tmp_path)
    assert waited, "the wait is asked for"
    assert sum(waited) <= 60


@pytest.mark.parametrize("asked", ["soon", "nan", "inf", "1e300", "-4", "Wed, 21 Oct 2099 07:28:00 GMT"])
def test_any_wait_that_azure_asks_for_is_understood(asked: str) -> None:
    answer: Any = SimpleNamespace(http_response=SimpleNamespace(headers={"Retry-After": asked}))
    assert 0 <= (Patience().get_retry_after(answer) or 0) <= 20


def test_every_request_of_ours_waits_so() -> None:
    """Only GitHub is asked otherwise: of its answers, urllib3 repeats none."""
    found = {
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("Retry", "RetryPolicy")
    }
    assert found == {"pull_request/github.py", "text/retries.py"}
