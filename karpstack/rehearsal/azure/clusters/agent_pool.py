"""Agent pools, each as a resource of its own, and the scale sets behind them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karpstack.rehearsal.azure.arm.errors import refused
from karpstack.rehearsal.azure.arm.kind import Kind, Request, at
from karpstack.rehearsal.azure.arm.store import Resource
from karpstack.rehearsal.azure.clusters import POOL_TYPE, addons, rules
from karpstack.rehearsal.azure.context import Context
from karpstack.rehearsal.azure.machines.quotas import check_quota
from karpstack.rehearsal.azure.network.networks import SCALE_SET_TYPE, SUBNET_TYPE


def most_pods(network: Mapping[str, Any]) -> int:
    """How many pods AKS lets on a node that says nothing: those of an overlay take no addresses of the subnet."""
    return 250 if network.get("networkPluginMode") == "overlay" else 30


class AgentPool(Kind):
    """An agent pool as a resource of its own."""

    type = POOL_TYPE

    def fill(self, request: Request, resource: Resource) -> None:
        """Fill in what the cluster says."""
        profile = self._cluster(request.id.parent).properties["networkProfile"]
        resource.properties.setdefault("maxPods", most_pods(profile))

    def check(self, request: Request, resource: Resource) -> None:
        """Check it as a pool of its cluster, and its quota."""
        cluster, properties = self._cluster(request.id.parent), resource.properties
        size = rules.check_pool(self.context, request.id.name, properties)
        if at(cluster.properties, "nodeProvisioningProfile.mode") == "Auto" and properties.get("enableAutoScaling"):
            raise refused("OperationNotAllowed/autoscaler")
        version = cluster.properties["currentKubernetesVersion"]
        properties |= {
            "orchestratorVersion": version,
            "currentOrchestratorVersion": version,
            "powerState": {"code": "Running"},
        }
        if request.existing is None:
            check_quota(self.context, size, int(properties["count"]), properties.get("scaleSetPriority") == "Spot")

    def created(self, resource: Resource, request: Request) -> None:
        """Show the pool in the cluster, and make its scale set."""
        self._show(resource, {**resource.properties, "name": resource.id.name})

    def check_delete(self, resource: Resource) -> None:
        """The last system pool stays."""
        cluster = self.context.get(resource.id.parent)
        pools = cluster.properties["agentPoolProfiles"] if cluster else []
        if not any(pool.get("mode") == "System" for pool in pools if pool["name"] != resource.id.name):
            raise refused("OperationNotAllowed/last-system-pool")

    def deleted(self, resource: Resource) -> None:
        """The scale set goes."""
        if self.context.get(resource.id.parent):
            self._show(resource, None)

    def _cluster(self, identifier: str) -> Resource:
        cluster = self.context.get(identifier)
        if cluster is None:
            raise refused("ParentResourceNotFound/cluster", identifier=identifier)
        return cluster

    def _show(self, resource: Resource, profile: dict[str, Any] | None) -> None:
        """Show in the cluster and in scale sets what a pool is now; None when it is gone."""
        cluster = self._cluster(resource.id.parent)
        others = [pool for pool in cluster.properties["agentPoolProfiles"] if pool["name"] != resource.id.name]
        cluster.properties["agentPoolProfiles"] = [*others, profile] if profile else others
        if profile:
            keep_scale_set(self.context, cluster, profile)
        else:
            self.context.store.remove(scale_set_id(self.context, cluster, resource.id.name))
        self.context.changed(cluster.id)


def scale_set_id(context: Context, cluster: Resource, pool: str) -> str:
    """Id of the scale set of an agent pool."""
    group = str(cluster.properties["nodeResourceGroup"])
    return context.named(group, SCALE_SET_TYPE, f"aks-{pool}-{cluster.private['number']}-vmss")


def keep_scale_set(context: Context, cluster: Resource, pool: Mapping[str, Any]) -> None:
    """Make or change the scale set of an agent pool."""
    address = {"properties": {"subnet": {"id": subnet_of(context, cluster, pool)}}}
    interface = {"properties": {"ipConfigurations": [address]}}
    profile = {
        "priority": pool.get("scaleSetPriority"),
        "networkProfile": {"networkInterfaceConfigurations": [interface]},
    }
    context.keep(
        scale_set_id(context, cluster, pool["name"]),
        SCALE_SET_TYPE,
        {
            "location": context.region,
            "sku": {"name": pool["vmSize"], "tier": "Standard", "capacity": int(pool["count"])},
            "zones": list(pool.get("availabilityZones") or []),
            "tags": {"aks-managed-poolName": pool["name"]},
            "identity": {
                "type": "UserAssigned",
                "userAssignedIdentities": {identity: {} for identity in node_identities(cluster)},
            },
            "properties": {"virtualMachineProfile": profile},
        },
    )


def node_identities(cluster: Resource) -> list[str]:
    """IDs of the identities that each node has: the kubelet's, and those of add-ons."""
    return [cluster.properties["identityProfile"]["kubeletidentity"]["resourceId"], *addons.identities(cluster)]


def subnet_of(context: Context, cluster: Resource, pool: Mapping[str, Any]) -> str:
    """Id of the subnet in which the nodes of a pool lie: one's own, or AKS's."""
    if own := pool.get("vnetSubnetID"):
        return str(own)
    group = str(cluster.properties["nodeResourceGroup"])
    return context.named(group, SUBNET_TYPE, f"aks-vnet-{cluster.private['number']}", "aks-subnet")
