"""Which of AKS's add-ons a cluster has."""

from __future__ import annotations

from typing import Any

import pulumi

from ..documents import aks_addons as documents
from ..settings.aks_addons import AddonsSettings


def profiles(settings: AddonsSettings, log_workspace_id: pulumi.Input[str] | None) -> dict[str, dict[str, Any]]:
    """`addonProfiles` of the cluster, by AKS's names.

    What is off is said too: AKS leaves an add-on that it is not told of as it is.
    """
    return {
        documents.SECRETS_PROVIDER: documents.secrets_provider(rotation=settings.secret_rotation)
        if settings.secrets_provider
        else documents.OFF,
        documents.CONTAINER_INSIGHTS: documents.container_insights(workspace_id=log_workspace_id)
        if settings.container_insights
        else documents.OFF,
    }
