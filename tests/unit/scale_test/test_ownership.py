"""A story makes what is its own and removes nothing else, whoever takes its names meanwhile."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from karpstack.scale_test.acting.cluster import Cluster, ClusterError, RefusedError
from karpstack.scale_test.acting.ownership import Removal, TakenError, check_names, leftovers, make, remove
from karpstack.scale_test.scenarios.objects import objects
from karpstack.scale_test.scenarios.scenario import Scenario
from tests.serving import serving
from tests.unit.scale_test.api_server import ApiServer

FIT = "eks-cheapest-fit"
NAMESPACE, POOL = "/api/v1/namespaces/other", "/apis/karpenter.sh/v1/nodepools/cheapest-fit"
DEPLOYMENT = "/apis/apps/v1/namespaces/other/deployments/inflate"
TITLES = {"Namespace other": NAMESPACE, "NodePool cheapest-fit": POOL}
REFUSED = "the API server refuses it"
VICTIM: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "other", "labels": {"team": "victim"}, "managedFields": [{"manager": "kubectl-create"}]},
}


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with serving(ApiServer()) as running:
        yield running


@pytest.fixture
def cluster(server: ApiServer, tmp_path: Path) -> Cluster:
    return Cluster(server.write_kubeconfig(tmp_path / "kubeconfig"))


@pytest.fixture
def wanted(shipped: dict[str, Scenario]) -> list[dict[str, Any]]:
    return objects(shipped[FIT])


def end(cluster: Cluster, wanted: list[dict[str, Any]], made: dict[str, str], *of: str, timeout: float = 60) -> Removal:
    return remove(cluster, wanted, of or (FIT,), made, timeout, sleep=lambda _: None)


def test_names_that_somebody_else_has_are_refused_before_a_story_comes(
    server: ApiServer, cluster: Cluster, wanted: list[dict[str, Any]]
) -> None:
    check_names(cluster, wanted)
    dict(make(cluster, wanted))
    check_names(cluster, wanted)  # an interrupted run's, which are its own
    assert leftovers(cluster) == [FIT]
    for path in (NAMESPACE, POOL):
        server.there[path]["metadata"]["labels"] = {"team": "victim"}
    with pytest.raises(TakenError) as taken:
        check_names(cluster, wanted)
    assert [line.split(" is on")[0] for line in str(taken.value).splitlines()] == list(TITLES)
    assert leftovers(cluster) == []
    assert server.deleted == server.patched == []


def test_what_is_made_is_removed(server: ApiServer, cluster: Cluster, wanted: list[dict[str, Any]]) -> None:
    made = dict(make(cluster, wanted))
    assert set(server.there) == {NAMESPACE, DEPLOYMENT, POOL}
    assert {server.there[path]["metadata"]["uid"] for path in server.there} == set(made.values())
    assert end(cluster, wanted, made) == Removal(removed=list(TITLES))
    assert server.deleted == [NAMESPACE, POOL]  # both, before either is waited for
    assert set(server.there) == {DEPLOYMENT}
    assert end(cluster, wanted, made) == Removal()


@pytest.mark.parametrize(
    ("position", "path", "said"),
    [
        (0, NAMESPACE, "run its workload in it and then remove it with all that is in it; .* another workload.name"),
        (2, POOL, r"change it and then remove it with its nodes; .* another name \(a key of nodePools\)"),
    ],
    ids=["Namespace", "NodePool"],
)
def test_what_somebody_else_has_is_refused_as_it_is(
    server: ApiServer, cluster: Cluster, wanted: list[dict[str, Any]], position: int, path: str, said: str
) -> None:
    theirs = copy.deepcopy(server.put(path, {**wanted[position], "metadata": VICTIM["metadata"]}))
    made: dict[str, str] = {}
    with pytest.raises(TakenError, match=rf"is on the cluster already: it is none of a scale test's .*{said}") as taken:
        made.update(make(cluster, wanted))
    assert "at '2026-11-21T10:00:00Z' with 'kubectl-create', labels {'team': 'victim'}" in str(taken.value)
    (kept,) = end(cluster, wanted, made).kept
    assert "stays as it is: it is none of a scale test's" in kept
    assert server.there[path] == theirs
    assert path not in server.deleted
    assert [one for one in server.there if one not in (path, DEPLOYMENT)] == []


def test_what_took_the_name_while_the_story_ran_stays(
    server: ApiServer, cluster: Cluster, wanted: list[dict[str, Any]]
) -> None:
    made = dict(make(cluster, wanted))
    for path in TITLES.values():
        server.put(path, server.there[path])  # with the story's labels, but another object
    assert len(end(cluster, wanted, made).kept) == 2
    assert server.deleted == []


def test_an_object_is_deleted_by_its_uid(server: ApiServer, cluster: Cluster, wanted: list[dict[str, Any]]) -> None:
    namespace = wanted[0]
    uid = cluster.create(namespace)
    server.put(NAMESPACE, VICTIM)  # between the look and the deletion
    assert uid
    assert not cluster.delete(namespace, uid)
    assert NAMESPACE in server.there


def test_what_an_interrupted_run_left_is_removed_by_its_labels(
    server: ApiServer, cluster: Cluster, wanted: list[dict[str, Any]]
) -> None:
    for _ in make(cluster, wanted):
        pass
    with pytest.raises(TakenError, match="another run of a scale test, for scenario 'eks-cheapest-fit'"):
        next(make(cluster, wanted))
    assert len(end(cluster, wanted, {}, "churn").kept) == 2  # that of another story
    assert end(cluster, wanted, {}, "churn", FIT).removed == list(TITLES)


def test_what_does_not_go_is_named(server: ApiServer, cluster: Cluster, wanted: list[dict[str, Any]]) -> None:
    made = dict(make(cluster, wanted))
    server.stuck.add(POOL)
    with pytest.raises(ClusterError, match="NodePool cheapest-fit: there after 0 seconds still"):
        end(cluster, wanted, made, timeout=0)


def test_a_copy_of_a_node_class_has_what_the_original_has_but_for_the_patch(
    server: ApiServer, cluster: Cluster, wanted: list[dict[str, Any]]
) -> None:
    node_classes = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
    spec = {"role": "nodes", "tags": {"team": "a"}}
    original = server.put(
        f"{node_classes}/default", {"kind": "EC2NodeClass", "metadata": {"name": "default"}, "spec": spec}
    )
    copied = {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "mine", "labels": wanted[0]["metadata"]["labels"]},
        "spec": {"tags": {"story": "b"}},
        "copyOf": "default",
    }
    made = dict(make(cluster, [copied]))
    there = server.there[f"{node_classes}/mine"]
    assert there["spec"] == {"role": "nodes", "tags": {"team": "a", "story": "b"}}
    assert "copyOf" not in there
    assert leftovers(cluster) == [FIT]
    assert end(cluster, [copied], made).removed == ["EC2NodeClass mine"]
    assert server.there[f"{node_classes}/default"] == original
    with pytest.raises(ClusterError, match="EC2NodeClass other is not there, so EC2NodeClass mine cannot be made"):
        next(make(cluster, [{**copied, "copyOf": "other"}]))


def test_what_is_in_no_namespace_is_refused_and_removed_as_a_node_pool_is(
    server: ApiServer, cluster: Cluster, wanted: list[dict[str, Any]]
) -> None:
    path = "/apis/scheduling.k8s.io/v1/priorityclasses/high"
    labels = wanted[0]["metadata"]["labels"]
    priority = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high", "labels": labels},
        "value": 7,
    }
    made = dict(make(cluster, [priority]))
    assert leftovers(cluster) == [FIT]
    assert end(cluster, [priority], made).removed == ["PriorityClass high"]
    server.put(path, {**priority, "metadata": {"name": "high", "labels": {"team": "victim"}}})
    with pytest.raises(TakenError, match=r"PriorityClass high is on the cluster already: .* another name"):
        check_names(cluster, [priority])
    assert len(end(cluster, [priority], {}).kept) == 1
    assert path in server.there


def test_an_api_server_that_is_away_is_an_error(tmp_path: Path, wanted: list[dict[str, Any]]) -> None:
    with ApiServer() as closed:
        kubeconfig = closed.write_kubeconfig(tmp_path / "kubeconfig")
    with pytest.raises(ClusterError, match=r"POST /api/v1/namespaces: .*is the API server there\?"):
        next(make(Cluster(kubeconfig), wanted))


def test_a_pod_gets_its_node_once(server: ApiServer, cluster: Cluster) -> None:
    pod = {"metadata": {"name": "web", "namespace": "shop"}}
    assert cluster.bind(pod, "ip-1")
    assert not cluster.bind(pod, "ip-2")
    (binding,) = server.there.values()
    assert binding["target"] == {"apiVersion": "v1", "kind": "Node", "name": "ip-1"}
    assert list(server.there) == ["/api/v1/namespaces/shop/pods/web/binding/web"]


def test_what_is_tried_is_not_made(server: ApiServer, cluster: Cluster) -> None:
    assert cluster.tried(VICTIM)["kind"] == "Namespace"
    assert not server.there


def test_policies_have_a_plural_of_their_own(server: ApiServer, cluster: Cluster) -> None:
    policy = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "a"}}
    cluster.create(policy)
    assert list(server.there) == ["/apis/networking.k8s.io/v1/networkpolicies/a"]


def unknown(field: str, message: str = 'NodePool in version "v1" cannot be handled as a NodePool: ') -> dict[str, Any]:
    """What a kube-apiserver 1.36 answers to an object with a key that there is not."""
    said = f'{message}strict decoding error: unknown field "{field}"'
    return {"kind": "Status", "status": "Failure", "message": said, "reason": "BadRequest", "code": 400}


def test_all_that_is_sent_is_validated_strictly(
    server: ApiServer, cluster: Cluster, wanted: list[dict[str, Any]]
) -> None:
    dict(make(cluster, wanted))
    assert cluster.tried(wanted[0]) == wanted[0]
    with pytest.raises(ClusterError, match="500"):
        cluster.change(wanted[-1], {"spec": {"weight": 1}})
    assert server.patched == [POOL]
    assert server.validated == ["Strict"] * (len(wanted) + 2)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (POOL, "nodePools.cheapest-fit: .* mended there: NodePool cheapest-fit"),
        (DEPLOYMENT, "workload, workloads or manifests: .* there: Deployment inflate"),
    ],
    ids=["NodePool", "Deployment"],
)
def test_what_the_api_server_refuses_is_told_with_its_place_in_the_scenario(
    server: ApiServer, cluster: Cluster, wanted: list[dict[str, Any]], path: str, place: str
) -> None:
    server.refused[path] = unknown("spec.disuption")
    with pytest.raises(
        RefusedError, match=rf"^eks-cheapest-fit\.yml: {place}: {REFUSED}: unknown field \"spec.disuption\"$"
    ):
        dict(make(cluster, wanted))


def test_of_a_refused_patch_the_object_is_not_told(
    server: ApiServer, cluster: Cluster, wanted: list[dict[str, Any]]
) -> None:
    server.refused[POOL] = unknown("spec.wieght", f' "" is invalid: patch: Invalid value: "{"x" * 9000}": ')
    with pytest.raises(RefusedError, match=rf'^PATCH {POOL}: {REFUSED}: unknown field "spec\.wieght"$'):
        cluster.change(wanted[-1], {"spec": {"wieght": 1}})


def test_causes_are_told_once(server: ApiServer, cluster: Cluster, wanted: list[dict[str, Any]]) -> None:
    causes = [{"field": "spec.a", "message": "Required value"}, {"field": "spec.b", "message": "Too long"}]
    server.refused[NAMESPACE] = {"code": 422, "message": "it is invalid: spec.a: Required value"}
    server.refused[NAMESPACE]["details"] = {"causes": causes}
    with pytest.raises(
        RefusedError,
        match=rf"^POST /api/v1/namespaces: {REFUSED}: it is invalid: spec\.a: Required value; spec\.b: Too long$",
    ):
        cluster.create(wanted[0])
