"""Azure's built-in roles that matter here, which roles.yaml lists, and how actions are matched."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml


@dataclass(frozen=True)
class Role:
    """One role definition.

    Attributes:
        id: GUID, the same in every tenant.
        name: As the portal shows it.
        actions: Patterns of control-plane actions, `*` stands for anything.
        not_actions: Taken away from them.
        data_actions: Patterns of data-plane actions (Kubernetes' own API under Azure RBAC).
    """

    id: str
    name: str
    actions: tuple[str, ...] = ()
    not_actions: tuple[str, ...] = ()
    data_actions: tuple[str, ...] = ()

    def allows(self, action: str) -> bool:
        """Whether it grants a control-plane action."""
        return matches(self.actions, self.not_actions, action)

    def allows_data(self, action: str) -> bool:
        """Whether it grants a data-plane action."""
        return _any(self.data_actions, action)


#: What `<common>` in the table stands for.
_COMMON = (
    "Microsoft.Authorization/*/read",
    "Microsoft.Insights/alertRules/*",
    "Microsoft.Resources/deployments/*",
    "Microsoft.Resources/subscriptions/resourceGroups/read",
    "Microsoft.Support/*",
)


def _roles() -> Iterator[tuple[str, Role]]:
    for key, row in yaml.safe_load(Path(__file__).with_name("roles.yaml").read_text()).items():
        actions = [one for action in row.pop("actions", ()) for one in (_COMMON if action == "<common>" else [action])]
        more = {name: tuple(row.get(name, ())) for name in ("not_actions", "data_actions")}
        yield key, Role(row["id"], row["name"], tuple(actions), **more)


_BY_KEY = dict(_roles())
OWNER, CONTRIBUTOR, READER = (_BY_KEY[key] for key in ("OWNER", "CONTRIBUTOR", "READER"))
USER_ACCESS_ADMINISTRATOR = _BY_KEY["USER_ACCESS_ADMINISTRATOR"]
RBAC_ADMINISTRATOR = _BY_KEY["RBAC_ADMINISTRATOR"]
VIRTUAL_MACHINE_CONTRIBUTOR = _BY_KEY["VIRTUAL_MACHINE_CONTRIBUTOR"]
NETWORK_CONTRIBUTOR = _BY_KEY["NETWORK_CONTRIBUTOR"]
PRIVATE_DNS_ZONE_CONTRIBUTOR = _BY_KEY["PRIVATE_DNS_ZONE_CONTRIBUTOR"]
MANAGED_IDENTITY_OPERATOR = _BY_KEY["MANAGED_IDENTITY_OPERATOR"]
ACR_PULL, KEY_VAULT_SECRETS_USER = (_BY_KEY[key] for key in ("ACR_PULL", "KEY_VAULT_SECRETS_USER"))
AKS_RBAC_CLUSTER_ADMIN = _BY_KEY["AKS_RBAC_CLUSTER_ADMIN"]

BUILT_IN = {role.id: role for role in _BY_KEY.values()}


def find(definition_id: str) -> Role | None:
    """The role that a role definition id names, whatever its scope; None when it is not built in."""
    return BUILT_IN.get(definition_id.rstrip("/").rsplit("/", 1)[-1].lower())


def matches(actions: Iterable[str], not_actions: Iterable[str], action: str) -> bool:
    """Whether patterns of actions, less others, hold an action."""
    return _any(actions, action) and not _any(not_actions, action)


def _any(patterns: Iterable[str], action: str) -> bool:
    return any(_compiled(pattern).fullmatch(action) for pattern in patterns)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(pattern).replace(r"\*", ".*"), re.IGNORECASE)
