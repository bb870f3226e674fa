"""What whoever deploys one AKS stack must be given: a role with its actions, where, and under which condition."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from karpstack.components.documents.roles import Role
from karpstack.components.settings import AksSettings, ExistingAksSettings
from karpstack.components.settings.aks import AksStackSettings

from .deployer import (
    Grant,
    custom_role,
    grant_for,
)
from .existing_cluster import identifier
from .rights import making, needed, reading, reads_routes
from .scopes import subscription_of, within

#: Of the language of conditions.
CONDITION_VERSION: Final = "2.0"
_CLUSTER_ADMIN: Final = "Azure Kubernetes Service RBAC Cluster Admin"
_ROLE_ID: Final = "[Microsoft.Authorization/roleAssignments:RoleDefinitionId] ForAnyOfAnyValues:GuidEquals"
_CONDITION: Final = (
    "((!(ActionMatches{{'Microsoft.Authorization/roleAssignments/write'}})) OR "
    f"(@Request{_ROLE_ID} {{{{{{roles}}}}}})) AND "
    "((!(ActionMatches{{'Microsoft.Authorization/roleAssignments/delete'}})) OR "
    f"(@Resource{_ROLE_ID} {{{{{{roles}}}}}}))"
)


@dataclass(frozen=True)
class Assignment:
    """A role for whoever deploys.

    Attributes:
        role: Its name.
        scope: Where.
        condition: Which roles may be given with it, in Azure's language of conditions; empty where it gives none.
    """

    role: str
    scope: str
    condition: str = ""

    @property
    def command(self) -> str:
        """What assigns it; `DEPLOYER` stands for the object id of who gets it."""
        given = f'az role assignment create --assignee-object-id DEPLOYER --role "{self.role}" --scope {self.scope}'
        # Within double quotes an interactive bash would take its `!` for a command of long ago.
        with_condition = f" --condition-version {CONDITION_VERSION} --condition {shlex.quote(self.condition)}"
        return given + (with_condition if self.condition else "")


def definition(settings: AksStackSettings) -> dict[str, Any]:
    """The custom role, as `az role definition create` takes it."""
    what = f"Makes, changes and removes the AKS environment {settings.name}."
    return custom_role(_name(settings), what, _grants(settings), _scopes(settings))


def assignments(settings: AksStackSettings) -> list[Assignment]:
    """That role, on the subscription and on what is named in another one; and what has to be there already."""
    given = ", ".join(each.value for each in _given(settings))
    condition = _CONDITION.format(roles=given) if given else ""
    found = [Assignment(_name(settings), scope, condition) for scope in _places(settings)]
    if isinstance(settings, ExistingAksSettings):
        if not settings.cluster.local_accounts:
            found.append(Assignment(_CLUSTER_ADMIN, identifier(settings)))
    elif (
        isinstance(settings, AksSettings)
        and settings.cluster.deployer_role == "existing"
        and not settings.cluster.local_accounts
    ):
        found.append(Assignment(_CLUSTER_ADMIN, _places(settings)[0]))
    return found


def _name(settings: AksStackSettings) -> str:
    return f"{settings.name} deployer"


def _grants(settings: AksStackSettings) -> Iterable[Grant]:
    if isinstance(settings, ExistingAksSettings):
        yield from reading(settings)
        yield grant_for("seeing")
        if settings.mode == "self-hosted":
            yield from making(settings)
            yield grant_for("assigning")
            yield grant_for("registering")
    elif isinstance(settings, AksSettings):
        yield from _grants_of_own(settings)
    yield grant_for("looking")


def _grants_of_own(settings: AksSettings) -> Iterable[Grant]:
    yield from needed(settings)
    if settings.network.subnet_id:
        yield grant_for("joining")
        yield grant_for("assigning")
    if reads_routes(settings):
        yield grant_for("looking_out")
    if settings.cluster.own_dns_zone:
        yield grant_for("finding")
    if settings.cluster.log_workspace_id:
        yield grant_for("logging")
        if settings.addons.container_insights:
            yield grant_for("observing")
    yield grant_for("registering")


def _given(settings: AksStackSettings) -> list[Role]:
    """The roles that the stack gives: its cluster's identity, its controller's, and who deploys."""
    of_controller = [Role.VIRTUAL_MACHINE_CONTRIBUTOR, Role.MANAGED_IDENTITY_OPERATOR]
    if not isinstance(settings, AksSettings):
        return [Role.NETWORK_CONTRIBUTOR, *of_controller] if settings.karpenter is not None else []
    found = [Role.NETWORK_CONTRIBUTOR]
    if settings.cluster.own_dns_zone:
        found.append(Role.PRIVATE_DNS_ZONE_CONTRIBUTOR)
    if settings.addons.registry_ids:
        found.append(Role.ACR_PULL)
    if settings.addons.vault_ids:
        found.append(Role.KEY_VAULT_SECRETS_USER)
    if settings.karpenter is not None:
        found += of_controller
    if settings.cluster.deployer_role != "existing" and not settings.cluster.local_accounts:
        found.append(Role.AKS_RBAC_CLUSTER_ADMIN)
    return found


def _places(settings: AksStackSettings) -> list[str]:
    """The stack's subscription, in which existing subnets lie too, and what is named in another one, by itself."""
    own = f"/subscriptions/{settings.subscription_id}"
    others = _named(settings) if isinstance(settings, AksSettings) else ()
    return [own, *(one for one in others if one and not within(one, own))]


def _named(settings: AksSettings) -> tuple[str | None, ...]:
    addons = settings.addons
    return (
        settings.cluster.log_workspace_id,
        settings.cluster.own_dns_zone,
        addons.metrics_workspace_id,
        *addons.registry_ids,
        *addons.vault_ids,
    )


def _scopes(settings: AksStackSettings) -> list[str]:
    """Subscriptions: a custom role can be assigned in those that it names."""
    return list(dict.fromkeys(map(subscription_of, _places(settings))))
