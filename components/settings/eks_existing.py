"""The configuration of an environment on an EKS cluster that is there: karpstack:cluster.existing names it.

It says what Karpenter needs. What it would say of a control plane, a VPC or system nodes is their owner's, and refused
with that reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, ClassVar, Final

from pydantic import Field, StringConstraints, ValidationInfo, field_validator
from pydantic.alias_generators import to_camel

from ..problems import refuse
from .eks import (
    CiliumSettings,
    ClusterSettings,
    EksStackSettings,
    NetworkSettings,
    SecurityGroupId,
    SubnetId,
    pod_shares,
)
from .sections import ClusterCidr, Section

_OWNERS: Final = "setting-of-own-cluster"
#: EKS's pattern of names, of which `karpstack:name` takes only some.
_CLUSTER_NAME: Final = r"^[0-9A-Za-z][A-Za-z0-9_-]{0,99}$"


def _of_the_owner(section: type[Section], *others: str) -> dict[str, str]:
    """The keys of a section for a cluster that the stack makes, but for `others`, which are settings here too."""
    return {to_camel(name).lower(): _OWNERS for name in section.model_fields if name not in others}


class ExistingClusterSettings(Section):
    """karpstack:cluster."""

    REFUSED: ClassVar[Mapping[str, str]] = _of_the_owner(ClusterSettings)

    existing: Annotated[str, StringConstraints(pattern=_CLUSTER_NAME)] = Field(
        description="name of an existing EKS cluster, as `aws eks list-clusters` prints it"
    )


class ExistingNetworkSettings(Section):
    """karpstack:network."""

    REFUSED: ClassVar[Mapping[str, str]] = _of_the_owner(
        NetworkSettings, "subnet_ids", "subnet_tags", "node_security_group_ids", "pod_cidr", "pod_cidr_mask_size"
    )

    subnet_ids: list[SubnetId] = Field(
        [], description="IDs of the subnets for Karpenter's nodes; those of the managed node groups if empty"
    )
    subnet_tags: dict[str, str] = Field({}, description="tags of these subnets, instead of their IDs")
    node_security_group_ids: list[SecurityGroupId] = Field(
        [], description="IDs of security groups for Karpenter's nodes, in addition to the cluster's own"
    )
    pod_cidr: ClusterCidr | None = Field(None, description="range of the overlay network, if cilium.install is true")
    pod_cidr_mask_size: int = Field(24, description="prefix length of each node's share of podCidr")

    @field_validator("subnet_ids", "node_security_group_ids")
    @classmethod
    def _each_once(cls, ids: list[str]) -> list[str]:
        if repeated := sorted(one for one, times in Counter(ids).items() if times > 1):
            refuse("existing-names-twice", repeated=repeated)
        return ids

    @field_validator("pod_cidr_mask_size")
    @classmethod
    def _shares_fit(cls, mask: int, info: ValidationInfo) -> int:
        return pod_shares(mask, info.data.get("pod_cidr"))


class ExistingCiliumSettings(CiliumSettings):
    """karpstack:cilium."""

    install: bool = Field(False, description="whether the stack installs Cilium, in a cluster that has no network yet")


class ExistingEksSettings(EksStackSettings):
    """The whole configuration, and the arguments of `eks.Environment`, on a cluster that is there."""

    REFUSED: ClassVar[Mapping[str, str]] = {
        **EksStackSettings.REFUSED,
        "systemnodes": "system-nodes-of-existing-eks",
        "addons": "addons-of-existing-eks",
    }

    cluster: ExistingClusterSettings = Field(description="the existing cluster")
    network: ExistingNetworkSettings = Field(ExistingNetworkSettings(), description="network of Karpenter's nodes")
    cilium: ExistingCiliumSettings = Field(
        ExistingCiliumSettings(), description="Cilium, for an existing cluster without a network plugin"
    )
