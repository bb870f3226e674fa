"""A program that does not use karpstack: AKS with Karpenter by its charts.

`test_other_program` copies it into a project of its own.
"""

from __future__ import annotations

import base64

import pulumi
import pulumi_azure_native as azure
import pulumi_kubernetes as k8s
from pulumi_azure_native.containerservice import ResourceIdentityType, list_managed_cluster_admin_credentials_output

SUBSCRIPTION = azure.authorization.get_client_config().subscription_id
TOKEN = {"token-id": "abc123", "token-secret": "0123456789abcdef"}
ROLES = {
    "machines": "9980e02c-c2be-4d73-94e8-173b1dc7cf3c",  # Virtual Machine Contributor
    "interfaces": "4d97b98b-1d4f-4787-a291-c67834d212e7",  # Network Contributor
    "identities": "f1a07417-d97a-45cb-824c-7a7467783830",  # Managed Identity Operator
}
ON_SUBNET = "interfaces"


def role(name: str, definition: str, principal: pulumi.Input[str], scope: pulumi.Input[str]) -> pulumi.Resource:
    """Assign a built-in role."""
    return azure.authorization.RoleAssignment(
        name,
        principal_id=principal,
        principal_type="ServicePrincipal",
        role_definition_id=f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/{definition}",
        scope=scope,
    )


group = azure.resources.ResourceGroup("shop")
vnet = azure.network.VirtualNetwork(
    "shop",
    resource_group_name=group.name,
    address_space={"address_prefixes": ["10.60.0.0/16"]},
    subnets=[{"name": "nodes", "address_prefix": "10.60.0.0/20"}],
)
subnet_id = vnet.subnets.apply(lambda found: (found or [])[0].id or "")
cluster = azure.containerservice.ManagedCluster(
    "shop",
    resource_group_name=group.name,
    dns_prefix="shop",
    kubernetes_version="1.36",
    identity={"type": ResourceIdentityType.SYSTEM_ASSIGNED},
    agent_pool_profiles=[
        {"name": "system", "mode": "System", "count": 2, "vm_size": "Standard_D4s_v5", "vnet_subnet_id": subnet_id}
    ],
    network_profile={"network_plugin": "azure", "network_plugin_mode": "overlay", "network_dataplane": "cilium"},
    oidc_issuer_profile={"enabled": True},
    security_profile={"workload_identity": {"enabled": True}},
)
role("cluster", ROLES[ON_SUBNET], cluster.identity.apply(lambda one: one.principal_id if one else ""), subnet_id)

# Karpenter's identity
identity = azure.managedidentity.UserAssignedIdentity("karpenter", resource_group_name=group.name)
azure.managedidentity.FederatedIdentityCredential(
    "karpenter",
    resource_group_name=group.name,
    resource_name_=identity.name,
    issuer=cluster.oidc_issuer_profile.apply(lambda profile: (profile.issuer_url if profile else "") or ""),
    subject="system:serviceaccount:karpenter:karpenter-sa",
    audiences=["api://AzureADTokenExchange"],
)
node_group = cluster.node_resource_group.apply(lambda found: found or "")
nodes = pulumi.Output.concat(f"/subscriptions/{SUBSCRIPTION}/resourceGroups/", node_group)
rights = [role(name, definition, identity.principal_id, nodes) for name, definition in ROLES.items()]
rights.append(role("subnet", ROLES[ON_SUBNET], identity.principal_id, subnet_id))

admin = list_managed_cluster_admin_credentials_output(resource_group_name=group.name, resource_name=cluster.name)
kubeconfig = admin.kubeconfigs.apply(lambda found: base64.b64decode(found[0].value).decode())
provider = k8s.Provider("shop", kubeconfig=kubeconfig)
inside = pulumi.ResourceOptions(provider=provider)

# How machines join
k8s.core.v1.Secret(
    "token",
    metadata={"name": f"bootstrap-token-{TOKEN['token-id']}", "namespace": "kube-system"},
    type="bootstrap.kubernetes.io/token",
    string_data={
        **TOKEN,
        "usage-bootstrap-authentication": "true",
        "auth-extra-groups": "system:bootstrappers:karpenter",
    },
    opts=inside,
)
for label, cluster_role in {
    "requests": "system:node-bootstrapper",
    "approval": "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
}.items():
    k8s.rbac.v1.ClusterRoleBinding(
        f"bootstrap-{label}",
        role_ref={"api_group": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": cluster_role},
        subjects=[
            {"api_group": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:bootstrappers:karpenter"}
        ],
        opts=inside,
    )

# Images
kubelet = cluster.identity_profile.apply(lambda profile: (profile or {})["kubeletidentity"])
images = azure.containerregistry.Registry("shop", resource_group_name=group.name, sku={"name": "Basic"})
role("pull", "7f951dda-4ed3-4680-a7ca-43fe172d538d", kubelet.apply(lambda one: one.object_id or ""), images.id)

# Karpenter
environment: dict[str, pulumi.Input[str]] = {
    "ARM_SUBSCRIPTION_ID": SUBSCRIPTION,
    "AZURE_SUBSCRIPTION_ID": SUBSCRIPTION,
    "LOCATION": group.location,
    "ARM_RESOURCE_GROUP": group.name,
    "AZURE_NODE_RESOURCE_GROUP": node_group,
    "VNET_SUBNET_ID": subnet_id,
    "VNET_GUID": vnet.resource_guid,
    "NETWORK_PLUGIN": "azure",
    "NETWORK_PLUGIN_MODE": "overlay",
    "NETWORK_POLICY": "cilium",
    "NETWORK_DATAPLANE": "cilium",
    "NODE_IDENTITIES": kubelet.apply(lambda one: one.resource_id or ""),
    "KUBELET_IDENTITY_CLIENT_ID": kubelet.apply(lambda one: one.client_id or ""),
    "KUBELET_BOOTSTRAP_TOKEN": ".".join(TOKEN.values()),
    "SSH_PUBLIC_KEY": pulumi.Config().require("sshPublicKey"),
}
definitions = k8s.helm.v3.Release(
    "karpenter-crd",
    namespace="karpenter",
    create_namespace=True,
    chart="oci://mcr.microsoft.com/aks/karpenter/karpenter-crd",
    version="1.14.2",
    opts=inside,
)
karpenter = k8s.helm.v3.Release(
    "karpenter",
    name="karpenter",
    namespace="karpenter",
    chart="oci://mcr.microsoft.com/aks/karpenter/karpenter",
    version="1.14.2",
    values={
        "serviceAccount": {
            "name": "karpenter-sa",
            "annotations": {"azure.workload.identity/client-id": identity.client_id},
        },
        "podLabels": {"azure.workload.identity/use": "true"},
        "controller": {"env": [{"name": name, "value": value} for name, value in environment.items()]},
        "settings": {
            "clusterName": cluster.name,
            "clusterEndpoint": cluster.fqdn.apply(lambda host: f"https://{host}:443"),
        },
    },
    opts=pulumi.ResourceOptions(provider=provider, depends_on=[definitions, *rights]),
)
node_class = k8s.apiextensions.CustomResource(
    "general",
    api_version="karpenter.azure.com/v1beta1",
    kind="AKSNodeClass",
    metadata={"name": "general"},
    spec={"imageFamily": "AzureLinux"},
    opts=pulumi.ResourceOptions(provider=provider, depends_on=[karpenter]),
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
                "requirements": [{"key": "karpenter.azure.com/sku-family", "operator": "In", "values": ["D"]}],
                "startupTaints": [{"key": "node.cilium.io/agent-not-ready", "value": "true", "effect": "NoExecute"}],
            }
        },
        "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s"},
    },
    opts=pulumi.ResourceOptions(provider=provider, depends_on=[node_class]),
)
