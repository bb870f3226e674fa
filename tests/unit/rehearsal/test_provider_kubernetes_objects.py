"""What the kubernetes provider does with objects: names, creation, waits, previews, deletion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rehearsal.attachment.resource import UNKNOWN, IncompleteError, RefusedError
from rehearsal.cluster import readiness
from rehearsal.cluster.provider.api import ApiError
from rehearsal.cluster.provider.objects import NODES_STAY, KubernetesObject, kubernetes_object
from rehearsal.timing import Timing
from tests.unit.rehearsal.provider_kubernetes_world import FakeApi, FakeConnection, manifest


def resource(kind: str = "apps/v1:ReplicaSet", connection: FakeConnection | None = None) -> KubernetesObject:
    token = f"kubernetes:{kind}"
    found = kubernetes_object(token, connection or FakeConnection(FakeApi()))  # type: ignore[arg-type]  # a fake
    if found is None:
        raise ValueError(token)
    return found


@pytest.mark.parametrize(
    "token",
    [
        "kubernetes:helm.sh/v4:Chart",
        "kubernetes:core/v1:PodPatch",
        "kubernetes:core/v1:PodList",
        "kubernetes:yaml/v2:ConfigFile",
        "kubernetes:kustomize/v2:Directory",
        "kubernetes:index:Thing",
        "aws:core/v1:Pod",
    ],
)
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


@pytest.mark.parametrize(
    ("annotations", "refused"),
    [
        ({"waitFor": "condition=Ready"}, False),
        ({"waitFor": "jsonpath={.status}=x"}, True),
        ({"skipAwait": "true"}, False),
        ({"replaceUnready": "true"}, True),
    ],
)
def test_annotations_that_would_have_no_effect_are_refused(annotations: dict[str, str], refused: bool) -> None:
    assert bool(resource().check(manifest(**annotations), name="x")[1]) == refused


def test_the_same_name_in_the_same_namespace_deletes_first() -> None:
    assert resource().deletes_first(manifest(), manifest())
    assert not resource().deletes_first(manifest(namespace="a"), manifest(namespace="b"))
    assert not resource().deletes_first(manifest(), manifest(autonamed="true"))


def test_secrets_are_secret() -> None:
    assert resource("core/v1:Secret").secret_outputs == {"data", "stringData"}
    assert "metadata.name" in resource().replace_on


def test_creation_applies_and_names_the_object_by_its_place() -> None:
    api = FakeApi()
    created = resource(connection=FakeConnection(api)).create(manifest(), timeout=1)
    assert created.id == "default/x"
    assert "managedFields" not in created.outputs["metadata"]
    assert api.calls == [
        ("apply", "/apis/apps/v1/namespaces/default/replicasets/x", manifest(namespace="default"), False, False)
    ]


def test_a_cluster_wide_object_has_no_namespace() -> None:
    api = FakeApi(namespaced=False)
    created = resource(connection=FakeConnection(api)).create(manifest(namespace="wrong"), timeout=1)
    assert created.id == "x"
    assert api.calls[0][1:3] == ("/apis/apps/v1/replicasets/x", manifest())


def test_what_exists_is_not_taken_over() -> None:
    api = FakeApi({"/apis/apps/v1/namespaces/default/replicasets/x": {}})
    with pytest.raises(RefusedError, match=r'replicasets\.apps "x" already exists'):
        resource(connection=FakeConnection(api)).create(manifest(), timeout=1)
    assert not api.calls


def test_a_kind_that_appears_late_is_waited_for() -> None:
    api = FakeApi(missing=2)
    resource(connection=FakeConnection(api)).create(manifest(), timeout=1)
    assert [call[0] for call in api.calls] == ["pause", "pause", "apply"]


def test_a_kind_that_does_not_exist_is_told() -> None:
    with pytest.raises(RefusedError, match='CRDs have been created: no matches for kind "ReplicaSet"'):
        resource(connection=FakeConnection(FakeApi(missing=99))).create(manifest(), timeout=1)


def test_the_api_servers_refusal_is_shown() -> None:
    api = FakeApi(problem=ApiError(422, 'NodePool.karpenter.sh "x" is invalid'))
    with pytest.raises(RefusedError, match=r'by the Kubernetes API server: NodePool\.karpenter\.sh "x" is invalid'):
        resource(connection=FakeConnection(api)).create(manifest(), timeout=1)


def test_a_conflict_names_the_way_out() -> None:
    api = FakeApi(problem=ApiError(409, 'conflict with "kubectl"'))
    with pytest.raises(RefusedError, match=r'(?s)conflict with "kubectl".*pulumi\.com/patchForce'):
        resource(connection=FakeConnection(api)).update("default/x", {}, manifest(), timeout=1)
    api.problem = None
    resource(connection=FakeConnection(api)).update("default/x", {}, manifest(patchForce="true"), timeout=1)
    assert api.calls[-1][3] is True


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


@pytest.mark.parametrize(
    ("wanted", "status", "observed", "met"),
    [
        ("condition=Ready", "True", 2, True),
        ("condition=ready=true", "True", 2, True),
        ("condition=Ready", "True", None, True),
        ("condition=Ready", "True", 1, False),  # of the generation before
        ("condition=Ready", "Unknown", 2, False),
        ("condition=Ready=False", "False", 2, True),
        ('["condition=Ready", "condition=Valid"]', "True", 2, False),
    ],
)
def test_conditions_are_waited_for_as_upstream_does(wanted: str, status: str, observed: int | None, met: bool) -> None:
    condition = {"type": "Ready", "status": status} | ({} if observed is None else {"observedGeneration": observed})
    asked: list[bool] = []
    api = FakeApi()
    api.wait = lambda path, done, timeout, what: asked.append(  # type: ignore[method-assign]
        done({"metadata": {"generation": 2}, "status": {"conditions": [condition]}})
    )
    resource(connection=FakeConnection(api)).create(manifest(waitFor=wanted), timeout=1)
    assert asked == [met]


def test_a_condition_is_waited_for_no_longer_than_a_rehearsal_takes() -> None:
    asked: list[float] = []
    api = FakeApi()
    api.wait = lambda path, done, timeout, what: asked.append(timeout)  # type: ignore[method-assign]
    resource(connection=FakeConnection(api)).create(manifest(waitFor="condition=Ready"), timeout=900)
    assert asked == [Timing().condition]


def test_a_preview_asks_the_api_server() -> None:
    api = FakeApi()
    shown = resource(connection=FakeConnection(api)).preview(manifest(), id="", state={})
    assert api.calls[0][-1] is True
    assert shown["metadata"] == {"name": "x", "namespace": "default"}
    assert "status" not in shown
    api.problem = ApiError(422, "invalid")
    with pytest.raises(RefusedError, match="invalid"):
        resource(connection=FakeConnection(api)).preview(manifest(), id="", state={})


@pytest.mark.parametrize(
    "api",
    [
        None,
        FakeApi(missing=1),
        FakeApi(problem=ApiError(404, 'namespaces "x" not found')),
        FakeApi({"/apis/apps/v1/namespaces/default/replicasets/x": {}}),
    ],
)
def test_a_preview_that_cannot_be_asked_shows_the_inputs(api: FakeApi | None) -> None:
    assert resource(connection=FakeConnection(api)).preview(manifest(), id="", state={}) == manifest()


def test_a_preview_with_unknowns_asks_nobody() -> None:
    api = FakeApi()
    inputs = {**manifest(), "spec": {"replicas": UNKNOWN}}
    assert resource(connection=FakeConnection(api)).preview(inputs, id="", state={}) == inputs
    assert not api.calls


def test_deletion_cascades_and_waits() -> None:
    api = FakeApi({"/apis/apps/v1/namespaces/other/replicasets/x": {}})
    sets = resource(connection=FakeConnection(api))
    sets.delete("other/x", manifest(), timeout=30)
    assert api.calls == [("delete", "/apis/apps/v1/namespaces/other/replicasets/x", "Foreground"), ("wait", 30)]
    api.calls.clear()
    sets.delete("other/x", manifest(deletionPropagationPolicy="orphan", skipAwait="true"), timeout=30)
    assert [call[2:] for call in api.calls] == [("Orphan",)]


def test_deleting_what_is_gone_succeeds() -> None:
    api = FakeApi()
    resource(connection=FakeConnection(api)).delete("default/x", manifest(), timeout=1)
    assert [call[0] for call in api.calls] == ["delete"]
    resource(connection=FakeConnection(FakeApi(missing=1))).delete("default/x", manifest(), timeout=1)


def test_finalizers_that_hold_an_object_are_named() -> None:
    seen = {"metadata": {"finalizers": ["karpenter.sh/termination"]}}
    api = FakeApi({"/apis/apps/v1/namespaces/default/replicasets/x": seen}, problem=TimeoutError(seen))
    with pytest.raises(RefusedError, match=r"3 s after.*\(karpenter\.sh/termination\)"):
        resource(connection=FakeConnection(api)).delete("default/x", manifest(), timeout=3)


def test_without_a_cluster_nothing_is_done_silently() -> None:
    lost = FakeConnection()
    for call in (
        lambda: resource(connection=lost).create(manifest(), timeout=1),
        lambda: resource(connection=lost).read("x", {}),
        lambda: resource(connection=lost).delete("x", {}, timeout=1),
    ):
        with pytest.raises(RefusedError, match=r"unreachable.*connection refused"):
            call()
    lost.deletes_unreachable = True
    assert resource(connection=lost).read("x", {}) is None
    resource(connection=lost).delete("x", {}, timeout=1)


def test_an_import_has_no_fields_of_the_api_servers() -> None:
    live = {**manifest(), "status": {"replicas": 1}}
    live["metadata"] = {**live["metadata"], "uid": "u", "creationTimestamp": "t"}
    assert resource().inputs_of(live, {}) == manifest()


@pytest.mark.parametrize(
    ("api_version", "waits"),
    [
        ("karpenter.sh/v1", False),
        ("karpenter.azure.com/v1beta1", False),
        ("karpenter.k8s.aws/v1", False),
        ("apps/v1", True),
    ],
)
def test_a_whatif_does_not_wait_for_nodes_of_deleted_objects(
    monkeypatch: pytest.MonkeyPatch, api_version: str, waits: bool
) -> None:
    monkeypatch.setenv(NODES_STAY, "1")
    api = FakeApi({f"/apis/{api_version}/namespaces/other/somes/x": {}})
    state = {**manifest(), "apiVersion": api_version, "kind": "Some"}
    made = resource(f"{api_version}:Some", connection=FakeConnection(api))
    made.delete("other/x", state, timeout=30)
    assert [call[0] for call in api.calls] == (["delete", "wait"] if waits else ["delete"])
