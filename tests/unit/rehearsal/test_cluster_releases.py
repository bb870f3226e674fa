"""How often Helm is started for a release, and what is said where it is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
import urllib3

from karpstack.rehearsal.cluster.charts import Chart
from karpstack.rehearsal.cluster.objects import ApiError, Objects
from karpstack.rehearsal.cluster.releases import ReleaseError, Releases
from karpstack.rehearsal.engines import EngineSet
from karpstack.rehearsal.state.folder import StackFolder

CHART = {"metadata": {"name": "karpenter", "version": "1.14.1", "appVersion": "1.14.1"}}
#: The same release, as Helm answers its installation and as it lists it.
ANSWER = {
    **{"name": "karpenter", "namespace": "kube-system", "version": 2, "info": {"status": "deployed"}},
    **{"chart": CHART, "manifest": ""},
}
LISTED = {
    **{"name": "karpenter", "namespace": "kube-system", "revision": "2", "status": "deployed"},
    **{"chart": "karpenter-1.14.1", "app_version": "1.14.1"},
}
DEFINITION = "kind: CustomResourceDefinition\n"
#: What Helm makes of a chart whose pods the API server calls in the overlay.
CALLED = """
kind: APIService
metadata: {name: v1beta1.metrics.k8s.io}
spec: {service: {name: metrics-server, namespace: kube-system}}
---
kind: Service
metadata: {name: metrics-server}
spec: {selector: {app: metrics-server}}
---
kind: Deployment
metadata: {name: metrics-server}
spec: {template: {metadata: {labels: {app: metrics-server}}, spec: {containers: []}}}
"""


class Secrets:
    """The cluster's Secrets, one a revision of a release."""

    def __init__(self, *found: dict[str, Any], problem: Exception | None = None) -> None:
        self.found = list(found)
        self.problem = problem
        self.asked: list[tuple[str, str]] = []

    def path(self, api_version: str, kind: str, namespace: str) -> str:
        return f"{namespace}/{kind}"

    def list(self, path: str, *, labels: str) -> list[dict[str, Any]]:
        self.asked.append((path, labels))
        if self.problem:
            raise self.problem
        return self.found

    def get(self, path: str) -> dict[str, Any] | None:
        self.asked.append((path, ""))
        return self.found[0] if self.found else None


class Helm(Releases):
    """With answers in place of the program."""

    def __init__(self, folder: Path, secrets: Secrets, *, pods_reachable: bool = False) -> None:
        stack = StackFolder("eks", folder)
        super().__init__(
            stack, EngineSet(folder), cast(Objects, secrets), folder / "kubeconfig", str, pods_reachable=pods_reachable
        )
        self.started: list[str] = []
        self.post_renderers: list[str] = []
        self.values: list[str] = []
        #: What was in the folder for CRDs of the installed chart.
        self.definitions: list[str] = []

    def _run(self, *arguments: str, text: str = "") -> str:
        self.started.append(arguments[0])
        self.values.append(text)
        if "--post-renderer" in arguments:
            self.post_renderers.append(Path(arguments[arguments.index("--post-renderer") + 1]).name)
        if arguments[0] == "template":
            return DEFINITION if arguments[1] == "karpenter-crd" else CALLED
        if (crds := Path(arguments[2]) / "crds").is_dir():
            self.definitions += [path.read_text() for path in sorted(crds.iterdir())]
        return json.dumps({"upgrade": ANSWER, "list": [LISTED]}[arguments[0]])


def test_an_installation_starts_helm_once_and_says_what_it_would_list(tmp_path: Path) -> None:
    helm = Helm(tmp_path, Secrets({}))
    chart = cast(Chart, type("Chart", (), {"name": "karpenter", "version": "1.14.1", "folder": tmp_path}))
    status = helm.install("karpenter", "kube-system", chart, {})
    assert helm.started == ["upgrade"]
    assert status == helm.status("karpenter", "kube-system")
    assert helm.started == ["upgrade", "list"]


def test_values_are_quoted_which_go_would_take_for_something_else(tmp_path: Path) -> None:
    helm = Helm(tmp_path, Secrets({}))
    chart = cast(Chart, type("Chart", (), {"name": "karpenter", "version": "1.14.1", "folder": tmp_path}))
    helm.install("karpenter", "kube-system", chart, {"tags": {"urgent": "y"}})
    assert '"y"' in helm.values[0]


def test_what_is_not_there_is_looked_for_without_helm(tmp_path: Path) -> None:
    secrets = Secrets()
    helm = Helm(tmp_path, secrets)
    assert helm.status("karpenter", "kube-system") is None
    helm.uninstall("karpenter", "kube-system")
    assert secrets.asked == [("kube-system/Secret", "name=karpenter,owner=helm")] * 2
    assert not helm.started


@pytest.mark.parametrize("problem", [ApiError(403, "Forbidden", "no"), urllib3.exceptions.HTTPError("refused")])
def test_a_cluster_that_cannot_be_asked_is_no_release_that_is_not_there(tmp_path: Path, problem: Exception) -> None:
    helm = Helm(tmp_path, Secrets(problem=problem))
    with pytest.raises(ReleaseError, match=r"release kube-system/karpenter cannot be looked for: .*(no|refused)"):
        helm.status("karpenter", "kube-system")


def calling(folder: Path) -> Chart:
    (folder / "chart" / "templates").mkdir(parents=True)
    (folder / "chart" / "templates" / "api.yaml").write_text("kind: APIService")
    return Chart("metrics-server", "3.13.1", folder / "chart")


def test_what_the_api_server_cannot_reach_is_not_installed(tmp_path: Path) -> None:
    helm = Helm(tmp_path, Secrets())
    with pytest.raises(ReleaseError, match=r"kube-system/metrics-server would not work: APIService v1beta1.metrics"):
        helm.install("metrics-server", "kube-system", calling(tmp_path), {})
    assert helm.started == ["template"]


def test_where_it_reaches_pods_it_is_installed_without_being_called(tmp_path: Path) -> None:
    helm = Helm(tmp_path, Secrets(), pods_reachable=True)
    helm.install("metrics-server", "kube-system", calling(tmp_path), {})
    assert helm.started == ["upgrade"]
    assert helm.post_renderers == ["without-callbacks"]


@pytest.mark.parametrize("exist", [True, False])
def test_karpenters_chart_brings_its_crds_where_they_do_not_exist(tmp_path: Path, exist: bool) -> None:
    for name in ("karpenter", "karpenter-crd"):
        (tmp_path / name).mkdir()
    helm = Helm(tmp_path / "state", Secrets(*([{}] if exist else [])))
    helm.install("karpenter", "kube-system", Chart("karpenter", "1.14.1", tmp_path / "karpenter"), {})
    assert helm.definitions == ([] if exist else [DEFINITION])
    assert helm.started == (["upgrade"] if exist else ["template", "upgrade"])
