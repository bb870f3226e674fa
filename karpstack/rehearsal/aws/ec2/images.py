"""Machine images and the public SSM parameters that name them.

moto's own images are not loaded (they are old, and take a while). Instead there are, for each Kubernetes version
that Karpenter and EKS share here, the EKS images of Amazon Linux 2023 and of Bottlerocket: every variant that
Karpenter asks for, in two releases each, so that a story can pin the older one and drift to the newer one; and any
other release that exists for the version, or may exist for all that the facts know, from the moment it is asked for.
`publish` adds the next release of both families. Image ids, and dates and numbers of releases, are made up and the same
in each run; other families (AL2, Windows) have no images.

Adds to moto: parameters under /aws/, which `PutParameter` refuses.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from karpstack.karpenter.images import verdict
from karpstack.rehearsal.aws.patching import Patches

_log = logging.getLogger(__name__)

#: Kubernetes versions with images, and the kubelet that each image carries.
KUBELETS = {"1.34": "v1.34.6", "1.35": "v1.35.4", "1.36": "v1.36.3"}

_EKS_OWNER = "602401143452"
_BOTTLEROCKET_OWNER = "092701018921"
#: Family, as an alias names it -> architecture and variant of its images.
_VARIANTS = {
    "al2023": (
        ("x86_64", "standard"),
        ("x86_64", "nvidia"),
        ("x86_64", "neuron"),
        ("arm64", "standard"),
        ("arm64", "nvidia"),
    ),
    "bottlerocket": (("x86_64", ""), ("arm64", ""), ("x86_64", "-nvidia"), ("arm64", "-nvidia")),
}
#: The last release is the one that `latest` names, until another one is published.
_RELEASES = {
    "al2023": (("v20260703", datetime(2026, 7, 3, tzinfo=UTC)), ("v20260807", datetime(2026, 8, 7, tzinfo=UTC))),
    "bottlerocket": (("1.61.0", datetime(2026, 7, 9, tzinfo=UTC)), ("1.62.0", datetime(2026, 8, 12, tzinfo=UTC))),
}
_BETWEEN_RELEASES = timedelta(days=7)
#: The parameter that names the release, by the folder of the one that is recommended.
_NAMES_OF_RELEASE = {"recommended": "release_version", "latest": "image_version"}


# How Karpenter asks for a release that an alias pins.
_PINNED = {
    "al2023": r"/aws/service/eks/optimized-ami/(?P<version>1\.\d+)/amazon-linux-2023/(?P<architecture>\w+)"
    r"/(?P<variant>\w+)"
    r"/amazon-eks-node-al2023-(?P=architecture)-(?P=variant)-(?P=version)-(?P<release>v\d{8})/image_id",
    "bottlerocket": r"/aws/service/bottlerocket/aws-k8s-(?P<version>1\.\d+)(?P<variant>-nvidia|)"
    r"/(?P<architecture>\w+)/(?P<release>\d+\.\d+\.\d+)/image_id",
}
# What EKS calls a release of Amazon Linux.
_AL2023_RELEASE = re.compile(r"(?P<kubelet>1\.\d+\.\d+)-(?P<day>\d{8})", re.ASCII)


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
    def latest(self) -> bool:
        """Whether it is what AWS recommends."""
        return any("/recommended/" in name or "/latest/" in name for name in self.parameters)

    @property
    def release(self) -> str:
        """What EKS calls the release: `1.36.3-20260807` of Amazon Linux, `1.62.0-431fe75a` of Bottlerocket."""
        last = self.name.rpartition("-v")[2]
        return last if self.owner == _BOTTLEROCKET_OWNER else f"{self.kubelet_version.removeprefix('v')}-{last}"


def images() -> Iterator[Image]:
    """All images of the simulated account's region."""
    for family, releases in _RELEASES.items():
        for release, created in releases:
            yield from _release(family, release, created, latest=release == releases[-1][0])


def _release(family: str, release: str, created: datetime, *, latest: bool) -> Iterator[Image]:
    """All images of a release."""
    for version, kubelet in KUBELETS.items():
        for architecture, variant in _VARIANTS[family]:
            yield _image(family, version, kubelet, architecture, variant, release, created, latest=latest)


def _image(
    family: str,
    version: str,
    kubelet: str,
    architecture: str,
    variant: str,
    release: str,
    created: datetime,
    *,
    latest: bool = False,
) -> Image:
    if family == "al2023":
        name = f"amazon-eks-node-al2023-{architecture}-{variant}-{version}-{release}"
        folder = f"/aws/service/eks/optimized-ami/{version}/amazon-linux-2023/{architecture}/{variant}"
        owner, last, newest = _EKS_OWNER, name, "recommended"
    else:
        name = f"bottlerocket-aws-k8s-{version}{variant}-{architecture}-v{release}-431fe75a"
        folder = f"/aws/service/bottlerocket/aws-k8s-{version}{variant}/{architecture}"
        owner, last, newest = _BOTTLEROCKET_OWNER, release, "latest"
    names = [f"{folder}/{last}/image_id", *([f"{folder}/{newest}/image_id"] if latest else [])]
    return Image(name, architecture, owner, created, kubelet, tuple(names))


def pinned(parameter: str) -> Image | None:
    """The image of a release by the parameter with its id; None where there is none, as the facts tell."""
    matches = ((family, re.fullmatch(pattern, parameter, re.ASCII)) for family, pattern in _PINNED.items())
    family, found = next(((family, match) for family, match in matches if match), ("", None))
    if found is None:
        return None
    version, architecture, variant, release = found.group("version", "architecture", "variant", "release")
    if version not in KUBELETS or (architecture, variant) not in _VARIANTS[family]:
        return None
    doubt = verdict(f"{family}@{release}", version, date.today())
    if doubt and doubt.certain:
        return None
    created = _day(release[1:]) if family == "al2023" else _bottlerocket_day(release)
    if created is None:
        return None
    if doubt:
        _log.info("%s@%s is played although it %s", family, release, doubt.said)
    return _image(family, version, KUBELETS[version], architecture, variant, release, created)


def of_node_group(architecture: str, version: str, release: str) -> Image | None:
    """The image of a release of Amazon Linux as EKS names it, `1.36.2-20260714`; None where there is none."""
    found = _AL2023_RELEASE.fullmatch(release)
    created = _day(found["day"]) if found else None
    if not found or not created or found["kubelet"].rpartition(".")[0] != version:
        return None
    doubt = verdict(f"al2023@v{found['day']}", version, date.today())
    if doubt and doubt.certain:
        return None
    return _image("al2023", version, f"v{found['kubelet']}", architecture, "standard", f"v{found['day']}", created)


def _day(digits: str) -> datetime | None:
    try:
        return datetime.strptime(digits, "%Y%m%d").replace(tzinfo=UTC)
    except ValueError:
        return None


def _bottlerocket_day(release: str) -> datetime:
    """A day in the order of the releases: the two that are always there tell how far apart they are."""
    (older, first), (newer, second) = ((_order(name), day) for name, day in _RELEASES["bottlerocket"])
    return first + (second - first) * ((_order(release) - older) / (newer - older))


def _order(release: str) -> float:
    major, minor, patch = map(int, release.split("."))
    return major * 1000 + minor + patch / 100


class Images:
    """The images of a simulated account's region, in moto.

    Attributes:
        known: By id.
    """

    def __init__(self, account_id: str, region: str) -> None:
        self._account_id = account_id
        self._region = region
        self.known: dict[str, Image] = {}
        self._published = (_RELEASES["al2023"][-1], _RELEASES["bottlerocket"][-1])

    def publish(self) -> list[str]:
        """Let AWS publish the next release of each family, which `latest` names from now on.

        Returns:
            The releases, as an alias pins them: `al2023@v20260814`, `bottlerocket@1.63.0`.
        """
        (_, last_day), (last, last_bottlerocket_day) = self._published
        day, bottlerocket_day = last_day + _BETWEEN_RELEASES, last_bottlerocket_day + _BETWEEN_RELEASES
        major, minor, _ = map(int, last.split("."))
        al2023, bottlerocket = f"v{day:%Y%m%d}", f"{major}.{minor + 1}.0"
        self._published = ((al2023, day), (bottlerocket, bottlerocket_day))
        self.add(*_release("al2023", al2023, day, latest=True))
        self.add(*_release("bottlerocket", bottlerocket, bottlerocket_day, latest=True))
        return [f"al2023@{al2023}", f"bottlerocket@{bottlerocket}"]

    def patch(self, patches: Patches) -> None:
        """Put in what is always there; the image of another release is made when it is asked for."""
        from moto.ssm.models import SimpleSystemManagerBackend

        def get_parameter(original: Callable[..., Any]) -> Callable[..., Any]:
            def found(backend: Any, name: str) -> Any:
                image = pinned(name)
                if image and image.id not in self.known:
                    self.add(image)
                return original(backend, name)

            return found

        patches.wrap(SimpleSystemManagerBackend, "get_parameter", get_parameter)
        self.add(*images())

    def add(self, *added: Image) -> None:
        """Put images and their parameters into moto; a parameter that another image had is theirs from now on."""
        from moto.ec2.models import ec2_backends
        from moto.ec2.models.amis import Ami
        from moto.ssm.models import Parameter, ssm_backends

        ec2: Any = ec2_backends[self._account_id][self._region]
        ssm: Any = ssm_backends[self._account_id][self._region]
        parameter: Any = Parameter
        taken = {name for image in added for name in image.parameters}
        for image in [image for image in self.known.values() if taken & set(image.parameters)]:
            kept = tuple(name for name in image.parameters if name not in taken)
            self.known[image.id] = replace(image, parameters=kept)
        for image in added:
            self.known[image.id] = image
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
                region_name=f"{self._region}a",
            )
            for name in image.parameters:
                folder, last = name.rsplit("/", 2)[:2]
                texts = {name: image.id}
                if last in _NAMES_OF_RELEASE:
                    texts[f"{folder}/{last}/{_NAMES_OF_RELEASE[last]}"] = image.release
                for key, text in texts.items():
                    ssm._parameters[key] = [
                        parameter(self._account_id, key, text, "String", None, None, None, image.created, 1, "text")
                    ]
