"""Registries, vaults and workspaces, which are somebody else's: asked about themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..finding import Finding, finding
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
            yield finding(
                "registry-gives-rights-by-repository",
                READS_REGISTRIES,
                registry=registry,
                name=subject.settings.name,
                resource_group=subject.names.resource_group,
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
            yield finding("vault-of-another-tenant", READS_VAULTS, vault=vault, its_tenant=its_tenant, tenant=tenant)
        if not properties.get("enableRbacAuthorization"):
            yield finding("vault-has-access-policies", READS_VAULTS, vault=vault)


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
            yield finding(
                "workspace-in-another-location",
                call,
                identifier=identifier,
                its_location=its_location,
                region=location or subject.region,
                location_key=location_key,
            )


def _missing(what: str, key: str, identifier: str, harm: str, call: str) -> Finding:
    return finding("addon-target-missing", call, what=what, identifier=identifier, harm=harm, key=key)
