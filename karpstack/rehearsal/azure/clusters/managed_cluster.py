"""Managed clusters, with what AKS makes of them in the node resource group.

A cluster here is what ARM says of it: names, identities, network, scale sets. Its control plane is started by whoever
calls ARM. AKS itself makes the node resource group with the network (unless the subnet is one's own), the security
group `aks-agentpool-<8 digits>-nsg`, the load balancer, the kubelet identity and a scale set for each agent pool.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from karpstack.rehearsal.azure.arm import locks
from karpstack.rehearsal.azure.arm.errors import refused
from karpstack.rehearsal.azure.arm.identifiers import GROUP_TYPE, ResourceId, group_id
from karpstack.rehearsal.azure.arm.kind import Kind, Request, at
from karpstack.rehearsal.azure.arm.rows import ROWS
from karpstack.rehearsal.azure.arm.store import Resource
from karpstack.rehearsal.azure.clusters import CLUSTER_TYPE, POOL_TYPE, addons, api_server, http_proxy, rules
from karpstack.rehearsal.azure.clusters.agent_pool import keep_scale_set, most_pods, scale_set_id
from karpstack.rehearsal.azure.identity import assignments, roles
from karpstack.rehearsal.azure.identity.access import Access
from karpstack.rehearsal.azure.identity.entra import Principal
from karpstack.rehearsal.azure.identity.identities import IDENTITY_TYPE, make
from karpstack.rehearsal.azure.machines import MACHINE_TYPE
from karpstack.rehearsal.azure.machines.quotas import check_quota
from karpstack.rehearsal.azure.machines.ssh_keys import check_keys
from karpstack.rehearsal.azure.network.networks import (
    LOAD_BALANCER_TYPE,
    NETWORK_TYPE,
    SCALE_SET_TYPE,
    SECURITY_GROUP_TYPE,
    SUBNET_TYPE,
)

_JOIN = f"{SUBNET_TYPE}/join/action"
_ASSIGN = f"{IDENTITY_TYPE}/assign/action"
_OUTBOUND = "aksOutboundBackendPool"

_NETWORK = {
    "networkPlugin": "azure",
    "outboundType": "loadBalancer",
    "loadBalancerSku": "standard",
    "serviceCidr": "10.0.0.0/16",
    "dnsServiceIP": "10.0.0.10",
    "ipFamilies": ["IPv4"],
}


class ManagedCluster(Kind):
    """A managed cluster."""

    type = CLUSTER_TYPE

    def fill(self, request: Request, resource: Resource) -> None:
        """Fill in defaults."""
        if request.existing and request.existing.state in ("Creating", "Updating", "Deleting"):
            raise refused("OperationNotAllowed/in-progress", state=request.existing.state, name=request.id.name)
        self._defaults(request, resource.properties, request.existing.properties if request.existing else None)

    def check(self, request: Request, resource: Resource) -> None:
        """Check what takes a look at others, and compute what ARM computes."""
        existing, properties = request.existing.properties if request.existing else None, resource.properties
        rules.check_cluster(self.context, request.id, resource.body, existing)
        addons.check(self.context, properties)
        http_proxy.check(properties, existing)
        check_keys(at(properties, "linuxProfile.ssh.publicKeys") or [])
        if existing:
            self._check_mode(request, existing, properties)
        else:
            self._check_group(str(properties["nodeResourceGroup"]))
        self._outputs(request, resource, existing)
        if not existing:
            self._check_rights(resource)
            for pool in properties["agentPoolProfiles"]:
                size = self.context.size(pool["vmSize"])
                if size:
                    check_quota(self.context, size, int(pool["count"]), pool.get("scaleSetPriority") == "Spot")

    def created(self, resource: Resource, request: Request) -> None:
        """Make what AKS makes; an update brings the agent pools up to date."""
        if request.existing is None:
            self._make_group(resource)
        addons.settle(self.context, resource)
        for profile in resource.properties["agentPoolProfiles"]:
            pool_id = resource.id.child("agentPools", profile["name"])
            self.context.keep(
                pool_id, POOL_TYPE, {"properties": {key: value for key, value in profile.items() if key != "name"}}
            )
            keep_scale_set(self.context, resource, profile)
        self.context.changed(resource.id)

    def groups(self, resource: Resource) -> Iterator[str]:
        """The node resource group."""
        yield group_id(self.context.subscription, str(resource.properties["nodeResourceGroup"]))

    def check_delete(self, resource: Resource) -> None:
        """Refuse while the node resource group is locked: its deletion is a part of the cluster's."""
        for group in self.groups(resource):
            locks.check(self.context.store, group, "delete")

    def deleted(self, resource: Resource) -> None:
        """The node resource group goes, with everything in it, and with the cluster's own principal."""
        group = group_id(self.context.subscription, str(resource.properties["nodeResourceGroup"]))
        for identity in self.context.store.of_type(IDENTITY_TYPE, group):
            self.context.directory.remove(identity.properties["principalId"])
        self.context.store.remove(group)
        issuer = at(resource.properties, "oidcIssuerProfile.issuerURL")
        if issuer:
            self.context.directory.distrust(issuer)
        if at(resource.body, "identity.type") == "SystemAssigned":
            self.context.directory.remove(resource.body["identity"]["principalId"])

    def _defaults(self, request: Request, properties: dict[str, Any], existing: Mapping[str, Any] | None) -> None:
        profile = {**_NETWORK, **(properties.get("networkProfile") or {})}
        if profile.get("networkPluginMode") == "overlay":
            profile.setdefault("podCidr", "10.244.0.0/16")
            profile.setdefault("podCidrs", [profile["podCidr"]])
        profile.setdefault("serviceCidrs", [profile["serviceCidr"]])
        if profile["outboundType"] == "loadBalancer":
            profile.setdefault("loadBalancerProfile", {"managedOutboundIPs": {"count": 1}})
        properties["networkProfile"] = profile
        properties["kubernetesVersion"] = str(
            properties.get("kubernetesVersion") or (existing or {}).get("kubernetesVersion") or rules.DEFAULT_VERSION
        )
        properties["agentPoolProfiles"] = [
            {
                **deepcopy(ROWS[POOL_TYPE].defaults["properties"]),
                "maxPods": most_pods(profile),
                "upgradeSettings": {"maxSurge": "10%"},
                **{key: value for key, value in pool.items() if value is not None},
            }
            for pool in properties.get("agentPoolProfiles") or []
        ]
        properties["nodeResourceGroup"] = str(
            properties.get("nodeResourceGroup")
            or (existing or {}).get("nodeResourceGroup")
            or f"MC_{request.id.group}_{request.id.name}_{self.context.region}"[:80]
        )
        profiles = {**at(existing or {}, "addonProfiles", {}), **(properties.get("addonProfiles") or {})}
        if profiles:
            properties["addonProfiles"] = profiles
        properties["nodeProvisioningProfile"] = {"defaultNodePools": "Auto", **properties["nodeProvisioningProfile"]}

    def _check_mode(self, request: Request, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        old, new = at(before, "nodeProvisioningProfile.mode"), at(after, "nodeProvisioningProfile.mode")
        if old == "Auto" and new != "Auto" and self._provisioned(before):
            raise refused("NodeAutoProvisioningDisableNotAllowed", name=request.id.name)

    def _provisioned(self, properties: Mapping[str, Any]) -> bool:
        group = group_id(self.context.subscription, str(properties["nodeResourceGroup"]))
        return any(
            "karpenter.sh_nodepool" in (machine.body.get("tags") or {})
            for machine in self.context.store.of_type(MACHINE_TYPE, group)
        )

    def _check_group(self, group: str) -> None:
        if self.context.get(group_id(self.context.subscription, group)):
            raise refused("NodeResourceGroupAlreadyExists", group=group)

    def _outputs(self, request: Request, resource: Resource, existing: Mapping[str, Any] | None) -> None:
        properties, context = resource.properties, self.context
        if existing:
            for name in ("fqdn", "privateFQDN", "azurePortalFQDN", "resourceUID", "identityProfile"):
                if name in existing:
                    properties[name] = existing[name]
            if at(properties, "apiServerAccessProfile.privateDNSZone") == "none":
                properties.pop("privateFQDN", None)
            # An update does not remove agent pools: those that it does not name stay, as in AKS.
            listed = {pool["name"] for pool in properties["agentPoolProfiles"]}
            properties["agentPoolProfiles"] += [
                pool for pool in existing["agentPoolProfiles"] if pool["name"] not in listed
            ]
        else:
            digest = hashlib.sha256(request.id.key.encode()).hexdigest()
            properties["fqdn"] = f"{str(properties['dnsPrefix']).lower()}-{digest[:8]}.hcp.{context.region}.azmk8s.io"
            properties["azurePortalFQDN"] = properties["fqdn"].replace(".hcp.", ".portal.hcp.")
            # The name in a private DNS zone, which nodes and whoever is in the network use.
            host = properties["fqdn"].partition(".")[0]
            private = api_server.private_name(properties.get("apiServerAccessProfile") or {}, host, context.region)
            if private:
                properties["privateFQDN"] = private
            properties["resourceUID"] = uuid.uuid4().hex[:24]
            resource.private["number"] = f"{int(digest[8:16], 16) % 10**8:08d}"
            self._identity(resource)
        http_proxy.fill(self.context, properties)
        properties["currentKubernetesVersion"] = rules.version(str(properties["kubernetesVersion"]))
        properties["powerState"] = {"code": "Running"}
        properties["maxAgentPools"] = 100
        if request.existing and "identity" in request.existing.body:
            resource.body["identity"] = request.existing.body["identity"]
        issuer = at(existing or {}, "oidcIssuerProfile.issuerURL")
        if at(properties, "oidcIssuerProfile.enabled") or issuer:
            properties["oidcIssuerProfile"] = {
                "enabled": True,
                "issuerURL": issuer
                or (f"https://{context.region}.oic.prod-aks.azure.com/{context.directory.tenant}/{uuid.uuid4()}/"),
            }
        for pool in properties["agentPoolProfiles"]:
            pool |= {
                "provisioningState": "Succeeded",
                "powerState": {"code": "Running"},
                "orchestratorVersion": pool.get("orchestratorVersion") or properties["currentKubernetesVersion"],
                "currentOrchestratorVersion": properties["currentKubernetesVersion"],
            }

    def _identity(self, resource: Resource) -> None:
        identity = resource.body.get("identity") or {}
        if identity.get("type") == "SystemAssigned":
            principal = self.context.directory.add(
                Principal(str(uuid.uuid4()), "ServicePrincipal", resource.id.name, str(uuid.uuid4()), resource.id.text)
            )
            identity |= {"principalId": principal.object_id, "tenantId": self.context.directory.tenant}
            resource.private["principal"] = principal.object_id
        elif identity.get("type") == "UserAssigned":
            for identifier in identity["userAssignedIdentities"]:
                assigned = self.context.get(identifier)
                if assigned:
                    resource.private["principal"] = assigned.properties["principalId"]
                    identity["userAssignedIdentities"][identifier] = {
                        name: assigned.properties[name] for name in ("principalId", "clientId")
                    }
        resource.body["identity"] = identity
        group = str(resource.properties["nodeResourceGroup"])
        kubelet_id = at(resource.properties, "identityProfile.kubeletidentity.resourceId") or self.context.named(
            group, IDENTITY_TYPE, f"{resource.id.name}-agentpool"
        )
        given = self.context.get(kubelet_id)
        ids = given.properties if given else {"principalId": str(uuid.uuid4()), "clientId": str(uuid.uuid4())}
        resource.properties["identityProfile"] = {
            "kubeletidentity": {"resourceId": kubelet_id, "clientId": ids["clientId"], "objectId": ids["principalId"]}
        }

    def _check_rights(self, resource: Resource) -> None:
        """AKS works as the cluster's identity, which must be able to join the subnet and assign the kubelet's.

        An identity that AKS creates with the cluster gets its right on the subnet later, so the nodes of agent pools
        join without it (azure-cli, acs/managed_cluster_decorator.py, need_post_creation_vnet_permission_granting).
        """
        principal = str(resource.private.get("principal", ""))
        access = Access(self.context.store, self.context.directory)
        for pool in resource.properties["agentPoolProfiles"]:
            subnet = pool.get("vnetSubnetID")
            later = at(resource.body, "identity.type") == "SystemAssigned"
            if principal and subnet and not later and not access.allows(principal, _JOIN, subnet):
                scale_set = scale_set_id(self.context, resource, pool["name"])
                raise access.linked_failure(principal, f"{SCALE_SET_TYPE}/write", scale_set, _JOIN, subnet)
        profile = resource.properties.get("apiServerAccessProfile") or {}
        if principal:
            api_server.check_rights(access, principal, profile, resource.id)
            for pool in resource.properties["agentPoolProfiles"]:
                if subnet_id := str(pool.get("vnetSubnetID") or ""):
                    vnet = self.context.get(ResourceId.parse(subnet_id).parent)
                    servers = at(vnet.properties, "dhcpOptions.dnsServers") if vnet else None
                    api_server.check_link(access, principal, profile, subnet_id, has_dns_servers=bool(servers))
        kubelet = resource.properties["identityProfile"]["kubeletidentity"]["resourceId"]
        if self.context.get(kubelet) and not access.allows(principal, _ASSIGN, kubelet):
            raise refused("CustomKubeletIdentityMissingPermissionError", principal=principal, kubelet=kubelet)

    def _make_group(self, resource: Resource) -> None:
        context, properties = self.context, resource.properties
        name, number, location = str(properties["nodeResourceGroup"]), resource.private["number"], context.region
        group = group_id(context.subscription, name)
        context.keep(
            group,
            GROUP_TYPE,
            {
                "location": location,
                "managedBy": resource.id.text,
                "tags": {"aks-managed-cluster-name": resource.id.name, "aks-managed-cluster-rg": resource.id.group},
            },
        )
        security_group = context.named(name, SECURITY_GROUP_TYPE, f"aks-agentpool-{number}-nsg")
        context.keep(security_group, SECURITY_GROUP_TYPE, {"location": location, "properties": {"securityRules": []}})
        if not all(pool.get("vnetSubnetID") for pool in properties["agentPoolProfiles"]):
            network = context.named(name, NETWORK_TYPE, f"aks-vnet-{number}")
            context.keep(
                network,
                NETWORK_TYPE,
                {
                    "location": location,
                    "properties": {
                        "addressSpace": {"addressPrefixes": ["10.224.0.0/12"]},
                        "resourceGuid": str(uuid.uuid4()),
                    },
                },
            )
            context.keep(
                f"{network}/subnets/aks-subnet",
                SUBNET_TYPE,
                {"properties": {"addressPrefix": "10.224.0.0/16", "networkSecurityGroup": {"id": security_group}}},
            )
        if properties["networkProfile"]["outboundType"] == "loadBalancer":
            balancer = context.named(name, LOAD_BALANCER_TYPE, "kubernetes")
            pools = [
                {
                    "name": pool,
                    "id": f"{balancer}/backendAddressPools/{pool}",
                    "properties": {"provisioningState": "Succeeded"},
                }
                for pool in (_OUTBOUND, "kubernetes")
            ]
            context.keep(
                balancer,
                LOAD_BALANCER_TYPE,
                {"location": location, "sku": {"name": "Standard"}, "properties": {"backendAddressPools": pools}},
            )
        kubelet = properties["identityProfile"]["kubeletidentity"]
        if context.get(kubelet["resourceId"]) is None:
            make(context, kubelet["resourceId"], principal=kubelet["objectId"], client=kubelet["clientId"])
        if resource.private.get("principal"):
            assignments.make(context, resource.private["principal"], group, roles.CONTRIBUTOR)
