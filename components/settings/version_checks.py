"""Whether the managed service offers a Kubernetes version today, by its calendar; its own words where it does not."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import TYPE_CHECKING

from karpstack.karpenter.findings import Finding
from karpstack.karpenter.releases import number, offered, releases, status

from .. import versions
from ..documents.charts import release
from ..problems import finding, key_of

if TYPE_CHECKING:
    from .aks import KarpenterSettings as AksKarpenter
    from .eks import CiliumSettings
    from .eks import KarpenterSettings as EksKarpenter

_KEY = key_of("cluster", "version")


def eks_version(version: str, today: date, *, karpenter: str) -> Iterator[Finding]:
    """Problems of EKS's version, which the stack's Karpenter has to take too."""
    low, high = _range(compatible("karpenter-aws", karpenter))
    here = [one for one in offered("aws", today) if _between(low, one, high)]
    if not _between(low, version, high):
        yield finding("karpenter-without-kubernetes", _KEY, version, karpenter=karpenter, here=here)
        return
    match status("aws", version, today):
        case "ended":
            yield finding(
                "eks-version-refused", _KEY, version, version=version, since=_since("aws", version), here=here
            )
        case "extended":
            yield finding(
                "eks-version-extended",
                _KEY,
                version,
                standard=releases("aws")[version].standard,
                extended=releases("aws")[version].extended,
                newest=here[-1],
            )
        case "planned" | "newer":
            yield _not_known("EKS", version)


def support_ended(version: str, support: str, today: date) -> Iterator[Finding]:
    """Find standard support of a version that has extended support alone."""
    if support == "standard" and status("aws", version, today) == "extended":
        yield finding(
            "eks-support-ended",
            ("cluster", "supportType"),
            support,
            version=version,
            standard=releases("aws")[version].standard,
        )


def compatible(what: str, chosen: str) -> versions.Compatible:
    """Return what goes with a release of a component; of one that is older than all that are known, the oldest's."""
    rows = versions.COMPATIBILITY[what]
    return next((row for row in rows if release(chosen) >= release(row.since)), rows[-1])


def cilium_version(cilium: str, version: str) -> Iterator[Finding]:
    """Warn of a Kubernetes that upstream does not test a release of Cilium with."""
    tested = compatible("cilium", cilium).newest
    if number(version) > number(tested):
        yield finding("cilium-without-kubernetes", ("cilium", "chartVersion"), cilium, tested=tested, version=version)


def karpenter_support(karpenter: str, today: date) -> Iterator[Finding]:
    """Warn of a release of Karpenter on EKS that upstream no longer mends."""
    row = compatible("karpenter-aws", karpenter)
    if row.ended and today >= date.fromisoformat(row.ended):
        yield finding(
            "karpenter-unsupported",
            ("karpenter", "chartVersion"),
            karpenter,
            support=row.support,
            karpenter_aws=versions.KARPENTER_AWS,
        )


def newer_charts(
    cloud: str, karpenter: EksKarpenter | AksKarpenter | None = None, cilium: CiliumSettings | None = None
) -> Iterator[Finding]:
    """Warn of charts of a later minor release than those that are known; AKS brings its own Cilium."""
    chosen: dict[str, tuple[EksKarpenter | AksKarpenter | CiliumSettings | None, str]]
    chosen = {"karpenter": (karpenter, versions.KARPENTER_AWS if cloud == "aws" else versions.KARPENTER_AZURE)}
    if cloud == "aws":
        chosen["cilium"] = (cilium, versions.CILIUM)
    for section, (settings, newest) in chosen.items():
        if settings is not None and release(settings.chart_version)[:2] > release(newest)[:2]:
            yield finding("chart-unknown", (section, "chartVersion"), settings.chart_version, newest=newest)


def existing_eks_version(version: str, *, karpenter: str) -> Iterator[Finding]:
    """Problems of the version of a cluster that is there, which the stack's Karpenter has to take."""
    low, high = _range(compatible("karpenter-aws", karpenter))
    if not _between(low, version, high):
        code = "kubernetes-too-old" if number(version) < number(low) else "karpenter-too-old"
        yield finding(code, ("karpenter", "chartVersion"), karpenter, low=low, high=high, version=version)


def aks_version(version: str, today: date, *, mode: str, tier: str) -> Iterator[Finding]:
    """Problems of AKS's version; where the stack runs Karpenter itself, also of that."""
    low, high = _range(versions.COMPATIBILITY["karpenter-azure"][0])
    if mode == "self-hosted" and not _between(low, version, high):
        yield finding("aks-version-without-images", _KEY, version, low=low, high=high)
        return
    here = [one for one in offered("azure", today) if releases("azure")[one].status(today) == "standard"]
    match status("azure", version, today):
        case "ended":
            yield finding(
                "aks-version-refused", _KEY, version, version=version, since=_since("azure", version), here=here
            )
        case "extended" if tier != "Premium":
            yield finding(
                "aks-version-lts-only", _KEY, version, standard=releases("azure")[version].standard, here=here
            )
        case "extended":
            yield finding(
                "aks-version-lts", _KEY, version, extended=releases("azure")[version].extended, newest=here[-1]
            )
        case "planned" | "newer":
            yield _not_known("AKS", version)


def existing_aks_version(version: str, *, karpenter: str) -> Iterator[Finding]:
    """Problems of the version of a cluster that is there with the stack's own Karpenter, whose machines must join."""
    low, high = _range(versions.COMPATIBILITY["karpenter-azure"][0])
    if not _between(low, version, high):
        yield finding("existing-aks-version", "mode", "self-hosted", low=low, high=high, version=version)
    yield from joining(version, karpenter=karpenter)


def joining(version: str, *, karpenter: str) -> Iterator[Finding]:
    """A version of Karpenter whose machines may not join a cluster on AKS of a version of Kubernetes."""
    newest, row = versions.COMPATIBILITY["karpenter-azure"][0], compatible("karpenter-azure", karpenter)
    if row != newest and number(version) > number(row.newest):
        yield finding(
            "kubelet-not-published",
            ("karpenter", "chartVersion"),
            karpenter,
            version=version,
            since=newest.since,
            karpenter_azure=versions.KARPENTER_AZURE,
        )


def _range(row: versions.Compatible) -> tuple[str, str]:
    return row.oldest, row.newest


def _since(cloud: str, version: str) -> str:
    known = releases(cloud).get(version)
    return f" since {known.extended}" if known else " for years"


def _not_known(service: str, version: str) -> Finding:
    return finding("version-unknown", _KEY, version, service=service)


def _between(low: str, version: str, high: str) -> bool:
    return number(low) <= number(version) <= number(high)
