"""Volumes of a snapshot that bind pods to zones, made so that they bind them to the same zones.

Nothing is stored on them: each is a folder that nobody mounts, with the node affinity that the real one has. Volumes
that can be reached from anywhere, those that come and go with their pod and those that are not made yet hold no pod
anywhere, and are not made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from karpstack.karpenter.instance_types import ZONE

from .manifests import object_name
from .model import Workload
from .pod import Volume

#: No such StorageClass exists: nothing is provisioned for claims that have it.
STORAGE_CLASS: Final = "karpstack-snapshot"


def zonal(volume: Volume) -> bool:
    """Whether a volume holds its pods in zones."""
    return bool(volume.places) and not volume.ephemeral


def own_claim_volumes(workload: Workload) -> dict[str, Volume]:
    """Name in the pod -> the zonal volume that each pod has of its own."""
    return {name: one for name, one in _named(workload).items() if one.claim is None}


def shared_claim_volumes(workload: Workload) -> dict[str, Volume]:
    """Name in the pod -> the zonal volume that all pods have together."""
    return {name: one for name, one in _named(workload).items() if one.claim is not None}


def _named(workload: Workload) -> dict[str, Volume]:
    return {f"volume-{number}": one for number, one in enumerate(filter(zonal, workload.volumes))}


def spec(volume: Volume) -> dict[str, Any]:
    """The `spec` of a volume's claim."""
    return {
        "accessModes": list(volume.access_modes),
        "resources": {"requests": {"storage": volume.size}},
        "storageClassName": STORAGE_CLASS,
    }


def claim(volume: Volume, workload: Workload, labels: Mapping[str, str]) -> dict[str, Any]:
    """The claim that all pods of a workload have together."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": volume.claim, "namespace": workload.namespace, "labels": dict(labels)},
        "spec": spec(volume),
    }


def volume_of_all(volume: Volume, workload: Workload, labels: Mapping[str, str]) -> dict[str, Any]:
    """The volume of that claim."""
    return _volume(volume, volume.places[0].zones, workload.namespace, str(volume.claim), labels)


def volumes_of_each(name: str, volume: Volume, workload: Workload, labels: Mapping[str, str]) -> list[dict[str, Any]]:
    """The volumes of a StatefulSet's pods in the order of their numbers; those of no zone are last."""
    return [
        _volume(volume, there, workload.namespace, f"{name}-{object_name(workload.name)}-{number}", labels)
        for number, there in enumerate(_zones(volume, workload))
    ]


def zones_of_each(workload: Workload) -> list[set[str]]:
    """The zones in which each pod can be by its own volumes, in the order of their numbers; none: in any."""
    each: list[set[str]] = [set() for _ in range(workload.replicas)]
    for volume in own_claim_volumes(workload).values():
        for number, zones in enumerate(_zones(volume, workload)):
            each[number] = each[number] & set(zones) or each[number] or set(zones)
    return each


def _zones(volume: Volume, workload: Workload) -> list[list[str]]:
    zones = [place.zones for place in sorted(volume.places, key=lambda one: one.zones) for _ in range(place.pods)]
    zones += [[]] * (workload.replicas - len(zones))
    return zones[: workload.replicas]


def _volume(
    volume: Volume, zones: Sequence[str], namespace: str, claim_name: str, labels: Mapping[str, str]
) -> dict[str, Any]:
    digest = hashlib.sha256(f"{namespace}/{claim_name}".encode()).hexdigest()[:16]
    made: dict[str, Any] = {
        "capacity": {"storage": volume.size},
        "accessModes": list(volume.access_modes),
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": STORAGE_CLASS,
        "hostPath": {"path": f"/tmp/karpstack-snapshot/{digest}", "type": "DirectoryOrCreate"},  # noqa: S108
        "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": claim_name},
    }
    if zones:
        requirement = {"key": ZONE, "operator": "In", "values": list(zones)}
        made["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"snapshot-{digest}", "labels": dict(labels)},
        "spec": made,
    }
