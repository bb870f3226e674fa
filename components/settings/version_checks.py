"""Whether the managed service offers a Kubernetes version today, by its calendar; its own words where it does not."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from karpenter.releases import number, offered, releases, status

from .. import versions
from ..documents.charts import release
from ..problems import Problem, key_of, shown
from .requirement_checks import NEWER_FACTS

_KEY = key_of("cluster", "version")


def eks_version(version: str, today: date, *, karpenter: str) -> Iterator[Problem]:
    """Problems of EKS's version, which the stack's Karpenter has to take too."""
    low, high = _range(compatible("karpenter-aws", karpenter))
    here = [one for one in offered("aws", today) if _between(low, one, high)]
    if not _between(low, version, high):
        yield Problem(
            _KEY,
            shown(version),
            f"is not a version that Karpenter {karpenter} takes: its controller would stop at start-up "
            "and no pod would ever get a node",
            f"choose {', '.join(here)}",
        )
        return
    match status("aws", version, today):
        case "ended":
            yield Problem(
                _KEY,
                shown(version),
                f'is refused by EKS ("unsupported Kubernetes version {version}"){_since("aws", version)}, after the '
                "network was created",
                f"choose {', '.join(here)}",
            )
        case "extended":
            yield Problem(
                _KEY,
                shown(version),
                f"is in extended support since {releases('aws')[version].standard}, at a higher price for each hour; "
                f"on {releases('aws')[version].extended} EKS ends it and upgrades the cluster by itself",
                f"choose {here[-1]}; a cluster that exists goes up one version at a time",
                warning=True,
            )
        case "planned" | "newer":
            yield _not_known("EKS", version)


def support_ended(version: str, support: str, today: date) -> Iterator[Problem]:
    """Find standard support of a version that has extended support alone."""
    if support == "standard" and status("aws", version, today) == "extended":
        yield Problem(
            key_of("cluster", "supportType"),
            shown(support),
            f"is over for {version} since {releases('aws')[version].standard}: EKS refuses the cluster, or upgrades it "
            "at once",
            "choose a newer cluster.version, or extended",
        )


def compatible(what: str, chosen: str) -> versions.Compatible:
    """Return what goes with a release of a component; of one that is older than all that are known, the oldest's."""
    rows = versions.COMPATIBILITY[what]
    return next((row for row in rows if release(chosen) >= release(row.since)), rows[-1])


def cilium_version(cilium: str, version: str) -> Iterator[Problem]:
    """Warn of a Kubernetes that upstream does not test a release of Cilium with."""
    tested = compatible("cilium", cilium).newest
    if number(version) > number(tested):
        yield Problem(
            key_of("cilium", "chartVersion"),
            shown(cilium),
            f"is a Cilium that upstream tests up to Kubernetes {tested}, and the cluster has {version}: it may "
            "work, and pods have no other network",
            f"take a newer one, or choose Kubernetes {tested}",
            warning=True,
        )


def karpenter_support(karpenter: str, today: date) -> Iterator[Problem]:
    """Warn of a release of Karpenter on EKS that upstream no longer mends."""
    row = compatible("karpenter-aws", karpenter)
    if row.ended and today >= date.fromisoformat(row.ended):
        yield Problem(
            key_of("karpenter", "chartVersion"),
            shown(karpenter),
            f"is a Karpenter without support ({row.support}): upstream mends no defect and closes no security hole in "
            "it",
            f"choose {versions.KARPENTER_AWS}, or another release that docs/compatibility.md names as supported",
            warning=True,
        )


def existing_eks_version(version: str, *, karpenter: str) -> Iterator[Problem]:
    """Problems of the version of a cluster that is there, which the stack's Karpenter has to take."""
    low, high = _range(compatible("karpenter-aws", karpenter))
    if not _between(low, version, high):
        yield Problem(
            key_of("karpenter", "chartVersion"),
            shown(karpenter),
            f"is a Karpenter that takes Kubernetes {low} to {high}, and the cluster has {version}: its controller "
            "would stop at start-up and no pod would ever get a node",
            f"upgrade the cluster to {low} or newer, one minor version after the other"
            if number(version) < number(low)
            else "take a newer version, which docs/upgrading.md says how to move to",
        )


def aks_version(version: str, today: date, *, mode: str, tier: str) -> Iterator[Problem]:
    """Problems of AKS's version; where the stack runs Karpenter itself, also of that."""
    low, high = _range(versions.COMPATIBILITY["karpenter-azure"][0])
    if mode == "self-hosted" and not _between(low, version, high):
        yield Problem(
            _KEY,
            shown(version),
            "is not a version for which this Karpenter can resolve the images of every family: machines would be made "
            "that never join, or none at all",
            f"choose {low} to {high}, or set karpstack:mode to nap, where AKS runs Karpenter",
        )
        return
    here = [one for one in offered("azure", today) if releases("azure")[one].status(today) == "standard"]
    match status("azure", version, today):
        case "ended":
            yield Problem(
                _KEY,
                shown(version),
                f'is refused by AKS ("version {version}, which is not supported in this region")'
                f"{_since('azure', version)}, after the network was created",
                f"choose {', '.join(here)}",
            )
        case "extended" if tier != "Premium":
            yield Problem(
                _KEY,
                shown(version),
                f'is refused by AKS ("only available for Long-Term Support (LTS)") since '
                f"{releases('azure')[version].standard}, after the network was created",
                f"choose {', '.join(here)}; or set karpstack:cluster.tier to Premium, which brings Long-Term Support",
            )
        case "extended":
            yield Problem(
                _KEY,
                shown(version),
                f"has Long-Term Support alone, at Premium's price, until {releases('azure')[version].extended}",
                f"choose {here[-1]}; a cluster that exists goes up one version at a time",
                warning=True,
            )
        case "planned" | "newer":
            yield _not_known("AKS", version)


def existing_aks_version(version: str, *, karpenter: str) -> Iterator[Problem]:
    """Problems of the version of a cluster that is there with the stack's own Karpenter, whose machines must join."""
    low, high = _range(versions.COMPATIBILITY["karpenter-azure"][0])
    if not _between(low, version, high):
        yield Problem(
            key_of("mode"),
            shown("self-hosted"),
            f"needs Kubernetes {low} to {high}, and the cluster has {version}: for others this Karpenter cannot "
            "resolve the images of every family, and machines would be made that never join, or none at all",
            "set it to nap, where AKS runs Karpenter; or upgrade the cluster, one minor version after the other",
        )
    yield from joining(version, karpenter=karpenter)


def joining(version: str, *, karpenter: str) -> Iterator[Problem]:
    """A version of Karpenter whose machines may not join a cluster on AKS of a version of Kubernetes."""
    newest, row = versions.COMPATIBILITY["karpenter-azure"][0], compatible("karpenter-azure", karpenter)
    if row != newest and number(version) > number(row.newest):
        yield Problem(
            key_of("karpenter", "chartVersion"),
            shown(karpenter),
            f"may make no node of Kubernetes {version}: before {newest.since}, machines fetch their kubelet from where "
            "it is published for some patches only, and without it they never join",
            f"choose {newest.since} or newer, at best {versions.KARPENTER_AZURE}",
        )


def _range(row: versions.Compatible) -> tuple[str, str]:
    return row.oldest, row.newest


def _since(cloud: str, version: str) -> str:
    known = releases(cloud).get(version)
    return f" since {known.extended}" if known else " for years"


def _not_known(service: str, version: str) -> Problem:
    return Problem(
        _KEY,
        shown(version),
        f"was not offered by {service} when the facts were written: if it still is not, the cluster is refused after "
        "the network was created",
        NEWER_FACTS,
        warning=True,
    )


def _between(low: str, version: str, high: str) -> bool:
    return number(low) <= number(version) <= number(high)
