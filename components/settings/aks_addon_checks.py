"""Rules about what runs beside Karpenter on AKS."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..problems import Problem, key_of, shown

if TYPE_CHECKING:
    from .aks_addons import AddonsSettings


def rights_of_nobody(addons: AddonsSettings) -> Iterator[Problem]:
    """Vaults for an add-on that the stack does not have: its identity comes and goes with it."""
    if addons.vault_ids and not addons.secrets_provider:
        yield Problem(
            key_of("addons", "vaultIds"),
            shown(addons.vault_ids),
            "is for the identity of an add-on that this stack does not have: nobody would get a role",
            "set karpstack:addons.secretsProvider to true, or remove it",
        )
