"""Paths of the API, and which cluster is asked."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path

import pytest
import yaml

from karpstack.scale_test.acting import cluster
from karpstack.scale_test.acting.cluster import Cluster, ClusterError
from tests.unit.preflight.fake_server import FakeServer
from tests.unit.text.test_loopback_asks_no_proxy import kubeconfig


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("NodePool", "nodepools"),
        ("EC2NodeClass", "ec2nodeclasses"),
        ("MutatingAdmissionPolicy", "mutatingadmissionpolicies"),
        ("NodeOverlay", "nodeoverlays"),
    ],
)
def test_the_plural_of_a_kind(kind: str, plural: str) -> None:
    assert cluster._paths("group/v1", kind) == f"/apis/group/v1/{plural}"


POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "default"}}
STATUS = '{"kind": "Status", "reason": "NotFound"}'
UNKNOWN, PROXYS = "404 page not found\n", "404 page not found"


@pytest.mark.parametrize(
    ("kind", "said", "is_absent"),
    [
        (("v1", "Pod"), STATUS, True),
        (("karpenter.sh/v1", "NodePool"), STATUS, True),
        (("karpenter.sh/v1", "NodePool"), UNKNOWN, True),  # without its CustomResourceDefinition
        (("karpenter.sh/v1", "NodePool"), PROXYS, False),  # as Traefik says it
        (("v1", "Pod"), UNKNOWN, False),
        (("policy/v1", "PodDisruptionBudget"), UNKNOWN, False),
        (("karpenter.sh/v1", "NodePool"), "default backend - 404", False),
        (("v1", "Pod"), "<html>", False),
        (("v1", "Pod"), "[]", False),
    ],
)
def test_a_404_that_is_not_an_api_servers_is_no_absence(
    kind: tuple[str, str], said: str, is_absent: bool, tmp_path: Path
) -> None:
    """A proxy before it says so for a moment. A node would be taken for drained, and a NodePool for gone."""
    with FakeServer() as server:
        server.otherwise = 404, said
        server.headers = {} if said == PROXYS else {"Audit-Id": "a"}
        asked = Cluster(kubeconfig(tmp_path, f"http://127.0.0.1:{server.port}"))
        one = {"apiVersion": kind[0], "kind": kind[1], "metadata": {"name": "a"}}
        if is_absent:
            assert (asked.read(one), asked.labelled(*kind, ""), asked.delete(one, "1")) == (None, [], False)
            return
        for ask in (lambda: asked.read(one), lambda: asked.labelled(*kind, ""), lambda: asked.delete(one, "1")):
            with pytest.raises(ClusterError, match="404, and not as an API server says it"):
                ask()


OWN, OTHER = "a.gr7.us-east-1.eks.amazonaws.com", "b.gr7.us-east-1.eks.amazonaws.com"


@pytest.mark.parametrize(
    ("server", "name", "is_other"),
    [
        (f"https://{OWN}", "", False),
        (f"https://{OWN}.", "", False),
        (f"https://{OTHER}", "", True),
        ("https://bastion:8443", OWN, False),
        ("https://bastion:8443", "", True),
        # A tunnel on this machine says nothing, unless it says that it leads elsewhere.
        ("https://127.0.0.1:8443", "", False),
        ("https://[::1]:8443", "", False),
        ("https://127.0.0.1:8443", "kubernetes.default.svc", False),
        ("https://127.0.0.1:8443", OTHER, True),
    ],
)
def test_stories_change_no_other_cluster(server: str, name: str, is_other: bool, tmp_path: Path) -> None:
    """KUBECONFIG is exported from earlier work: the stories would make NodePools there, and kill its Karpenter."""
    path = kubeconfig(tmp_path, server)
    content = yaml.safe_load(path.read_text())
    content["clusters"][0]["cluster"]["tls-server-name"] = name
    path.write_text(yaml.safe_dump(content))
    asked = Cluster(path)
    with pytest.raises(ClusterError, match="so the stories would change another") if is_other else nullcontext():
        asked.refuse_other({"cloud": "aws", "clusterEndpoint": f"https://{OWN.upper()}"})
    asked.refuse_other({"cloud": "aws", "clusterEndpoint": ""})
    asked.refuse_other({"cloud": "azure", "clusterEndpoint": f"https://{OWN}"})  # it has several addresses


@pytest.mark.parametrize(
    "said", ["<html>Log in</html>", "[]", '{"items": []}', '{"items": [', f"[{'1,' * 4_000_001}1]"]
)
def test_what_is_no_answer_of_an_api_server_is_an_error(said: str, tmp_path: Path) -> None:
    """The login page of a proxy, for example, with status 200."""
    with FakeServer() as server:
        server.otherwise = 200, said
        asked = Cluster(kubeconfig(tmp_path, f"http://127.0.0.1:{server.port}"))
        for ask in (lambda: asked.read(POD), lambda: asked.create(POD), lambda: asked.labelled("v1", "Pod", "")):
            with pytest.raises(ClusterError, match="is the API server there"):
                ask()


def test_a_long_list_is_read_page_by_page(tmp_path: Path) -> None:
    path = "/api/v1/pods?labelSelector=&limit=500"
    with FakeServer() as server:
        server.said = {
            path: (200, json.dumps({"kind": "PodList", "metadata": {"continue": "b"}, "items": [{"a": 1}]})),
            f"{path}&continue=b": (200, json.dumps({"kind": "PodList", "metadata": {}, "items": [{"a": 2}]})),
        }
        asked = Cluster(kubeconfig(tmp_path, f"http://127.0.0.1:{server.port}"))
        assert asked.labelled("v1", "Pod", "") == [{"a": 1}, {"a": 2}]
        server.said[f"{path}&continue=b"] = server.said[path]
        with pytest.raises(ClusterError, match="its pages have no end"):
            asked.labelled("v1", "Pod", "")
