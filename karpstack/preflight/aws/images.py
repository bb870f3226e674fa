"""Whether each alias of a node class stands for an image, asked by the parameters that Karpenter asks for.

The names of the parameters are those of karpenter-provider-aws 1.14 (pkg/providers/amifamily). Aliases of other
families than Amazon Linux 2023 and Bottlerocket are not looked at, nor are terms by id, name or tags.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from ..finding import Finding, finding
from .subject import StackSubject

_CALL: Final = "ssm:GetParameter"
_AL2023: Final = (
    ("x86_64", "standard"),
    ("x86_64", "nvidia"),
    ("x86_64", "neuron"),
    ("arm64", "standard"),
    ("arm64", "nvidia"),
)
_BOTTLEROCKET: Final = (("x86_64", ""), ("arm64", ""), ("x86_64", "-nvidia"), ("arm64", "-nvidia"))


def _al2023(kubernetes: str, version: str) -> Iterator[str]:
    for architecture, variant in _AL2023:
        image = f"amazon-eks-node-al2023-{architecture}-{variant}-{kubernetes}-{version}"
        folder = f"/aws/service/eks/optimized-ami/{kubernetes}/amazon-linux-2023/{architecture}/{variant}"
        yield f"{folder}/{'recommended' if version == 'latest' else image}/image_id"


def _bottlerocket(kubernetes: str, version: str) -> Iterator[str]:
    release = version if version == "latest" else version.removeprefix("v")
    for architecture, variant in _BOTTLEROCKET:
        yield f"/aws/service/bottlerocket/aws-k8s-{kubernetes}{variant}/{architecture}/{release}/image_id"


_FAMILIES: Final[Mapping[str, Callable[[str, str], Iterator[str]]]] = {
    "al2023": _al2023,
    "bottlerocket": _bottlerocket,
}


def images(subject: StackSubject) -> Iterator[Finding]:
    """Aliases of which Karpenter would find no image."""
    kubernetes = subject.version
    for name, spec in subject.settings.node_classes.items():
        for term in spec.get("amiSelectorTerms") or ():
            alias = str(term.get("alias") or "")
            family, _, version = alias.partition("@")
            if family not in _FAMILIES:
                continue
            asked = list(_FAMILIES[family](kubernetes, version))
            if not any(subject.aws.find("ssm", "GetParameter", ("ParameterNotFound",), Name=each) for each in asked):
                yield finding(
                    "image-alias-not-published",
                    _CALL,
                    name=name,
                    alias=alias,
                    kubernetes=kubernetes,
                    family=family,
                    asked=asked[0],
                )
