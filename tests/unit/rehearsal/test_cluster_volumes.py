"""Volumes of the EBS CSI driver: when there is one, where, and when it goes."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from typing import Any

import pytest

from rehearsal.cluster.volumes import Volumes
from tests.unit.rehearsal.cluster_world import World

CLAIMS, VOLUMES = "/api/v1/persistentvolumeclaims", "/api/v1/persistentvolumes"
RUNNING = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
DRIVER = "/api/v1/namespaces/kube-system/pods?app=ebs-csi-controller"


def claim(*, node: str = "n", provisioner: str = "ebs.csi.aws.com", volume: str = "") -> dict[str, Any]:
    annotations = {"volume.kubernetes.io/storage-provisioner": provisioner}
    if node:
        annotations["volume.kubernetes.io/selected-node"] = node
    metadata = {"name": "data", "namespace": "apps", "uid": "u-1", "resourceVersion": "7", "annotations": annotations}
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "gp3",
        "resources": {"requests": {"storage": "8Gi"}},
        **({"volumeName": volume} if volume else {}),
    }
    return {"metadata": metadata, "spec": spec}


def volume(*, driver: str = "ebs.csi.aws.com", policy: str = "Delete", phase: str = "Released") -> dict[str, Any]:
    spec = {"csi": {"driver": driver}, "persistentVolumeReclaimPolicy": policy}
    return {"metadata": {"name": "pvc-u-1"}, "spec": spec, "status": {"phase": phase}}


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    world.listed[DRIVER] = [RUNNING]
    world.present["/api/v1/nodes/n"] = {"metadata": {"labels": {"topology.kubernetes.io/zone": "us-east-1b"}}}
    world.present["/apis/storage.k8s.io/v1/storageclasses/gp3"] = {"reclaimPolicy": "Delete"}
    players = Volumes(world.objects())
    players.start()
    yield world
    players.stop()


def test_a_claim_whose_pod_has_a_node_gets_a_volume_in_its_zone(world: World) -> None:
    world.happen(CLAIMS, "MODIFIED", claim())
    made = world.created.get(timeout=5)
    assert (made["path"], made["metadata"]["name"]) == (VOLUMES, "pvc-u-1")
    spec = made["spec"]
    (term,) = spec["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["us-east-1b"]
    assert spec["claimRef"]["uid"] == "u-1"
    assert (spec["capacity"], spec["persistentVolumeReclaimPolicy"]) == ({"storage": "8Gi"}, "Delete")


@pytest.mark.parametrize(
    "waiting",
    [claim(node=""), claim(provisioner="efs.csi.aws.com"), claim(volume="pv-1"), claim(node="gone")],
    ids=["no node yet", "another driver's", "bound", "its node is gone"],
)
def test_others_get_none(world: World, waiting: dict[str, Any]) -> None:
    world.happen(CLAIMS, "ADDED", waiting)
    with pytest.raises(queue.Empty):
        world.created.get(timeout=0.2)


@pytest.mark.parametrize("pods", [[], [{"status": {"conditions": [{"type": "Ready", "status": "False"}]}}]])
def test_without_the_driver_there_is_none(world: World, pods: list[dict[str, Any]]) -> None:
    world.listed[DRIVER] = pods
    world.happen(CLAIMS, "ADDED", claim())
    world.happen(VOLUMES, "MODIFIED", volume())
    with pytest.raises(queue.Empty):
        world.created.get(timeout=0.2)
    assert world.deleted.empty()


def test_a_volume_goes_after_its_claim(world: World) -> None:
    for other in (volume(phase="Bound"), volume(policy="Retain"), volume(driver="efs.csi.aws.com")):
        world.happen(VOLUMES, "MODIFIED", other)
    world.happen(VOLUMES, "MODIFIED", volume())
    assert world.deleted.get(timeout=5) == f"{VOLUMES}/pvc-u-1"
    assert world.deleted.empty()
