"""Whether AKS offers the Kubernetes version in the region, and with which support."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..finding import Finding, finding
from .api_versions import CONTAINER_SERVICE
from .subject import Subject

_CALL: Final = "Microsoft.ContainerService/locations/kubernetesVersions/read"


def kubernetes_version(subject: Subject) -> Iterator[Finding]:
    """A version that AKS refuses; one with long-term support alone; a preview."""
    wanted = subject.settings.cluster.version
    found = subject.azure.ask(
        _CALL,
        f"{subject.azure.scope}/providers/Microsoft.ContainerService/locations/{subject.region}/kubernetesVersions",
        CONTAINER_SERVICE,
    )
    offered = {one["version"]: one for one in found.get("values", ())}
    plan = "AKSLongTermSupport" if subject.settings.cluster.tier == "Premium" else "KubernetesOfficial"
    with_plan = [
        version
        for version, one in offered.items()
        if plan in (one.get("capabilities") or {}).get("supportPlan", ()) and not one.get("isPreview")
    ]
    listed = ", ".join(sorted(with_plan, key=_number)) or "none is listed"
    if wanted not in offered:
        yield finding("aks-version-not-offered", _CALL, wanted=wanted, region=subject.region, listed=listed)
    elif offered[wanted].get("isPreview"):
        yield finding("aks-version-preview", _CALL, wanted=wanted, region=subject.region, listed=listed)
    elif wanted not in with_plan:
        yield finding(
            "aks-version-not-in-long-term-support"
            if plan == "AKSLongTermSupport"
            else "aks-version-not-in-support-plan",
            _CALL,
            wanted=wanted,
            plan=plan,
            tier=subject.settings.cluster.tier,
            listed=listed,
        )


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
