"""Helm releases of the kubernetes provider."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from karpstack.rehearsal.attachment.resource import UNKNOWN, IncompleteError, Properties, RefusedError
from karpstack.rehearsal.cluster.provider.release import Release
from karpstack.rehearsal.cluster.releases import ReleaseError
from tests.unit.rehearsal.provider_kubernetes_world import FakeApi, FakeChart, FakeCharts, FakeCluster, FakeConnection


@dataclass
class FakeReleases:
    installed: dict[str, int] = field(default_factory=dict)
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    problem: Exception | None = None

    def status(self, name: str, namespace: str) -> Properties | None:
        revision = self.installed.get(name)
        if not revision:
            return None
        return {"name": name, "chart": name, "version": "1.20.2", "revision": revision, "status": "deployed"}

    def given_values(self, name: str, namespace: str) -> Properties:
        return next((values for call, values, *_ in reversed(self.calls) if call != "uninstall"), {})

    def install(
        self, name: str, namespace: str, chart: FakeChart, values: Properties, **more: Any
    ) -> Properties | None:
        self.calls.append(("install", values, more))
        assert ("--install" in more["options"]) == (name not in self.installed)
        self.installed[name] = self.installed.get(name, 0) + 1
        if self.problem:
            raise self.problem
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
        {"skip_await": True, "timeout": 300.0, "options": ["--install", "--create-namespace"]},
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


def test_an_imported_release_has_what_helm_knows_of_it() -> None:
    """Helm keeps no repository: the first update gives the release the program's."""
    cilium = release(FakeReleases())
    created = cilium.create(CILIUM, timeout=1)
    seen = cilium.read(*cilium.imported(created.id))
    assert seen is not None
    kept = {name: value for name, value in CILIUM.items() if name != "repositoryOpts"}
    assert cilium.inputs_of(seen, {}) == kept


def test_an_imported_release_without_values_has_none() -> None:
    cilium = release(FakeReleases())
    created = cilium.create({**CILIUM, "values": {}}, timeout=1)
    assert "values" not in (cilium.read(*cilium.imported(created.id)) or {})


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
