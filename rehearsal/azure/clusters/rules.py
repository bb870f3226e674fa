"""What AKS refuses of a managed cluster and its agent pools.

Codes and texts are AKS's where they are public, and in its manner elsewhere. Of node auto provisioning, the sentences
on IPv6 and on pools with an autoscaler are AKS's, those on other keys have its pattern; that of the support plan is
ours. What node auto provisioning takes: https://learn.microsoft.com/azure/aks/node-auto-provisioning#limitations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from ipaddress import IPv4Network, ip_address
from typing import Any

from rehearsal.azure.arm.errors import ArmError
from rehearsal.azure.arm.identifiers import ResourceId
from rehearsal.azure.arm.kind import Kind, at
from rehearsal.azure.clusters import api_server, ways_out
from rehearsal.azure.network.networks import SUBNET_TYPE, network

#: Minor version -> the patch that AKS takes for it.
KUBERNETES_VERSIONS = {"1.34": "1.34.6", "1.35": "1.35.4", "1.36": "1.36.3"}
#: What a cluster gets that asks for none.
DEFAULT_VERSION = "1.36"

POOL_NAME = re.compile(r"[a-z][a-z0-9]{0,11}")
_DNS_PREFIX = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9]{0,52}[A-Za-z0-9])?")
_NAP = ".properties.nodeProvisioningProfile.mode cannot be Auto {condition}."
#: For Linux, in the API version 2025-09-01. The code of the refusal is AKS's, the text is ours.
_OS_SKUS = ("Ubuntu", "Ubuntu2204", "AzureLinux", "AzureLinux3", "CBLMariner")
#: What does not change of a pool that exists.
_FIXED_OF_POOLS = ("vmSize", "availabilityZones", "osDiskSizeGB", "osDiskType", "osType", "vnetSubnetID", "maxPods")

Properties = Mapping[str, Any]


def check_cluster(kind: Kind, identifier: ResourceId, body: Mapping[str, Any], before: Properties | None) -> None:
    """Refuse a cluster.

    Args:
        kind: For look-ups.
        identifier: Id of the cluster.
        body: The whole request, defaults filled in.
        before: Properties of the cluster as it is; None for a new one.
    """
    properties: Properties = body["properties"]
    if not _DNS_PREFIX.fullmatch(str(properties.get("dnsPrefix", ""))):
        raise _bad(
            "InvalidParameter",
            f"The value of parameter dnsPrefix is invalid: {properties.get('dnsPrefix', '')!r}. It must contain "
            "between 1 and 54 alphanumeric characters and hyphens, and start and end with an alphanumeric character.",
        )
    version(str(properties.get("kubernetesVersion", "")))
    _check_identity(kind, identifier, body)
    _check_pools(kind, properties)
    _check_network(kind, properties)
    ways_out.check(kind, properties)
    api_server.check(kind, properties, before)
    _check_security(properties)
    _check_support(body)
    if before:
        for name in (
            "dnsPrefix",
            "nodeResourceGroup",
            "networkProfile.networkPlugin",
            "networkProfile.serviceCidr",
            "networkProfile.dnsServiceIP",
            "networkProfile.podCidr",
        ):
            if at(before, name) != at(properties, name):
                raise _fixed(f"properties.{name}")
        _check_fixed_pools(before, properties)
        _check_upgrade(str(before["currentKubernetesVersion"]), version(str(properties["kubernetesVersion"])))
    if at(properties, "nodeProvisioningProfile.mode") == "Auto":
        _check_provisioning(body, before)


def check_pool(kind: Kind, name: str, pool: Properties, network_profile: Properties) -> None:
    """Refuse an agent pool."""
    if not POOL_NAME.fullmatch(name):
        raise _bad(
            "InvalidParameter",
            f"The value of parameter agentPoolProfile.name is invalid: {name!r}. It must begin with a lowercase "
            "letter, contain only lowercase letters and numbers and be between 1 and 12 characters in length.",
        )
    size = kind.context.size(str(pool.get("vmSize", "")))
    if size is None or not kind.context.zones_of(size):
        raise _bad(
            "BadRequest",
            f"The VM size of AgentPoolProfile:{name} is not allowed in your subscription in location "
            f"'{kind.context.region}'.  For more details, please visit https://aka.ms/cpu-quota",
        )
    least = 4 if pool.get("mode") == "System" else 2
    if size.vcpus < 2 or size.memory < least:
        raise _bad(
            "InvalidVMSize",
            f"System node pools must use VM sku with more than 2 cores and 4GB memory. Got {size.name}, with "
            f"{size.vcpus} cores and {size.memory:g}GB memory.",
        )
    if pool.get("osType", "Linux") == "Linux" and pool.get("osSKU") not in (None, *_OS_SKUS):
        raise _bad(
            "InvalidOSSKU", f"OSSKU {pool['osSKU']!r} is not supported; supported values are {', '.join(_OS_SKUS)}."
        )
    count = int(pool.get("count", 0))
    if not (1 if pool.get("mode") == "System" else 0) <= count <= 1000:
        raise _bad(
            "InvalidParameter",
            f"The value of parameter agentPoolProfile.count is invalid: {count}. Node count of a pool of mode "
            f"{pool.get('mode')} must be between {1 if pool.get('mode') == 'System' else 0} and 1000.",
        )
    for zone in pool.get("availabilityZones") or []:
        if zone not in kind.context.zones_of(size):
            raise _bad(
                "AvailabilityZoneNotSupported",
                f"Preflight validation check for resource(s) failed. Message: The zone(s) '{zone}' for resource "
                f"'{name}' is not supported. The supported zones for location '{kind.context.region}' are "
                f"'{','.join(kind.context.zones_of(size))}'",
            )
    _between("agentPoolProfile.maxPods", int(pool["maxPods"]), 10, 250)
    _between("agentPoolProfile.osDiskSizeGB", int(pool["osDiskSizeGB"]), 30, 2048)
    if pool.get("osType") == "Windows" and (
        pool.get("mode") == "System" or network_profile.get("networkDataplane") == "cilium"
    ):
        raise _bad(
            "OnlySupportedOnLinux",
            f"The agent pool {name} has osType Windows, which neither a system pool nor the cilium dataplane takes.",
        )
    if pool.get("enableAutoScaling") and not 0 <= int(pool.get("minCount") or 0) <= count <= int(
        pool.get("maxCount") or 0
    ):
        raise _bad(
            "InvalidParameter",
            f"The value of parameter agentPoolProfile.count is invalid: {count} is not between minCount and maxCount.",
        )
    if pool.get("vnetSubnetID"):
        subnet(kind, str(pool["vnetSubnetID"]))


def subnet(kind: Kind, identifier: str) -> IPv4Network:
    """The address range of a subnet of one's own; refused when it does not exist, or is another service's."""
    resource = kind.context.get(ResourceId.parse(identifier).text)
    if resource is None or resource.type != SUBNET_TYPE:
        raise _bad(
            "SubnetNotFound",
            f"The subnet {identifier} of an agent pool does not exist: create it before the cluster.",
            404,
        )
    if resource.properties.get("delegations"):
        # As MicrosoftDocs/azure-docs#69774 shows it.
        raise _bad(
            "SubnetIsDelegated",
            f"AgentPoolProfile.VnetSubnetID {identifier} cannot be used as it's a delegated subnet. Please check "
            "https://aka.ms/adv-network-prerequest for more details.",
        )
    return network(resource.properties["addressPrefix"], identifier)


def version(given: str) -> str:
    """The patch version that AKS takes for a version in a request; one that it has not is refused."""
    minor = ".".join(given.split(".")[:2])
    patch = KUBERNETES_VERSIONS.get(minor)
    if patch is None or given not in (minor, patch):
        raise _bad(
            "K8sVersionNotSupported",
            f"Managed cluster is on version {given}, which is not supported in this region. Please use [az aks "
            "get-versions] command to get the supported version list in this region. The rehearsal has "
            f"{', '.join([*KUBERNETES_VERSIONS, *KUBERNETES_VERSIONS.values()])}.",
        )
    return patch


def _check_upgrade(old: str, new: str) -> None:
    """Up, one minor version at a time: rancher/dashboard#11884 and rancher/rancher#24071 have AKS's words."""
    minor = _minor(old)
    if _minor(new) in (minor, minor + 1):
        return
    up = [patch for patch in KUBERNETES_VERSIONS.values() if _minor(patch) == minor + 1]
    raise _bad(
        "OperationNotAllowed",
        f"{'Upgrading' if _minor(new) > minor else 'Downgrading'} Kubernetes version {old} to {new} is not allowed. "
        f"Available upgrades: [{' '.join(up)}]. Please see https://aka.ms/aks-supported-k8s-ver for version details.",
    )


def _minor(given: str) -> int:
    return int(given.split(".")[1])


def _check_identity(kind: Kind, identifier: ResourceId, body: Mapping[str, Any]) -> None:
    identity_type = str(at(body, "identity.type", "None"))
    client = at(body, "properties.servicePrincipalProfile.clientId")
    if identity_type == "None" and client in (None, "msi"):
        raise _bad(
            "BadRequest",
            f"The cluster {identifier.name} has neither a managed identity nor a service principal: give "
            "identity.type.",
        )
    assigned = at(body, "identity.userAssignedIdentities") or {}
    if identity_type == "UserAssigned" and len(assigned) != 1:
        raise _bad(
            "InvalidUserAssignedIdentities",
            f"Exactly one user assigned identity must be given for the cluster, not {len(assigned)}.",
        )
    for identity in assigned:
        if kind.context.get(identity) is None:
            raise _bad(
                "FailedIdentityOperation",
                f"Identity operation for resource '{identifier.text}' failed with error 'Failed to perform resource "
                f"identity operation. Status: 'NotFound'. The user assigned identity {identity} was not found'.",
            )
    kubelet = at(body, "properties.identityProfile.kubeletidentity.resourceId")
    if kubelet:
        if identity_type != "UserAssigned":
            raise _bad(
                "CustomKubeletIdentityOnlySupportedOnUserAssignedMSICluster",
                "Custom kubelet identity is only supported on clusters with a user assigned identity.",
            )
        if kind.context.get(kubelet) is None:
            raise _bad("KubeletIdentityNotFound", f"The kubelet identity {kubelet} was not found.", 404)


def _check_pools(kind: Kind, properties: Properties) -> None:
    pools = properties.get("agentPoolProfiles") or []
    if not any(pool.get("mode") == "System" for pool in pools):
        raise _bad("NoSystemPool", "There must be at least one agent pool of mode System in the cluster.")
    names = [pool["name"] for pool in pools]
    if len(set(names)) != len(names):
        raise _bad("InvalidParameter", f"Agent pool names must be unique: {', '.join(names)}.")
    for pool in pools:
        check_pool(kind, str(pool.get("name", "")), pool, properties["networkProfile"])


def _check_network(kind: Kind, properties: Properties) -> None:
    profile = properties["networkProfile"]
    plugin, mode = profile.get("networkPlugin"), profile.get("networkPluginMode")
    dataplane, policy = profile.get("networkDataplane"), profile.get("networkPolicy")
    _one_of("networkProfile.networkPlugin", plugin, ("azure", "none"))
    _one_of("networkProfile.networkPluginMode", mode, ("overlay", None))
    _one_of("networkProfile.networkDataplane", dataplane, ("azure", "cilium", None))
    _one_of("networkProfile.networkPolicy", policy, ("none", "azure", "calico", "cilium", None))
    _one_of(
        "networkProfile.outboundType",
        profile.get("outboundType"),
        ("loadBalancer", "managedNATGateway", "userAssignedNATGateway", "userDefinedRouting", "none", "block"),
    )
    _one_of("networkProfile.loadBalancerSku", str(profile.get("loadBalancerSku")).lower(), ("standard",))
    if mode == "overlay" and plugin != "azure":
        raise _bad("InvalidNetworkPluginMode", "networkPluginMode overlay is only supported with networkPlugin azure.")
    if policy == "cilium" and dataplane != "cilium":
        raise _bad("InvalidNetworkPolicy", "networkPolicy cilium requires networkDataplane cilium.")
    if dataplane == "cilium" and policy not in ("cilium", "none", None):
        raise _bad("InvalidNetworkPolicy", f"networkDataplane cilium requires networkPolicy cilium, not {policy}.")
    if (
        dataplane == "cilium"
        and mode != "overlay"
        and not any(pool.get("podSubnetID") for pool in properties["agentPoolProfiles"])
    ):
        raise _bad(
            "InvalidNetworkDataplane", "networkDataplane cilium requires networkPluginMode overlay or a pod subnet."
        )
    ranges: list[tuple[str, IPv4Network]] = [
        ("networkProfile.serviceCidr", network(str(profile["serviceCidr"]), "networkProfile.serviceCidr"))
    ]
    if mode == "overlay":
        ranges.append(("networkProfile.podCidr", network(str(profile["podCidr"]), "networkProfile.podCidr")))
    dns = ip_address(str(profile["dnsServiceIP"]))
    if dns not in ranges[0][1] or dns == ranges[0][1].network_address + 1:
        raise _bad(
            "ServiceCidrDnsServiceIPMismatch",
            f"The networkProfile.dnsServiceIP {dns} is not within the serviceCidr {ranges[0][1]}, or is its first "
            "address, which the API server has.",
        )
    for identifier in {
        str(pool["vnetSubnetID"]) for pool in properties["agentPoolProfiles"] if pool.get("vnetSubnetID")
    }:
        ranges.append((f"subnet {identifier}", subnet(kind, identifier)))
    for index, (name, cidr) in enumerate(ranges):
        for other_name, other in ranges[index + 1 :]:
            if cidr.overlaps(other) and not (name.startswith("subnet") and other_name.startswith("subnet")):
                raise _bad(
                    "ServiceCidrOverlapExistingSubnetsCidr"
                    if name.endswith("serviceCidr")
                    else "PodCidrOverlapExistingSubnetsCidr",
                    f"The specified {name} {cidr} conflicts with {other_name} {other}.",
                )


def _check_security(properties: Properties) -> None:
    if at(properties, "securityProfile.workloadIdentity.enabled") and not at(properties, "oidcIssuerProfile.enabled"):
        raise _bad(
            "WorkloadIdentityRequiresOIDCIssuer",
            "Workload identity can only be enabled when the OIDC issuer is enabled: set oidcIssuerProfile.enabled.",
        )
    if properties.get("disableLocalAccounts") and not at(properties, "aadProfile.managed"):
        raise _bad(
            "DisableLocalAccountsRequiresAADIntegration",
            "Disabling local accounts is only possible with managed Entra (AAD) integration: set aadProfile.managed.",
        )
    if at(properties, "aadProfile.enableAzureRBAC") and not at(properties, "aadProfile.managed"):
        raise _bad("AzureRBACRequiresManagedAAD", "aadProfile.enableAzureRBAC requires aadProfile.managed.")


def _check_support(body: Mapping[str, Any]) -> None:
    """Premium and long-term support come together; KubernetesOfficial is what a cluster has that says nothing."""
    tier, plan = str(at(body, "sku.tier", "Free")), at(body, "properties.supportPlan") or "KubernetesOfficial"
    if (tier == "Premium") != (plan == "AKSLongTermSupport"):
        raise _bad(
            "BadRequest",
            f"The tier {tier} does not go with the support plan {plan}: AKSLongTermSupport is for tier Premium, and "
            "tier Premium must have it. Enable or disable both together.",
        )


def _check_fixed_pools(before: Properties, properties: Properties) -> None:
    pools = {pool["name"]: pool for pool in before.get("agentPoolProfiles") or []}
    for pool in properties["agentPoolProfiles"]:
        old = pools.get(pool["name"], pool)
        for name in _FIXED_OF_POOLS:
            if old.get(name) != pool.get(name):
                raise _fixed(f"agentPoolProfile.{name}")


def _check_provisioning(body: Mapping[str, Any], before: Properties | None) -> None:
    properties: Properties = body["properties"]
    profile = properties["networkProfile"]
    pools = properties["agentPoolProfiles"]
    network = ".properties.networkProfile"
    rules: list[tuple[Callable[[], Any], str]] = [
        (lambda: at(body, "identity.type", "None") == "None", "if .properties.servicePrincipalProfile is specified"),
        (lambda: properties.get("enableRBAC") is False, "unless .properties.enableRBAC is set to one of [true]"),
        (
            lambda: profile.get("networkPolicy") == "calico",
            f"unless {network}.networkPolicy is set to one of [azure,cilium,none]",
        ),
        (
            lambda: "IPv6" in (profile.get("ipFamilies") or []),
            f"unless {network}.ipFamilies is set to one of [IPv4]",
        ),
        (lambda: any(pool.get("podSubnetID") for pool in pools), "if .properties.podSubnetID is specified"),
        (
            lambda: any(pool.get("osType") == "Windows" for pool in pools),
            "unless all AgentPools have property .properties.osType set to one of [Linux]",
        ),
        (
            lambda: any(pool.get("enableAutoScaling") for pool in pools),
            "unless all AgentPools have property .properties.enableAutoScaling set to one of [false]",
        ),
        (
            lambda: before and at(before, "networkProfile.outboundType") != profile.get("outboundType"),
            f"if {network}.outboundType is changed",
        ),
    ]
    for refused, condition in rules:
        if refused():
            raise _bad("OperationNotAllowed", _NAP.format(condition=condition))


def _between(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise _bad(
            "InvalidParameter",
            f"The value of parameter {name} is invalid: {value}. It must be between {least} and {most}.",
        )


def _one_of(name: str, value: str | None, allowed: tuple[str | None, ...]) -> None:
    if value not in allowed:
        raise _bad(
            "InvalidParameter",
            f"The value of parameter {name} is invalid: {value!r}. The rehearsal knows "
            f"{', '.join(str(value) for value in allowed)}.",
        )


def _fixed(name: str) -> ArmError:
    return _bad("PropertyChangeNotAllowed", f"Changing property '{name}' is not allowed.")


def _bad(code: str, message: str, status: int = 400) -> ArmError:
    return ArmError(code, message, status)
