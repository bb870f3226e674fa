"""AKS's add-ons as ARM has them: `addonProfiles` of a managed cluster."""

from __future__ import annotations

from typing import Any, Final

#: AKS's name of the Key Vault provider for the Secrets Store CSI driver
#: (https://learn.microsoft.com/azure/aks/csi-secrets-store-driver).
SECRETS_PROVIDER: Final = "azureKeyvaultSecretsProvider"


def secrets_provider(*, rotation: str) -> dict[str, Any]:
    """Profile of that add-on.

    Args:
        rotation: How often it looks for changed secrets, like `2m`; `off` for never. AKS's own default is never.
    """
    if rotation == "off":
        return {"enabled": True, "config": {"enableSecretRotation": "false"}}
    return {"enabled": True, "config": {"enableSecretRotation": "true", "rotationPollInterval": rotation}}


#: Profile of an add-on that a cluster has not.
OFF: Final[dict[str, Any]] = {"enabled": False}
