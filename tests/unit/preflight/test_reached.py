"""Whose cluster is asked before `pulumi destroy`, and what becomes of the look where none answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from karpstack.preflight.aws.asking import Aws
from karpstack.preflight.destroy import api_access
from karpstack.preflight.destroy.cluster import Cluster
from karpstack.preflight.destroy.subject import Subject
from karpstack.preflight.finding import NotAskedError, UnknowableError
from tests.unit.command_line import karpstack
from tests.unit.preflight.fake_cluster import EKS, NAP, FakeCluster
from tests.unit.preflight.fake_server import FakeServer

main = karpstack("preflight")

ENDPOINT = "https://abc.gr7.us-east-1.eks.amazonaws.com"


def kubeconfig(folder: Path, server: str, **more: str) -> Path:
    content = {
        "clusters": [{"name": "c", "cluster": {"server": server, **more}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "x", **content}))
    return path


@pytest.mark.parametrize(
    ("server", "more", "is_ours"),
    [
        (ENDPOINT, {}, True),
        (f"{ENDPOINT.upper().replace('HTTPS', 'https')}:443/", {}, True),
        # Through a tunnel: the certificate proves whose it is.
        ("https://127.0.0.1:8443", {"tls-server-name": ENDPOINT.removeprefix("https://")}, True),
        (
            "https://127.0.0.1:8443",
            {"tls-server-name": ENDPOINT.removeprefix("https://"), "insecure-skip-tls-verify": True},
            False,
        ),
        ("https://127.0.0.1:8443", {}, False),
        ("http://127.0.0.1:8443", {"tls-server-name": ENDPOINT.removeprefix("https://")}, False),  # `kubectl proxy`
        ("https://def.gr7.us-east-1.eks.amazonaws.com", {}, False),
    ],
)
def test_on_aws_another_cluster_is_refused(tmp_path: Path, server: str, more: dict[str, str], is_ours: bool) -> None:
    cluster = Cluster(kubeconfig(tmp_path, server, **more))
    outputs = {**EKS, "clusterEndpoint": ENDPOINT}
    if is_ours:
        api_access.refuse_other_cluster(cluster, outputs)
        return
    with pytest.raises(UnknowableError, match=f"the stack's clusterEndpoint is {ENDPOINT}"):
        api_access.refuse_other_cluster(cluster, outputs)


@pytest.mark.parametrize(("host", "said"), [("karpstack.example", 0), ("another.hcp.westus2.azmk8s.io", 1)])
def test_on_azure_another_address_is_a_warning(host: str, said: int) -> None:
    cluster = FakeCluster()
    cluster.host = host
    outputs = {**NAP, "clusterEndpoint": "https://karpstack.example:443"}
    findings = list(api_access.check_access(Subject(cluster, outputs)))
    assert [finding.severity for finding in findings] == ["warning"] * said


class Sts:
    """An account that says who asks, or does not."""

    def __init__(self, *, answers: bool) -> None:
        self._answers = answers

    def can_paginate(self, name: str) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        def operation(**given: Any) -> dict[str, Any]:
            if not self._answers:
                raise NotAskedError("sts:GetCallerIdentity", "ExpiredToken", refused=False)
            who = {"Arn": "arn:aws:iam::123456789012:user/me", "Account": "123456789012"}
            return who if name == "get_caller_identity" else {}

        return operation


def look(folder: Path, server: str, monkeypatch: pytest.MonkeyPatch, *, answers: bool = True) -> int:
    aws = Aws("us-east-1", lambda service: Sts(answers=answers))
    monkeypatch.setattr(Aws, "connect", lambda *given: aws)
    outputs = folder / "outputs.json"
    outputs.write_text(json.dumps({**EKS, "clusterEndpoint": server}))
    given = ["--outputs", str(outputs), "--kubeconfig", str(kubeconfig(folder, server))]
    return main(["destroy", "eks", "--format", "json", *given])


def test_a_server_that_knows_nothing_is_no_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeServer() as server:
        code = look(tmp_path, f"http://127.0.0.1:{server.port}", monkeypatch)
    checks = {check["name"]: check["findings"] for check in json.loads(capsys.readouterr().out)["checks"]}
    assert code == 1
    (finding,) = checks["cluster"]
    assert finding["what"] == "the cluster cannot be reached: 404 no"
    assert "could not be checked: the cluster cannot be reached" in checks["NodePools"][0]["what"]
    # The account was asked all the same.
    assert checks["security groups"] == []


def test_where_nobody_answers_nothing_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeServer() as server:
        assert look(tmp_path, f"http://127.0.0.1:{server.port}", monkeypatch, answers=False) == 3
    said = capsys.readouterr().err
    assert "GET /version: 404 no, so the cluster cannot be reached; and sts:GetCallerIdentity: ExpiredToken" in said
