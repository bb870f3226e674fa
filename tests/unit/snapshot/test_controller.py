"""Karpenter's controller by its Deployment, and how it is rehearsed."""

from __future__ import annotations

from typing import Any

import pytest

from karpstack.snapshot.controller import is_controller, karpenter_of, only_one, unseen
from karpstack.snapshot.left_out import Ledger
from karpstack.snapshot.model import Karpenter
from karpstack.snapshot.problems import SnapshotError
from karpstack.snapshot.rehearsed_controller import Controller
from karpstack.snapshot.release import check_release, nearest
from tests.unit.snapshot.made import snapshot

BUILT = ("1.15.1", "1.14.3", "1.13.1")
OFFERED = (*BUILT, "1.12.9")


def deployment(*, labels: Any = None, **container: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "mine", "labels": labels or {"app.kubernetes.io/name": "karpenter"}},
        "spec": {"template": {"spec": {"containers": [{"name": "proxy"}, {"name": "controller", **container}]}}},
    }


def test_variables_and_arguments_are_settings() -> None:
    made = karpenter_of(
        deployment(
            image="mirror.example.com:5000/karpenter/controller:v1.14.1",
            env=[
                {"name": "FEATURE_GATES", "value": "NodeOverlay=True,SpotToSpotConsolidation=f"},
                {"name": "BATCH_IDLE_DURATION", "value": "1s"},
                {"name": "CLUSTER_NAME", "value": "secret"},
                {"name": "MEMORY_LIMIT", "valueFrom": {}},
            ],
            args=["--batch-idle-duration=5s", "--enable-profiling", "--preference-policy", "Ignore"],
        )
    )
    assert made == Karpenter(
        version="1.14.1",
        feature_gates={"nodeOverlay": True, "spotToSpotConsolidation": False},
        settings={"batchIdleDuration": "5s", "preferencePolicy": "Ignore"},
    )


def test_what_decides_and_is_not_rehearsed_is_told_from_what_does_not_decide() -> None:
    env: list[dict[str, Any]] = [
        {"name": name, "value": "x"} for name in ("LOG_LEVEL", "METRICS_PORT", "INTERRUPTION_QUEUE")
    ]
    env += [{"name": name, "valueFrom": {"configMapKeyRef": {}}} for name in ("FEATURE_GATES", "BATCH_MAX_DURATION")]
    assert sorted(unseen(deployment(env=env))) == ["BATCH_MAX_DURATION", "FEATURE_GATES", "INTERRUPTION_QUEUE"]


def test_the_version_may_be_that_of_the_label() -> None:
    labels = {"app.kubernetes.io/name": "karpenter", "app.kubernetes.io/version": "1.13.2"}
    made = karpenter_of(deployment(labels=labels, image="controller@sha256:00"))
    assert made
    assert made.version == "1.13.2"


@pytest.mark.parametrize(
    "item",
    [
        {**deployment(), "kind": "DaemonSet"},
        deployment(labels={"app.kubernetes.io/name": "web"}),
        {**deployment(), "spec": 3},
        {**deployment(), "spec": {"template": {"spec": {"containers": 1}}}},
    ],
)
def test_others_are_no_controller(item: Any) -> None:
    assert not is_controller(item)


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("1.15.1", "1.15.1"),
        ("1.14.0", "1.14.3"),
        ("1.8.2", "1.13.1"),
        ("2.0.0", "1.15.1"),
        ("main", None),
        (None, None),
    ],
)
def test_the_nearest_release_is_rehearsed(version: str | None, release: str | None) -> None:
    assert nearest(version, BUILT) == release


def test_a_change_of_the_version_that_would_not_be_rehearsed_is_refused() -> None:
    old, new, far = (snapshot(karpenter={"version": one}) for one in ("1.14.1", "1.14.3", "1.15.0"))
    check_release(old, far, BUILT, OFFERED)
    check_release(old, old, BUILT, OFFERED)
    check_release(snapshot(), new, BUILT, OFFERED)
    with pytest.raises(
        SnapshotError, match=r"from 1\.14\.1 to 1\.14\.3, but both are rehearsed with 1\.14\.3.*1\.12\.9"
    ):
        check_release(old, new, BUILT, OFFERED)


LIKE = {"replicas": 2, "featureGates": {"spotToSpotConsolidation": True}, "settings": {"batchMaxDuration": "10s"}}
OVERLAY = {"name": "cheap", "spec": {"requirements": [], "price": "0.05"}}


def controller(**more: Any) -> Controller:
    return Controller.of(snapshot(**more), LIKE, BUILT)


def test_what_the_cluster_says_of_its_controller_goes_before_the_other_file() -> None:
    gates = {"nodeOverlay": True, "nodeRepair": False, "reservedCapacity": False}
    given = {"version": "1.14.1", "featureGates": gates, "settings": {"reservedENIs": "1", "clusterCABundle": "x"}}
    made = controller(karpenter=given)
    assert made.section(reserved=2) == {
        "replicas": 2,
        "chartVersion": "1.14.3",
        "featureGates": {"nodeOverlay": True, "reservedCapacity": False},
        "settings": {"reservedENIs": "1"},
    }
    assert list(made.notes()) == [
        "the cluster has Karpenter 1.14.1; the rehearsal uses 1.14.3, the nearest version that is built on this machine"
    ]


def test_without_the_controller_all_is_as_in_the_other_file() -> None:
    assert controller().section(reserved=0) == {}
    assert controller().section(reserved=1)["settings"] == {"batchMaxDuration": "10s", "reservedENIs": "1"}
    assert Controller.of(snapshot(), None, BUILT).section(reserved=1) == {}


def test_with_a_static_node_pool_its_gate_is_on() -> None:
    pools = [{"name": "static", "spec": {"replicas": 2}}]
    made = controller(nodePools=pools)
    assert made.section(reserved=0)["featureGates"] == {"spotToSpotConsolidation": True, "staticCapacity": True}
    assert "feature gate StaticCapacity is on" in next(iter(made.notes()))
    known = controller(nodePools=pools, karpenter={"version": "1.15.1"})
    assert "staticCapacity" not in known.section(reserved=0)["featureGates"]


def test_a_controller_is_not_rehearsed_where_aks_runs_it() -> None:
    known = snapshot(karpenter={"version": "1.14.2"})
    (said,) = Controller.of(known, None, BUILT).unseen()
    assert said.endswith("name the stack aks-self-hosted")
    assert not list(Controller.of(known, LIKE, BUILT).unseen())


def test_with_overlays_their_gate_is_on() -> None:
    made = controller(nodeOverlays=[OVERLAY, {"name": "conflict", "spec": {}, "ready": False}])
    assert made.overlays == {"cheap": OVERLAY["spec"]}
    assert made.section(reserved=0)["featureGates"] == {"spotToSpotConsolidation": True, "nodeOverlay": True}
    unused, unknown = made.notes()
    assert unused.startswith("Karpenter does not use these NodeOverlays (not Ready)")
    assert unknown.startswith("the snapshot does not say whether the feature gate NodeOverlay is on")


def test_a_cluster_with_the_gate_off_does_not_use_overlays() -> None:
    made = controller(nodeOverlays=[OVERLAY], karpenter={"featureGates": {"nodeOverlay": False}})
    assert made.overlays == {}
    assert "nodeOverlay" not in made.section(reserved=0)["featureGates"]
    in_nap = Controller.of(snapshot(nodeOverlays=[OVERLAY]), None, BUILT)
    assert in_nap.overlays == {}
    for one in (made, in_nap):
        (note,) = one.notes()
        assert note.startswith("Karpenter does not use these NodeOverlays (the feature gate NodeOverlay is off)")


def test_resources_of_overlays_are_said_to_be_there() -> None:
    spec = {"requirements": [], "capacity": {"example.com/fuse": 1}}
    made = controller(nodeOverlays=[{"name": "fuse", "spec": spec}], karpenter={"featureGates": {"nodeOverlay": True}})
    (note,) = made.notes()
    assert note.startswith("nodes have the resources in the capacity of NodeOverlays")


def test_of_several_deployments_none_is_the_controller() -> None:
    """Anybody who may create a Deployment could otherwise decide what is rehearsed."""
    ledger = Ledger()
    one, other = Karpenter(version="1.14.0"), Karpenter(version="1.15.0")
    assert only_one([None, one], ledger) == one
    assert ledger.all() == []
    assert only_one([one, other], ledger) is None
    assert [left.count for left in ledger.all()] == [2]


def test_a_deployment_of_another_name_is_the_controller_by_its_image() -> None:
    labels = {"app.kubernetes.io/name": "karp"}
    assert is_controller(deployment(labels=labels, image="mirror.example.com/karpenter/controller:1.14.1@sha256:00"))
    assert is_controller(deployment(labels=labels, image="registry.example.com/karpenter-controller:1.14.1"))
    assert not is_controller(deployment(labels=labels, image="mirror.example.com/keda/controller:1.14.1"))
