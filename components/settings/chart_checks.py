"""Values under karpstack:karpenter.settings, as the chart hands them to the controller and it parses them.

They arrive in its environment. What it cannot parse there it replaces by its default without a word
(sigs.k8s.io/karpenter, pkg/utils/env); what it can parse and does not take stops it at the start.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from karpstack.karpenter.findings import Finding
from karpstack.karpenter.instance_types import Facts
from karpstack.karpenter.quantities import exact, go_duration

from ..problems import did_you_mean, finding

if TYPE_CHECKING:
    from .aks import KarpenterSettings as AksKarpenter
    from .eks import KarpenterSettings as EksKarpenter
    from .sections import ResourceSettings

    ChartSettings = AksKarpenter | EksKarpenter
Value = str | bool | int | float

#: The chart's defaults.
_BATCH: Final = {"batchIdleDuration": "1s", "batchMaxDuration": "10s"}

#: What a container can request beside huge pages and a vendor's resources, which have a slash.
_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")


class _Choice(NamedTuple):
    words: tuple[str, ...]


class _Duration(NamedTuple):
    least: float = 0.0


class _Number(NamedTuple):
    whole: bool
    below: float


_KINDS: Final[Mapping[str, _Choice | _Duration | _Number]] = {
    "amiRefreshInterval": _Duration(60),
    "batchIdleDuration": _Duration(),
    "batchMaxDuration": _Duration(),
    "disableClusterStateObservability": _Choice(("true", "false")),
    "disableDryRun": _Choice(("true", "false")),
    "enableZonalShift": _Choice(("true", "false")),
    "ignoreDRARequests": _Choice(("true", "false")),
    "isolatedVPC": _Choice(("true", "false")),
    "legacyNodeRepair": _Choice(("true", "false")),
    "minValuesPolicy": _Choice(("Strict", "BestEffort")),
    "preferencePolicy": _Choice(("Respect", "Ignore")),
    "reservedENIs": _Number(whole=True, below=math.inf),
    "securityGroupRefreshInterval": _Duration(60),
    "subnetRefreshInterval": _Duration(60),
    "vmMemoryOverheadPercent": _Number(whole=False, below=1),
}


def controller_values(karpenter: ChartSettings) -> Iterator[Finding]:
    """Problems of what the controller's chart is told."""
    yield from chart_values(karpenter.settings)
    yield from resource_values(karpenter.resources.requests, karpenter.resources.limits)


def chart_values(settings: Mapping[str, Value]) -> Iterator[Finding]:
    """Problems of the values of keys that the chart knows."""
    for key, value in settings.items():
        code, words = _wrong(_KINDS.get(key), value)
        if code:
            yield finding(code, ("karpenter", "settings", key), value, **words)
    yield from _batch(settings)


def _wrong(kind: _Choice | _Duration | _Number | None, value: Value) -> tuple[str, dict[str, Any]]:
    """The code of what is wrong with a value, empty if nothing is, and what its text has in braces."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    match kind:
        case _Choice(words) if text not in words:
            # A policy that does not exist stops the controller; a switch is read like any other variable.
            code = "chart-switch-not-chosen" if "true" in words else "chart-value-not-chosen"
            return code, {"words": words, "meant": did_you_mean(text, words) + f"write {' or '.join(words)}"}
        case _Duration(least):
            if (seconds := _seconds(text)) is None:
                return "chart-time-invalid", {}
            return "chart-time-too-short" if seconds < least else "", {"least": least}
        case _Number(whole, below):
            try:
                number: float = (int if whole else float)(str(value))
            except ValueError:
                return "chart-number-not-whole" if whole else "chart-number-invalid", {}
            if isinstance(value, bool) or not 0 <= number < below:
                return "chart-number-negative" if below == math.inf else "chart-share-out-of-range", {}
        case None if not isinstance(value, str):
            return "chart-value-not-text", {}
    return "", {}


def _batch(settings: Mapping[str, Value]) -> Iterator[Finding]:
    """A batch of pods that must end before it may."""
    idle, most = (str(settings.get(key, default)) for key, default in _BATCH.items())
    of_idle, of_most = _seconds(idle), _seconds(most)
    if of_idle is None or of_most is None or of_idle <= of_most:
        return
    yield finding("batch-never-idle", ("karpenter", "settings", "batchIdleDuration"), idle, most=most)


def _seconds(text: str) -> float | None:
    """The seconds of a duration as Go reads it; None for other text. That 0 needs no unit is of no use here."""
    try:
        return go_duration(text).total_seconds()
    except ValueError:
        return None


def resource_values(requests: Mapping[str, str | int], limits: Mapping[str, str | int]) -> Iterator[Finding]:
    """Problems of what the controller's Deployment sets aside and never exceeds."""
    refused = "the API server refuses the controller's Deployment"
    amounts: dict[tuple[str, str], Decimal] = {}
    for kind, given in (("requests", requests), ("limits", limits)):
        for name, amount in given.items():
            if name not in _RESOURCES and not name.startswith("hugepages-") and "/" not in name:
                meant, key = did_you_mean(name, _RESOURCES), ("karpenter", "resources", kind, name)
                yield finding("resource-name-unknown", key, amount, meant=meant, known=_RESOURCES, refused=refused)
            try:
                amounts[kind, name] = exact(amount)
            except ValueError:
                yield finding(
                    "resource-amount-invalid", ("karpenter", "resources", kind, name), amount, refused=refused
                )
    for name, amount in requests.items():
        most = amounts.get(("limits", name))
        if most is not None and amounts.get(("requests", name), most) > most:
            yield finding(
                "request-above-limit",
                ("karpenter", "resources", "requests", name),
                amount,
                limit=limits[name],
                refused=refused,
            )


def oversized_requests(cloud: str, resources: ResourceSettings, size: str, setting: str) -> Iterator[Finding]:
    """Find what a controller's pod sets aside although no system node has as much; an unknown type is not judged.

    Args:
        cloud: `aws` or `azure`.
        resources: Those of the controller. Kubernetes takes a limit without a request for the request as well.
        size: Instance type of the system nodes.
        setting: The key that says it.
    """
    known = Facts.load(cloud).types.get(size)
    if known is None:
        return
    for name, most, has in (
        ("cpu", known.vcpus, f"{known.vcpus} vCPU"),
        ("memory", known.memory, f"{known.memory / 2**30:g}Gi"),
    ):
        kind, given = ("requests", resources.requests) if name in resources.requests else ("limits", resources.limits)
        try:
            fits = exact(given.get(name, 0)) < most
        except ValueError:
            continue  # the rule about amounts says what is wrong with it
        if not fits:
            key = ("karpenter", "resources", kind, name)
            yield finding("request-above-system-node", key, given[name], has=has, size=size, setting=setting)
