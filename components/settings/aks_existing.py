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
from ..problems import Reason, refuse
from .aks import WRITE_SUBNET_ID, AksStackSettings, ClusterSettings, NetworkSettings, is_subnet_id
from .sections import Section

_OWNERS: Final = Reason(
    "is about a cluster that the stack makes, and here karpstack:cluster.existing names one that is there, of which "
    "nothing is changed",
    "remove it; whoever owns the cluster says it there",
)
#: AKS's patterns of names.
_CLUSTER_NAME: Final = r"^[A-Za-z0-9]([-A-Za-z0-9_]{0,61}[A-Za-z0-9])?$"
_GROUP_NAME: Final = r"^[-\w.()]{0,89}[-\w()]$"


def _of_the_owner(section: type[Section], *others: str) -> dict[str, Reason]:
    """The keys of a section for a cluster that the stack makes, but for `others`, which are settings here too."""
    known = {*(to_camel(name).lower() for name in section.model_fields), *section.REFUSED}
    return dict.fromkeys(known - {to_camel(name).lower() for name in others}, _OWNERS)


class ExistingClusterSettings(Section):
    """karpstack:cluster."""

    REFUSED: ClassVar[Mapping[str, Reason]] = _of_the_owner(ClusterSettings, "local_accounts", "kubelogin")

    existing: Annotated[str, StringConstraints(pattern=_CLUSTER_NAME)] = Field(
        description="name of an AKS cluster that is there, as `az aks list --output table` prints it"
    )
    resource_group: Annotated[str, StringConstraints(pattern=_GROUP_NAME)] = Field(
        description="its resource group, not that of its nodes"
    )
    local_accounts: bool = Field(
        False, description="whether the deployer comes in by the administrator's certificate, instead of by Entra"
    )
    kubelogin: KubeloginMode = Field("azurecli", description="azurecli, msi, workloadidentity or spn")


class ExistingNetworkSettings(Section):
    """karpstack:network, in mode self-hosted."""

    REFUSED: ClassVar[Mapping[str, Reason]] = _of_the_owner(NetworkSettings, "subnet_id")

    subnet_id: str | None = Field(
        None, description="resource ID of the subnet in which Karpenter's nodes live; the system pool's if not set"
    )

    @field_validator("subnet_id")
    @classmethod
    def _resource_id(cls, subnet_id: str | None) -> str | None:
        if subnet_id is not None and not is_subnet_id(subnet_id):
            refuse("is no resource ID of a subnet: Karpenter's controller stops at start-up", WRITE_SUBNET_ID)
        return subnet_id


class ExistingAksSettings(AksStackSettings):
    """The whole configuration, and the arguments of `aks.ExistingEnvironment`."""

    REFUSED: ClassVar[Mapping[str, Reason]] = {
        "systemnodes": Reason(
            "is about a pool that the stack makes; on a cluster that is there, what Karpenter needs runs on the pools "
            "that it has",
            "remove it",
        ),
        "addons": Reason(
            "is about what a cluster of the stack's own runs beside Karpenter; here it is its owner's",
            "remove it; its owner says it: az aks update --attach-acr, az aks enable-addons",
        ),
        "nodeprovisioning": Reason(
            "is said in the cluster's own profile, which the stack reads and does not change",
            "remove it; its owner says it: az aks update --node-provisioning-mode, --node-provisioning-default-pools",
        ),
        "cilium": Reason(
            "is AKS's to run: a second one over a network that works takes pods off it, and AKS changes a cluster's "
            "dataplane itself",
            "remove it; its owner says it: az aks update --network-dataplane cilium",
        ),
        "proxy": Reason(
            "is said in the cluster's own profile, from which AKS hands it to nodes and pods; the stack does not "
            "change it",
            "remove it; its owner says it: az aks update --http-proxy-config",
        ),
        "trustedcertificates": Reason(
            "are said in the cluster's own profile, from which AKS hands them to nodes; the stack does not change it",
            "remove them; its owner says them: az aks update --custom-ca-trust-certificates",
        ),
    }

    cluster: ExistingClusterSettings = Field(description="the cluster that is there")
    network: ExistingNetworkSettings = Field(ExistingNetworkSettings(), description="where Karpenter's nodes live")
