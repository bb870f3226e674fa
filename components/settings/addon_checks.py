"""Rules about what runs beside Karpenter on EKS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..documents import manifests
from ..documents.addons import EBS_CSI_STARTUP_TAINT
from ..problems import Problem, key_of, shown

if TYPE_CHECKING:
    from .eks import AddonsSettings, ClusterSettings


def version_of_none(cluster: ClusterSettings, addons: AddonsSettings) -> Iterator[Problem]:
    """A version of an add-on that the stack does not have."""
    version = cluster.addon_versions.get("aws-ebs-csi-driver")
    if version is not None and not addons.ebs_csi:
        yield Problem(
            key_of("cluster", "addonVersions", "aws-ebs-csi-driver"),
            shown(version),
            "is the version of an add-on that this stack does not have, so it would change nothing",
            "set karpstack:addons.ebsCsi to true, or remove it",
        )


def taint_of_none(name: str, spec: Mapping[str, Any], addons: AddonsSettings) -> Iterator[Problem]:
    """A startup taint that only the EBS CSI driver lifts, where the stack has none."""
    key = EBS_CSI_STARTUP_TAINT["key"]
    taints = manifests.node_template(spec).get("startupTaints")
    declared = [each.get("key") for each in taints or [] if isinstance(each, Mapping)]
    if key in declared and not addons.ebs_csi:
        yield Problem(
            key_of("nodePools", name, "template", "spec", "startupTaints"),
            shown(taints),
            f"holds {key}, which the EBS CSI driver lifts, and the stack brings none: unless somebody else installs "
            "it, no pod ever runs on these nodes",
            "set karpstack:addons.ebsCsi to true, which adds the taint by itself, or remove it",
            warning=True,
        )
