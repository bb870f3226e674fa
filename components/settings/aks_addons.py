"""What runs beside Karpenter on AKS: karpstack:addons and karpstack:cilium.

Registries, vaults and given workspaces are somebody else's: a stack gives its identities roles on them, and never
changes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated, ClassVar, Final, Literal

from pydantic import AfterValidator, Field, field_validator

from ..problems import refuse
from .sections import Section

#: By what the resource is called: its type, and what a name of it is like (Azure's naming rules).
_RESOURCES: Final[Mapping[str, tuple[str, str]]] = {
    "container registry": ("Microsoft.ContainerRegistry/registries", r"[A-Za-z0-9]{5,50}"),
    "key vault": ("Microsoft.KeyVault/vaults", r"(?=.{3,24}$)[A-Za-z](-?[A-Za-z0-9])+"),
    "Azure Monitor workspace": ("Microsoft.Monitor/accounts", r"[A-Za-z0-9][-A-Za-z0-9]{2,61}[A-Za-z0-9]"),
}


def resource_type_check(what: str, harm: str) -> Callable[[str], str]:
    """A check that a text is the resource ID of one kind of resource.

    Args:
        what: A key of `_RESOURCES`.
        harm: What would happen with another one.
    """
    kind, name = _RESOURCES[what]
    article = "an" if what[0] in "AEIOU" else "a"
    pattern = re.compile(
        rf"/subscriptions/[^/]+/resourceGroups/[^/]+/providers/{re.escape(kind)}/(?P<name>[^/]+)", re.IGNORECASE
    )

    def check(given: str) -> str:
        match = pattern.fullmatch(given)
        write = f"write /subscriptions/<id>/resourceGroups/<group>/providers/{kind}/<name>"
        if match is None:
            refuse("resource-id-invalid", article=article, what=what, harm=harm, write=write)
        if not re.fullmatch(name, match["name"]):
            refuse("resource-name-invalid", article=article, what=what, name=match["name"], harm=harm, write=write)
        return given

    return check


RegistryId = Annotated[
    str,
    AfterValidator(
        resource_type_check(
            "container registry", "no node could pull from it, and Azure refuses the role after the cluster is created"
        )
    ),
]
VaultId = Annotated[
    str,
    AfterValidator(
        resource_type_check(
            "key vault", "no pod could read its secrets, and Azure refuses the role after the cluster is created"
        )
    ),
]
MetricsWorkspaceId = Annotated[
    str,
    AfterValidator(
        resource_type_check(
            "Azure Monitor workspace", "Azure refuses the data collection rule after the cluster is created"
        )
    ),
]


def _location(location: str) -> str:
    if not re.fullmatch(r"[a-z0-9]+", location):
        refuse("monitor-location-form", short=re.sub("[^a-z0-9]", "", location.lower()) or "westus2")
    return location


Location = Annotated[str, AfterValidator(_location)]


class AddonsSettings(Section):
    """karpstack:addons: what runs beside Karpenter."""

    REFUSED: ClassVar[Mapping[str, str]] = {
        "ebscsi": "ebs-csi-on-aks",
        "metricsserver": "metrics-server-on-aks",
        "loadbalancercontroller": "load-balancer-controller-on-aks",
    }

    registry_ids: list[RegistryId] = Field(
        [], description="resource IDs of container registries from which every node may pull (AcrPull)"
    )
    secrets_provider: bool = Field(
        False, description="whether the Key Vault provider for the Secrets Store CSI driver runs, AKS's add-on"
    )
    vault_ids: list[VaultId] = Field(
        [], description="resource IDs of key vaults whose secrets its identity may read (Key Vault Secrets User)"
    )
    secret_rotation: str = Field(
        "2m", description="how often the add-on checks whether a mounted secret has changed, like 2m or 1h; off: never"
    )

    log_retention_days: int = Field(
        0,
        description="retention in days, 30 to 730, of a Log Analytics workspace that the stack creates if "
        "cluster.logWorkspaceId is not set; 0: the stack creates none",
    )
    container_insights: bool = Field(
        False, description="whether Container insights sends the containers' logs and events to the workspace"
    )
    log_workspace_location: Location | None = Field(
        None, description="location of the workspace in cluster.logWorkspaceId, if it is not the stack's"
    )
    prometheus: bool = Field(False, description="whether Azure's managed Prometheus keeps metrics of nodes and pods")
    metrics_workspace_id: MetricsWorkspaceId | None = Field(
        None,
        description="resource ID of the Azure Monitor workspace for these metrics; without it, the stack creates one",
    )
    metrics_workspace_location: Location | None = Field(
        None, description="location of the workspace in metricsWorkspaceId, if it is not the stack's"
    )

    @field_validator("log_retention_days")
    @classmethod
    def _as_azure_keeps(cls, days: int) -> int:
        if days != 0 and not 30 <= days <= 730:
            refuse("log-retention-invalid")
        return days

    @field_validator("registry_ids", "vault_ids")
    @classmethod
    def _each_once(cls, given: list[str]) -> list[str]:
        seen: set[str] = set()
        for one in given:
            if one.lower() in seen:
                refuse("role-granted-twice", one=one)
            seen.add(one.lower())
        return given

    @field_validator("secret_rotation", mode="before")
    @classmethod
    def _interval(cls, given: object) -> object:
        # YAML reads a plain `off` as false.
        if given is False or given == "off":
            return "off"
        if not isinstance(given, str) or not re.fullmatch(r"([1-9][0-9]*[hms])+", given):
            refuse("interval-invalid")
        return given


class CiliumSettings(Section):
    """karpstack:cilium: what of Azure's Advanced Container Networking Services the cluster has, and a first policy.

    These services are paid for by the node and hour (https://aka.ms/acns-overview).
    """

    REFUSED: ClassVar[Mapping[str, str]] = {
        "chartversion": "cilium-managed-by-aks",
        "install": "cilium-managed-by-aks",
        "encryption": "cilium-encryption-on-aks",
    }

    hubble: bool = Field(
        False, description="Hubble: metrics and flows of all nodes, by Azure's container network observability"
    )
    advanced_policies: Literal["none", "FQDN", "L7"] = Field(
        "none",
        description="whether policies may name DNS names (FQDN), or HTTP and Kafka too (L7), by Azure's container "
        "network security",
    )
    default_deny: bool = Field(
        False, description="true: pods outside kube-system can use only DNS, unless a network policy allows more"
    )
