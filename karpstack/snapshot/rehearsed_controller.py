"""The controller of a snapshot as a stack file has it, with the NodeOverlays that it uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from karpstack.text.shown import listed

from .controller import SETTINGS
from .model import Karpenter, NodeOverlay, Snapshot
from .release import nearest

_GATE: Final = "nodeOverlay"
_STATIC_GATE: Final = "staticCapacity"
#: The only gate that is on by default, of some charts.
_ON_BY_DEFAULT: Final = "reservedCapacity"
_RESERVED: Final = "reservedENIs"
#: Settings that the chart for Azure does not have.
_OF_AWS: Final = frozenset({"amiRefreshInterval", "ignoreDRARequests", _RESERVED})
_NAMED: Final = 5  # objects in a note


@dataclass(frozen=True)
class Controller:
    """The controller of a snapshot, as a stack file describes it.

    Attributes:
        snapshot: The cluster.
        like: The section `karpenter` of the stack file from which everything else is taken; None in mode nap.
        release: The release that is rehearsed; None for that of the other file.
        used: NodeOverlays that Karpenter uses.
        unused: Those that it does not.
    """

    snapshot: Snapshot
    like: Mapping[str, Any] | None
    release: str | None
    used: Sequence[NodeOverlay]
    unused: Sequence[NodeOverlay]

    @classmethod
    def of(cls, snapshot: Snapshot, like: Mapping[str, Any] | None, built: Sequence[str]) -> Controller:
        """Return the controller of a snapshot.

        Args:
            snapshot: The cluster.
            like: See above.
            built: Releases that can be rehearsed.
        """
        known = snapshot.karpenter
        # AKS runs its own controller without the gate.
        reads = like is not None and (known is None or known.feature_gates.get(_GATE, False))
        used = [one for one in snapshot.node_overlays if reads and one.ready]
        unused = [one for one in snapshot.node_overlays if one not in used]
        return cls(snapshot, like, nearest(known.version, built) if known else None, used, unused)

    @property
    def overlays(self) -> dict[str, Any]:
        """Name -> `spec` of each NodeOverlay that Karpenter uses."""
        return {one.name: one.spec for one in self.used}

    @property
    def reserves(self) -> bool:
        """Whether the controller itself says how many network interfaces it leaves out."""
        return bool(self.snapshot.karpenter and _RESERVED in self.snapshot.karpenter.settings)

    def section(self, reserved: int) -> dict[str, Any]:
        """Return the section `karpenter`; empty if it is as in the other file.

        Args:
            reserved: Network interfaces that are left out of the number of pods, by the nodes; 0 for none.
        """
        if self.like is None:
            return {}  # AKS runs the controller
        made = dict(self.like)
        if known := self.snapshot.karpenter:
            made |= {"featureGates": _gates(known), "settings": self._settings(known)}
            if self.release:
                made["chartVersion"] = self.release
        for gate in self._assumed_gates():
            made["featureGates"] = {**(made.get("featureGates") or {}), gate: True}
        if reserved and not self.reserves:
            made["settings"] = {**(made.get("settings") or {}), _RESERVED: str(reserved)}
        return made if made != self.like else {}

    def _assumed_gates(self) -> list[str]:
        """Feature gates that objects need, where it is not known whether they are on."""
        gates = [_GATE] if self.used else []
        is_known = self.snapshot.karpenter or self.like is None
        if not is_known and any("replicas" in one.spec for one in self.snapshot.node_pools):
            gates.append(_STATIC_GATE)
        return gates

    def _settings(self, known: Karpenter) -> dict[str, str]:
        # A snapshot is somebody else's file, and may have any key.
        lacking = frozenset() if self.snapshot.cluster.cloud == "aws" else _OF_AWS
        return {key: value for key, value in known.settings.items() if key in {*SETTINGS.values()} - lacking}

    def _is_off(self) -> bool:
        known = self.snapshot.karpenter
        return self.like is None or (known is not None and not known.feature_gates.get(_GATE))

    def unseen(self) -> Iterator[str]:
        """Say what of the controller is not rehearsed."""
        if self.like is None and self.snapshot.karpenter:
            yield (
                "Karpenter's Deployment is not rehearsed, because the stack file is of node auto provisioning, where "
                "AKS runs Karpenter; name the stack aks-self-hosted"
            )

    def notes(self) -> Iterator[str]:
        """Say what is assumed."""
        known = self.snapshot.karpenter
        if known and self.release and known.version != self.release:
            yield (
                f"the cluster has Karpenter {known.version}; the rehearsal uses {self.release}, the nearest version "
                "that is built on this machine"
            )
        if self.unused:
            why = "the feature gate NodeOverlay is off" if self._is_off() else "not Ready"
            named = listed([one.name for one in self.unused], _NAMED)
            yield f"Karpenter does not use these NodeOverlays ({why}), and the rehearsal does not have them: {named}"
        for gate in () if known else self._assumed_gates():
            name = f"{gate[0].upper()}{gate[1:]}"
            yield (
                f"the snapshot does not say whether the feature gate {name} is on in your cluster; the rehearsal turns "
                "it on"
            )
        if any("capacity" in one.spec for one in self.used):
            yield (
                "nodes have the resources in the capacity of NodeOverlays as Karpenter expects, as if your device "
                "plugins provided them"
            )


def _gates(known: Karpenter) -> dict[str, bool]:
    """Feature gates that are not as by default: of those that are off, a stack file need not know the name."""
    return {key: on for key, on in known.feature_gates.items() if on or key == _ON_BY_DEFAULT}
