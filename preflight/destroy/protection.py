"""What is protected: Pulumi, or the cloud, refuses to delete it, and finds out when most of the rest is gone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..aws.asking import Aws
from ..finding import Finding
from .subject import Subject

_SETTING: Final = "karpstack:cluster.deletionProtection"
_EXPORT: Final = "pulumi stack export"
_DESCRIBES: Final = "eks:DescribeCluster"
_LIFTS: Final = f"set {_SETTING} to false, and pulumi up, before pulumi destroy"


def protection(subject: Subject) -> Iterator[Finding]:
    """Resources that Pulumi has as protected, and a cluster that EKS has so."""
    is_set = str(subject.setting("cluster", "deletionProtection")).lower() == "true"
    protected = subject.state.protected if subject.state else {}
    for urn, name in sorted(protected.items()):
        unprotects = f"pulumi state unprotect '{urn}'"
        yield Finding(
            "error",
            f"{name} is protected",
            "pulumi destroy fails there, without a preview when all that goes before it is gone",
            f"{_LIFTS}; or, where that is false already, pulumi up; or, if it was protected by hand, {unprotects}"
            if not is_set
            else f"{_LIFTS}; if it was protected by hand, {unprotects}",
            _EXPORT,
        )
    if subject.aws and not protected and _refused_by_eks(subject, subject.aws):
        yield Finding(
            "error",
            f"EKS has the cluster {subject.outputs.get('clusterName', '')} as protected from deletion",
            "EKS refuses DeleteCluster when Karpenter and all that is in the cluster is gone: InvalidRequestException",
            _LIFTS,
            _DESCRIBES,
        )
    elif is_set and not protected:
        yield Finding(
            "note" if subject.state else "warning",
            f"{_SETTING} is true in the stack's file"
            + (", and nothing that Pulumi has made is protected yet" if subject.state else ""),
            "the next pulumi up protects the cluster, and pulumi destroy fails from then on"
            if subject.state
            else "if the stack was brought up so, pulumi destroy fails at the cluster",
            "" if subject.state else _LIFTS,
            "",
        )


def _refused_by_eks(subject: Subject, aws: Aws) -> bool:
    name = str(subject.outputs.get("clusterName", ""))
    found = aws.find("eks", "DescribeCluster", ("ResourceNotFoundException",), name=name) if name else None
    return bool(found and (found.get("cluster") or {}).get("deletionProtection"))
