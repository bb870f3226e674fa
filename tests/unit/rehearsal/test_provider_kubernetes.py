"""The kubernetes provider's judgement, without an API server."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
import yaml

from rehearsal.attachment.resource import UNKNOWN, IncompleteError, Properties, RefusedError
from rehearsal.cluster import objects, readiness
from rehearsal.cluster import provider as kubernetes
from rehearsal.cluster.charts import ChartNotFoundError
from rehearsal.cluster.objects import Objects
from rehearsal.cluster.provider import api as api_module
from rehearsal.cluster.provider.api import Api, ApiError, CancelledError, Kind, NoKindError
from rehearsal.cluster.provider.connection import Connection, UnreachableError
from rehearsal.cluster.provider.objects import KubernetesObject, kubernetes_object
from rehearsal.cluster.provider.patches import KubernetesPatch, kubernetes_patch
from rehearsal.cluster.provider.release import Release
from rehearsal.cluster.releases import ReleaseError
from rehearsal.timing import Timing
from tests.unit.rehearsal.cluster_world import World

ENDPOINT = "https://127.0.0.1:6443"


def certificate(text: bytes) -> str:
    body = base64.b64encode(text).decode()
    return f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n"


class FakeCluster:
    name = "karpstack"
    endpoint = ENDPOINT
    certificate_authority = certificate(b"ours").encode()
    token = "administrator's"
    timing = Timing()
    knows_deployer = True
    releases: Any = None

    def __init__(self, deployer: Mapping[str, str] | None = None) -> None:
        self.deployer = deployer or {}


class FakeClusters:
    def __init__(self, *clusters: FakeCluster) -> None:
        self.clusters = clusters

    def by_endpoint(self, endpoint: str) -> FakeCluster | None:
        return next((cluster for cluster in self.clusters if cluster.endpoint == endpoint), None)


def kubeconfig(
    *,
    server: str = ENDPOINT,
    authority: str = certificate(b"ours"),
    cluster: Mapping[str, Any] | None = None,
    user: Mapping[str, Any] | None = None,
    **plugin: Any,
) -> str:
    execution = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "aws",
        "args": ["eks", "get-token", "--cluster-name", "karpstack"],
        **plugin,
    }
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "contexts": [
                {"name": "here", "context": {"cluster": "c", "user": "u"}},
                {"name": "broken", "context": {"cluster": "nowhere", "user": "u"}},
                {"name": "spaced", "context": {"cluster": "c", "user": "u", "namespace": "apps"}},
            ],
            "clusters": [
                {
                    "name": "c",
                    "cluster": {
                        "server": server,
                        "certificate-authority-data": base64.b64encode(authority.encode()).decode(),
                        **(cluster or {}),
                    },
                }
            ],
            "users": [{"name": "u", "user": {"exec": execution} if user is None else user}],
        }
    )


def connection(text: str | None = None, **settings: Any) -> Connection:
    return Connection(
        {"kubeconfig": kubeconfig() if text is None else text, **settings},
        FakeClusters(FakeCluster()),  # type: ignore[arg-type]
        threading.Event(),
    )


# -- the connection


def test_a_good_kubeconfig_reaches_its_cluster() -> None:
    assert connection().cluster().name == "karpstack"
    assert connection(json.dumps(yaml.safe_load(kubeconfig()))).cluster().name == "karpstack"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--profile", "platform", "--role-arn", "arn:a"], ""),
        ([], "with --profile platform, and the exec plugin asks for a token with no --profile"),
        (["--profile", "platform"], "with no --role-arn"),
        (["--profile", "platform", "--role-arn=arn:b"], "with --role-arn arn:b"),
    ],
)
def test_a_cluster_knows_who_made_it_and_nobody_else(options: list[str], said: str) -> None:
    made = FakeClusters(FakeCluster({"--profile": "platform", "--role-arn": "arn:a"}))
    text = kubeconfig(args=["eks", "get-token", "--cluster-name", "karpstack", *options])
    found = Connection({"kubeconfig": text}, made, threading.Event())  # type: ignore[arg-type]  # a fake
    if said:
        with pytest.raises(UnreachableError, match=f"asked for the client to provide credentials .*{said}"):
            found.cluster()
    else:
        assert found.cluster().name == "karpstack"


def test_no_kubeconfig_is_refused_before_anything_else() -> None:
    with pytest.raises(RefusedError, match="whichever cluster"):
        connection("")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (kubeconfig(server="https://127.0.0.1:1"), r"dial tcp 127\.0\.0\.1:1: connect: connection refused"),
        (kubeconfig(authority=certificate(b"theirs")), "x509: certificate signed by unknown authority"),
        (kubeconfig(authority="no certificate"), "x509: certificate signed by unknown authority"),
        (kubeconfig(args=["eks", "get-token", "--cluster-name", "other"]), "token is for the cluster 'other'"),
        (kubeconfig(args=["eks", "get-token", "--cluster-name=other"]), "token is for the cluster 'other'"),
        (
            kubeconfig(args=["token", "-i", "other"], command="aws-iam-authenticator"),
            "token is for the cluster 'other'",
        ),
        (kubeconfig(args=["eks", "get-token"]), "token is for the cluster ''"),
        (kubeconfig(apiVersion="client.authentication.k8s.io/v1alpha1"), "exec plugin: invalid apiVersion"),
        (kubeconfig(apiVersion="client.authentication.k8s.io/v1"), "interactiveMode must be specified"),
        (kubeconfig(args=["token"], command="aws-iam-authenticator"), "token is for the cluster ''"),
        (kubeconfig(args=["token"]), "token is for the cluster ''"),
        (kubeconfig(command="echo", args=["{}"]), "stands in for aws, aws-iam-authenticator, kubelogin only, not for"),
        (kubeconfig(user={}), r"asked for the client to provide credentials \(the kubeconfig's user has none\)"),
        (kubeconfig(user={"token": "made up"}), "provide credentials .* not the one of this cluster's administrator"),
        (kubeconfig(user={"token": "Ä"}), "not the one of this cluster's administrator"),
        (kubeconfig(user={"tokenFile": "/no/such/file"}), "tokenFile cannot be read"),
        (kubeconfig(user={"client-certificate-data": "x"}), "has a client certificate, and this cluster trusts none"),
        ("a: [", "failed to parse kubeconfig data"),
        ("- a\n- b\n", "it is a list, not a map"),
        ("/no/such/file", "failed to parse kubeconfig data"),
        ("kind: Config\n", "names no context"),
    ],
)
def test_a_bad_kubeconfig_gives_the_users_error(text: str, reason: str) -> None:
    with pytest.raises(UnreachableError, match=reason):
        connection(text).cluster()


def test_tls_verification_can_be_switched_off() -> None:
    text = kubeconfig(authority=certificate(b"theirs"), cluster={"insecure-skip-tls-verify": True})
    assert connection(text).cluster().name == "karpstack"


def test_the_administrators_token_opens_the_cluster(tmp_path: Path) -> None:
    assert connection(kubeconfig(user={"token": FakeCluster.token})).cluster()
    (tmp_path / "token").write_text(f"{FakeCluster.token}\n")
    assert connection(kubeconfig(user={"tokenFile": str(tmp_path / "token")})).cluster()


def test_a_bundle_may_hold_more_certificates() -> None:
    assert connection(kubeconfig(authority=certificate(b"theirs") + certificate(b"ours"))).cluster()


def test_an_azure_token_names_no_cluster() -> None:
    assert connection(kubeconfig(command="kubelogin", args=["get-token", "--server-id", "x"])).cluster()


def test_the_context_may_be_chosen() -> None:
    with pytest.raises(UnreachableError, match="cluster 'nowhere' does not exist"):
        connection(context="broken").cluster()
    assert connection(context="spaced").namespace == "apps"
    assert connection(context="spaced", namespace="other").namespace == "other"
    assert connection().namespace == "default"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"kubeconfig": kubeconfig()}, {"kubeconfig": kubeconfig()}, []),
        ({"kubeconfig": kubeconfig()}, {"kubeconfig": kubeconfig(args=["other"])}, []),
        ({"kubeconfig": kubeconfig()}, {"kubeconfig": kubeconfig(server="https://127.0.0.1:1")}, ["kubeconfig"]),
        ({"kubeconfig": kubeconfig()}, {"kubeconfig": UNKNOWN}, ["kubeconfig"]),
        (
            {"kubeconfig": kubeconfig(), "clusterIdentifier": "a"},
            {"kubeconfig": kubeconfig(server="https://127.0.0.1:1"), "clusterIdentifier": "a"},
            [],
        ),
        (
            {"kubeconfig": kubeconfig(), "clusterIdentifier": "a"},
            {"kubeconfig": kubeconfig(), "clusterIdentifier": "b"},
            ["clusterIdentifier"],
        ),
    ],
)
def test_another_cluster_replaces_the_provider(old: Properties, new: Properties, expected: list[str]) -> None:
    assert kubernetes.replaces(old, new) == expected


def test_only_server_side_apply_is_known() -> None:
    configuration = kubernetes.configuration(FakeClusters(), None)  # type: ignore[arg-type]  # not reached
    with pytest.raises(RefusedError, match="server-side apply only"):
        configuration.configure({"kubeconfig": kubeconfig(), "enableServerSideApply": "false"}, threading.Event())


def test_a_type_that_cannot_be_rehearsed_is_refused_with_what_can() -> None:
    configuration = kubernetes.configuration(FakeClusters(), FakeCharts())  # type: ignore[arg-type]  # fakes
    provider = configuration.configure({"kubeconfig": kubeconfig()}, threading.Event())
    assert provider.resource("kubernetes:helm.sh/v3:Release").token == "kubernetes:helm.sh/v3:Release"
    assert provider.resource("kubernetes:core/v1:Pod").token == "kubernetes:core/v1:Pod"
    with pytest.raises(RefusedError, match=r"helm\.sh/v4:Chart.*knows kubernetes:helm\.sh/v3:Release and single"):
        provider.resource("kubernetes:helm.sh/v4:Chart")


# -- objects


@dataclass
class FakeApi:
    """An API server of one kind that remembers what it was asked."""

    objects: dict[str, Properties] = field(default_factory=dict)
    namespaced: bool = True
    missing: int = 0
    problem: Exception | None = None
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    client: Any = None

    def cancellation(self) -> str:
        return ""

    def kind(self, api_version: str, kind: str) -> Kind:
        if self.missing:
            self.missing -= 1
            raise NoKindError(f'no matches for kind "{kind}" in version "{api_version}"')
        return Kind(f"/apis/{api_version}", f"{kind.lower()}s", self.namespaced)

    def get(self, path: str) -> Properties | None:
        return self.objects.get(path)

    def apply(self, path: str, body: Properties, manager: str, *, force: bool, dry_run: bool = False) -> Properties:
        self.calls.append(("apply", path, body, force, dry_run))
        if self.problem:
            raise self.problem
        metadata = {**body["metadata"], "uid": "u", "resourceVersion": "7", "managedFields": [{}]}
        seen = {**body, "metadata": metadata, "status": {}}
        if not dry_run:
            self.objects[path] = seen
        return seen

    def delete(self, path: str, propagation: str) -> bool:
        self.calls.append(("delete", path, propagation))
        return path in self.objects

    def wait(
        self, path: str, done: Callable[[Properties | None], bool], timeout: float, what: str
    ) -> Properties | None:
        self.calls.append(("wait", timeout))
        if self.problem:
            raise self.problem
        return None

    def pause(self, seconds: float, what: str) -> None:
        self.calls.append(("pause", seconds))


class FakeConnection:
    namespace = "default"
    deletes_unreachable = False

    def __init__(self, api: FakeApi | None = None, cluster: FakeCluster | None = None) -> None:
        self._api = api
        self._cluster = cluster or FakeCluster()

    def api(self) -> FakeApi:
        if self._api is None:
            raise UnreachableError("connection refused")
        return self._api

    def cluster(self) -> FakeCluster:
        if self._api is None:
            raise UnreachableError("connection refused")
        return self._cluster


def resource(kind: str = "apps/v1:ReplicaSet", connection: FakeConnection | None = None) -> KubernetesObject:
    token = f"kubernetes:{kind}"
    found = kubernetes_object(token, connection or FakeConnection(FakeApi()))  # type: ignore[arg-type]  # a fake
    if found is None:
        raise ValueError(token)
    return found


def manifest(name: str = "x", *, namespace: str = "", **annotations: str) -> Properties:
    metadata: Properties = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    if annotations:
        metadata["annotations"] = {f"pulumi.com/{key}": value for key, value in annotations.items()}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": {"replicas": 1}}


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


# -- the API


class Client(Objects):
    """A client whose answers are given."""

    def __init__(self, *, served: Any = None, status: int = 200) -> None:
        super().__init__(ENDPOINT, Path("/nowhere"), "token")
        self.served, self.status = served, status

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Properties:
        if self.status >= 400:
            raise objects.ApiError(self.status, "", "is invalid")
        answer: Properties = self.served
        return answer


def test_a_kind_is_found_among_what_is_served() -> None:
    served = {
        "resources": [
            {"name": "pods/log", "kind": "Pod", "namespaced": True},
            {"name": "pods", "kind": "Pod", "namespaced": True},
            {"name": "namespaces", "kind": "Namespace", "namespaced": False},
        ]
    }
    api = Api(Client(served=served), threading.Event())
    assert api.kind("v1", "Pod").path("a", "b") == "/api/v1/namespaces/a/pods/b"
    assert api.kind("v1", "Namespace").path("a", "b") == "/api/v1/namespaces/b"
    with pytest.raises(NoKindError, match=r'no matches for kind "Pood" in version "v1"'):
        api.kind("v1", "Pood")


def test_a_group_that_is_not_served_has_no_kinds() -> None:
    with pytest.raises(NoKindError, match=r'in version "karpenter\.sh/v1"'):
        Api(Client(status=404), threading.Event()).kind("karpenter.sh/v1", "NodePool")


def test_errors_are_in_the_servers_words() -> None:
    api = Api(Client(status=422), threading.Event())
    for call in (
        lambda: api.get("/x"),
        lambda: api.apply("/x", {}, "m", force=False),
        lambda: api.delete("/x", "Orphan"),
    ):
        with pytest.raises(ApiError, match="is invalid"):
            call()
    assert not Api(Client(status=404), threading.Event()).delete("/x", "Orphan")


SEEN = {"metadata": {"name": "x", "resourceVersion": "5"}}
POD = "/api/v1/pods/x"


def gone(seen: objects.Object | None) -> bool:
    return seen is None


@pytest.fixture
def world() -> World:
    world = World()
    world.present[POD] = SEEN
    return world


def test_a_wait_hears_of_it_from_the_watch(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_module, "_LOOK", 60.0)
    telling = threading.Thread(target=world.happen, args=("/api/v1/pods?metadata.name=x", "DELETED", SEEN))
    telling.start()
    assert Api(world.objects(), threading.Event()).wait(POD, gone, 60, "x") is None
    telling.join()


def test_a_wait_sees_what_went_before_the_watch_began(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_module, "_LOOK", 0.0)

    def goes_unseen(seen: objects.Object | None) -> bool:
        world.present.pop(POD, None)
        return seen is None

    assert Api(world.objects(), threading.Event()).wait(POD, goes_unseen, 60, "x") is None


def test_a_wait_ends_in_time_and_when_cancelled(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_module, "_LOOK", 0.0)
    cancelled = threading.Event()
    api = Api(world.objects(), cancelled)
    with pytest.raises(TimeoutError) as over:
        api.wait(POD, gone, 0, "x")
    assert over.value.args == (SEEN,)
    cancelled.set()
    with pytest.raises(CancelledError, match="deletion of x: the deployment was cancelled"):
        api.wait(POD, gone, 60, "deletion of x")


# -- releases


@dataclass(frozen=True)
class FakeChart:
    name: str
    version: str


class FakeCharts:
    def find(self, chart: str, version: str | None, repository: str | None) -> FakeChart:
        if chart != "cilium" or repository != "https://helm.cilium.io":
            raise ChartNotFoundError(f"chart {chart!r} is not known; known are cilium 1.20.2")
        return FakeChart("cilium", "1.20.2")

    def unknown_values(self, chart: FakeChart, values: Mapping[str, Any]) -> list[str]:
        return sorted(values.keys() - {"ipam", "routingMode"})


@dataclass
class FakeReleases:
    installed: dict[str, int] = field(default_factory=dict)
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    problem: Exception | None = None

    def status(self, name: str, namespace: str) -> Properties | None:
        revision = self.installed.get(name)
        return {"name": name, "revision": revision, "status": "deployed"} if revision else None

    def install(
        self, name: str, namespace: str, chart: FakeChart, values: Properties, **options: Any
    ) -> Properties | None:
        self.calls.append(("install", values, options))
        self.installed[name] = 1
        if self.problem:
            raise self.problem
        return self.status(name, namespace)

    def upgrade(
        self, name: str, namespace: str, chart: FakeChart, values: Properties, **options: Any
    ) -> Properties | None:
        self.calls.append(("upgrade", values, options))
        self.installed[name] += 1
        return self.status(name, namespace)

    def uninstall(self, name: str, namespace: str, *, timeout: float = 0) -> None:
        self.calls.append(("uninstall", timeout))
        self.installed.pop(name, None)


CILIUM = {
    "chart": "cilium",
    "version": "1.20.2",
    "repositoryOpts": {"repo": "https://helm.cilium.io"},
    "name": "cilium",
    "namespace": "kube-system",
    "values": {"routingMode": "tunnel"},
}


def release(releases: FakeReleases | None = None, *, reachable: bool = True) -> Release:
    cluster = FakeCluster()
    cluster.releases = releases or FakeReleases()
    connection = FakeConnection(FakeApi() if reachable else None, cluster)
    return Release(connection, FakeCharts())  # type: ignore[arg-type]  # fakes


def test_a_release_gets_the_providers_defaults() -> None:
    checked, failures = release().check({**CILIUM, "compat": "true"}, name="cilium")
    assert not failures
    assert checked == {**CILIUM, "timeout": 300}
    assert "timeout" not in release().check({**CILIUM, "skipAwait": True}, name="cilium")[0]


@pytest.mark.parametrize(
    ("change", "property", "text"),
    [
        ({"chart": "cillium"}, "chart", "chart 'cillium' is not known; known are cilium 1.20.2; check the chart name"),
        ({"repositoryOpts": {"repo": "https://example.com"}}, "chart", "not known"),
        ({"repositoryOpts": {"repo": "https://helm.cilium.io", "username": "u"}}, "repositoryOpts", "username"),
        ({"values": {"routingmode": "tunnel"}}, "values", "has no value routingmode"),
    ],
)
def test_a_wrong_chart_or_value_is_refused_by_name(change: Properties, property: str, text: str) -> None:
    (failure,) = release().check({**CILIUM, **change}, name="cilium")[1]
    assert failure.property == property
    assert text in failure.reason


def test_unknown_values_hide_no_unknown_names() -> None:
    values = {"routingMode": UNKNOWN, "ipam": {"list": [UNKNOWN]}}
    assert not release().check({**CILIUM, "values": values}, name="cilium")[1]
    assert release().check({**CILIUM, "values": {**values, "tpyo": UNKNOWN}}, name="cilium")[1]
    assert not release().check({**CILIUM, "values": UNKNOWN}, name="cilium")[1]
    assert not release().check({**CILIUM, "chart": UNKNOWN}, name="cilium")[1]


def test_the_life_of_a_release() -> None:
    releases = FakeReleases()
    cilium = release(releases)
    created = cilium.create({**CILIUM, "skipAwait": True, "createNamespace": True}, timeout=1)
    assert created.id == "kube-system/cilium"
    assert created.outputs["status"]["revision"] == 1
    assert releases.calls[0] == (
        "install",
        {"routingMode": "tunnel"},
        {"skip_await": True, "timeout": 300.0, "skip_crds": False, "create_namespace": True},
    )
    with pytest.raises(RefusedError, match="cannot re-use a name"):
        cilium.create(CILIUM, timeout=1)
    assert cilium.update(created.id, created.outputs, CILIUM, timeout=1)["status"]["revision"] == 2
    read = cilium.read(created.id, created.outputs)
    assert read is not None
    assert read["status"]["revision"] == 2
    cilium.delete(created.id, created.outputs, timeout=1)
    cilium.delete(created.id, created.outputs, timeout=1)
    assert cilium.read(created.id, created.outputs) is None


def test_a_failed_release_is_recorded_unless_it_is_atomic() -> None:
    releases = FakeReleases(problem=ReleaseError("timed out waiting for the condition"))
    with pytest.raises(IncompleteError, match=r"kube-system/cilium.*timed out waiting for the condition") as caught:
        release(releases).create(CILIUM, timeout=1)
    assert caught.value.created.id == "kube-system/cilium"
    releases.installed.clear()
    with pytest.raises(RefusedError, match="uninstalled due to atomic"):
        release(releases).create({**CILIUM, "atomic": True}, timeout=1)
    assert not releases.installed


def test_a_release_needs_a_cluster() -> None:
    with pytest.raises(RefusedError, match="can't create Helm Release with unreachable cluster: connection refused"):
        release(reachable=False).create(CILIUM, timeout=1)


# -- patches


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
