"""Values under karpstack:karpenter.settings, as the chart hands them to the controller and it parses them.

They arrive in its environment. What it cannot parse there it replaces by its default without a word
(sigs.k8s.io/karpenter, pkg/utils/env); what it can parse and does not take stops it at the start.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Final, NamedTuple

from karpenter.quantities import exact

from ..problems import Problem, did_you_mean, key_of, shown

Value = str | bool | int | float

#: As Go's time.ParseDuration reads it; that 0 needs no unit is of no use here.
_DURATION: Final = re.compile(r"(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|ms|s|m|h))+", re.ASCII)
_PART: Final = re.compile(r"([0-9.]+)(ns|us|µs|ms|s|m|h)")
_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}
#: The chart's defaults.
_BATCH: Final = {"batchIdleDuration": "1s", "batchMaxDuration": "10s"}
_IGNORED: Final = "the controller cannot read it, takes its default and says nothing"
_STOPPED: Final = "the controller stops at the start, again and again"


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


def chart_values(settings: Mapping[str, Value]) -> Iterator[Problem]:
    """Problems of the values of keys that the chart knows."""
    for key, value in settings.items():
        match _KINDS.get(key):
            case _Choice(words):
                found = _choice(value, words)
            case _Duration(least):
                found = _duration(value, least)
            case _Number(whole, below):
                found = _number(value, whole=whole, below=below)
            case _:
                found = None if isinstance(value, str) else ("is no text: " + _IGNORED, "write a text")
        if found:
            yield Problem(key_of("karpenter", "settings", key), shown(value), *found)
    yield from _batch(settings)


def _batch(settings: Mapping[str, Value]) -> Iterator[Problem]:
    """A batch of pods that must end before it may."""
    idle, most = (str(settings.get(key, default)) for key, default in _BATCH.items())
    if not (_DURATION.fullmatch(idle) and _DURATION.fullmatch(most)) or _seconds(idle) <= _seconds(most):
        return
    yield Problem(
        key_of("karpenter", "settings", "batchIdleDuration"),
        shown(idle),
        f"is longer than batchMaxDuration {most}: no batch ever ends by it, and every pod waits {most} for its node",
        f"choose at most {most}, or raise batchMaxDuration",
    )


def _seconds(duration: str) -> float:
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(duration))


def _choice(value: Value, words: tuple[str, ...]) -> tuple[str, str] | None:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if text in words:
        return None
    # A policy that does not exist stops the controller; a switch is read like any other variable.
    consequence = _IGNORED if "true" in words else _STOPPED
    return f"is none of {', '.join(words)}: {consequence}", did_you_mean(text, words) + f"write {' or '.join(words)}"


def _duration(value: Value, least: float) -> tuple[str, str] | None:
    text = str(value)
    if isinstance(value, bool) or not _DURATION.fullmatch(text):
        return f"is no time: {_IGNORED}", "write a number with its unit, for example 10s, 500ms or 1m30s"
    try:
        seconds = _seconds(text)
    except ValueError:
        return f"is no time: {_IGNORED}", "write a number with its unit, for example 10s, 500ms or 1m30s"
    if seconds < least:
        return f"is less than {least:.0f} seconds: {_STOPPED}", f"write {least:.0f}s or more"
    return None


def _number(value: Value, *, whole: bool, below: float) -> tuple[str, str] | None:
    example = "0" if whole else "0.075, for 7.5 %"
    try:
        number: float = (int if whole else float)(str(value))
    except ValueError:
        return f"is no {'whole ' if whole else ''}number: {_IGNORED}", f"write one from 0, for example {example}"
    if isinstance(value, bool) or not 0 <= number < below:
        consequence = "the controller does not start, or finds that nothing fits on any node"
        bounds = "is negative" if below == math.inf else "is not from 0 to below 1"
        return f"{bounds}: {consequence}", f"write for example {example}"
    return None


def resource_values(requests: Mapping[str, str | int], limits: Mapping[str, str | int]) -> Iterator[Problem]:
    """Problems of what the controller's Deployment sets aside and never exceeds."""
    refused = "the API server refuses the controller's Deployment"
    amounts: dict[tuple[str, str], Decimal] = {}
    for kind, given in (("requests", requests), ("limits", limits)):
        for name, amount in given.items():
            try:
                amounts[kind, name] = exact(amount)
            except ValueError:
                yield Problem(
                    key_of("karpenter", "resources", kind, name),
                    shown(amount),
                    f"is no amount that Kubernetes knows: {refused}",
                    "write it like 500m, 1, 512Mi or 1Gi",
                )
    for name, amount in requests.items():
        most = amounts.get(("limits", name))
        if most is not None and amounts.get(("requests", name), most) > most:
            yield Problem(
                key_of("karpenter", "resources", "requests", name),
                shown(amount),
                f"is more than the limit {limits[name]}: {refused}",
                "raise the limit, or lower the request",
            )
