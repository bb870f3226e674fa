"""What the tests of the simulated Azure subscription share: a subscription in this process and short calls."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from karpstack.rehearsal.azure.arm.operations import Durations
from karpstack.rehearsal.azure.identity import roles
from karpstack.rehearsal.azure.identity.roles import Role
from karpstack.rehearsal.azure.machines.catalogue import sizes
from karpstack.rehearsal.azure.machines.images import UBUNTU
from karpstack.rehearsal.azure.subscription import SUBSCRIPTION_ID, Subscription
from karpstack.rehearsal.timing import Timing

REGION = "westus2"
SCOPE = f"/subscriptions/{SUBSCRIPTION_ID}"
GROUP = f"{SCOPE}/resourceGroups/demo"
GROUPS, NETWORK, COMPUTE, IDENTITY, ROLES, AKS, LOCKS = (
    "2024-03-01",
    "2024-05-01",
    "2025-04-01",
    "2023-01-31",
    "2022-04-01",
    "2025-09-01",
    "2020-05-01",
)
SUBJECT = "system:serviceaccount:kube-system:karpenter-sa"
IMAGE = f"/CommunityGalleries/{UBUNTU}/images/2204gen2containerd/versions/202608.12.0"
ARM_IMAGE = f"/CommunityGalleries/{UBUNTU}/images/2204gen2arm64containerd/versions/202608.12.0"
KEY = "ssh-ed25519 " + base64.b64encode(b"\x00\x00\x00\x0bssh-ed25519\x00\x00\x00\x20" + b"k" * 32).decode()
Body = dict[str, Any]
POOL: Body = {"name": "system", "mode": "System", "count": 2, "vmSize": "Standard_D2s_v5"}
ZONES: Body = {"availabilityZones": ["1", "2", "3"]}
CILIUM = dict.fromkeys(("networkDataplane", "networkPolicy"), "cilium")
OVERLAY: Body = {"networkPlugin": "azure", "networkPluginMode": "overlay", **CILIUM}


def table() -> dict[str, dict[str, float]]:
    """A price for every size of the catalogue."""
    return {REGION: {size.name: round(0.01 * size.memory + 0.02 * size.vcpus, 3) for size in sizes().values()}}


class World:
    """One subscription with a resource group."""

    def __init__(self, durations: Durations | None = None, role_effective: float = 0) -> None:
        timing = Timing(role_effective=role_effective)
        self.azure = Subscription(REGION, table(), timing, durations or Durations.none())
        self.arm = self.azure.arm
        self.arm.put(GROUP, GROUPS, {"location": "West US 2"})

    def network(self, name: str = "net", *subnets: tuple[str, str]) -> Body:
        items = [{"name": key, "properties": {"addressPrefix": cidr}} for key, cidr in subnets]
        return self.arm.put(
            f"{GROUP}/providers/Microsoft.Network/virtualNetworks/{name}",
            NETWORK,
            {
                "location": REGION,
                "properties": {"addressSpace": {"addressPrefixes": ["10.1.0.0/16"]}, "subnets": items},
            },
        )

    def subnet(self) -> str:
        return str(self.network("net", ("nodes", "10.1.0.0/24"))["properties"]["subnets"][0]["id"])

    def identity(self, name: str = "karpenter") -> Body:
        return self.arm.put(
            f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{name}", IDENTITY, {"location": REGION}
        )

    def credential(
        self,
        identity: str,
        issuer: str,
        subject: str = SUBJECT,
        name: str = "karpenter",
        audience: str = "api://AzureADTokenExchange",
    ) -> Body:
        return self.arm.put(
            f"{identity}/federatedIdentityCredentials/{name}",
            IDENTITY,
            {"properties": {"issuer": issuer, "subject": subject, "audiences": [audience]}},
        )

    def grant(
        self, scope: str, principal: str, role: Role, name: str = "", kind: str | None = "ServicePrincipal"
    ) -> Body:
        definition = f"{SCOPE}/providers/Microsoft.Authorization/roleDefinitions/{role.id}"
        properties = {"principalId": principal, "roleDefinitionId": definition, "principalType": kind}
        return self.arm.put(
            f"{scope}/providers/Microsoft.Authorization/roleAssignments/{name or uuid.uuid4()}",
            ROLES,
            {"properties": {key: value for key, value in properties.items() if value}},
        )

    def interface(self, subnet: str, name: str = "nic") -> Body:
        return self.arm.put(
            f"{GROUP}/providers/Microsoft.Network/networkInterfaces/{name}",
            NETWORK,
            {
                "location": REGION,
                "properties": {"ipConfigurations": [{"name": "one", "properties": {"subnet": {"id": subnet}}}]},
            },
        )

    def machine_body(self, interface: str, size: str = "Standard_D2s_v5", **changes: Any) -> Body:
        properties = {
            "hardwareProfile": {"vmSize": size},
            "priority": "Regular",
            "storageProfile": {"imageReference": {"communityGalleryImageId": IMAGE}, "osDisk": {"diskSizeGB": 128}},
            "osProfile": {
                "computerName": "aks-one",
                "adminUsername": "azureuser",
                "linuxConfiguration": {"ssh": {"publicKeys": [{"keyData": KEY, "path": "/home/x"}]}},
            },
            "networkProfile": {"networkInterfaces": [{"id": interface, "properties": {"deleteOption": "Delete"}}]},
        }
        return {
            "location": REGION,
            "zones": ["1"],
            "tags": {"karpenter.sh_nodepool": "default"},
            "properties": {**properties, **changes},
        }

    def machine(self, body: Mapping[str, Any], name: str = "aks-one") -> Body:
        return self.arm.put(machine_id(name), COMPUTE, body)

    def cluster_body(self, identity: Body | None = None, subnet: str = "", **changes: Any) -> Body:
        pool = {**POOL, **ZONES, **({"vnetSubnetID": subnet} if subnet else {})}
        properties: Body = {
            "dnsPrefix": "Demo",
            "kubernetesVersion": "1.36",
            "agentPoolProfiles": [pool],
            "networkProfile": dict(OVERLAY),
            "oidcIssuerProfile": {"enabled": True},
            "securityProfile": {"workloadIdentity": {"enabled": True}},
        }
        for path, value in changes.items():
            *parents, last = path.split("__")
            target = properties
            for parent in parents:
                target = target.setdefault(parent, {})
            target[last] = value
        own = (
            {"type": "UserAssigned", "userAssignedIdentities": {identity["id"]: {}}}
            if identity
            else {"type": "SystemAssigned"}
        )
        return {"location": REGION, "identity": own, "properties": properties}

    def cluster(self, body: Mapping[str, Any] | None = None) -> Body:
        return self.arm.put(CLUSTER, AKS, body or self.cluster_body())


CLUSTER = f"{GROUP}/providers/Microsoft.ContainerService/managedClusters/demo"


def machine_id(name: str = "aks-one", group: str = GROUP) -> str:
    return f"{group}/providers/Microsoft.Compute/virtualMachines/{name}"


class FakeCluster:
    """The part of a running control plane that the cloud asks."""

    def __init__(self, folder: Path, subject: str | None = SUBJECT) -> None:
        self.subject = subject
        self.audiences: list[str] = []
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text("apiVersion: v1\n")
        #: Why a bootstrap token opens nothing, by token; empty where it does.
        self.bootstrap_tokens = {"abcdef.0123456789abcdef": ""}

    def review_token(self, token: str, audience: str) -> str | None:
        self.audiences.append(audience)
        return self.subject

    def create_token(self, namespace: str, service_account: str, audience: str) -> str:
        return f"token of {namespace}/{service_account} for {audience}"

    def refused_bootstrap(self, token: str) -> str:
        return self.bootstrap_tokens.get(token, "Unauthorized")


def assertion(issuer: str, subject: str = SUBJECT, audience: str = "api://AzureADTokenExchange") -> str:
    """A token with these claims; whether it is genuine is for the cluster to say."""
    claims = base64.urlsafe_b64encode(json.dumps({"iss": issuer, "sub": subject, "aud": [audience]}).encode()).decode()
    return f"e30.{claims.rstrip('=')}.sig"


def form(client: str, token: str, **changes: str) -> dict[str, str]:
    return {
        "grant_type": "client_credentials",
        "client_id": client,
        "client_assertion": token,
        "scope": "https://management.core.windows.net//.default openid offline_access profile",
        **changes,
    }


def script(server: str) -> str:
    text = (
        f'#!/bin/bash\nKUBERNETES_VERSION=1.36.3\nAPI_SERVER_NAME={server}\nTLS_BOOTSTRAP_TOKEN="abcdef.0123456789abcdef"\n'
        'KUBELET_NODE_LABELS="karpenter.sh/nodepool=default,kubernetes.azure.com/mode=user"\n'
    )
    return base64.b64encode(text.encode()).decode()


def role(name: str) -> Role:
    return next(one for one in roles.BUILT_IN.values() if one.name == name)
