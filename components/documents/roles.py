"""Azure's built-in roles that the environment assigns, and how an assignment is named."""

from __future__ import annotations

from enum import Enum
from uuid import NAMESPACE_URL, uuid5


class Role(Enum):
    """GUIDs of role definitions; the same in every subscription."""

    NETWORK_CONTRIBUTOR = "4d97b98b-1d4f-4787-a291-c67834d212e7"
    PRIVATE_DNS_ZONE_CONTRIBUTOR = "b12aa53e-6015-4669-85d0-8515ebb3ae7f"
    VIRTUAL_MACHINE_CONTRIBUTOR = "9980e02c-c2be-4d73-94e8-173b1dc7cf3c"
    MANAGED_IDENTITY_OPERATOR = "f1a07417-d97a-45cb-824c-7a7467783830"
    ACR_PULL = "7f951dda-4ed3-4680-a7ca-43fe172d538d"
    KEY_VAULT_SECRETS_USER = "4633458b-17de-408a-b874-0445c86b69e6"
    AKS_RBAC_CLUSTER_ADMIN = "b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b"


def definition_id(subscription_id: str, role: Role) -> str:
    """Resource ID of a role definition, in the form in which Azure gives it back."""
    return f"/subscriptions/{subscription_id}/providers/Microsoft.Authorization/roleDefinitions/{role.value}"


def assignment_name(*, scope: str, principal_id: str, role: Role) -> str:
    """The GUID that names an assignment.

    The same three make the same name, so that nothing is assigned twice; another principal makes another name, so
    that an identity can be replaced without the old assignment in its way.

    Args:
        scope: Resource ID of what the role is for; Azure does not tell upper from lower case in it.
        principal_id: Object ID of who gets it.
        role: What.
    """
    return str(uuid5(NAMESPACE_URL, f"{scope.lower()}|{principal_id.lower()}|{role.value}"))
