"""Which changes of an AKS cluster's node provisioning profile leave nodes behind, or take them away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Profile = Mapping[str, Any]

#: NodePools, and AKSNodeClasses of the same names, that AKS brings with defaultNodePools Auto.
BROUGHT_BY_AKS: Final = ("default", "system-surge")


def stranding(old: Profile, new: Profile) -> str:
    """What happens to nodes when a cluster's profile changes; empty when nothing does.

    Args:
        old: `nodeProvisioningProfile` as it is: `mode` Auto or Manual, `defaultNodePools` Auto or None. A key that
            is missing means AKS's default.
        new: The same as it shall be.
    """
    if _mode(old) != "Auto":
        if _mode(new) != "Auto":
            return ""
        return (
            "mode Manual -> Auto: AKS's Karpenter would work beside the stack's own until that is deleted, and "
            "with its chart go the CRDs, which takes AKS's NodePools and all their nodes; first remove the "
            "NodePools from karpstack:nodePools in an update of its own, or make another stack and move over"
        )
    if _mode(new) != "Auto":
        return (
            "mode Auto -> Manual: AKS refuses while nodes of node auto provisioning exist, and what is left of "
            "them nobody scales, replaces or removes any more; first set limits.cpu to 0 in every NodePool and "
            "let its nodes go"
        )
    if _pools(old) == "Auto" and _pools(new) != "Auto":
        return (
            "defaultNodePools Auto -> None: the NodePools default and system-surge may be deleted, and their "
            "nodes drained with them; first have another NodePool that takes what runs there"
        )
    return ""


def _mode(profile: Profile) -> Any:
    return profile.get("mode") or "Manual"


def _pools(profile: Profile) -> Any:
    return profile.get("defaultNodePools") or "Auto"
