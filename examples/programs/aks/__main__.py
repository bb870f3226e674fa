"""An AKS cluster with node auto provisioning (AKS runs Karpenter), in one file.

Rehearse it: karpstack up dev --program examples/programs/aks
"""

import base64

import pulumi
import pulumi_kubernetes as k8s
from pulumi_azure_native import (
    authorization,
    containerservice,
    managedidentity,
    network,
    operationalinsights,
    resources,
)

config = pulumi.Config()
name = f"shop-{pulumi.get_stack()}"
subscription = authorization.get_client_config().subscription_id
network_contributor = "4d97b98b-1d4f-4787-a291-c67834d212e7"  # a built-in role

# Network
group = resources.ResourceGroup("shop", tags={"team": "shop"})
vnet = network.VirtualNetwork(
    "shop", resource_group_name=group.name, address_space={"address_prefixes": ["10.60.0.0/16"]}
)
subnet = network.Subnet(
    "nodes", resource_group_name=group.name, virtual_network_name=vnet.name, address_prefix="10.60.0.0/20"
)

# The cluster's identity: Karpenter joins machines to the subnet with it
identity = managedidentity.UserAssignedIdentity("cluster", resource_group_name=group.name)
joins = authorization.RoleAssignment(
    "cluster-joins-subnet",
    principal_id=identity.principal_id,
    principal_type=authorization.PrincipalType.SERVICE_PRINCIPAL,
    role_definition_id=f"/subscriptions/{subscription}/providers/Microsoft.Authorization/roleDefinitions/{network_contributor}",
    scope=subnet.id,
)

# Cluster
logs = operationalinsights.Workspace(
    "logs", resource_group_name=group.name, sku={"name": "PerGB2018"}, retention_in_days=30
)
cluster = containerservice.ManagedCluster(
    "cluster",
    resource_group_name=group.name,
    resource_name_=name,
    dns_prefix=name,
    kubernetes_version="1.36",
    identity={
        "type": containerservice.ResourceIdentityType.USER_ASSIGNED,
        "user_assigned_identities": [identity.id],
    },
    sku={"name": "Base", "tier": "Standard"},
    agent_pool_profiles=[
        {
            "name": "system",
            "mode": containerservice.AgentPoolMode.SYSTEM,
            "count": config.require_int("nodes"),
            "vm_size": "Standard_D4s_v5",
            "os_type": containerservice.OSType.LINUX,
            "availability_zones": ["1", "2", "3"],
            "vnet_subnet_id": subnet.id,
            "node_taints": ["CriticalAddonsOnly=true:NoSchedule"],
        }
    ],
    network_profile={
        "network_plugin": containerservice.NetworkPlugin.AZURE,
        "network_plugin_mode": containerservice.NetworkPluginMode.OVERLAY,
        "network_dataplane": containerservice.NetworkDataplane.CILIUM,
        "network_policy": containerservice.NetworkPolicy.CILIUM,
    },
    node_provisioning_profile={"mode": containerservice.NodeProvisioningMode.AUTO},
    oidc_issuer_profile={"enabled": True},
    security_profile={"workload_identity": {"enabled": True}},
    addon_profiles={"omsagent": {"enabled": True, "config": {"logAnalyticsWorkspaceResourceID": logs.id}}},
    opts=pulumi.ResourceOptions(depends_on=[joins]),
)

credentials = pulumi.Output.all(group.name, cluster.name).apply(
    lambda names: containerservice.list_managed_cluster_user_credentials(
        resource_group_name=names[0], resource_name=names[1]
    )
)
kubeconfig = credentials.apply(lambda found: base64.b64decode(found.kubeconfigs[0].value).decode())
provider = k8s.Provider("cluster", kubeconfig=kubeconfig)

# Karpenter: a NodePool beside those that AKS creates (default and system-surge)
node_class = k8s.apiextensions.CustomResource(
    "general",
    api_version="karpenter.azure.com/v1beta1",
    kind="AKSNodeClass",
    metadata={"name": "general"},
    spec={"imageFamily": "Ubuntu", "osDiskSizeGB": 100},
    opts=pulumi.ResourceOptions(provider=provider),
)
k8s.apiextensions.CustomResource(
    "general-pool",
    api_version="karpenter.sh/v1",
    kind="NodePool",
    metadata={"name": "general"},
    spec={
        "template": {
            "spec": {
                "nodeClassRef": {"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "general"},
                "requirements": [
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                    {"key": "karpenter.azure.com/sku-family", "operator": "In", "values": ["D"]},
                    {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                    {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                ],
                "startupTaints": [{"key": "node.cilium.io/agent-not-ready", "value": "true", "effect": "NoExecute"}],
                "expireAfter": "720h",
            }
        },
        "limits": {"cpu": "100"},
        "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "30s"},
    },
    opts=pulumi.ResourceOptions(provider=provider, depends_on=[node_class]),
)

pulumi.export("kubeconfig", pulumi.Output.secret(kubeconfig))
pulumi.export("cluster", cluster.name)
