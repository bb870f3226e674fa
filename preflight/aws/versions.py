"""Whether EKS offers the Kubernetes version, and for how long."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from karpenter import age

from ..finding import Finding
from .subject import Subject

_CALL: Final = "eks:DescribeClusterVersions"
_SOON: Final = timedelta(days=60)


def kubernetes_version(subject: Subject) -> Iterator[Finding]:
    """A version that EKS refuses; one in extended support, which costs more; one whose end is near."""
    wanted = subject.settings.cluster.version
    found = subject.aws.all("eks", "DescribeClusterVersions", "clusterVersions", includeAll=True)
    known = {one["clusterVersion"]: one for one in found}
    offered = sorted((name for name, one in known.items() if _status(one) != "UNSUPPORTED"), key=_number)
    if wanted not in offered:
        yield Finding(
            "error",
            f"EKS offers no Kubernetes {wanted} in {subject.aws.region}",
            f"CreateCluster is refused: unsupported Kubernetes version {wanted}",
            f"set karpstack:cluster.version to one of {', '.join(offered)}",
            _CALL,
        )
        return
    one = known[wanted]
    if _status(one) == "EXTENDED_SUPPORT":
        yield Finding(
            "warning",
            f"Kubernetes {wanted} is in extended support until {_day(one.get('endOfExtendedSupportDate'))}",
            "the control plane costs 0.60 USD an hour instead of 0.10, and is upgraded by force on that day",
            f"choose a version in standard support: {', '.join(_standard(known)) or 'none is listed'}",
            _CALL,
        )
        return
    end = one.get("endOfStandardSupportDate")
    if isinstance(end, datetime) and end.date() - age.today() < _SOON:
        yield Finding(
            "warning",
            f"standard support of Kubernetes {wanted} ends on {_day(end)}",
            "from then on the control plane costs 0.60 USD an hour instead of 0.10",
            f"choose a newer version: {', '.join(name for name in offered if _number(name) > _number(wanted))}",
            _CALL,
        )


def _status(one: dict[str, Any]) -> str:
    return str(one.get("versionStatus") or one.get("status", "")).upper()


def _standard(known: dict[str, dict[str, Any]]) -> list[str]:
    return sorted((name for name, one in known.items() if _status(one) == "STANDARD_SUPPORT"), key=_number)


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _day(when: Any) -> str:
    return when.date().isoformat() if isinstance(when, datetime) else "a day that EKS does not say"
