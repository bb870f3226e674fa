"""The configuration of an environment on an AKS cluster that is there: karpstack:cluster.existing names it.

It says what Karpenter needs. What it would say of a control plane, a network, system nodes or node auto provisioning is
their owner's, and refused with that reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final

from pydantic import Field, StringConstraints, field_validator
from pydantic.alias_generators import to_camel

from ..documents.kubeconfig import KubeloginMode
from ..problems import refuse
from .aks import AksStackSettings, ClusterSettings, NetworkSettings, is_subnet_id
from .sections import Section

_OWNERS: Final = "setting-of-own-cluster"
#: AKS's patterns of names.
_CLUSTER_NAME: Final = r"^[A-Za-z0-9]([-A-Za-z0-9_]{0,61}[A-Za-z0-9])?$"
_GROUP_NAME: Final = r"^[-\w.()]{0,89}[-\w()]$"


def _of_the_owner(section: type[Section], *others: str) -> dict[str, str]:
    """The keys of a section for a cluster that the stack makes, but for `others`, which are settings here too."""
    known = {*(to_camel(name).lower() for name in section.model_fields), *section.REFUSED}
    return dict.fromkeys(known - {to_camel(name).lower() for name in others}, _OWNERS)


class ExistingClusterSettings(Section):
    """karpstack:cluster."""

    REFUSED: ClassVar[Mapping[str, str]] = _of_the_owner(ClusterSettings, "local_accounts", "kubelogin")

    existing: Annotated[str, StringConstraints(pattern=_CLUSTER_NAME)] = Field(
        description="name of an existing AKS cluster, as `az aks list --output table` prints it"
    )
    resource_group: Annotated[str, StringConstraints(pattern=_GROUP_NAME)] = Field(
        description="its resource group, not that of its nodes"
    )
    local_accounts: bool = Field(
        False, description="whether the deployer uses the administrator's certificate instead of Entra"
    )
    kubelogin: KubeloginMode = Field(
        "azurecli", description="how kubelogin signs in: azurecli, msi, workloadidentity or spn"
    )


class ExistingNetworkSettings(Section):
    """karpstack:network, in mode self-hosted."""

    REFUSED: ClassVar[Mapping[str, str]] = _of_the_owner(NetworkSettings, "subnet_id")

    subnet_id: str | None = Field(
        None, description="resource ID of the subnet for Karpenter's nodes; the system pool's if not set"
    )

    @field_validator("subnet_id")
    @classmethod
    def _resource_id(cls, subnet_id: str | None) -> str | None:
        if subnet_id is not None and not is_subnet_id(subnet_id):
            refuse("subnet-id-invalid")
        return subnet_id


class ExistingAksSettings(AksStackSettings):
    """The whole configuration, and the arguments of `aks.ExistingEnvironment`."""

    REFUSED: ClassVar[Mapping[str, str]] = {
        "systemnodes": "system-pool-of-existing",
        "addons": "addons-of-existing-aks",
        "nodeprovisioning": "node-provisioning-of-existing",
        "cilium": "cilium-of-existing-aks",
        "proxy": "proxy-of-existing",
        "trustedcertificates": "certificates-of-existing",
    }

    cluster: ExistingClusterSettings = Field(description="the existing cluster")
    network: ExistingNetworkSettings = Field(ExistingNetworkSettings(), description="network of Karpenter's nodes")
