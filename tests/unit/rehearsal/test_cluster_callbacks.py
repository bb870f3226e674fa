"""What the API server calls: judged by where its pods are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from karpstack.rehearsal.cluster import callbacks

SERVICE = {"name": "webhook", "namespace": "kube-system"}
WEBHOOK = {
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "checks"},
    "webhooks": [{"name": "one", "clientConfig": {"service": SERVICE}}, {"name": "two", "clientConfig": {"url": "x"}}],
}
API = {"kind": "APIService", "metadata": {"name": "v1.example.com"}, "spec": {"service": SERVICE}}
BEHIND = {"kind": "Service", "metadata": {"name": "webhook"}, "spec": {"selector": {"app": "it"}}}


def deployment(host_network: bool, app: str = "it") -> dict[str, Any]:
    pod = {"metadata": {"labels": {"app": app, "more": "x"}}, "spec": {"hostNetwork": host_network}}
    return {"kind": "Deployment", "metadata": {"name": app}, "spec": {"template": pod}}


@pytest.mark.parametrize("called", [WEBHOOK, API])
def test_pods_of_the_overlay_are_not_reached(called: dict[str, Any]) -> None:
    (sentence,) = callbacks.unreachable([called, BEHIND, deployment(False)])
    assert sentence.startswith(f"{called['kind']} {called['metadata']['name']}: ")
    assert "Deployment it behind Service kube-system/webhook" in sentence


@pytest.mark.parametrize(
    "manifests",
    [
        [WEBHOOK, BEHIND, deployment(True)],
        [WEBHOOK, BEHIND, deployment(False, "other")],
        [WEBHOOK, deployment(False)],
        [BEHIND, deployment(False)],
        [{"kind": "APIService", "metadata": {"name": "v1."}, "spec": {}}, BEHIND, deployment(False)],
    ],
    ids=["on the host's network", "other pods", "a Service of elsewhere", "not called", "the API server's own"],
)
def test_nothing_else_is_said(manifests: list[dict[str, Any]]) -> None:
    assert callbacks.unreachable(manifests) == []


def test_a_chart_that_has_none_is_not_rendered_twice(tmp_path: Path) -> None:
    (tmp_path / "one" / "templates").mkdir(parents=True)
    (tmp_path / "one" / "templates" / "policy.yaml").write_text("kind: ValidatingAdmissionPolicy\n")
    (tmp_path / "two" / "templates").mkdir(parents=True)
    (tmp_path / "two" / "templates" / "api.yaml").write_text("x: 1\nkind: APIService\n")
    assert not callbacks.may_have_callbacks(tmp_path / "one")
    assert callbacks.may_have_callbacks(tmp_path / "two")
