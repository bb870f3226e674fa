"""Machine images and the public SSM parameters that name them.

moto's own images are not loaded (they are old, and take a while). Instead there are, for each Kubernetes version
that Karpenter and EKS share here, the EKS images of Amazon Linux 2023 and of Bottlerocket: every variant that
Karpenter asks for, in two releases each, so that a story can pin the older one and drift to the newer one. Image
ids, dates and release numbers are made up and never change; other families (AL2, Windows) have no images.

Adds to moto: parameters under /aws/, which `PutParameter` refuses.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

#: Kubernetes versions with images, and the kubelet that each image carries.
KUBELETS = {"1.34": "v1.34.6", "1.35": "v1.35.4", "1.36": "v1.36.3"}

_EKS_OWNER = "602401143452"
_BOTTLEROCKET_OWNER = "092701018921"
_AL2023_VARIANTS = (
    ("x86_64", "standard"),
    ("x86_64", "nvidia"),
    ("x86_64", "neuron"),
    ("arm64", "standard"),
    ("arm64", "nvidia"),
)
_BOTTLEROCKET_VARIANTS = (("x86_64", ""), ("arm64", ""), ("x86_64", "-nvidia"), ("arm64", "-nvidia"))
#: The last release is the one that `latest` names.
_AL2023_RELEASES = (("v20260703", datetime(2026, 7, 3, tzinfo=UTC)), ("v20260807", datetime(2026, 8, 7, tzinfo=UTC)))
_BOTTLEROCKET_RELEASES = (("1.61.0", datetime(2026, 7, 9, tzinfo=UTC)), ("1.62.0", datetime(2026, 8, 12, tzinfo=UTC)))
#: The parameter that names the release, by the folder of the one that is recommended.
_RELEASES = {"recommended": "release_version", "latest": "image_version"}


@dataclass(frozen=True)
class Image:
    """One machine image.

    Attributes:
        name: As AWS names it.
        architecture: `x86_64` or `arm64`.
        owner: Account that published it.
        created: When it was published.
        kubelet_version: For example `v1.36.3`.
        parameters: Names of the SSM parameters that hold its id.
        device: Name of the root device.
    """

    name: str
    architecture: str
    owner: str
    created: datetime
    kubelet_version: str
    parameters: tuple[str, ...]
    device: str = "/dev/xvda"

    @property
    def id(self) -> str:
        """`ami-` and 17 hexadecimal digits, made from the name."""
        return "ami-" + hashlib.sha256(self.name.encode()).hexdigest()[:17]

    @property
    def release(self) -> str:
        """What EKS calls the release: `1.36.3-20260807` of Amazon Linux, `1.62.0-431fe75a` of Bottlerocket."""
        last = self.name.rpartition("-v")[2]
        return last if self.owner == _BOTTLEROCKET_OWNER else f"{self.kubelet_version.removeprefix('v')}-{last}"


def images() -> Iterator[Image]:
    """All images of the simulated account's region."""
    for version, kubelet in KUBELETS.items():
        for release, created in _AL2023_RELEASES:
            for architecture, variant in _AL2023_VARIANTS:
                name = f"amazon-eks-node-al2023-{architecture}-{variant}-{version}-{release}"
                folder = f"/aws/service/eks/optimized-ami/{version}/amazon-linux-2023/{architecture}/{variant}"
                latest = release == _AL2023_RELEASES[-1][0]
                names = [f"{folder}/{name}/image_id", *([f"{folder}/recommended/image_id"] if latest else [])]
                yield Image(name, architecture, _EKS_OWNER, created, kubelet, tuple(names))
        for release, created in _BOTTLEROCKET_RELEASES:
            for architecture, variant in _BOTTLEROCKET_VARIANTS:
                name = f"bottlerocket-aws-k8s-{version}{variant}-{architecture}-v{release}-431fe75a"
                folder = f"/aws/service/bottlerocket/aws-k8s-{version}{variant}/{architecture}"
                latest = release == _BOTTLEROCKET_RELEASES[-1][0]
                names = [f"{folder}/{release}/image_id", *([f"{folder}/latest/image_id"] if latest else [])]
                yield Image(name, architecture, _BOTTLEROCKET_OWNER, created, kubelet, tuple(names))


def seed(account_id: str, region: str) -> dict[str, Image]:
    """Put all images and their parameters into moto; the images by id."""
    from moto.ec2.models import ec2_backends
    from moto.ec2.models.amis import Ami
    from moto.ssm.models import Parameter, ssm_backends

    ec2: Any = ec2_backends[account_id][region]
    ssm: Any = ssm_backends[account_id][region]
    parameter: Any = Parameter
    known: dict[str, Image] = {}
    for image in images():
        known[image.id] = image
        ec2.amis[image.id] = Ami(
            ec2,
            image.id,
            name=image.name,
            description=image.name,
            owner_id=image.owner,
            owner_alias="amazon",
            public=True,
            virtualization_type="hvm",
            architecture=image.architecture,
            creation_date=image.created,
            hypervisor="xen",
            root_device_type="ebs",
            root_device_name=image.device,
            region_name=f"{region}a",
        )
        for name in image.parameters:
            folder, last = name.rsplit("/", 2)[:2]
            texts = {name: image.id}
            if last in _RELEASES:
                texts[f"{folder}/{last}/{_RELEASES[last]}"] = image.release
            for key, text in texts.items():
                ssm._parameters[key] = [
                    parameter(account_id, key, text, "String", None, None, None, image.created, 1, "text")
                ]
    return known
