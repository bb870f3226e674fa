"""Plays what the EBS CSI driver's controller does: a volume for a claim whose pod has a node, and its end.

No disk is made: there is a PersistentVolume, in the zone of the node, which kube-controller-manager binds to the claim,
so that the scheduler goes on. Only where the driver's controller runs. What it writes is what external-provisioner and
the driver write.

- https://github.com/kubernetes-csi/external-provisioner (pkg/controller/controller.go, ProvisionExt)
- https://github.com/kubernetes-sigs/aws-ebs-csi-driver (pkg/driver/controller.go, newCreateVolumeResponse)
"""

from __future__ import annotations

import hashlib
from typing import Any, ClassVar, Final

from karpstack.rehearsal.cluster.feed import Event, Player
from karpstack.rehearsal.cluster.objects import ApiError, Object, has_condition

_DRIVER: Final = "ebs.csi.aws.com"
_CONTROLLER: Final = "app=ebs-csi-controller"
_NAMESPACE: Final = "kube-system"
_ZONE: Final = "topology.kubernetes.io/zone"
_PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"
_NODE: Final = "volume.kubernetes.io/selected-node"
_VOLUMES: Final = "/api/v1/persistentvolumes"


class Volumes(Player):
    """Stands in for the driver's controller of one cluster."""

    name = "volumes"
    watches: ClassVar = {"claims": {"path": "/api/v1/persistentvolumeclaims"}, "volumes": {"path": _VOLUMES}}

    def _handle(self, event: Event) -> None:
        if event.type == "DELETED":
            return
        if event.source == "claims" and _waits(event.object) and self._runs():
            self._provision(event.object)
        elif event.source == "volumes" and _is_over(event.object) and self._runs():
            self._objects.delete(f"{_VOLUMES}/{event.object['metadata']['name']}")

    def _runs(self) -> bool:
        pods = self._objects.list(f"/api/v1/namespaces/{_NAMESPACE}/pods", labels=_CONTROLLER)
        return any(has_condition(pod, "Ready") for pod in pods)

    def _provision(self, claim: Object) -> None:
        node = self._objects.get(f"/api/v1/nodes/{claim['metadata']['annotations'][_NODE]}")
        storage_class = claim["spec"]["storageClassName"]
        found = self._objects.get(f"/apis/storage.k8s.io/v1/storageclasses/{storage_class}")
        if node is None or found is None:
            return  # the scheduler chooses another node; a class that is gone makes no volume
        try:
            self._objects.create(_VOLUMES, _volume(claim, found, node["metadata"]["labels"][_ZONE]))
        except ApiError as error:
            if error.status != 409:  # it is there already
                raise


def _waits(claim: Object) -> bool:
    """Whether a claim is the driver's, its pod has a node, and there is no volume for it."""
    annotations = claim["metadata"].get("annotations") or {}
    return annotations.get(_PROVISIONER) == _DRIVER and bool(annotations.get(_NODE)) and not _bound(claim)


def _bound(claim: Object) -> bool:
    return bool(claim["spec"].get("volumeName")) or "deletionTimestamp" in claim["metadata"]


def _is_over(volume: Object) -> bool:
    """Whether a volume is the driver's, and goes with its claim, which is gone."""
    spec = volume["spec"]
    ours = (spec.get("csi") or {}).get("driver") == _DRIVER
    deletes = spec.get("persistentVolumeReclaimPolicy") == "Delete" and "deletionTimestamp" not in volume["metadata"]
    return ours and deletes and volume.get("status", {}).get("phase") == "Released"


def _volume(claim: Object, storage_class: Object, zone: str) -> dict[str, Any]:
    metadata, spec = claim["metadata"], claim["spec"]
    digest = hashlib.sha256(metadata["uid"].encode()).hexdigest()
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": f"pvc-{metadata['uid']}",
            "annotations": {"pv.kubernetes.io/provisioned-by": _DRIVER},
        },
        "spec": {
            "accessModes": spec["accessModes"],
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
            },
            "csi": {"driver": _DRIVER, "volumeHandle": f"vol-{digest[:17]}", "fsType": "ext4"},
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": _ZONE, "operator": "In", "values": [zone]}]}]
                }
            },
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
            "storageClassName": spec["storageClassName"],
            "volumeMode": spec.get("volumeMode", "Filesystem"),
        },
    }
