"""Registries, vaults and workspaces, which are somebody else's: asked about themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..finding import Finding
from .api_versions import LOG_WORKSPACES, METRIC_WORKSPACES, REGISTRIES, VAULTS
from .subject import Subject

READS_REGISTRIES: Final = "Microsoft.ContainerRegistry/registries/read"
READS_VAULTS: Final = "Microsoft.KeyVault/vaults/read"
READS_LOGS: Final = "Microsoft.OperationalInsights/workspaces/read"
READS_METRICS: Final = "Microsoft.Monitor/accounts/read"
_NO_WORKSPACE: Final = "Azure refuses what would send there, in the middle of pulumi up: ResourceNotFound, BadRequest"
_NO_ROLE: Final = "Azure refuses the role on it after the cluster is made: ResourceNotFound"


def registries(subject: Subject) -> Iterator[Finding]:
    """Registries that are not there, or that do not go by the role AcrPull."""
    for registry in subject.settings.addons.registry_ids:
        found = subject.azure.find(READS_REGISTRIES, registry, REGISTRIES)
        if found is None:
            yield _missing("registry", "addons.registryIds", registry, _NO_ROLE, READS_REGISTRIES)
        # https://learn.microsoft.com/azure/container-registry/container-registry-rbac-abac-repository-permissions
        elif (found.get("properties") or {}).get("roleAssignmentMode") == "AbacRepositoryPermissions":
            yield Finding(
                "error",
                f"the registry {registry} gives rights by repository (roleAssignmentMode AbacRepositoryPermissions)",
                "it does not honour AcrPull, which the stack gives: no node pulls from it, and pods wait with "
                "ImagePullBackOff",
                "take it out of karpstack:addons.registryIds and assign Container Registry Repository Reader on it to "
                f"the kubelet's identity (az aks show --name {subject.settings.name} --resource-group "
                f"{subject.names.resource_group} --query identityProfile.kubeletidentity.objectId)",
                READS_REGISTRIES,
            )


def vaults(subject: Subject) -> Iterator[Finding]:
    """Vaults that are not there, of another tenant, or that do not go by roles."""
    tenant = str(subject.told.get("tenantId", ""))
    for vault in subject.settings.addons.vault_ids:
        found = subject.azure.find(READS_VAULTS, vault, VAULTS)
        if found is None:
            yield _missing("vault", "addons.vaultIds", vault, _NO_ROLE, READS_VAULTS)
            continue
        properties = found.get("properties") or {}
        its_tenant = str(properties.get("tenantId", ""))
        if tenant and its_tenant.lower() != tenant.lower():
            yield Finding(
                "error",
                f"the vault {vault} takes tokens of the tenant {its_tenant}, and this subscription is of {tenant}",
                "the add-on's identity is nobody there: each mount of a secret fails (AKV10032: Invalid issuer)",
                "take a vault of the same tenant; or, after a subscription was moved: az keyvault update "
                "--set properties.tenantId",
                READS_VAULTS,
            )
        if not properties.get("enableRbacAuthorization"):
            yield Finding(
                "error",
                f"the vault {vault} goes by access policies, not by roles (enableRbacAuthorization is not true)",
                "the role that the stack gives means nothing there: each mount of a secret fails with Forbidden",
                f"az keyvault update --ids {vault} --enable-rbac-authorization true, once those of its policies have "
                "roles; or take it out of karpstack:addons.vaultIds and give the add-on's identity a policy",
                READS_VAULTS,
            )


def workspaces(subject: Subject) -> Iterator[Finding]:
    """Workspaces that are not there, or lie elsewhere than the rules are to, that collect for them."""
    cluster, addons = subject.settings.cluster, subject.settings.addons
    for key, location_key, identifier, location, collects, call, version in (
        (
            "cluster.logWorkspaceId",
            "addons.logWorkspaceLocation",
            cluster.log_workspace_id,
            addons.log_workspace_location,
            addons.container_insights,
            READS_LOGS,
            LOG_WORKSPACES,
        ),
        (
            "addons.metricsWorkspaceId",
            "addons.metricsWorkspaceLocation",
            addons.metrics_workspace_id,
            addons.metrics_workspace_location,
            addons.prometheus,
            READS_METRICS,
            METRIC_WORKSPACES,
        ),
    ):
        if identifier is None:
            continue
        found = subject.azure.find(call, identifier, version)
        if found is None:
            yield _missing("workspace", key, identifier, _NO_WORKSPACE, call)
            continue
        its_location = str(found.get("location", "")).replace(" ", "").lower()
        if collects and its_location != (location or subject.region):
            yield Finding(
                "error",
                f"the workspace {identifier} lies in {its_location}, and its data collection rule would lie in "
                f"{location or subject.region}",
                "Azure refuses the rule after the cluster is made: InvalidPayload",
                f"set karpstack:{location_key} to {its_location}",
                call,
            )


def _missing(what: str, key: str, identifier: str, harm: str, call: str) -> Finding:
    return Finding(
        "error",
        f"the {what} {identifier} is not there",
        harm,
        f"correct karpstack:{key}: az resource show --ids {identifier}",
        call,
    )
