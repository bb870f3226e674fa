"""Helm releases on one cluster, by the real Helm.

Helm renders, installs and keeps the history; the wait for the workloads is ours, on a watch, because it can say
which pods are missing and why. What a release sets off (nodes that get ready, the Karpenter controller) is done by
those who watch its pods.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import urllib3
import yaml

from karpstack.rehearsal.cluster import callbacks
from karpstack.rehearsal.cluster.charts import Chart
from karpstack.rehearsal.cluster.objects import ApiError, Object, Objects
from karpstack.rehearsal.cluster.readiness import KINDS, labels_selector, wait_available, wait_gone
from karpstack.rehearsal.engines import EngineSet
from karpstack.rehearsal.state.folder import StackFolder

_HELM_TIMEOUT = 300.0
_GONE_TIMEOUT = 120.0
_INSTANCE = "app.kubernetes.io/instance"
_NODE_POOLS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nodepools.karpenter.sh"
_WITHOUT_CALLBACKS = Path(__file__).with_name("without-callbacks")


class ReleaseError(RuntimeError):
    """A release failed; the text is Helm's, or says which pods are missing and why."""


class Releases:
    """The releases of one cluster.

    Args:
        problem: Why the Karpenter controller does not run; ends a wait early.
        pods_reachable: Whether the control plane reaches pods.
    """

    def __init__(
        self,
        folder: StackFolder,
        engines: EngineSet,
        objects: Objects,
        kubeconfig: Path,
        problem: Callable[[], str],
        *,
        pods_reachable: bool,
    ) -> None:
        self._home = folder.root / "helm"
        self._helm = engines.program("helm")
        self._objects = objects
        self._kubeconfig = kubeconfig
        self._problem = problem
        self._pods_reachable = pods_reachable
        self._karpenters: set[tuple[str, str]] = set()

    def has_karpenter(self, pod: Object) -> bool:
        """Return whether a pod with the label of Karpenter's chart is of a release that was installed here."""
        metadata = pod["metadata"]
        return (metadata["namespace"], (metadata.get("labels") or {}).get(_INSTANCE)) in self._karpenters

    def install(
        self,
        name: str,
        namespace: str,
        chart: Chart,
        values: Mapping[str, Any],
        *,
        skip_await: bool = False,
        timeout: float = _HELM_TIMEOUT,
        options: Sequence[str] = ("--install",),
    ) -> dict[str, Any]:
        """Install a chart, or upgrade its release if there is one; values that are not given go back to defaults.

        Args:
            skip_await: Whether to return before its workloads are available.
            timeout: Seconds.
            options: More options of `helm upgrade`; without `--install` there must be a release.

        Returns:
            What `status` says of it from now on.

        Raises:
            ReleaseError: Helm refused, or the workloads were not available in time.
        """
        if chart.name == "karpenter" and values.get("nameOverride"):
            raise ReleaseError(
                f"nameOverride={values['nameOverride']!r} would hide the controller's pods from the "
                "rehearsal, which finds them by the chart's own name; use fullnameOverride"
            )
        if callbacks.may_have_callbacks(chart.folder):
            self._judge_callbacks(name, namespace, chart, values)
            options = [*options, "--post-renderer", str(_WITHOUT_CALLBACKS)]
        if chart.name == "karpenter":
            self._karpenters.add((namespace, name))
        given = ["--namespace", namespace, "--reset-values", "--values", "-", "--output", "json"]
        given += ["--timeout", f"{timeout:g}s", *options]
        folder = self._published(chart, namespace)
        answer = json.loads(self._run("upgrade", name, str(folder), *given, text=_values(values)))
        installed = answer["chart"]["metadata"]
        versions = installed["name"], installed["version"], installed.get("appVersion", "")
        status = _status(answer, *versions, answer["version"], answer["info"]["status"])
        if skip_await:
            return status
        workloads = [
            (manifest["kind"], manifest["metadata"].get("namespace", namespace), manifest["metadata"]["name"])
            for manifest in _parse(answer["manifest"])
            if manifest["kind"] in KINDS
        ]
        reason = wait_available(self._objects, workloads, timeout, all_replicas=False, problem=self._problem)
        if reason:
            raise ReleaseError(f"release {namespace}/{name} ({chart.name} {chart.version}) is not available: {reason}")
        return status

    def render(self, name: str, namespace: str, chart: Chart, values: Mapping[str, Any]) -> list[Object]:
        """What a release of a chart would consist of, without its CRDs and hooks.

        Raises:
            ReleaseError: Helm refused the values.
        """
        options = ("--namespace", namespace, "--no-hooks", "--values", "-")
        return _parse(self._run("template", name, str(chart.folder), *options, text=_values(values)))

    def _published(self, chart: Chart, namespace: str) -> Path:
        """Return the chart as its registry has it: Karpenter's has the CRDs too, to which its module only links.

        Helm installs them with a new release, if they do not exist yet.
        """
        definitions = chart.folder.with_name("karpenter-crd")
        if chart.name != "karpenter" or not definitions.is_dir() or self._objects.get(_NODE_POOLS) is not None:
            return chart.folder
        made = self._home / "charts" / f"{chart.name}-{chart.version}"
        if not made.exists():
            crds = self.render(definitions.name, namespace, Chart(definitions.name, chart.version, definitions), {})
            shutil.copytree(chart.folder, made)
            (made / "crds").mkdir()
            (made / "crds" / "all.yaml").write_text(yaml.safe_dump_all(crds), encoding="utf-8")
        return made

    def _judge_callbacks(self, name: str, namespace: str, chart: Chart, values: Mapping[str, Any]) -> None:
        if self._pods_reachable:
            return
        if problems := callbacks.unreachable(self.render(name, namespace, chart, values)):
            raise ReleaseError(f"release {namespace}/{name} would not work: {'; '.join(problems)}")

    def uninstall(self, name: str, namespace: str, *, timeout: float = _GONE_TIMEOUT) -> None:
        """Uninstall a release and wait until its pods and resource definitions are gone; nothing if there is none.

        Raises:
            ReleaseError: Helm refused, or something did not go.
        """
        if not self._exists(name, namespace):
            return
        manifests = _parse(self._run("get", "manifest", name, "--namespace", namespace))
        self._run("uninstall", name, "--namespace", namespace)
        left = []
        for manifest in manifests:
            selector = manifest.get("spec", {}).get("selector", {})
            if manifest["kind"] in KINDS and "matchLabels" in selector:
                path = self._objects.path("v1", "Pod", manifest["metadata"].get("namespace", namespace))
                left += wait_gone(self._objects, path, timeout, labels=labels_selector(selector["matchLabels"]))
        definitions = [each["metadata"]["name"] for each in manifests if each["kind"] == "CustomResourceDefinition"]
        if definitions:
            path = self._objects.path(KINDS["CustomResourceDefinition"], "CustomResourceDefinition")
            left += wait_gone(self._objects, path, timeout, names=definitions)
        if left:
            raise ReleaseError(
                f"release {namespace}/{name} is uninstalled, but after {timeout:g} s there are still: "
                f"{', '.join(left)}; look for objects whose finalizers nobody lifts any more"
            )

    def status(self, name: str, namespace: str) -> dict[str, Any] | None:
        """What Helm knows of a release, in the shape of pulumi-kubernetes' ReleaseStatus; None when there is none."""
        if not self._exists(name, namespace):
            return None
        listed = self._run("list", "--namespace", namespace, "--all", "--filter", f"^{name}$", "--output", "json")
        found = json.loads(listed)
        if not found:
            return None
        release = found[0]
        chart, _, version = str(release["chart"]).rpartition("-")
        return _status(release, chart, version, release["app_version"], release["revision"], release["status"])

    def given_values(self, name: str, namespace: str) -> dict[str, Any]:
        """The values that a release was given."""
        return json.loads(self._run("get", "values", name, "--namespace", namespace, "--output", "json")) or {}

    def _exists(self, name: str, namespace: str) -> bool:
        """Whether Helm knows a release, without starting it: each revision is a Secret with these labels."""
        labels = labels_selector({"owner": "helm", "name": name})
        try:
            return bool(self._objects.list(self._objects.path("v1", "Secret", namespace), labels=labels))
        except (ApiError, urllib3.exceptions.HTTPError) as error:
            raise ReleaseError(f"release {namespace}/{name} cannot be looked for: {error}") from error

    def _run(self, *arguments: str, text: str = "") -> str:
        """Run Helm. Values come by its standard input: they may be secret."""
        variables = {
            **{key: os.environ[key] for key in ("PATH", "TMPDIR") if key in os.environ},
            "HOME": str(self._home),
            "KUBECONFIG": str(self._kubeconfig),
            "HELM_CACHE_HOME": str(self._home / "cache"),
            "HELM_CONFIG_HOME": str(self._home / "config"),
            "HELM_DATA_HOME": str(self._home / "data"),
            "HELM_QPS": "200",
            "HELM_BURST_LIMIT": "300",
        }
        try:
            result = subprocess.run(
                [self._helm, *arguments],
                input=text,
                capture_output=True,
                text=True,
                env=variables,
                timeout=_HELM_TIMEOUT + 60,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ReleaseError(f"`helm {arguments[0]}` did not end within {error.timeout:g} s") from error
        if result.returncode:
            raise ReleaseError(result.stderr.strip().removeprefix("Error: ") or f"`helm {arguments[0]}` failed")
        return result.stdout


def _status(
    release: Mapping[str, Any], chart: str, version: str, app_version: str, revision: str | int, status: str
) -> dict[str, Any]:
    named = {"name": release["name"], "namespace": release["namespace"], "chart": chart, "version": version}
    return {**named, "appVersion": app_version, "revision": int(revision), "status": status}


def _parse(manifest: str) -> list[Object]:
    return [each for each in yaml.load_all(manifest, yaml.CSafeLoader) if each]


def _values(values: Mapping[str, Any]) -> str:
    """As JSON, which is YAML: written as such, PyYAML leaves `y` bare, and Helm takes it for true."""
    return json.dumps(dict(values))
