"""Advanced Container Networking Services, as far as ARM sees them. None of it runs: no flow is shown, no name filtered.

What is refused is in the specification (azure-rest-api-specs, containerservice 2025-09-01: its keys and values, and
that security is for the Cilium dataplane); the texts are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rehearsal.azure.arm.errors import ArmError
from rehearsal.azure.arm.kind import at

_KNOWN: Final[Mapping[str, frozenset[str]]] = {
    "networkProfile.advancedNetworking": frozenset({"enabled", "observability", "security"}),
    "networkProfile.advancedNetworking.observability": frozenset({"enabled"}),
    "networkProfile.advancedNetworking.security": frozenset({"enabled", "advancedNetworkPolicies"}),
}
_POLICIES: Final = ("None", "FQDN", "L7")


def check(properties: Mapping[str, Any]) -> None:
    """Refuse what AKS refuses of it."""
    for path, known in _KNOWN.items():
        for key in sorted(set(at(properties, path) or ()) - known):
            raise ArmError(
                "UnmarshalError", f'UnmarshalEntity encountered error: json: unknown field "{key}" of {path}.'
            )
    profile = at(properties, "networkProfile.advancedNetworking") or {}
    policies = at(profile, "security.advancedNetworkPolicies", "None")
    if policies not in _POLICIES:
        raise _refused("advancedNetworkPolicies", f"{policies!r}: it must be one of {', '.join(_POLICIES)}")
    secure = bool(at(profile, "security.enabled"))
    if policies != "None" and not secure:
        raise _refused("advancedNetworkPolicies", f"{policies!r}: security.enabled must be true")
    if not profile.get("enabled") and (secure or at(profile, "observability.enabled")):
        raise _refused("enabled", "it must be true where observability or security is enabled")
    if secure and at(properties, "networkProfile.networkDataplane") != "cilium":
        raise _refused("security.enabled", "it is for networkDataplane cilium only")


def _refused(key: str, why: str) -> ArmError:
    return ArmError(
        "InvalidParameter", f"The value of parameter networkProfile.advancedNetworking.{key} is invalid: {why}."
    )
