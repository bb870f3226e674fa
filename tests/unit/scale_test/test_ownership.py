"""A story makes what is its own and removes nothing else, whoever takes its names meanwhile."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scale_test.acting.cluster import Cluster, ClusterError
from scale_test.acting.ownership import Removal, TakenError, check_names, leftovers, make, remove
from scale_test.recording.timeline import Reader, Writer
from scale_test.scenarios.objects import objects
from scale_test.scenarios.scenario import Scenario, parse
from tests.unit.scale_test.api_server import ApiServer

ROOT = Path(__file__).resolve().parents[3]
FIT = "eks-cheapest-fit"
NAMESPACE, POOL = "/api/v1/namespaces/other", "/apis/karpenter.sh/v1/nodepools/cheapest-fit"
DEPLOYMENT = "/apis/apps/v1/namespaces/other/deployments/inflate"
TITLES = {"Namespace other": NAMESPACE, "NodePool cheapest-fit": POOL}
VICTIM: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "other", "labels": {"team": "victim"}, "managedFields": [{"manager": "kubectl-create"}]},
}


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


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


def test_an_api_server_that_is_away_is_an_error(tmp_path: Path, wanted: list[dict[str, Any]]) -> None:
    with ApiServer() as closed:
        kubeconfig = closed.write_kubeconfig(tmp_path / "kubeconfig")
    with pytest.raises(ClusterError, match=r"POST /api/v1/namespaces: .*is the API server there\?"):
        next(make(Cluster(kubeconfig), wanted))


def test_a_story_leaves_somebody_elses_namespace_alone(
    server: ApiServer, shipped: dict[str, Scenario], tmp_path: Path
) -> None:
    """The role as it is played: a taken name fails one story; the next one removes what was left and what it made."""
    theirs = copy.deepcopy(server.put(NAMESPACE, VICTIM))
    data = shipped[FIT].model_dump(mode="json", by_alias=True, exclude_none=True)
    own = parse({**data, "name": "own", "workload": {**data["workload"], "namespace": "own"}}, "own.yml")
    left = server.put("/api/v1/namespaces/own", objects(own)[0])
    stories = [shipped[FIT], own]
    play = {
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": False,
        "vars": {"ansible_python_interpreter": sys.executable},
        "tasks": [
            {
                "ansible.builtin.include_role": {"name": "story"},
                "loop": [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in stories],
                "loop_control": {"loop_var": "story_scenario"},
                "vars": {
                    "story_objects": "{{ all_objects[story_scenario.name] }}",
                    "all_objects": {one.name: objects(one) for one in stories},
                    "story_node_class": {"kind": "EC2NodeClass", "path": "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"},
                    "story_report_dir": str(tmp_path),
                    "story_leftovers": ["own"],
                    "story_titles": ["1 of 1: scale to 5"],
                    "story_breaks": False,
                    "story_stack_outputs": {"cloud": "azure"},
                    "story_rehearsal_url": "",
                },
            }
        ],
    }
    (tmp_path / "play.yml").write_text(json.dumps([play]))
    kubeconfig = str(server.write_kubeconfig(tmp_path / "kubeconfig"))
    with Writer(tmp_path / "timeline.jsonl", recording=True) as recorder:  # stories wait for one
        recorder.write("SYNCED")
        result = subprocess.run(
            [str(Path(sys.executable).with_name("ansible-playbook")), str(tmp_path / "play.yml")],
            env=os.environ
            | {"PYTHONPATH": str(ROOT)}
            | {
                "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
                "ANSIBLE_HOME": str(tmp_path / "ansible"),
                "KUBECONFIG": kubeconfig,
                "K8S_AUTH_KUBECONFIG": kubeconfig,
                "TMPDIR": str(tmp_path),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    assert result.returncode == 0, result.stdout
    assert server.there[NAMESPACE] == theirs, result.stdout
    assert server.patched == ["/apis/apps/v1/namespaces/own/deployments/inflate/scale"]
    errors = [line for line in Reader(tmp_path / "timeline.jsonl").new_lines() if line["type"] == "ERROR"]
    assert [line["scenario"] for line in errors] == [FIT, "own"], result.stdout
    assert errors[0]["message"].startswith("Namespace other is on the cluster already: it is none of a scale test's")
    # The second story fails at its step: this API server scales nothing. It had made and removed all the same.
    assert errors[1]["task"].startswith("Take step 1 of 1: scale to 5"), result.stdout
    own_namespace = "/api/v1/namespaces/own"
    assert server.deleted == [own_namespace, own_namespace, POOL], result.stdout
    assert left["metadata"]["deletionTimestamp"]
    assert {NAMESPACE, "/apis/apps/v1/namespaces/own/deployments/inflate"} == set(server.there)
