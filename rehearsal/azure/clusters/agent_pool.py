"""Agent pools, each as a resource of its own, and the scale sets behind them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rehearsal.azure.arm.errors import ArmError
from rehearsal.azure.arm.kind import Kind, Request, at
from rehearsal.azure.arm.store import Resource
from rehearsal.azure.clusters import POOL_TYPE, VERSIONS, addons, rules
from rehearsal.azure.context import Context
from rehearsal.azure.machines.quotas import check_quota
from rehearsal.azure.network.networks import SCALE_SET_TYPE, SUBNET_TYPE

DEFAULTS = {
    "count": 1,
    "osType": "Linux",
    "osSKU": "Ubuntu",
    "type": "VirtualMachineScaleSets",
    "mode": "User",
    "osDiskSizeGB": 128,
    "enableAutoScaling": False,
    "scaleSetPriority": "Regular",
    "enableFIPS": False,
    "enableNodePublicIP": False,
    "kubeletDiskType": "OS",
    "osDiskType": "Managed",
    "scaleDownMode": "Delete",
}


def most_pods(network: Mapping[str, Any]) -> int:
    """How many pods AKS lets on a node that says nothing: those of an overlay take no addresses of the subnet."""
    return 250 if network.get("networkPluginMode") == "overlay" else 30


class AgentPool(Kind):
    """An agent pool as a resource of its own."""

    type = POOL_TYPE
    versions = VERSIONS
    name = rules.POOL_NAME
    name_error = "InvalidParameter"
    located = False

    def put(self, request: Request) -> Resource:
        """Fill in defaults and check."""
        resource = self.resource(request)
        cluster = self.context.get(request.id.parent)
        if cluster is None:
            raise ArmError(
                "ParentResourceNotFound",
                f"Failed to perform 'write' on resource(s) of type '{POOL_TYPE}', because the parent resource "
                f"'{request.id.parent}' could not be found.",
                404,
            )
        profile = cluster.properties["networkProfile"]
        properties = {
            **DEFAULTS,
            "maxPods": most_pods(profile),
            "upgradeSettings": {},
            **resource.properties,
        }
        rules.check_pool(self, request.id.name, properties, profile)
        if at(cluster.properties, "nodeProvisioningProfile.mode") == "Auto" and properties.get("enableAutoScaling"):
            raise ArmError(
                "OperationNotAllowed",
                ".properties.nodeProvisioningProfile.mode cannot be Auto unless all AgentPools have property "
                ".properties.enableAutoScaling set to one of [false].",
            )
        version = cluster.properties["currentKubernetesVersion"]
        properties |= {
            "orchestratorVersion": version,
            "currentOrchestratorVersion": version,
            "powerState": {"code": "Running"},
        }
        resource.body["properties"] = properties
        size = self.context.size(str(properties["vmSize"]))
        if request.existing is None and size:
            check_quota(self, size, int(properties["count"]), properties.get("scaleSetPriority") == "Spot")
        return resource

    def created(self, resource: Resource, request: Request) -> None:
        """Show the pool in the cluster, and make its scale set."""
        cluster = self.context.get(resource.id.parent)
        if cluster:
            profile = {**resource.properties, "name": resource.id.name}
            others = [pool for pool in cluster.properties["agentPoolProfiles"] if pool["name"] != resource.id.name]
            cluster.properties["agentPoolProfiles"] = [*others, profile]
            keep_scale_set(self, cluster, profile)
            self.context.changed(cluster.id)

    def check_delete(self, resource: Resource) -> None:
        """The last system pool stays."""
        cluster = self.context.get(resource.id.parent)
        pools = cluster.properties["agentPoolProfiles"] if cluster else []
        if not any(pool.get("mode") == "System" for pool in pools if pool["name"] != resource.id.name):
            raise ArmError("OperationNotAllowed", "There has to be at least one system agent pool in the cluster.", 409)

    def deleted(self, resource: Resource) -> None:
        """The scale set goes."""
        cluster = self.context.get(resource.id.parent)
        if cluster:
            cluster.properties["agentPoolProfiles"] = [
                pool for pool in cluster.properties["agentPoolProfiles"] if pool["name"] != resource.id.name
            ]
            self.context.store.remove(scale_set_id(self.context, cluster, resource.id.name))
            self.context.changed(cluster.id)

    def put_seconds(self, new: bool) -> float:
        """How long a PUT takes."""
        return self.context.durations.agent_pool

    def delete_seconds(self) -> float:
        """How long a deletion takes."""
        return self.context.durations.agent_pool


def scale_set_id(context: Context, cluster: Resource, pool: str) -> str:
    """Id of the scale set of an agent pool."""
    group = str(cluster.properties["nodeResourceGroup"])
    return context.named(group, SCALE_SET_TYPE, f"aks-{pool}-{cluster.private['number']}-vmss")


def keep_scale_set(kind: Kind, cluster: Resource, pool: Mapping[str, Any]) -> Resource:
    """Make or change the scale set of an agent pool."""
    scale_set = kind.context.keep(
        scale_set_id(kind.context, cluster, pool["name"]),
        SCALE_SET_TYPE,
        {
            "location": kind.context.region,
            "sku": {"name": pool["vmSize"], "tier": "Standard", "capacity": int(pool["count"])},
            "zones": list(pool.get("availabilityZones") or []),
            "tags": {"aks-managed-poolName": pool["name"]},
            "identity": {
                "type": "UserAssigned",
                "userAssignedIdentities": {identity: {} for identity in node_identities(cluster)},
            },
        },
    )
    scale_set.private |= {
        "subnet": subnet_of(kind.context, cluster, pool),
        "spot": pool.get("scaleSetPriority") == "Spot",
        "cluster": cluster.id.text,
    }
    return scale_set


def node_identities(cluster: Resource) -> list[str]:
    """IDs of the identities that each node has: the kubelet's, and those of add-ons."""
    return [cluster.properties["identityProfile"]["kubeletidentity"]["resourceId"], *addons.identities(cluster)]


def subnet_of(context: Context, cluster: Resource, pool: Mapping[str, Any]) -> str:
    """Id of the subnet in which the nodes of a pool lie: one's own, or AKS's."""
    if own := pool.get("vnetSubnetID"):
        return str(own)
    group = str(cluster.properties["nodeResourceGroup"])
    return context.named(group, SUBNET_TYPE, f"aks-vnet-{cluster.private['number']}", "aks-subnet")
