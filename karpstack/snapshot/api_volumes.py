"""The persistent volumes of pods as a snapshot has them: where they can be reached from, by the objects of the API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from karpstack.karpenter.instance_types import ZONE

from .left_out import Ledger
from .pod import AccessMode, Volume, VolumePlace

_ZONES: Final = frozenset(
    {
        ZONE,
        "failure-domain.beta.kubernetes.io/zone",
        "topology.disk.csi.azure.com/zone",
        "topology.ebs.csi.aws.com/zone",
        "topology.gke.io/zone",
    }
)
_BETWEEN: Final = "__"  # zones of a label of old


@dataclass(frozen=True)
class Mounted:
    """A volume of one pod.

    Attributes:
        claim: Name of its claim; empty where it comes and goes with the pod.
        own: Whether the claim is called after the pod, as a StatefulSet's are.
        size: How large.
        storage_class: Name of its StorageClass.
        access_modes: How it may be mounted.
        zones: From where it can be reached; none from anywhere, or not known.
    """

    claim: str
    own: bool
    size: str
    storage_class: str | None
    access_modes: tuple[AccessMode, ...]
    zones: tuple[str, ...]

    def volume(self, *, shared: bool, places: Sequence[VolumePlace]) -> Volume:
        """It as one of a workload.

        Args:
            shared: Whether all pods have it together.
            places: Where those of the pods are.

        Raises:
            ValueError: Something of it is not as the format has it.
        """
        return Volume(
            size=self.size,
            storage_class=self.storage_class,
            access_modes=list(self.access_modes),
            claim=self.claim if shared else None,
            ephemeral=not self.claim,
            places=list(places),
        )

    @property
    def shape(self) -> tuple[Any, ...]:
        """In what the volumes of two pods of one workload are alike."""
        return not self.claim, self.size, self.storage_class, self.access_modes


class Volumes:
    """The claims and volumes of a cluster."""

    def __init__(
        self, claims: Sequence[Mapping[str, Any]], volumes: Sequence[Mapping[str, Any]], ledger: Ledger
    ) -> None:
        self._claims = {_named(one): one for one in claims}
        self._volumes = {one["metadata"]["name"]: one for one in volumes}
        self._ledger = ledger

    def of(self, namespace: str, pod: str, spec: Mapping[str, Any]) -> Iterator[Mounted]:
        """The volumes of a pod by its `spec`."""
        for one in sorted(spec.get("volumes") or (), key=lambda volume: str(volume.get("name"))):
            if "ephemeral" in one:
                template = (one["ephemeral"] or {}).get("volumeClaimTemplate") or {}
                yield self._mounted("", template.get("spec") or {}, {}, own=True)
            elif "persistentVolumeClaim" in one:
                name = one["persistentVolumeClaim"]["claimName"]
                claim = self._claims.get((namespace, name), {})
                if not claim:
                    self._ledger.add("claims that were not read", "nothing says where their volumes are")
                    continue
                yield self._mounted(name, claim.get("spec") or {}, claim, own=bool(pod) and name.endswith(pod))

    def template(self, spec: Mapping[str, Any]) -> Mounted:
        """What a claim template of a StatefulSet makes for each of its pods."""
        return self._mounted("template", spec, {}, own=True)

    def _mounted(self, name: str, spec: Mapping[str, Any], claim: Mapping[str, Any], *, own: bool) -> Mounted:
        status = claim.get("status") or {}
        asked = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
        bound = self._volumes.get(str(spec.get("volumeName")), {})
        mounted = Mounted(
            claim=name,
            own=own,
            size=str((status.get("capacity") or {}).get("storage") or asked or "1Gi"),
            storage_class=spec.get("storageClassName") or None,
            access_modes=tuple(spec.get("accessModes") or ("ReadWriteOnce",)),
            zones=self._zones(bound) if name else (),
        )
        places = [VolumePlace(zones=list(mounted.zones), pods=1)] if mounted.zones else []
        mounted.volume(shared=bool(name), places=places)  # refuses here, where one pod is lost by it
        return mounted

    def _zones(self, volume: Mapping[str, Any]) -> tuple[str, ...]:
        spec = volume.get("spec") or {}
        required = (spec.get("nodeAffinity") or {}).get("required") or {}
        asked = [one for term in required.get("nodeSelectorTerms") or () for one in term.get("matchExpressions") or ()]
        found = {zone for one in asked if one["key"] in _ZONES for zone in one.get("values") or () if zone}
        if asked and not found and not any(one["key"] in _ZONES for one in asked):
            self._ledger.add("nodes of local volumes", "nodes get other names where the snapshot is loaded")
        labels = (volume.get("metadata") or {}).get("labels") or {}
        for key in _ZONES & labels.keys() if not asked else ():
            found |= set(filter(None, str(labels[key]).split(_BETWEEN)))
        return tuple(sorted(found))


def _named(claim: Mapping[str, Any]) -> tuple[str, str]:
    return claim["metadata"].get("namespace") or "", claim["metadata"]["name"]
