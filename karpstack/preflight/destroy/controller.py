"""Whether Karpenter is there to drain its nodes, terminate its instances, and take its finalizers away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..finding import Finding, finding
from .subject import NODE_CLAIMS, NODE_CLASSES, Subject, kubectl, labels_of

_DEPLOYMENTS: Final = "/apis/apps/v1/deployments"
_NAME: Final = ("app.kubernetes.io/name", "karpenter")


def controller(subject: Subject) -> Iterator[Finding]:
    """A controller that is missing or not ready, while something waits for it."""
    if subject.is_managed:
        return
    key, name = _NAME
    found = [one for one in subject.cluster.list(_DEPLOYMENTS) if labels_of(one).get(key) == name]
    if any((one.get("status") or {}).get("readyReplicas") for one in found):
        return
    claims = len(subject.cluster.list(NODE_CLAIMS))
    classes = len(subject.cluster.list(NODE_CLASSES[subject.cloud].path)) if subject.cloud in NODE_CLASSES else 0
    if not claims and not classes:
        return
    namespace = subject.outputs.get("karpenterNamespace") or "kube-system"
    yield finding(
        "karpenter-not-ready" if found else "karpenter-not-there",
        f"GET {_DEPLOYMENTS}",
        claims=claims,
        classes=classes,
        describe=kubectl("describe", "deployment", found[0]) if found else "",
        namespace=namespace,
    )
