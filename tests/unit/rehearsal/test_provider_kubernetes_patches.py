"""Patches of what somebody else has made."""

from __future__ import annotations

from unittest.mock import ANY

import pytest

from rehearsal.attachment.resource import IncompleteError, Properties
from rehearsal.cluster import readiness
from rehearsal.cluster.provider.patches import KubernetesPatch, kubernetes_patch
from tests.unit.rehearsal.provider_kubernetes_world import FakeApi, FakeConnection, manifest


def patch(connection: FakeConnection) -> KubernetesPatch:
    found = kubernetes_patch("kubernetes:apps/v1:DaemonSetPatch", connection)  # type: ignore[arg-type]  # a fake
    assert found is not None
    return found


PLACE = "/apis/apps/v1/namespaces/default/daemonsets/x"


def daemon_set(**annotations: str) -> Properties:
    return {**manifest(**annotations), "kind": "DaemonSet"}


def test_a_patch_sets_fields_of_what_exists_and_lets_go_of_them() -> None:
    api = FakeApi({PLACE: {}})
    patched = patch(FakeConnection(api))
    inputs = daemon_set(patchForce="true", skipAwait="true")
    assert patched.preview(inputs, id="", state={}) == inputs
    created = patched.create(inputs, timeout=1)
    assert api.calls == [
        ("apply", PLACE, daemon_set(patchForce="true", skipAwait="true") | {"metadata": ANY}, True, False)
    ]
    patched.delete(created.id, created.outputs, timeout=1)
    assert api.calls[-1][1:3] == (
        PLACE,
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "x", "namespace": "default"}},
    )
    assert not [call for call in api.calls if call[0] == "delete"]


def test_a_patched_workload_is_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "wait_available", lambda *_, **__: "1 of 2 pods are up to date")
    patched = patch(FakeConnection(FakeApi({PLACE: {}})))
    with pytest.raises(IncompleteError, match="failed to fully initialize or become live: 1 of 2 pods are up to date"):
        patched.create(daemon_set(), timeout=1)
    with pytest.raises(IncompleteError, match="1 of 2 pods"):
        patched.update("default/x", {}, daemon_set(), timeout=1)


def test_a_patch_of_what_is_gone_is_gone() -> None:
    api = FakeApi()
    patch(FakeConnection(api)).delete("default/x", daemon_set(), timeout=1)
    assert not api.calls
