"""`kubernetes:helm.sh/v3:Release`: real charts, installed by the real Helm.

The charts that can be rehearsed are those of `rehearsal.cluster.charts`; rendering, installing and what a release
sets off (the Karpenter controller) are `karpstack.rehearsal.cluster.releases`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from karpstack.rehearsal.attachment.resource import (
    Created,
    Failure,
    IncompleteError,
    Properties,
    RefusedError,
    Resource,
    has_unknowns,
    without_unknowns,
)
from karpstack.rehearsal.cluster.charts import Chart, ChartNotFoundError, Charts
from karpstack.rehearsal.cluster.provider.connection import Connection, UnreachableError
from karpstack.rehearsal.cluster.releases import ReleaseError, Releases

#: Seconds that Helm waits for the workloads when the program says nothing.
_TIMEOUT: Final = 300


class Release(Resource):
    """A Helm release. ID: `<namespace>/<name>`."""

    token = "kubernetes:helm.sh/v3:Release"
    accepts = frozenset(
        {
            "allowNullValues",
            "atomic",
            "chart",
            "compat",
            "createNamespace",
            "name",
            "namespace",
            "repositoryOpts",
            "skipAwait",
            "skipCrds",
            "timeout",
            "values",
            "version",
        }
    )
    replace_on = frozenset({"name", "namespace"})
    name_property: str = "name"
    name_digits: int = 8

    def __init__(self, connection: Connection, charts: Charts) -> None:
        self._connection = connection
        self._charts = charts

    def check(self, inputs: Mapping[str, Any], *, name: str) -> tuple[Properties, list[Failure]]:
        """Fill the provider's defaults, find the chart and refuse values that it does not know."""
        checked: Properties = {"namespace": self._connection.namespace, **inputs}
        checked.pop("compat", None)
        if not checked.get("skipAwait"):
            checked.setdefault("timeout", _TIMEOUT)
        options = checked.get("repositoryOpts") or {}
        failures = []
        if isinstance(options, dict) and (unknown := sorted(options.keys() - {"repo"})):
            failures.append(
                Failure(
                    "repositoryOpts",
                    f"the rehearsal does not know {', '.join(unknown)}, so it would have no effect; it knows repo",
                )
            )
        if failures or has_unknowns([checked.get("chart"), checked.get("version"), options]):
            return checked, failures
        try:
            chart = self._chart(checked)
        except ChartNotFoundError as error:
            return checked, [Failure("chart", f"{error}; check the chart name and repository configuration.")]
        checked["version"] = chart.version
        values = checked.get("values") or {}
        if isinstance(values, dict) and (unknown := self._charts.unknown_values(chart, without_unknowns(values))):
            failures.append(
                Failure(
                    "values",
                    f"the chart {chart.name} {chart.version} has no value "
                    f"{', '.join(unknown)}, so it would have no effect; see its values.yaml",
                )
            )
        return checked, failures

    def create(self, inputs: Properties, *, timeout: float) -> Created:
        """helm install."""
        releases = self._reach("create")
        name, namespace = inputs["name"], inputs["namespace"]
        if releases.status(name, namespace):
            raise RefusedError("cannot re-use a name that is still in use")
        id = f"{namespace}/{name}"
        asked = {"--skip-crds": inputs.get("skipCrds"), "--create-namespace": inputs.get("createNamespace")}
        options = ["--install", *(option for option, wanted in asked.items() if wanted)]
        try:
            chart, values = self._chart(inputs), inputs.get("values") or {}
            status = releases.install(name, namespace, chart, values, **_options(inputs), options=options)
        except ReleaseError as error:
            if not releases.status(name, namespace):
                raise RefusedError(str(error)) from error
            if inputs.get("atomic"):
                releases.uninstall(name, namespace)
                raise RefusedError(
                    f"release {name} failed, and has been uninstalled due to atomic being set: {error}"
                ) from error
            raise _failed(id, _outputs(inputs, releases), error) from error
        return Created(id, {**inputs, "status": status})

    def read(self, id: str, state: Properties) -> Properties | None:
        """helm status."""
        try:
            releases = self._connection.cluster().releases
        except UnreachableError as error:
            if self._connection.deletes_unreachable:
                return None
            raise RefusedError(f"can't read Helm Release with unreachable cluster: {error}") from error
        namespace, _, name = id.rpartition("/")
        try:
            outputs = _outputs({**state, "name": name, "namespace": namespace}, releases)
        except ReleaseError as error:
            raise RefusedError(str(error)) from error
        status = outputs["status"]
        if status and not state:
            # Helm keeps no repository: the chart is known by its bare name, and the first update after an import gives
            # it the program's (pulumi-kubernetes, provider/helm_release.go, importRelease).
            outputs |= {"chart": status["chart"], "version": status["version"]}
            if values := releases.given_values(name, namespace):
                outputs["values"] = values
        return outputs if status else None

    def update(self, id: str, old: Properties, new: Properties, *, timeout: float) -> Properties:
        """helm upgrade."""
        releases = self._reach("update")
        try:
            chart, values = self._chart(new), new.get("values") or {}
            status = releases.install(new["name"], new["namespace"], chart, values, **_options(new), options=())
        except ReleaseError as error:
            raise _failed(id, _outputs(new, releases), error) from error
        return {**new, "status": status}

    def delete(self, id: str, state: Properties, *, timeout: float) -> None:
        """helm uninstall."""
        try:
            releases = self._connection.cluster().releases
        except UnreachableError as error:
            if self._connection.deletes_unreachable:
                return
            raise RefusedError(f"can't delete Helm Release with unreachable cluster. Reason: {error}") from error
        namespace, _, name = id.rpartition("/")
        try:
            releases.uninstall(name, namespace, timeout=float(state.get("timeout") or _TIMEOUT))
        except ReleaseError as error:
            raise RefusedError(str(error)) from error

    # -- helpers

    def _reach(self, action: str) -> Releases:
        try:
            return self._connection.cluster().releases
        except UnreachableError as error:
            raise RefusedError(f"can't {action} Helm Release with unreachable cluster: {error}") from error

    def _chart(self, inputs: Mapping[str, Any]) -> Chart:
        repository = (inputs.get("repositoryOpts") or {}).get("repo")
        return self._charts.find(inputs["chart"], inputs.get("version"), repository)


def _outputs(inputs: Properties, releases: Releases) -> Properties:
    return {**inputs, "status": releases.status(inputs["name"], inputs["namespace"])}


def _failed(id: str, outputs: Properties, error: Exception) -> IncompleteError:
    return IncompleteError(
        f"Helm release {id!r} was created, but failed to initialize completely. Use Helm CLI to investigate: "
        f"failed to become available within allocated timeout. Error: Helm Release {id}: {error}",
        Created(id, outputs),
    )


def _options(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {"skip_await": bool(inputs.get("skipAwait")), "timeout": float(inputs.get("timeout") or _TIMEOUT)}
