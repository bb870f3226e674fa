"""Questions and their answers: what is refused, what fails, what is not there, and what comes in pages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from components.naming import EksNames
from preflight.aws import quotas
from preflight.aws.asking import Aws
from preflight.aws.subject import Caller, Subject
from preflight.destroy.cluster import Cluster
from preflight.finding import NotAskedError, UnknowableError
from preflight.stack import State
from tests.unit.example_stack import eks


class Client:
    """A client whose every operation raises, or answers, what it is given; it counts the calls."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.calls: list[str] = []

    def can_paginate(self, name: str) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        def operation(**given: Any) -> Any:
            self.calls.append(name)
            answer = self.answers[name]
            if isinstance(answer, Exception):
                raise answer
            return answer

        return operation


def says(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "in AWS' words"}}, "GetRole")


@pytest.mark.parametrize("code", ["AccessDenied", "AccessDeniedException", "UnauthorizedOperation"])
def test_a_refusal_names_the_right(code: str) -> None:
    with pytest.raises(NotAskedError, match="in AWS' words") as caught:
        Aws("us-east-1", lambda service: Client(get_role=says(code))).ask("iam", "GetRole", RoleName="x")
    assert (caught.value.call, caught.value.refused) == ("iam:GetRole", True)


@pytest.mark.parametrize(
    "error", [says("Throttling"), EndpointConnectionError(endpoint_url="https://iam.amazonaws.com")]
)
def test_another_failure_is_no_refusal(error: Exception) -> None:
    with pytest.raises(NotAskedError) as caught:
        Aws("us-east-1", lambda service: Client(get_role=error)).ask("iam", "GetRole", RoleName="x")
    assert not caught.value.refused


def test_what_is_not_there_is_none() -> None:
    aws = Aws("us-east-1", lambda service: Client(get_role=says("NoSuchEntity")))
    assert aws.find("iam", "GetRole", ("NoSuchEntity",), RoleName="x") is None
    with pytest.raises(NotAskedError):
        aws.find("iam", "GetRole", (), RoleName="y")


def test_the_same_is_asked_once() -> None:
    client = Client(describe_vpcs={"Vpcs": [1]})
    aws = Aws("us-east-1", lambda service: client)
    assert aws.all("ec2", "DescribeVpcs", "Vpcs") == aws.all("ec2", "DescribeVpcs", "Vpcs") == [1]
    assert client.calls == ["describe_vpcs"]


def test_a_quota_that_was_never_changed_is_the_default() -> None:
    client = Client(
        get_service_quota=says("NoSuchResourceException"),
        get_aws_default_service_quota={"Quota": {"Value": 5.0}},
        describe_vpcs={"Vpcs": [{}] * 5},
    )
    caller = Caller("arn:aws:iam::123456789012:user/me", "123456789012")
    seen = Subject(Aws("us-east-1", lambda service: client), caller, eks(), {}, State())
    assert [finding.what for finding in quotas.vpcs(seen)] == ["VPCs: 5 of 5 are in use and the stack adds 1"]


def test_the_partition_is_the_callers() -> None:
    caller = Caller("arn:aws-cn:sts::123456789012:assumed-role/team/deployer/me", "123456789012")
    seen = Subject(Aws("cn-north-1", lambda service: Client()), caller, eks(), {}, State())
    assert seen.names == EksNames("karpstack-eks")
    assert seen.arn("iam", "role/x", region="") == "arn:aws-cn:iam::123456789012:role/x"
    assert seen.arn("sqs", "q") == "arn:aws-cn:sqs:cn-north-1:123456789012:q"


def test_an_unknown_profile() -> None:
    with pytest.raises(UnknowableError, match="aws:profile = 'nobodys'"):
        Aws.connect("us-east-1", "nobodys")


class Handler(BaseHTTPRequestHandler):
    """Two pages of services, and refusals."""

    def do_GET(self) -> None:
        if self.path.startswith("/api/v1/services"):
            second = "continue=more" in self.path
            page: dict[str, Any] = {"items": [{"metadata": {"name": "b" if second else "a"}}], "metadata": {}}
            if not second:
                page["metadata"] = {"continue": "more"}
            self.answer(200, page)
        elif self.path.startswith("/version"):
            self.answer(self.server.greeting, {})  # type: ignore[attr-defined]
        else:
            self.answer(403 if self.path.startswith("/api/v1/pods") else 404, {"message": "no"})

    def answer(self, status: int, content: Any) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.greeting = 200  # type: ignore[attr-defined]
    Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def cluster(folder: Path, port: int) -> Cluster:
    content = {
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "x", **content}))
    return Cluster(path)


def test_a_cluster_is_read_page_by_page(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    asked = cluster(tmp_path, server.server_port)
    asked.greet()
    assert [one["metadata"]["name"] for one in asked.list("/api/v1/services")] == ["a", "b"]
    assert asked.list("/apis/karpenter.sh/v1/nodepools") == []
    with pytest.raises(NotAskedError, match="403") as caught:
        asked.list("/api/v1/pods")
    assert (caught.value.call, caught.value.refused) == ("GET /api/v1/pods", True)


def test_a_cluster_that_does_not_know_who_asks(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    server.greeting = 401  # type: ignore[attr-defined]
    with pytest.raises(UnknowableError, match="GET /version: 401"):
        cluster(tmp_path, server.server_port).greet()


def test_a_machine_without_a_kubeconfig(tmp_path: Path) -> None:
    with pytest.raises(UnknowableError, match="export KUBECONFIG"):
        Cluster(tmp_path / "nothing")
