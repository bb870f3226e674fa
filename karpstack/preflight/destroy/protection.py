"""What Pulumi, or the cloud, refuses to delete when most of the rest is gone, or does not know and leaves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..aws.asking import Aws
from ..finding import Finding, finding
from .subject import Subject

_SETTING: Final = "karpstack:cluster.deletionProtection"
_EXPORT: Final = "pulumi stack export"
_DESCRIBES: Final = "eks:DescribeCluster"
_LIFTS: Final = f"set {_SETTING} to false, and pulumi up, before pulumi destroy"


def interrupted(subject: Subject) -> Iterator[Finding]:
    """What was being made when Pulumi was killed: it does not know what became of it."""
    for name in sorted((subject.state.interrupted if subject.state else {}).values()):
        yield finding("creation-interrupted-before-destroy", _EXPORT, name=name)


def protection(subject: Subject) -> Iterator[Finding]:
    """Resources that Pulumi has as protected, and a cluster that EKS has so."""
    is_set = str(subject.setting("cluster", "deletionProtection")).lower() == "true"
    protected = subject.state.protected if subject.state else {}
    for urn, name in sorted(protected.items()):
        unprotects = f"pulumi state unprotect '{urn}'"
        yield finding(
            "deletion-protection-set" if is_set else "resource-protected", _EXPORT, name=name, unprotects=unprotects
        )
    if subject.aws and not protected and _refused_by_eks(subject, subject.aws):
        yield finding("cluster-protected-by-eks", _DESCRIBES, cluster_name=subject.outputs.get("clusterName", ""))
    elif is_set and not protected:
        yield finding("deletion-protection-not-yet-applied" if subject.state else "deletion-protection-in-file", "")


def _refused_by_eks(subject: Subject, aws: Aws) -> bool:
    name = str(subject.outputs.get("clusterName", ""))
    found = aws.find("eks", "DescribeCluster", ("ResourceNotFoundException",), name=name) if name else None
    return bool(found and (found.get("cluster") or {}).get("deletionProtection"))
