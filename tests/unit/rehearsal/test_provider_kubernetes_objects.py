"""What the kubernetes provider does with objects, as provider_kubernetes.yaml lists it, and their names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
import yaml

from karpstack.rehearsal.attachment.resource import UNKNOWN, IncompleteError, Properties, RefusedError
from karpstack.rehearsal.cluster import readiness
from karpstack.rehearsal.cluster.provider.api import ApiError, Kind
from karpstack.rehearsal.cluster.provider.objects import NODES_STAY, KubernetesObject, kubernetes_object
from karpstack.rehearsal.cluster.provider.patches import KubernetesPatch, kubernetes_patch
from tests.unit.rehearsal.provider_kubernetes_world import FakeApi, FakeConnection, manifest
from tests.unit.rehearsal.recordings import resolved
from tests.unit.rehearsal.steps import unlike

TABLE = yaml.safe_load(Path(__file__).with_name("provider_kubernetes.yaml").read_text())
OTHERS = TABLE.pop("others")
ROWS = [
    pytest.param(verb, row, id=f"{verb}-{number}") for verb, rows in TABLE.items() for number, row in enumerate(rows)
]


def resource(kind: str = "apps/v1:ReplicaSet", connection: FakeConnection | None = None) -> KubernetesObject:
    token = f"kubernetes:{kind}"
    found = kubernetes_object(token, connection or FakeConnection(FakeApi()))  # type: ignore[arg-type]  # a fake
    if found is None:
        raise ValueError(token)
    return found


class Case:
    """A row: an object, an API server, and what the provider does with them."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.row = row
        self.api = FakeApi(**{**row.get("api", {}), "objects": dict(row.get("there", {}))})
        if "problem" in row.get("api", {}):
            self.api.problem = ApiError(*row["api"]["problem"])
        if "held" in row:
            seen = {"metadata": {"finalizers": [row["held"]]}}
            self.api.problem = TimeoutError(seen)
        if "seen" in row:
            self.api.wait = self._wait  # type: ignore[method-assign]
        self.met: list[bool] = []
        connection = FakeConnection(self.api if row.get("reachable", True) else None)
        connection.deletes_unreachable = row.get("forgiven", False)
        self.resource = resource(f"{row.get('kind', 'apps/v1')}:ReplicaSet", connection)
        if "kind" in row:
            self.api.objects[f"/apis/{row['kind']}/namespaces/default/replicasets/x"] = {}
        given = resolved(row.get("given", {}), lambda _: UNKNOWN)
        version = {"apiVersion": row["kind"]} if "kind" in row else {}
        self.inputs = {**manifest(**row.get("annotations", {})), **given, **version}

    def _wait(self, path: str, done: Any, timeout: float, what: str) -> None:
        self.met.append(done({"metadata": {"generation": 2}, "status": {"conditions": [self.row["seen"]]}}))

    def do(self, verb: str) -> Any:
        made, timeout = self.resource, self.row.get("timeout", 30)
        if verb == "create":
            created = made.create(self.inputs, timeout=timeout)
            return {"id": created.id, "outputs": created.outputs}
        if verb == "update":
            return made.update("default/x", {}, self.inputs, timeout=timeout)
        if verb == "preview":
            return made.preview(self.inputs, id="", state={})
        if verb == "delete":
            return made.delete("default/x", self.inputs, timeout=timeout)
        if verb == "read":
            return made.read("default/x", {})
        _, failures = made.check(self.inputs, name="x")
        if failures:
            raise RefusedError(failures[0].reason)
        return None


@pytest.mark.parametrize(("verb", "row"), ROWS)
def test_objects_are_dealt_with_as_upstream_does(
    monkeypatch: pytest.MonkeyPatch, verb: str, row: dict[str, Any]
) -> None:
    if row.get("nodes_stay"):
        monkeypatch.setenv(NODES_STAY, "1")
    case = Case(row)
    if "refused" in row:
        with pytest.raises(RefusedError) as caught:
            case.do(verb)
        assert row["refused"] in str(caught.value)
    else:
        answer = case.do(verb)
        assert not unlike(answer, row.get("gives", {}))
        assert not row.get("inputs") or answer == case.inputs
    calls = [list(call[: len(wanted)]) for call, wanted in zip(case.api.calls, row.get("calls", ()), strict=False)]
    assert "calls" not in row or (calls, len(case.api.calls)) == (row["calls"], len(row["calls"]))
    assert case.met == ([row["met"]] if "met" in row else [])
    if verb in ("create", "preview") and case.api.calls and case.api.calls[-1][0] == "apply":
        assert case.api.calls[-1][-1] == (verb == "preview"), "a preview is a dry run"
    assert not row.get("forced") or case.api.calls[-1][3]


@pytest.mark.parametrize("token", OTHERS)
def test_what_is_no_object_is_not_known(token: str) -> None:
    assert kubernetes_object(token, FakeConnection(FakeApi())) is None  # type: ignore[arg-type]  # a fake


def test_the_token_gives_api_version_and_kind() -> None:
    checked, failures = resource("core/v1:Pod").check({"metadata": {"name": "x"}}, name="x")
    assert checked == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}
    assert not failures


def test_an_automatic_name_is_marked_and_kept() -> None:
    first = resource().autoname({"metadata": {"labels": {"a": "b"}}}, {}, "logical-1")
    assert first == {
        "metadata": {"labels": {"a": "b"}, "name": "logical-1", "annotations": {"pulumi.com/autonamed": "true"}}
    }
    assert resource().autoname({}, first, "logical-2")["metadata"]["name"] == "logical-1"
    assert resource().autoname({}, {"metadata": {"name": "mine"}}, "logical-2")["metadata"]["name"] == "logical-2"
    assert resource().autoname({"metadata": {"name": UNKNOWN}}, {}, "logical-2") == {"metadata": {"name": UNKNOWN}}


def test_a_nameless_object_is_refused_where_names_are_not_automatic() -> None:
    assert resource().check(resource().autoname({}, {}, None), name="x")[1]


def test_the_same_name_in_the_same_namespace_deletes_first() -> None:
    assert resource().deletes_first(manifest(), manifest())
    assert not resource().deletes_first(manifest(namespace="a"), manifest(namespace="b"))
    assert not resource().deletes_first(manifest(), manifest(autonamed="true"))


def test_secrets_are_secret() -> None:
    assert resource("core/v1:Secret").secret_outputs == {"data", "stringData"}
    assert "metadata.name" in resource().replace_on


def test_a_deployment_that_does_not_come_up_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    def wait_available(
        client: Any, workloads: Any, timeout: float, *, all_replicas: bool, problem: Callable[[], str]
    ) -> str:
        return f"{workloads} lacks pods for {timeout:g} s"

    monkeypatch.setattr(readiness, "wait_available", wait_available)
    deployments = resource("apps/v1:Deployment")
    with pytest.raises(IncompleteError, match=r"\('Deployment', 'default', 'x'\).* for 7 s") as caught:
        deployments.create({**manifest(), "kind": "Deployment"}, timeout=7)
    assert caught.value.created.id == "default/x"
    deployments.create({**manifest("y", skipAwait="true"), "kind": "Deployment"}, timeout=1)


def test_an_object_whose_condition_stays_false_is_recorded_and_no_reason_is_given_as_upstream_gives_none() -> None:
    seen = {**manifest(), "status": {"conditions": [{"type": "Ready", "status": "False", "message": "no subnets"}]}}
    api = FakeApi()
    waiting = resource(connection=FakeConnection(api))
    api.wait = lambda *arguments: (_ for _ in ()).throw(TimeoutError(seen))  # type: ignore[method-assign]
    with pytest.raises(IncompleteError, match=r"become live: timed out waiting for the condition$") as caught:
        waiting.create(manifest(waitFor="condition=Ready", timeoutSeconds="5"), timeout=1)
    assert caught.value.created.outputs["status"] == seen["status"]


def test_an_import_has_no_fields_of_the_api_servers() -> None:
    live = {**manifest(), "status": {"replicas": 1}}
    live["metadata"] = {**live["metadata"], "uid": "u", "creationTimestamp": "t"}
    assert resource().inputs_of(live, {}) == manifest()


@pytest.mark.parametrize(
    "id",
    [
        *("default/", "/", "default/..", "default/.", "../x", "default/../x", "kube-system/../default/x", "a/b/x"),
        *("default/%2e%2e", "default/x%2f..", "%2e%2e/x"),
    ],
)
def test_an_id_that_would_lead_to_another_path_is_refused(id: str) -> None:
    """Deleted as `default/`, all objects of the kind would go."""
    api = FakeApi()
    made = resource(connection=FakeConnection(api))
    calls: list[Callable[[], object]] = [
        lambda: made.read(id, {}),
        lambda: made.delete(id, manifest(), timeout=1),
        lambda: made.update(id, {}, manifest(), timeout=1),
    ]
    for call in calls:
        with pytest.raises(RefusedError, match="is no name of an object of Kubernetes, so nothing was done"):
            call()
    assert api.calls == []


@pytest.mark.parametrize("id", ["default/x?dryRun=All", "default/x#y", "default/x y", "default/x\n", "default/\u00e9"])
def test_an_id_cannot_end_the_path(id: str) -> None:
    api = FakeApi()
    resource(connection=FakeConnection(api)).delete(id, manifest(), timeout=1)
    assert [call[1].rpartition("/")[0] for call in api.calls] == ["/apis/apps/v1/namespaces/default/replicasets"]
    assert not set(api.calls[0][1]) & set("?# \n\u00e9")


def test_names_of_roles_stay_as_they_are() -> None:
    assert Kind("/apis/a/v1", "b", namespaced=False).path("", "system:node") == "/apis/a/v1/b/system:node"


# Patches of what somebody else has made.


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
