"""Rules about what runs beside Karpenter on EKS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from karpstack.karpenter.findings import Finding

from ..documents import manifests
from ..documents.addons import EBS_CSI_STARTUP_TAINT
from ..problems import finding

if TYPE_CHECKING:
    from .eks import AddonsSettings, ClusterSettings

#: Tags by which the EBS CSI driver knows its own (pkg/driver/validation.go): keys, and how they begin.
_OF_THE_DRIVER: Final = ("CSIVolumeName", "CSIVolumeSnapshotName")
_PREFIXES_OF_THE_DRIVER: Final = ("kubernetes.io", "ebs.csi.aws.com/")
#: Tags by which the AWS Load Balancer Controller knows its own (pkg/config/controller_config.go).
_OF_THE_CONTROLLER: Final = (
    "elbv2.k8s.aws/cluster",
    "elbv2.k8s.aws/resource",
    *(f"{kind}/{what}" for kind in ("ingress.k8s.aws", "service.k8s.aws") for what in ("stack", "resource")),
    *(f"gateway.k8s.aws.{kind}/{what}" for kind in ("nlb", "alb") for what in ("stack", "resource")),
)


def check_unused_version(cluster: ClusterSettings, addons: AddonsSettings) -> Iterator[Finding]:
    """Find a version of an add-on that the stack does not install."""
    version = cluster.addon_versions.get("aws-ebs-csi-driver")
    if version is not None and not addons.ebs_csi:
        yield finding("addon-version-without-addon", ("cluster", "addonVersions", "aws-ebs-csi-driver"), version)


def check_ebs_taint(name: str, spec: Mapping[str, Any], addons: AddonsSettings) -> Iterator[Finding]:
    """Find a startup taint that only the EBS CSI driver removes, in a stack without the driver."""
    key = EBS_CSI_STARTUP_TAINT["key"]
    taints = manifests.node_template(spec).get("startupTaints")
    declared = [each.get("key") for each in taints or [] if isinstance(each, Mapping)]
    if key in declared and not addons.ebs_csi:
        yield finding(
            "ebs-taint-without-driver", ("nodePools", name, "template", "spec", "startupTaints"), taints, key=key
        )


def check_reserved_tags(tags: Mapping[str, str], addons: AddonsSettings) -> Iterator[Finding]:
    """Find tags of the stack with which the driver or the controller would not start."""
    for key, value in tags.items():
        of_driver = key in _OF_THE_DRIVER or key.startswith(_PREFIXES_OF_THE_DRIVER)
        if (addons.ebs_csi and of_driver) or (addons.load_balancer_controller and key in _OF_THE_CONTROLLER):
            whose = "EBS CSI driver" if of_driver else "AWS Load Balancer Controller"
            yield finding("tag-of-addon", ("tags", key), value, whose=whose)
        elif (addons.ebs_csi or addons.load_balancer_controller) and "=" in key:
            yield finding("tag-with-equals-sign", ("tags", key), value)
