"""karpstack.components.kubernetes.live: what a cluster says of itself, asked over the loopback interface."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Coroutine, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

import pulumi
import pytest

from karpstack.components.kubernetes import live

NODE_CLASS = {"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"}}
T = TypeVar("T")
PATH = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses/default"


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run it in a loop of its own: asyncio.run would take away the one that Pulumi's mocks find."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()


class ApiServer:
    """Answers what it is told to; each path's last answer for ever."""

    def __init__(self) -> None:
        self.answers: dict[str, list[tuple[int, Any]]] = {}
        self.asked: list[str] = []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                self.do_GET()

            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                owner.asked.append(f"{path} {self.headers.get('authorization')}")
                waiting = owner.answers[path]
                status, body = waiting.pop(0) if len(waiting) > 1 else waiting[0]
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def log_message(self, *arguments: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def kubeconfig(self, user: dict[str, Any] | None = None) -> str:
        address = f"http://127.0.0.1:{self._server.server_address[1]}"
        return json.dumps(
            {
                "current-context": "x",
                "clusters": [{"name": "x", "cluster": {"server": address}}],
                "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
                "users": [{"name": "x", "user": user or {"token": "ours"}}],
            }
        )

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


#: As the program waits, but not as long.
wait_until_served = partial(live.wait_until_served, pauses=(0.01,))


@pytest.fixture
def server() -> Iterator[ApiServer]:
    server = ApiServer()
    yield server
    server.close()


def test_a_cluster_that_does_not_know_its_maker_yet_is_waited_for(server: ApiServer) -> None:
    server.answers["/api/v1/namespaces"] = [(401, {}), (403, {}), (200, {"items": []})]
    run(wait_until_served(server.kubeconfig()))
    assert server.asked == ["/api/v1/namespaces Bearer ours"] * 3


def test_a_cluster_that_never_answers_is_told_with_the_reason_and_the_way_out(server: ApiServer) -> None:
    server.answers["/api/v1/namespaces"] = [(401, {})]
    with pytest.raises(
        pulumi.RunError, match=r"http://127.* did not answer within 0.05 s: 401 Unauthorized\. See that"
    ):
        run(wait_until_served(server.kubeconfig(), within=0.05))


def test_a_cluster_that_cannot_be_reached_is_told(server: ApiServer) -> None:
    config = server.kubeconfig()
    server.close()
    with pytest.raises(pulumi.RunError, match=r"Connection refused.*publicAccessCidrs"):
        run(wait_until_served(config, within=0.05))


def test_a_plugin_that_is_missing_is_told_at_once(server: ApiServer) -> None:
    plugin = {"exec": {"command": "no-such-plugin", "apiVersion": "client.authentication.k8s.io/v1beta1"}}
    with pytest.raises(pulumi.RunError, match="no-such-plugin, which makes the credentials for it, is not installed"):
        run(wait_until_served(server.kubeconfig(plugin)))
    assert not server.asked


def condition(kind: str, status: str, **more: str) -> dict[str, str]:
    return {"type": kind, "status": status, **more}


@pytest.mark.parametrize(
    ("conditions", "told"),
    [
        (
            [
                condition("SubnetsReady", "False", reason="SubnetsNotFound", message="SubnetSelector did not match"),
                condition("AMIsReady", "True"),
                condition("Ready", "Unknown", reason="AwaitingReconciliation"),
            ],
            "SubnetsReady is False: SubnetsNotFound SubnetSelector did not match; Ready is Unknown: "
            "AwaitingReconciliation. What is Unknown stands in the controller's log: kubectl logs -n kube-system -l "
            "app.kubernetes.io/name=karpenter",
        ),
        ([condition("Ready", "False", message="no role")], "Ready is False: no role"),
        ([], "its controller has not looked at it"),
    ],
)
def test_what_a_controller_says_of_an_object_is_logged(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch, conditions: list[dict[str, str]], told: str
) -> None:
    server.answers[PATH] = [(200, {"status": {"conditions": conditions}})]
    assert explained(server, monkeypatch)[0].startswith(f"EC2NodeClass default: {told}")


def test_an_explanation_that_cannot_be_had_hides_nothing(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.answers[PATH] = [(500, {})]
    (told,) = explained(server, monkeypatch)
    assert told.startswith("EC2NodeClass default: its conditions cannot be read ((500)")


def explained(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the hook logs of a node class that could not be created; it asks for no other try."""
    told: list[str] = []
    monkeypatch.setattr(pulumi.log, "error", told.append)
    registered: dict[str, pulumi.ErrorHookFunction] = {}
    monkeypatch.setattr(pulumi, "ErrorHook", registered.setdefault)
    live.explanation("explained", server.kubeconfig())
    failed = pulumi.ErrorHookArgs("urn", "id", "default", "type", NODE_CLASS, failed_operation="create", errors=["x"])

    async def call() -> bool:
        answer = registered["explained"](failed)
        return answer if isinstance(answer, bool) else await answer

    assert run(call()) is False
    return told
