"""Whether AKS offers the Kubernetes version in the region, and with which support."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..finding import Finding
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
        yield Finding(
            "error",
            f"AKS offers no Kubernetes {wanted} in {subject.region}",
            "the cluster is refused after the network is made: K8sVersionNotSupported",
            f"set karpstack:cluster.version to one of {listed}",
            _CALL,
        )
    elif offered[wanted].get("isPreview"):
        yield Finding(
            "warning",
            f"Kubernetes {wanted} is a preview in {subject.region}",
            "previews have no guarantee and no support, and a cluster of one does not become a supported one",
            f"choose one of {listed}",
            _CALL,
        )
    elif wanted not in with_plan:
        yield Finding(
            "error",
            f"Kubernetes {wanted} is not offered with the support plan {plan}, which tier "
            f"{subject.settings.cluster.tier} has",
            "the cluster is refused after the network is made: K8sVersionNotSupported",
            f"choose one of {listed}"
            + ("" if plan == "AKSLongTermSupport" else "; or karpstack:cluster.tier Premium, if it has that"),
            _CALL,
        )


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
