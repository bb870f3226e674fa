"""Whether EKS offers the Kubernetes version, and for how long."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from karpstack.karpenter import fact_dates

from ..finding import Finding, finding
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
        yield finding("eks-version-not-offered", _CALL, wanted=wanted, region=subject.aws.region, offered=offered)
        return
    one = known[wanted]
    if _status(one) == "EXTENDED_SUPPORT":
        yield finding(
            "eks-version-in-extended-support",
            _CALL,
            wanted=wanted,
            end_of_extended_support_date=_day(one.get("endOfExtendedSupportDate")),
            standard=", ".join(_standard(known)) or "none is listed",
        )
        return
    end = one.get("endOfStandardSupportDate")
    if isinstance(end, datetime) and end.date() - fact_dates.today() < _SOON:
        yield finding(
            "eks-version-support-ends",
            _CALL,
            wanted=wanted,
            end=_day(end),
            newer=", ".join(name for name in offered if _number(name) > _number(wanted)),
        )


def _status(one: dict[str, Any]) -> str:
    return str(one.get("versionStatus") or one.get("status", "")).upper()


def _standard(known: dict[str, dict[str, Any]]) -> list[str]:
    return sorted((name for name, one in known.items() if _status(one) == "STANDARD_SUPPORT"), key=_number)


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _day(when: Any) -> str:
    return when.date().isoformat() if isinstance(when, datetime) else "a day that EKS does not say"
