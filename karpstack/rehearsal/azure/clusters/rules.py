"""What AKS refuses of a managed cluster and its agent pools beyond their rows: what takes a look at other resources.

Codes and texts are AKS's where they are public, and in its manner elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import IPv4Network, ip_address
from typing import Any

from karpstack.rehearsal.azure.arm.errors import ArmError, refused
from karpstack.rehearsal.azure.arm.identifiers import ResourceId
from karpstack.rehearsal.azure.arm.kind import at
from karpstack.rehearsal.azure.arm.rows import ROWS, refusal
from karpstack.rehearsal.azure.clusters import POOL_TYPE, api_server, outbound_type
from karpstack.rehearsal.azure.context import Context
from karpstack.rehearsal.azure.machines.catalogue import Size
from karpstack.rehearsal.azure.network.networks import SUBNET_TYPE, network

#: Minor version -> the patch that AKS takes for it.
KUBERNETES_VERSIONS = {"1.34": "1.34.6", "1.35": "1.35.4", "1.36": "1.36.3"}
#: What a cluster gets that asks for none.
DEFAULT_VERSION = "1.36"


Properties = Mapping[str, Any]


def check_cluster(context: Context, identifier: ResourceId, body: Mapping[str, Any], before: Properties | None) -> None:
    """Refuse a cluster that its row does not refuse.

    Args:
        context: For look-ups.
        identifier: Id of the cluster.
        body: The whole request, defaults filled in.
        before: Properties of the cluster as it is; None for a new one.
    """
    properties: Properties = body["properties"]
    version(str(properties.get("kubernetesVersion", "")))
    _check_identity(context, identifier, body)
    pools = {pool["name"]: pool for pool in properties["agentPoolProfiles"]}
    for name, pool in pools.items():
        row = ROWS[POOL_TYPE]
        if not re.fullmatch(row.name, str(name)):
            raise refusal(row.name_refused, name=name)
        row.refuse({"properties": pool})
        check_pool(context, str(name), pool)
    _check_ranges(context, properties)
    outbound_type.check(context, properties)
    api_server.check(context, properties, before)
    if before:
        for pool in before.get("agentPoolProfiles") or []:
            if pool["name"] in pools:
                ROWS[POOL_TYPE].check_fixed({"properties": pool}, {"properties": pools[pool["name"]]})
        _check_upgrade(str(before["currentKubernetesVersion"]), version(str(properties["kubernetesVersion"])))
        outbound = "networkProfile.outboundType"
        if at(properties, "nodeProvisioningProfile.mode") == "Auto" and at(before, outbound) != at(
            properties, outbound
        ):
            raise refused("OperationNotAllowed/outbound", outbound=outbound)


def check_pool(context: Context, name: str, pool: Properties) -> Size:
    """Refuse an agent pool that its row does not refuse; its size."""
    size = context.size(str(pool.get("vmSize", "")))
    if size is None or not context.zones_of(size):
        raise refused("BadRequest/size", name=name, region=context.region)
    if size.vcpus < 2 or size.memory < (4 if pool.get("mode") == "System" else 2):
        raise refused("InvalidVMSize", name=size.name, vcpus=size.vcpus, memory=size.memory)
    zones = context.zones_of(size)
    for zone in pool.get("availabilityZones") or []:
        if zone not in zones:
            raise refused(
                "AvailabilityZoneNotSupported/pool", zone=zone, name=name, region=context.region, zones=",".join(zones)
            )
    least, count, most = (int(pool.get(key) or 0) for key in ("minCount", "count", "maxCount"))
    if pool.get("enableAutoScaling") and not 0 <= least <= count <= most:
        raise refused("InvalidParameter/count", count=count)
    if pool.get("vnetSubnetID"):
        subnet(context, str(pool["vnetSubnetID"]))
    return size


def subnet(context: Context, identifier: str) -> IPv4Network:
    """The address range of a subnet of one's own; refused when it does not exist, or is another service's."""
    resource = context.get(ResourceId.parse(identifier).text)
    if resource is None or resource.type != SUBNET_TYPE:
        raise refused("SubnetNotFound/pool", identifier=identifier)
    if resource.properties.get("delegations"):
        # As MicrosoftDocs/azure-docs#69774 shows it.
        raise refused("SubnetIsDelegated", identifier=identifier)
    return network(resource.properties["addressPrefix"], identifier)


def version(given: str) -> str:
    """The patch version that AKS takes for a version in a request; one that it has not is refused."""
    minor = ".".join(given.split(".")[:2])
    patch = KUBERNETES_VERSIONS.get(minor)
    if patch is None or given not in (minor, patch):
        raise refused(
            "K8sVersionNotSupported",
            given=given,
            kubernetes_versions=", ".join([*KUBERNETES_VERSIONS, *KUBERNETES_VERSIONS.values()]),
        )
    return patch


def _check_upgrade(old: str, new: str) -> None:
    """Up, one minor version at a time: rancher/dashboard#11884 and rancher/rancher#24071 have AKS's words."""
    minor = _minor(old)
    if _minor(new) in (minor, minor + 1):
        return
    up = [patch for patch in KUBERNETES_VERSIONS.values() if _minor(patch) == minor + 1]
    raise refused(
        "OperationNotAllowed/upgrade",
        what="Upgrading" if _minor(new) > minor else "Downgrading",
        old=old,
        new=new,
        up=" ".join(up),
    )


def _minor(given: str) -> int:
    return int(given.split(".")[1])


def _check_identity(context: Context, identifier: ResourceId, body: Mapping[str, Any]) -> None:
    assigned = at(body, "identity.userAssignedIdentities") or {}
    for identity in assigned:
        if context.get(identity) is None:
            raise refused("FailedIdentityOperation/cluster", text=identifier.text, identity=identity)


def _check_ranges(context: Context, properties: Properties) -> None:
    profile = properties["networkProfile"]
    ranges: list[tuple[str, IPv4Network]] = [
        ("networkProfile.serviceCidr", network(str(profile["serviceCidr"]), "networkProfile.serviceCidr"))
    ]
    if profile.get("networkPluginMode") == "overlay":
        ranges.append(("networkProfile.podCidr", network(str(profile["podCidr"]), "networkProfile.podCidr")))
    dns = ip_address(str(profile["dnsServiceIP"]))
    if dns not in ranges[0][1] or dns == ranges[0][1].network_address + 1:
        raise refused("ServiceCidrDnsServiceIPMismatch", dns=dns, ranges=ranges[0][1])
    for identifier in {
        str(pool["vnetSubnetID"]) for pool in properties["agentPoolProfiles"] if pool.get("vnetSubnetID")
    }:
        ranges.append((f"subnet {identifier}", subnet(context, identifier)))
    for index, (name, cidr) in enumerate(ranges):
        for other_name, other in ranges[index + 1 :]:
            if cidr.overlaps(other) and not (name.startswith("subnet") and other_name.startswith("subnet")):
                raise ArmError(
                    "ServiceCidrOverlapExistingSubnetsCidr"
                    if name.endswith("serviceCidr")
                    else "PodCidrOverlapExistingSubnetsCidr",
                    f"The specified {name} {cidr} conflicts with {other_name} {other}.",
                )
