"""What an interrupted scale test left is removed, the rest stays, and nothing is waited for that is not there."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes.client import ApiException

from rehearsal import leftovers


class Cluster:
    """Stands in for both of the client's APIs: NodePools go after they were looked at once more."""

    def __init__(self, *pools: str, namespaces: tuple[str, ...] = (), defined: bool = True) -> None:
        self.pools = list(pools)
        self.namespaces = namespaces
        self.defined = defined
        self.calls: list[str] = []
        self._going = False

    def list_namespace(self, **options: Any) -> Any:
        assert options["label_selector"] == leftovers.LABEL
        return SimpleNamespace(items=[SimpleNamespace(metadata=SimpleNamespace(name=name)) for name in self.namespaces])

    def delete_namespace(self, name: str, **options: Any) -> None:
        self.calls.append(f"delete {name}")

    def list_cluster_custom_object(self, **options: Any) -> Any:
        assert (options["plural"], options["label_selector"]) == ("nodepools", leftovers.LABEL)
        if not self.defined:
            raise ApiException(status=404)
        found = [{"metadata": {"name": name}} for name in self.pools]
        if self._going:
            self.pools.clear()
        return {"items": found}

    def delete_collection_cluster_custom_object(self, **options: Any) -> None:
        assert (options["label_selector"], options["propagation_policy"]) == (leftovers.LABEL, "Foreground")
        self.calls.append("delete NodePools")
        self._going = True


@pytest.fixture(autouse=True)
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "_SECONDS_BETWEEN_LOOKS", 0.0)


def test_namespaces_go_first_and_nodepools_are_waited_for() -> None:
    cluster = Cluster("drift", namespaces=("drift",))
    assert leftovers._remove(cluster, cluster, lambda: None) == ["Namespace drift", "NodePool drift"]
    assert cluster.calls == ["delete drift", "delete NodePools"]
    assert cluster.pools == []


@pytest.mark.parametrize("cluster", [Cluster(), Cluster(defined=False)], ids=["nothing left", "no Karpenter yet"])
def test_where_nothing_is_left_nothing_is_done(cluster: Cluster) -> None:
    assert leftovers._remove(cluster, cluster, lambda: None) == []
    assert cluster.calls == []


def test_the_wait_ends_with_the_cluster() -> None:
    def gone() -> None:
        raise LookupError

    cluster = Cluster("drift")
    with pytest.raises(LookupError):
        leftovers._remove(cluster, cluster, gone)


def test_without_a_cluster_there_is_nothing_to_do(tmp_path: Path) -> None:
    assert leftovers.remove(tmp_path / "kubeconfig", lambda: None) == []
