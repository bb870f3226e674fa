"""Refuses updates of the cluster that strand nodes or that AKS does not take, before Azure is asked.

What the cluster is like now is known to the engine only, so these are hooks of the update and no checks of the
configuration. They run at preview too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pulumi

from ..documents.provisioning import stranding

#: What AKS fixes when it makes a pool: a change is a 400, PropertyChangeNotAllowed. By the keys that it comes from.
_FIXED: Final[Mapping[str, str]] = {
    "vmSize": "systemNodes.vmSize",
    "availabilityZones": "systemNodes.zones",
    "osDiskSizeGB": "systemNodes.diskSize",
    "vnetSubnetID": "network.subnetId",
}


#: The same of the cluster. What replaces it is not here: these hooks run for updates in place only
#: (`settings.aks_identity`).
_FIXED_OF_THE_CLUSTER: Final = {
    ("apiServerAccessProfile", "subnetId"): (
        "cluster.apiServerSubnetId",
        None,
        "AKS never takes the API server out again, and puts it in only when the cluster is stopped and started",
    ),
    ("apiServerAccessProfile", "privateDNSZone"): (
        "cluster.privateDnsZone",
        "system",
        "AKS changes it to none alone",
    ),
}


def refuse_stranding(args: pulumi.ResourceHookArgs) -> None:
    """Hook for updates of a managed cluster.

    Raises:
        RunError: The update takes provisioning away from nodes that may exist.
    """
    harm = stranding(
        (args.old_inputs or {}).get("nodeProvisioningProfile") or {},
        (args.new_inputs or {}).get("nodeProvisioningProfile") or {},
    )
    if harm:
        raise pulumi.RunError(
            f"the AKS cluster {args.name} stays as it is; its node provisioning would change: {harm}. When that is "
            "done, set karpstack:nodeProvisioning.allowStrandedNodes to true for one update"
        )


def refuse_fixed(args: pulumi.ResourceHookArgs) -> None:
    """Hook for updates of a managed cluster.

    Raises:
        RunError: The update changes what AKS does not change of a pool.
    """
    before, after = _pools(args.old_inputs), _pools(args.new_inputs)
    changes = [
        f"karpstack:{setting} {_shown(before[name][key])} -> {_shown(pool[key])}"
        for name, pool in after.items()
        if name in before
        for key, setting in _FIXED.items()
        if key in before[name] and key in pool and before[name][key] != pool[key]
    ]
    if changes:
        raise pulumi.RunError(
            f"the AKS cluster {args.name} stays as it is; AKS changes nothing of this in a pool that exists "
            f"(PropertyChangeNotAllowed), and the cluster has no other system pool: {', '.join(changes)}. Take it "
            "back, or make another stack and move over"
        )


def refuse_other_network(args: pulumi.ResourceHookArgs) -> None:
    """Hook for updates of a managed cluster.

    Raises:
        RunError: The update changes what AKS fixes of a cluster's network.
    """
    changes = []
    for (section, key), (setting, default, why) in _FIXED_OF_THE_CLUSTER.items():
        before, after = (
            (inputs or {}).get(section, {}).get(key) or default for inputs in (args.old_inputs, args.new_inputs)
        )
        if before != after and (key, after) != ("privateDNSZone", "none"):
            changes.append(f"karpstack:{setting} {before or '(not set)'} -> {after or '(not set)'} ({why})")
    changes += _reach(
        *((inputs or {}).get("apiServerAccessProfile") or {} for inputs in (args.old_inputs, args.new_inputs))
    )
    if changes:
        raise pulumi.RunError(
            f"the AKS cluster {args.name} stays as it is; its network would change: {', '.join(changes)}. Take it "
            "back, or make another stack and move over"
        )


def _reach(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the change between a private and a public API server, which AKS makes with VNet integration only.

    https://learn.microsoft.com/azure/aks/api-server-vnet-integration
    """
    was, is_now = (bool(profile.get("enablePrivateCluster")) for profile in (before, after))
    if was == is_now or (before.get("enableVnetIntegration") and after.get("enableVnetIntegration")):
        return []
    kinds = {True: "[] (a private cluster)", False: "a list (a public endpoint)"}
    return [
        f"karpstack:cluster.publicAccessCidrs {kinds[was]} -> {kinds[is_now]} (AKS changes it only in a cluster with "
        "cluster.apiServerSubnetId)"
    ]


def refuse_version(args: pulumi.ResourceHookArgs) -> None:
    """Hook for updates of a managed cluster.

    Source: https://learn.microsoft.com/azure/aks/upgrade-aks-cluster.

    Raises:
        RunError: The update skips a minor version of Kubernetes, or goes back.
    """
    before, after = (_minor((inputs or {}).get("kubernetesVersion")) for inputs in (args.old_inputs, args.new_inputs))
    if before and after and after - before not in (0, 1):
        what = "goes back" if after < before else "skips a minor version"
        raise pulumi.RunError(
            f"karpstack:cluster.version 1.{before} -> 1.{after} {what}: AKS refuses the update of {args.name} "
            "(OperationNotAllowed), when other changes are made already. "
            + (f"Set it to 1.{before}" if after < before else f"Set it to 1.{before + 1} first, and then go on")
        )


def refuse_leaving_out(args: pulumi.ResourceHookArgs) -> None:
    """Hook for updates of a managed cluster.

    Raises:
        RunError: The update leaves out the proxy, or the key of certificates. What AKS makes of that is not documented.
    """
    before, after = args.old_inputs or {}, args.new_inputs or {}
    if before.get("httpProxyConfig") and not after.get("httpProxyConfig"):
        raise pulumi.RunError(
            f"the AKS cluster {args.name} stays as it is; karpstack:proxy is gone, and in AKS's API of the pinned "
            "version nothing takes a proxy away (httpProxyConfig.enabled came later): nodes and pods may go on "
            "asking it, unseen. Take the change back; beside the stack, `az aks update --disable-http-proxy` switches "
            "it off"
        )
    if _certificates(before) and _certificates(after) is None:
        raise pulumi.RunError(
            f"the AKS cluster {args.name} stays as it is; karpstack:trustedCertificates is gone, and what AKS makes of "
            "that is not documented: nodes may go on trusting them. Write `karpstack:trustedCertificates: []` to take "
            "all of them away"
        )


def warn_of_new_nodes(args: pulumi.ResourceHookArgs) -> None:
    """Hook for updates of a managed cluster: says what another proxy, or other certificates, make of its nodes.

    Sources: learn.microsoft.com/azure/aks/http-proxy#update-an-http-proxy-configuration, and of certificates
    custom-certificate-authority and node-disruption-policy there.
    """
    before, after = args.old_inputs or {}, args.new_inputs or {}
    changed = [
        setting
        for setting, old, new in (
            ("proxy", before.get("httpProxyConfig"), after.get("httpProxyConfig")),
            ("trustedCertificates", _certificates(before) or None, _certificates(after) or None),
        )
        if old != new
    ]
    if changed:
        pulumi.log.warn(
            f"{' and '.join(f'karpstack:{one}' for one in changed)} will be another: AKS drains and reimages every "
            "node of the cluster's pools, and pods get new variables when they are made again. What it makes of nodes "
            "of node auto provisioning Microsoft does not say\n"
            "    fix: see that PodDisruptionBudgets are there and that a new proxy answers already; afterwards delete "
            "NodeClaims that are older than the update"
        )


def guards(name: str, *, allow_stranded_nodes: bool) -> list[pulumi.ResourceHook]:
    """The hooks for the cluster's options; their names begin with `name`, which is unique in the program."""
    options = pulumi.ResourceHookOptions(on_dry_run=True)
    fixed = pulumi.ResourceHook(f"{name}-system-pool", refuse_fixed, options)
    network = pulumi.ResourceHook(f"{name}-network", refuse_other_network, options)
    proxy = pulumi.ResourceHook(f"{name}-proxy", refuse_leaving_out, options)
    version = pulumi.ResourceHook(f"{name}-version", refuse_version, options)
    told = pulumi.ResourceHook(f"{name}-new-nodes", warn_of_new_nodes, options)
    stranding_hook = pulumi.ResourceHook(f"{name}-node-provisioning", refuse_stranding, options)
    return [*([] if allow_stranded_nodes else [stranding_hook]), fixed, network, version, proxy, told]


def _certificates(inputs: Mapping[str, Any]) -> Any:
    return (inputs.get("securityProfile") or {}).get("customCATrustCertificates")


def _minor(version: Any) -> int | None:
    _, _, rest = str(version or "").partition(".")
    minor = rest.partition(".")[0]
    return int(minor) if minor.isdigit() else None


def _pools(inputs: Mapping[str, Any] | None) -> dict[str, Mapping[str, Any]]:
    return {pool["name"]: pool for pool in (inputs or {}).get("agentPoolProfiles") or []}


def _shown(value: Any) -> str:
    # The engine has no whole numbers.
    return f"{value:g}" if isinstance(value, float) else str(value)
