"""components.aks and components.kubernetes under Pulumi's mocks, in both modes: parents, wiring, order, secrets."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import runpy
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from uuid import UUID

import pulumi
import pytest

from components import versions
from components.aks.late_roles import wait_for_roles
from components.aks.update_guards import refuse_fixed, refuse_stranding
from tests.unit.example_stack import ROOT, example
from tests.unit.mock_engine import SUBSCRIPTION, Deployment, Registered, deploy, unknown

NAP, SELF_HOSTED = "aks-nap", "aks-self-hosted"
GROUP = "22222222-2222-2222-2222-222222222222"
SUBNET = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/hub/providers/Microsoft.Network/virtualNetworks/shared/subnets/aks"
)

ENVIRONMENT = "karpstack:aks:Environment"
CLUSTER = "azure-native:containerservice:ManagedCluster"
ASSIGNMENT = "azure-native:authorization:RoleAssignment"
IDENTITY = "azure-native:managedidentity:UserAssignedIdentity"
CREDENTIAL = "azure-native:managedidentity:FederatedIdentityCredential"
SECRET = "kubernetes:core/v1:Secret"
RELEASE = "kubernetes:helm.sh/v3:Release"
NODE_CLASS = "kubernetes:karpenter.azure.com/v1beta1:AKSNodeClass"
NODE_POOL = "kubernetes:karpenter.sh/v1:NodePool"
PROVIDER = "pulumi:providers:kubernetes"
GUARDS = ("system-pool", "network", "version", "proxy", "new-nodes")

both = pytest.mark.parametrize("stack", [NAP, SELF_HOSTED])


def deployed(stack: str, preview: bool = False, **changes: Any) -> Deployment:
    def program() -> None:
        pulumi.runtime.set_all_config(example(stack, **changes))
        runpy.run_path(str(ROOT / "__main__.py"), run_name="__main__")

    return deploy(program, preview)


@cache
def shipped(stack: str) -> Deployment:
    """The example as it is."""
    return deployed(stack)


@cache
def variant() -> Deployment:
    """Every choice made the other way."""
    return deployed(
        SELF_HOSTED,
        cluster__admins=[GROUP],
        cluster__deletionProtection=False,
        cluster__localAccounts=True,
        cluster__publicAccessCidrs=["1.1.1.0/24"],
        karpenter__bootstrapTokenGeneration=2,
        karpenter__chartVersion="1.14.3",
        network__subnetCidr=None,
        network__subnetId=SUBNET,
        nodeProvisioning={"allowStrandedNodes": True},
        systemNodes__zones=[],
    )


def resource(deployment: Deployment, type_: str) -> Registered:
    (only,) = deployment.of(type_)
    return only


def controller(deployment: Deployment) -> dict[str, Any]:
    values: dict[str, Any] = deployment.one("aks-karpenter-charts-controller").inputs["values"]
    return values


def environment(deployment: Deployment) -> dict[str, Any]:
    variables = controller(deployment)["controller"]["env"]
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in variables}


@both
def test_every_resource_has_a_component_as_parent_and_every_component_is_ours(stack: str) -> None:
    for each in shipped(stack).resources.values():
        parent = shipped(stack).resources.get(each.parent)
        if each.type == "karpstack:aks:Environment":
            assert parent is None
        else:
            assert parent is not None, each.urn
            assert parent.type.startswith("karpstack:"), each.urn
            assert each.name.startswith(f"{parent.name}-"), each.urn
        if not each.request.custom:
            assert each.type.split(":")[1] in ("aks", "kubernetes"), each.urn


def test_few_resources() -> None:
    assert len(shipped(NAP).resources) < 25
    assert len(shipped(SELF_HOSTED).resources) < 40


@both
def test_the_network_is_overlay_with_cilium_and_leaves_by_the_load_balancer(stack: str) -> None:
    assert resource(shipped(stack), CLUSTER).inputs["networkProfile"] == {
        "networkPlugin": "azure",
        "networkPluginMode": "overlay",
        "networkDataplane": "cilium",
        "networkPolicy": "cilium",
        "podCidr": "10.244.0.0/16",
        "serviceCidr": "10.0.0.0/16",
        "dnsServiceIP": "10.0.0.10",
        "loadBalancerSku": "standard",
        "outboundType": "loadBalancer",
        "advancedNetworking": {"enabled": False},
    }


@both
def test_people_come_in_through_entra_only(stack: str) -> None:
    inputs = resource(shipped(stack), CLUSTER).inputs
    assert inputs["disableLocalAccounts"] is True
    assert inputs["enableRBAC"] is True
    assert inputs["aadProfile"] == {"managed": True, "enableAzureRBAC": True, "adminGroupObjectIDs": []}
    assert inputs["apiServerAccessProfile"] == {"enablePrivateCluster": True}


def test_a_public_endpoint_is_there_for_the_list_and_the_gateway_by_which_nodes_come() -> None:
    inputs = resource(variant(), CLUSTER).inputs
    ranges = ["1.1.1.0/24", "20.0.0.1/32"]
    assert inputs["apiServerAccessProfile"] == {"enablePrivateCluster": False, "authorizedIPRanges": ranges}


@both
def test_pods_can_have_identities_and_nobody_is_a_service_principal(stack: str) -> None:
    inputs = resource(shipped(stack), CLUSTER).inputs
    assert inputs["oidcIssuerProfile"] == {"enabled": True}
    assert inputs["securityProfile"] == {"workloadIdentity": {"enabled": True}}
    assert inputs["identity"] == {"type": "UserAssigned", "userAssignedIdentities": ["aks-identity-identity-id"]}
    assert "servicePrincipalProfile" not in inputs


@both
def test_the_system_pool_is_tainted_over_zones_and_of_fixed_size(stack: str) -> None:
    (pool,) = resource(shipped(stack), CLUSTER).inputs["agentPoolProfiles"]
    assert pool["nodeTaints"] == ["CriticalAddonsOnly=true:NoSchedule"]
    assert (pool["mode"], pool["count"], pool["enableAutoScaling"]) == ("System", 2, False)
    assert pool["availabilityZones"] == ["1", "2", "3"]
    assert pool["vnetSubnetID"] == "aks-network-nodes-id"
    assert pool["orchestratorVersion"] == resource(shipped(stack), CLUSTER).inputs["kubernetesVersion"] == "1.36"


def test_who_provisions_nodes() -> None:
    profile = "nodeProvisioningProfile"
    assert resource(shipped(NAP), CLUSTER).inputs[profile] == {"mode": "Auto", "defaultNodePools": "Auto"}
    assert resource(shipped(SELF_HOSTED), CLUSTER).inputs[profile]["mode"] == "Manual"
    none = deployed(NAP, nodeProvisioning__defaultNodePools="None")
    assert resource(none, CLUSTER).inputs[profile] == {"mode": "Auto", "defaultNodePools": "None"}


def test_what_aks_brings_is_told_to_those_who_use_the_stack() -> None:
    """Scale tests know the stack by its outputs alone."""

    def told(deployment: Deployment) -> object:
        return deployment.outputs[resource(deployment, ENVIRONMENT).urn]["defaultNodePools"]

    assert told(shipped(NAP)) == ["default", "system-surge"]
    assert told(shipped(SELF_HOSTED)) == []
    assert told(deployed(NAP, nodeProvisioning__defaultNodePools="None")) == []


def test_feature_gates_that_are_on_are_told_to_those_who_use_the_stack() -> None:
    def told(deployment: Deployment) -> object:
        return deployment.outputs[resource(deployment, ENVIRONMENT).urn]["featureGates"]

    assert told(shipped(NAP)) == []
    assert told(shipped(SELF_HOSTED)) == []
    assert told(deployed(SELF_HOSTED, karpenter__featureGates__staticCapacity=True)) == ["staticCapacity"]


def test_nap_installs_no_controller() -> None:
    assert not shipped(NAP).of(RELEASE)
    assert not shipped(NAP).of(SECRET)
    assert not shipped(NAP).of(CREDENTIAL)
    assert [each.inputs["resourceName"] for each in shipped(NAP).of(IDENTITY)] == ["karpstack-aks-nap-cluster"]


def assignments(deployment: Deployment) -> set[tuple[str, str, str]]:
    """(role, scope, principal)."""
    roles = {
        "4d97b98b-1d4f-4787-a291-c67834d212e7": "Network Contributor",
        "9980e02c-c2be-4d73-94e8-173b1dc7cf3c": "Virtual Machine Contributor",
        "f1a07417-d97a-45cb-824c-7a7467783830": "Managed Identity Operator",
        "b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b": "Azure Kubernetes Service RBAC Cluster Admin",
    }
    prefix = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/"
    return {
        (roles[each.inputs["roleDefinitionId"].removeprefix(prefix)], each.inputs["scope"], each.inputs["principalId"])
        for each in deployment.of(ASSIGNMENT)
    }


COMMON = {
    ("Network Contributor", "aks-network-nodes-id", "principal-of-{}-cluster"),
    ("Azure Kubernetes Service RBAC Cluster Admin", "aks-group-id", "deployer"),
}
NODES = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/karpstack-aks-nodes"


def test_rights_of_nap() -> None:
    assert assignments(shipped(NAP)) == {(role, scope, who.format("karpstack-aks-nap")) for role, scope, who in COMMON}


def test_rights_of_self_hosted() -> None:
    assert assignments(shipped(SELF_HOSTED)) == {
        *((role, scope, who.format("karpstack-aks")) for role, scope, who in COMMON),
        ("Virtual Machine Contributor", NODES, "principal-of-karpstack-aks-karpenter"),
        ("Network Contributor", NODES, "principal-of-karpstack-aks-karpenter"),
        ("Managed Identity Operator", NODES, "principal-of-karpstack-aks-karpenter"),
        ("Network Contributor", "aks-network-nodes-id", "principal-of-karpstack-aks-karpenter"),
    }


@both
def test_assignments_have_stable_names_and_say_what_they_are_for(stack: str) -> None:
    names, again = (
        {each.name: UUID(each.inputs["roleAssignmentName"]) for each in deployment.of(ASSIGNMENT)}
        for deployment in (shipped(stack), deployed(stack))
    )
    assert names == again
    assert len(set(names.values())) == len(names)
    for each in shipped(stack).of(ASSIGNMENT):
        person = each.inputs["principalId"] == "deployer"
        assert each.inputs["principalType"] == ("User" if person else "ServicePrincipal"), each.urn


def test_the_federated_credential_names_issuer_subject_and_audience() -> None:
    inputs = resource(shipped(SELF_HOSTED), CREDENTIAL).inputs
    assert inputs["issuer"] == "https://westus2.oic.prod-aks.azure.com/t/i/"
    assert inputs["subject"] == "system:serviceaccount:kube-system:karpenter-sa"
    assert inputs["audiences"] == ["api://AzureADTokenExchange"]
    assert inputs["resourceName"] == "karpstack-aks-karpenter"
    values = controller(shipped(SELF_HOSTED))
    namespace = shipped(SELF_HOSTED).one("aks-karpenter-charts-controller").inputs["namespace"]
    assert inputs["subject"] == f"system:serviceaccount:{namespace}:{values['serviceAccount']['name']}"
    assert values["serviceAccount"]["annotations"] == {
        "azure.workload.identity/client-id": "client-of-karpstack-aks-karpenter"
    }


def test_the_controller_gets_everything_that_it_validates() -> None:
    given = environment(shipped(SELF_HOSTED))
    assert given["ARM_SUBSCRIPTION_ID"] == given["AZURE_SUBSCRIPTION_ID"] == SUBSCRIPTION
    assert given["VNET_SUBNET_ID"] == "aks-network-nodes-id"
    assert given["VNET_GUID"] == "vnet-guid"
    assert given["NODE_IDENTITIES"] == "kubelet-id"
    assert given["KUBELET_IDENTITY_CLIENT_ID"] == "kubelet-client"
    assert given["AZURE_NODE_RESOURCE_GROUP"] == "karpstack-aks-nodes"
    settings = controller(variant())["settings"]
    # Its own node identity (the cluster's ID) is cut from this form.
    assert re.fullmatch(r"https://[a-z0-9-]+-[a-z0-9]{8}\.hcp\.westus2\.azmk8s\.io:443", settings["clusterEndpoint"])
    assert settings["clusterName"] == "karpstack-aks"


def test_secrets_are_secrets_and_values_hold_none() -> None:
    release = shipped(SELF_HOSTED).one("aks-karpenter-charts-controller")
    assert release.secrets == frozenset()
    secrets = shipped(SELF_HOSTED).of(SECRET)
    assert len(secrets) == 2
    for each in secrets:
        assert each.secrets == {"data"}, each.urn
        for value in each.inputs["data"].values():
            decoded = base64.b64decode(value).decode()
            if len(decoded) >= 16:
                assert decoded not in json.dumps(release.inputs)
    assert resource(shipped(SELF_HOSTED), PROVIDER).secrets == {"kubeconfig"}


def token(deployment: Deployment, generation: int = 1) -> tuple[Registered, dict[str, str]]:
    secret = deployment.one(f"aks-karpenter-bootstrap-token-{generation}")
    return secret, {key: base64.b64decode(value).decode() for key, value in secret.inputs["data"].items()}


def test_the_bootstrap_token_is_one() -> None:
    secret, data = token(shipped(SELF_HOSTED))
    assert secret.inputs["type"] == "bootstrap.kubernetes.io/token"
    assert secret.inputs["metadata"] == {"name": f"bootstrap-token-{data['token-id']}", "namespace": "kube-system"}
    assert re.fullmatch(r"[a-z0-9]{6}\.[a-z0-9]{16}", f"{data['token-id']}.{data['token-secret']}")
    assert data["usage-bootstrap-authentication"] == "true"
    assert "usage-bootstrap-signing" not in data
    days = datetime.fromisoformat(data["expiration"]) - datetime.now(UTC)
    assert timedelta(days=364) < days <= timedelta(days=365)
    references = environment(shipped(SELF_HOSTED))
    for variable, key in (("BOOTSTRAP_TOKEN_ID", "token-id"), ("BOOTSTRAP_TOKEN_SECRET", "token-secret")):
        assert references[variable]["secretKeyRef"] == {"name": secret.inputs["metadata"]["name"], "key": key}
    assert references["KUBELET_BOOTSTRAP_TOKEN"] == "$(BOOTSTRAP_TOKEN_ID).$(BOOTSTRAP_TOKEN_SECRET)"


def test_the_bootstrap_token_is_kept_and_its_secret_half_is_random() -> None:
    (secret, first), (_, second) = token(shipped(SELF_HOSTED)), token(deployed(SELF_HOSTED))
    assert first["token-secret"] != second["token-secret"]
    assert first["token-id"] == second["token-id"]
    assert list(secret.request.ignoreChanges) == ["data"]


def test_the_tokens_group_may_ask_for_a_nodes_certificate_and_nothing_else() -> None:
    _, data = token(shipped(SELF_HOSTED))
    bindings = shipped(SELF_HOSTED).of("kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding")
    assert {each.inputs["roleRef"]["name"] for each in bindings} == {
        "system:node-bootstrapper",
        "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
    }
    for each in bindings:
        assert each.inputs["subjects"] == [
            {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": data["auth-extra-groups"]}
        ]


def test_the_token_before_stays_for_machines_that_are_on_their_way() -> None:
    (_, before), (_, now) = token(variant(), 1), token(variant(), 2)
    assert before["token-id"] == token(shipped(SELF_HOSTED))[1]["token-id"]
    assert before["token-id"] != now["token-id"]
    assert [each.name for each in shipped(SELF_HOSTED).of(SECRET) if "token" in each.name] == [
        "aks-karpenter-bootstrap-token-1"
    ]


@pytest.mark.parametrize(("days", "warnings"), [(365, 0), (30, 1)])
def test_whoever_deploys_is_warned_before_the_token_expires(
    days: int, warnings: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", told.append)
    deployed(SELF_HOSTED, karpenter__bootstrapTokenDays=days)
    assert len([text for text in told if "bootstrapTokenGeneration" in text]) == warnings


def test_another_generation_is_another_token() -> None:
    (old, first), (new, second) = token(shipped(SELF_HOSTED)), token(variant(), 2)
    assert first["token-id"] != second["token-id"]
    assert old.name != new.name
    assert environment(variant())["BOOTSTRAP_TOKEN_ID"]["secretKeyRef"]["name"] == new.inputs["metadata"]["name"]


def test_the_ssh_key_reaches_the_controller_and_a_changed_one_restarts_it() -> None:
    secret = shipped(SELF_HOSTED).one("aks-karpenter-bootstrap-ssh").inputs
    key = base64.b64decode(secret["data"]["ssh-public-key"]).decode()
    assert key == json.loads(example(SELF_HOSTED)["karpstack:karpenter"])["sshPublicKey"]
    assert environment(shipped(SELF_HOSTED))["SSH_PUBLIC_KEY"]["secretKeyRef"] == {
        "name": secret["metadata"]["name"],
        "key": "ssh-public-key",
    }
    other = deployed(SELF_HOSTED, karpenter__sshPublicKey="ssh-rsa " + "A" * 60)
    assert other.one("aks-karpenter-bootstrap-ssh").inputs["metadata"]["name"] != secret["metadata"]["name"]


@both
def test_the_kubeconfig_asks_entra(stack: str) -> None:
    config = json.loads(resource(shipped(stack), PROVIDER).inputs["kubeconfig"])
    name = resource(shipped(stack), CLUSTER).inputs["resourceName"]
    assert config["clusters"][0]["cluster"] == {
        "server": f"https://{name}.example:443",
        "certificate-authority-data": "Q0E=",
    }
    assert config["users"][0]["user"]["exec"]["args"] == [
        "get-token",
        "--login",
        "azurecli",
        "--server-id",
        "6dae42f8-4368-4678-94ff-500e3e86be80",
        "--tenant-id",
        "tenant",
    ]


@both
def test_each_update_waits_for_the_deployers_role(stack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[str] = []

    async def wait(kubeconfig: str) -> str:
        waited.append(kubeconfig)
        return kubeconfig

    monkeypatch.setattr("tests.unit.mock_engine.accepted", wait)
    made = deployed(stack)
    assert waited == [resource(made, PROVIDER).inputs["kubeconfig"]]
    assert resource(made, PROVIDER).secrets == {"kubeconfig"}
    deployed(stack, preview=True)
    assert len(waited) == 1


def test_local_accounts_are_a_choice() -> None:
    assert resource(variant(), CLUSTER).inputs["disableLocalAccounts"] is False
    assert "name: admin" in resource(variant(), PROVIDER).inputs["kubeconfig"]
    assert not variant().of("karpstack:aks:DeployerAccess")


def test_the_deployers_role_is_a_choice() -> None:
    existing = deployed(NAP, cluster__deployerRole="existing")
    assert not existing.of("karpstack:aks:DeployerAccess")
    assert {who for _, _, who in assignments(existing)} == {"principal-of-karpstack-aks-nap-cluster"}
    pipeline = deployed(NAP, cluster__deployerRole="ServicePrincipal")
    assert {each.inputs["principalType"] for each in pipeline.of(ASSIGNMENT)} == {"ServicePrincipal"}


def test_a_private_cluster_where_nobody_is_let_in_from_outside() -> None:
    assert ".privatelink." in controller(shipped(SELF_HOSTED))["settings"]["clusterEndpoint"]


def test_premium_brings_long_term_support() -> None:
    assert resource(shipped(NAP), CLUSTER).inputs["supportPlan"] == "KubernetesOfficial"
    assert resource(deployed(NAP, cluster__tier="Premium"), CLUSTER).inputs["supportPlan"] == "AKSLongTermSupport"


def test_a_protected_cluster_is_neither_deleted_nor_replaced() -> None:
    assert resource(shipped(SELF_HOSTED), CLUSTER).request.protect
    assert not resource(variant(), CLUSTER).request.protect


def test_administrators_and_a_pool_without_zones() -> None:
    assert resource(variant(), CLUSTER).inputs["aadProfile"]["adminGroupObjectIDs"] == [GROUP]
    assert resource(variant(), CLUSTER).inputs["agentPoolProfiles"][0]["availabilityZones"] == []


def test_an_existing_subnet_is_joined_and_not_touched() -> None:
    assert not variant().of("azure-native:network:VirtualNetwork")
    assert not variant().of("azure-native:network:Subnet")
    given = environment(variant())
    assert (given["VNET_SUBNET_ID"], given["VNET_GUID"]) == (SUBNET, "guid-of-shared")
    assert resource(variant(), CLUSTER).inputs["agentPoolProfiles"][0]["vnetSubnetID"] == SUBNET
    assert {who for role, scope, who in assignments(variant()) if scope == SUBNET} == {
        "principal-of-karpstack-aks-cluster",
        "principal-of-karpstack-aks-karpenter",
    }


def test_before_there_is_a_cluster_the_controllers_values_are_known_but_what_azure_makes() -> None:
    values = controller(deployed(SELF_HOSTED, preview=True))
    variables = values["controller"].pop("env")
    assert set(unknown(values)) == {
        "serviceAccount.annotations.azure.workload.identity/client-id",
        "settings.clusterEndpoint",
        "settings.clusterName",
    }
    assert {each["name"] for each in variables if any(unknown(each))} == {
        "ARM_RESOURCE_GROUP",
        "KUBELET_IDENTITY_CLIENT_ID",
        "NODE_IDENTITIES",
        "VNET_GUID",
    }


def test_charts_are_the_pinned_ones_unless_the_stack_chooses() -> None:
    charts = {
        each.inputs["name"]: (each.inputs["chart"], each.inputs["version"]) for each in shipped(SELF_HOSTED).of(RELEASE)
    }
    assert charts == {
        "karpenter-crd": ("oci://mcr.microsoft.com/aks/karpenter/karpenter-crd", versions.KARPENTER_AZURE),
        "karpenter": ("oci://mcr.microsoft.com/aks/karpenter/karpenter", versions.KARPENTER_AZURE),
    }
    assert {each.inputs["version"] for each in variant().of(RELEASE)} == {"1.14.3"}


def test_node_pools_and_classes_are_the_stacks() -> None:
    for stack, pools, classes in ((NAP, ["batch"], ["batch"]), (SELF_HOSTED, ["general-purpose"], ["default"])):
        assert [each.inputs["metadata"]["name"] for each in shipped(stack).of(NODE_POOL)] == pools
        assert [each.inputs["metadata"]["name"] for each in shipped(stack).of(NODE_CLASS)] == classes


@both
def test_everything_in_the_cluster_uses_its_provider(stack: str) -> None:
    provider = resource(shipped(stack), PROVIDER)
    for each in shipped(stack).resources.values():
        if each.type.startswith("kubernetes:"):
            assert each.request.provider == f"{provider.urn}::{provider.name}-id", each.urn


ORDER = [
    # what, needs what, and so is deleted before it
    (NAP, CLUSTER, "aks-identity-roles-subnet"),
    (NAP, CLUSTER, "aks-deployer-roles-cluster-admin"),
    (NAP, NODE_CLASS, CLUSTER),
    (NAP, NODE_POOL, "aks-nodes-class-batch"),
    (NAP, NODE_POOL, "aks-identity-roles-subnet"),
    (SELF_HOSTED, CLUSTER, "aks-identity-roles-subnet"),
    (SELF_HOSTED, CREDENTIAL, CLUSTER),
    (SELF_HOSTED, "aks-karpenter-identity-roles-machines", CLUSTER),
    (SELF_HOSTED, "aks-karpenter-charts-controller", "aks-karpenter-charts-crd"),
    (SELF_HOSTED, "aks-karpenter-charts-controller", CREDENTIAL),
    (SELF_HOSTED, "aks-karpenter-charts-controller", "aks-karpenter-identity-roles-machines"),
    (SELF_HOSTED, "aks-karpenter-charts-controller", "aks-karpenter-identity-roles-subnet"),
    (SELF_HOSTED, "aks-karpenter-charts-controller", "aks-karpenter-bootstrap-token-1"),
    (SELF_HOSTED, "aks-karpenter-charts-controller", "aks-karpenter-bootstrap-ssh"),
    (SELF_HOSTED, NODE_POOL, "aks-karpenter-bootstrap-requests"),
    (SELF_HOSTED, NODE_POOL, "aks-karpenter-bootstrap-approval"),
    (SELF_HOSTED, NODE_CLASS, "aks-karpenter-charts-controller"),
    (SELF_HOSTED, NODE_POOL, "aks-nodes-class-default"),
    (SELF_HOSTED, NODE_POOL, "aks-karpenter-identity-roles-kubelet"),
    (SELF_HOSTED, NODE_POOL, CREDENTIAL),
]


def matching(stack: str, what: str) -> list[Registered]:
    found = [
        each for each in shipped(stack).resources.values() if each.request.custom and what in (each.type, each.name)
    ]
    assert found, what
    return found


@pytest.mark.parametrize(("stack", "later", "earlier"), ORDER)
def test_order(stack: str, later: str, earlier: str) -> None:
    for one in matching(stack, later):
        for other in matching(stack, earlier):
            assert shipped(stack).needs(one, other), f"{one.name} may come before {other.name}"
            assert not shipped(stack).needs(other, one)


@both
def test_nothing_is_deleted_with_the_cluster_and_node_pools_have_time(stack: str) -> None:
    assert not any(each.request.deletedWith for each in shipped(stack).resources.values())
    assert all(each.request.customTimeouts.delete == "80m" for each in shipped(stack).of(NODE_POOL))
    assert all(each.request.customTimeouts.delete == "30m" for each in shipped(stack).of(NODE_CLASS))


@both
def test_every_taggable_resource_carries_the_environments_tags(stack: str) -> None:
    tagged = [each for each in shipped(stack).resources.values() if "tags" in each.inputs]
    assert len(tagged) >= 4
    for each in [
        *tagged,
        *(Registered(**{**vars(each), "inputs": each.inputs["spec"]}) for each in shipped(stack).of(NODE_CLASS)),
    ]:
        assert each.inputs["tags"].items() >= {"owner": "platform", "environment": "development"}.items(), each.urn


@both
def test_a_change_of_the_cluster_is_guarded(stack: str) -> None:
    hooks = [f"aks-cluster-{one}" for one in ("node-provisioning", *GUARDS)]
    assert {*hooks} <= {*shipped(stack).hooks}
    assert list(resource(shipped(stack), CLUSTER).request.hooks.before_update) == hooks


@both
def test_a_private_cluster_in_a_network_of_its_own_is_warned_of(stack: str) -> None:
    kept = "aks-cluster-control-plane-kept"
    hook = [kept, "aks-cluster-no-way"]
    assert list(resource(shipped(stack), CLUSTER).request.hooks.before_create) == hook
    assert list(resource(variant(), CLUSTER).request.hooks.before_create) == [kept]
    # A network that is there already may have a way into it.
    existing = deployed(stack, network__subnetCidr=None, network__subnetId=SUBNET)
    assert list(resource(existing, CLUSTER).request.hooks.before_create) == [kept]
    public = deployed(stack, cluster__publicAccessCidrs=["1.1.1.0/24"])
    assert list(resource(public, CLUSTER).request.hooks.before_create) == [kept]


def test_one_guard_can_be_lifted_for_one_update() -> None:
    hooks = [f"aks-cluster-{one}" for one in GUARDS]
    assert list(resource(variant(), CLUSTER).request.hooks.before_update) == hooks


def update(old: dict[str, Any], new: dict[str, Any]) -> pulumi.ResourceHookArgs:
    return pulumi.ResourceHookArgs(
        "urn",
        "id",
        "cluster",
        CLUSTER,
        old_inputs={"nodeProvisioningProfile": old},
        new_inputs={"nodeProvisioningProfile": new},
    )


def test_the_guard_refuses_and_says_what_to_do() -> None:
    with pytest.raises(pulumi.RunError) as caught:
        refuse_stranding(update({"mode": "Auto"}, {"mode": "Manual"}))
    for part in ("Auto -> Manual", "limits.cpu to 0", "karpstack:nodeProvisioning.allowStrandedNodes"):
        assert part in str(caught.value)
    refuse_stranding(update({"mode": "Auto"}, {"mode": "Auto", "defaultNodePools": "Auto"}))


POOL = {
    "name": "system",
    "vmSize": "Standard_D4s_v5",
    "availabilityZones": ["1", "2"],
    "osDiskSizeGB": 128,
    "osSKU": "Ubuntu",
    "count": 2,
}


def pool_update(**changes: Any) -> pulumi.ResourceHookArgs:
    old, new = {"agentPoolProfiles": [POOL]}, {"agentPoolProfiles": [POOL | changes]}
    return pulumi.ResourceHookArgs("urn", "id", "cluster", CLUSTER, old_inputs=old, new_inputs=new)


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("vmSize", "Standard_D8s_v5", "karpstack:systemNodes.vmSize Standard_D4s_v5 -> Standard_D8s_v5"),
        ("availabilityZones", ["1"], "karpstack:systemNodes.zones ['1', '2'] -> ['1']"),
        ("osDiskSizeGB", 256.0, "karpstack:systemNodes.diskSize 128 -> 256"),
    ],
)
def test_what_aks_does_not_change_of_a_pool_is_refused(key: str, value: Any, text: str) -> None:
    with pytest.raises(pulumi.RunError) as caught:
        refuse_fixed(pool_update(**{key: value}))
    for part in (text, "PropertyChangeNotAllowed", "another stack"):
        assert part in str(caught.value)


@pytest.mark.parametrize("change", [{}, {"count": 3}, {"osSKU": "AzureLinux"}, {"name": "other", "vmSize": "other"}])
def test_what_aks_changes_of_a_pool_is_not_refused(change: dict[str, Any]) -> None:
    refuse_fixed(pool_update(**change))


@both
def test_the_cluster_waits_for_roles_that_take_effect_late(stack: str) -> None:
    assert list(resource(shipped(stack), CLUSTER).request.hooks.on_error) == ["aks-cluster-late-roles"]


DENIED = "Code=LinkedAuthorizationFailed Message=The client 'x' has permission to perform action 'y'"


@pytest.mark.parametrize(
    ("operation", "errors", "pause"),
    [
        ("create", [DENIED], 2),
        ("create", [DENIED] * 3, 8),
        ("create", [DENIED] * 19, 60),
        ("create", ["Code=CustomRouteTableMissingPermission"], 2),
        ("create", [DENIED] * 20, None),
        ("create", ["Code=K8sVersionNotSupported", DENIED], None),
        ("create", ["cannot create already existing resource '/x'", DENIED], None),
        ("update", [DENIED], None),
        ("create", [], None),
    ],
)
def test_when_the_cluster_is_tried_again(
    operation: str, errors: list[str], pause: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr("components.aks.late_roles.asyncio.sleep", sleep)
    failed = pulumi.ErrorHookArgs("urn", "id", "cluster", CLUSTER, failed_operation=operation, errors=errors)
    again = asyncio.run(wait_for_roles(failed))
    assert (again, slept) == ((True, [pause]) if pause else (False, []))


def test_the_controller_has_time_until_its_roles_take_effect() -> None:
    assert shipped(SELF_HOSTED).one("aks-karpenter-charts-controller").inputs["timeout"] == 900


def test_the_controllers_right_on_the_subnet_does_not_wait_for_the_cluster() -> None:
    deployment = shipped(SELF_HOSTED)
    role = deployment.one("aks-karpenter-identity-roles-subnet")
    assert not deployment.needs(role, resource(deployment, CLUSTER))


WORKSPACE = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/logs/providers/Microsoft.OperationalInsights/workspaces/one"


def test_logs_go_to_the_workspace_and_their_setting_goes_before_the_cluster() -> None:
    deployment = deployed(NAP, cluster__logWorkspaceId=WORKSPACE, cluster__logCategories=["kube-audit-admin", "guard"])
    setting = resource(deployment, "azure-native:monitor:DiagnosticSetting")
    assert setting.inputs == {
        "name": "karpstack",
        "resourceUri": "aks-cluster-control-plane-id",
        "workspaceId": WORKSPACE,
        "logAnalyticsDestinationType": "Dedicated",
        "logs": [{"category": "kube-audit-admin", "enabled": True}, {"category": "guard", "enabled": True}],
    }
    assert deployment.needs(setting, resource(deployment, CLUSTER))
    assert not shipped(NAP).of("azure-native:monitor:DiagnosticSetting")
