"""What runs beside Karpenter on AKS: checks, and the program under Pulumi's mocks."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from components import aks, settings
from components.documents import aks_addons, manifests
from components.documents.roles import Role, definition_id
from components.problems import SettingsError
from components.settings.aks_addon_checks import dns_on_the_node
from karpenter.findings import Finding
from tests.conftest import Golden
from tests.unit.example_stack import example
from tests.unit.mock_engine import SUBSCRIPTION, Deployment, Registered, deploy

NAP, SELF_HOSTED = "aks-nap", "aks-self-hosted"
CLUSTER = "azure-native:containerservice:ManagedCluster"
ASSIGNMENT = "azure-native:authorization:RoleAssignment"
OTHER = "22222222-2222-2222-2222-222222222222"
REGISTRY = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/hub/providers/Microsoft.ContainerRegistry/registries/Platform"
FOREIGN = f"/subscriptions/{OTHER}/resourceGroups/hub/providers/Microsoft.ContainerRegistry/registries/shared"
VAULT = f"/subscriptions/{OTHER}/resourceGroups/hub/providers/Microsoft.KeyVault/vaults/team-secrets"
ADDONS = {"registryIds": [REGISTRY, FOREIGN], "secretsProvider": True, "vaultIds": [VAULT]}

both = pytest.mark.parametrize("stack", [NAP, SELF_HOSTED])


def program(stack: str, preview: bool, **changes: Any) -> Deployment:
    def run() -> None:
        args = settings.load(example(stack, **changes))
        assert isinstance(args, settings.AksSettings)
        aks.Environment("aks", args)

    return deploy(run, preview=preview)


@cache
def shipped(stack: str) -> Deployment:
    return program(stack, False)


@cache
def with_all(stack: str) -> Deployment:
    return program(stack, False, addons=ADDONS)


def cluster(deployment: Deployment) -> Registered:
    (found,) = deployment.of(CLUSTER)
    return found


def refused(stack: str = NAP, **changes: Any) -> list[Finding]:
    with pytest.raises(SettingsError) as raised:
        settings.load(example(stack, **changes))
    return list(raised.value.problems)


def rights(deployment: Deployment) -> set[tuple[str, str, str]]:
    """(role definition, scope, principal)."""
    return {
        tuple(each.inputs[key] for key in ("roleDefinitionId", "scope", "principalId"))
        for each in deployment.of(ASSIGNMENT)
        if each.name.startswith("aks-addon-rights")
    }


# Checks.


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("registryIds", "platform.azurecr.io", "is no resource ID of a container registry"),
        ("registryIds", VAULT, "is no resource ID of a container registry"),
        ("registryIds", f"{REGISTRY}/scopeMaps/x", "is no resource ID of a container registry"),
        ("registryIds", REGISTRY.replace("Platform", "my-registry"), "Azure has none with such a name"),
        ("vaultIds", "https://team-secrets.vault.azure.net", "is no resource ID of a key vault"),
        ("vaultIds", REGISTRY, "is no resource ID of a key vault"),
        ("vaultIds", VAULT.replace("team-secrets", "1st"), "Azure has none with such a name"),
    ],
)
def test_what_is_no_id_of_one_is_refused(key: str, value: str, said: str) -> None:
    problem, *_ = refused(addons={"secretsProvider": True, key: [value]})
    assert problem.key.startswith(f"karpstack:addons.{key}")
    assert said in problem.consequence


def test_a_name_is_no_id_of_a_workspace() -> None:
    (problem,) = refused(addons={"prometheus": True, "metricsWorkspaceId": "shop"})
    assert problem.consequence.startswith("is no resource ID of an Azure Monitor workspace")


def test_an_id_may_have_any_case() -> None:
    settings.load(example(NAP, addons={"registryIds": [REGISTRY.upper()]}))


def test_the_same_registry_twice_is_refused() -> None:
    (problem,) = refused(addons={"registryIds": [REGISTRY, REGISTRY.lower()]})
    assert "RoleAssignmentExists" in problem.consequence


def test_a_vault_without_the_add_on_is_refused() -> None:
    (problem,) = refused(addons={"vaultIds": [VAULT]})
    assert problem.key == "karpstack:addons.vaultIds"
    assert "secretsProvider" in problem.fix


@pytest.mark.parametrize("interval", ["2 minutes", "120", "0s", ""])
def test_an_interval_that_go_does_not_read_is_refused(interval: str) -> None:
    (problem,) = refused(addons={"secretsProvider": True, "secretRotation": interval})
    assert problem.key == "karpstack:addons.secretRotation"


@pytest.mark.parametrize("key", ["ebsCsi", "metricsServer", "loadBalancerController"])
def test_what_is_only_ekss_is_refused_with_aks_way(key: str) -> None:
    (problem,) = refused(addons={key: True})
    assert "is EKS's" in problem.consequence


# Registries and vaults.


@both
def test_off_by_default(stack: str) -> None:
    assert not rights(shipped(stack))
    assert all(not profile["enabled"] for profile in cluster(shipped(stack)).inputs["addonProfiles"].values())


@both
def test_each_registry_and_vault_has_its_role_in_its_own_subscription(stack: str) -> None:
    assert rights(with_all(stack)) == {
        (definition_id(SUBSCRIPTION, Role.ACR_PULL), REGISTRY, "kubelet-object"),
        (definition_id(OTHER, Role.ACR_PULL), FOREIGN, "kubelet-object"),
        (definition_id(OTHER, Role.KEY_VAULT_SECRETS_USER), VAULT, f"object-of-{aks_addons.SECRETS_PROVIDER}"),
    }


@both
def test_node_pools_come_after_the_roles_and_go_before_them(stack: str) -> None:
    deployment = with_all(stack)
    pools = [each for each in deployment.resources.values() if each.type == "kubernetes:karpenter.sh/v1:NodePool"]
    assert pools
    for role in deployment.of(ASSIGNMENT):
        if role.name.startswith("aks-addon-rights"):
            assert all(deployment.needs(pool, role) for pool in pools)


def test_rotation() -> None:
    assert aks_addons.secrets_provider(rotation="off")["config"] == {"enableSecretRotation": "false"}
    profile = cluster(with_all(NAP)).inputs["addonProfiles"][aks_addons.SECRETS_PROVIDER]
    assert profile == {"enabled": True, "config": {"enableSecretRotation": "true", "rotationPollInterval": "2m"}}
    off = program(NAP, False, addons={"secretsProvider": True, "secretRotation": False})
    assert cluster(off).inputs["addonProfiles"][aks_addons.SECRETS_PROVIDER]["config"] == {
        "enableSecretRotation": "false"
    }


def identities(deployment: Deployment) -> str:
    (chart,) = [each for each in deployment.resources.values() if each.name == "aks-karpenter-charts-controller"]
    environment = {each["name"]: each.get("value") for each in chart.inputs["values"]["controller"]["env"]}
    return str(environment["NODE_IDENTITIES"])


def test_self_hosted_karpenters_nodes_carry_the_add_ons_identities_too() -> None:
    assert identities(shipped(SELF_HOSTED)) == "kubelet-id"
    assert identities(with_all(SELF_HOSTED)) == f"kubelet-id,id-of-{aks_addons.SECRETS_PROVIDER}"


@both
def test_a_preview_of_a_new_stack_knows_no_identity_yet(stack: str) -> None:
    preview = program(stack, True, addons=ADDONS)
    assert len(rights_of_preview(preview)) == 3


def rights_of_preview(deployment: Deployment) -> list[Registered]:
    return [each for each in deployment.of(ASSIGNMENT) if each.name.startswith("aks-addon-rights")]


# Monitoring.

WORKSPACE = f"/subscriptions/{OTHER}/resourceGroups/hub/providers/Microsoft.OperationalInsights/workspaces/logs"
METRICS = f"/subscriptions/{OTHER}/resourceGroups/hub/providers/Microsoft.Monitor/accounts/metrics"
RULE = "azure-native:monitor:DataCollectionRule"
ENDPOINT = "azure-native:monitor:DataCollectionEndpoint"
ASSOCIATION = "azure-native:monitor:DataCollectionRuleAssociation"
DIAGNOSTICS = "azure-native:monitor:DiagnosticSetting"
LOGS = "azure-native:operationalinsights:Workspace"
ACCOUNT = "azure-native:monitor:AzureMonitorWorkspace"
MONITORED = {"logRetentionDays": 90, "containerInsights": True, "prometheus": True}


@cache
def monitored(stack: str) -> Deployment:
    return program(stack, False, addons=MONITORED)


@both
def test_no_monitoring_by_default(stack: str) -> None:
    deployment = shipped(stack)
    assert not any(deployment.of(each) for each in (RULE, ENDPOINT, ASSOCIATION, DIAGNOSTICS, LOGS, ACCOUNT))
    assert cluster(deployment).inputs["azureMonitorProfile"] == {"metrics": {"enabled": False}}


@both
def test_workspaces_of_the_stacks_own(stack: str) -> None:
    deployment = monitored(stack)
    (logs,) = deployment.of(LOGS)
    assert (logs.inputs["retentionInDays"], logs.inputs["sku"]) == (90, {"name": "PerGB2018"})
    (setting,) = deployment.of(DIAGNOSTICS)
    assert setting.inputs["workspaceId"] == "aks-workspaces-logs-id"
    assert cluster(deployment).inputs["addonProfiles"][aks_addons.CONTAINER_INSIGHTS] == {
        "enabled": True,
        "config": {"logAnalyticsWorkspaceResourceID": "aks-workspaces-logs-id", "useAADAuth": "true"},
    }
    assert cluster(deployment).inputs["azureMonitorProfile"] == {"metrics": {"enabled": True}}
    assert len(deployment.of(ACCOUNT)) == 1


def test_what_is_collected(golden: Golden) -> None:
    golden("aks-data-collection", {each.name: each.inputs for each in sorted(monitored(NAP).of(RULE), key=repr)})


@both
def test_each_rule_is_tied_to_the_cluster_and_the_tie_goes_before_it(stack: str) -> None:
    deployment = monitored(stack)
    ties = {each.inputs["associationName"]: each for each in deployment.of(ASSOCIATION)}
    assert {name: each.inputs["dataCollectionRuleId"] for name, each in ties.items()} == {
        "ContainerInsightsExtension": "aks-collection-logs-id",
        "ContainerInsightsMetricsExtension": "aks-collection-metrics-id",
    }
    for each in ties.values():
        assert each.inputs["resourceUri"] == cluster(deployment).name + "-id"
        assert deployment.needs(each, cluster(deployment))


def test_given_workspaces_are_used_where_they_lie() -> None:
    deployment = program(
        NAP,
        False,
        cluster__logWorkspaceId=WORKSPACE,
        addons={
            "containerInsights": True,
            "logWorkspaceLocation": "eastus",
            "prometheus": True,
            "metricsWorkspaceId": METRICS,
            "metricsWorkspaceLocation": "centralus",
        },
    )
    assert not deployment.of(LOGS)
    assert not deployment.of(ACCOUNT)
    rules = {each.inputs["location"]: each.inputs["destinations"] for each in deployment.of(RULE)}
    assert rules["eastus"]["logAnalytics"][0]["workspaceResourceId"] == WORKSPACE
    assert rules["centralus"]["monitoringAccounts"][0]["accountResourceId"] == METRICS
    (endpoint,) = deployment.of(ENDPOINT)
    assert endpoint.inputs["location"] == "centralus"


def test_self_hosted_karpenters_nodes_carry_the_agents_identity() -> None:
    assert identities(monitored(SELF_HOSTED)) == f"kubelet-id,id-of-{aks_addons.CONTAINER_INSIGHTS}"


@pytest.mark.parametrize(
    ("addons", "workspace", "key"),
    [
        ({"containerInsights": True}, None, "containerInsights"),
        ({"logRetentionDays": 30}, WORKSPACE, "logRetentionDays"),
        ({"logRetentionDays": 7}, None, "logRetentionDays"),
        ({"logRetentionDays": 731}, None, "logRetentionDays"),
        ({"logWorkspaceLocation": "eastus"}, None, "logWorkspaceLocation"),
        ({"logWorkspaceLocation": "East US", "containerInsights": True}, WORKSPACE, "logWorkspaceLocation"),
        ({"metricsWorkspaceId": METRICS}, None, "metricsWorkspaceId"),
        ({"prometheus": True, "metricsWorkspaceId": WORKSPACE}, None, "metricsWorkspaceId"),
        ({"prometheus": True, "metricsWorkspaceLocation": "eastus"}, None, "metricsWorkspaceLocation"),
    ],
)
def test_monitoring_that_cannot_be(addons: dict[str, Any], workspace: str | None, key: str) -> None:
    (problem,) = refused(addons=addons, **({"cluster__logWorkspaceId": workspace} if workspace else {}))
    assert problem.key == f"karpstack:addons.{key}"


# What Azure's Cilium does besides.

POLICY = "kubernetes:cilium.io/v2:CiliumClusterwideNetworkPolicy"


def networking(deployment: Deployment) -> Any:
    return cluster(deployment).inputs["networkProfile"]["advancedNetworking"]


@pytest.mark.parametrize(
    ("cilium", "profile"),
    [
        ({}, {"enabled": False}),
        ({"hubble": True}, {"enabled": True, "observability": {"enabled": True}, "security": {"enabled": False}}),
        (
            {"advancedPolicies": "FQDN"},
            {
                "enabled": True,
                "observability": {"enabled": False},
                "security": {"enabled": True, "advancedNetworkPolicies": "FQDN"},
            },
        ),
        (
            {"hubble": True, "advancedPolicies": "L7"},
            {
                "enabled": True,
                "observability": {"enabled": True},
                "security": {"enabled": True, "advancedNetworkPolicies": "L7"},
            },
        ),
    ],
)
def test_advanced_networking(cilium: dict[str, Any], profile: dict[str, Any]) -> None:
    assert networking(program(NAP, False, cilium=cilium)) == profile


@both
def test_the_first_policy_is_ekss_and_comes_with_the_cluster(stack: str) -> None:
    assert not shipped(stack).of(POLICY)
    deployment = program(stack, False, cilium={"defaultDeny": True})
    (policy,) = deployment.of(POLICY)
    assert {key: policy.inputs[key] for key in ("metadata", "spec")} == {
        key: manifests.default_deny(local_dns=True)[key] for key in ("metadata", "spec")
    }
    # A DNS proxy on the node is another server, which AKS may switch on by itself.
    rules = policy.inputs["spec"]["egress"]
    assert [*map(set, rules)] == [{server, "toPorts"} for server in ("toEndpoints", "toCIDR", "toEntities")]
    assert {port["port"] for rule in rules for port in rule["toPorts"][0]["ports"]} == {"53"}
    assert deployment.needs(policy, cluster(deployment))


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("chartVersion", "1.19.6", "Cilium on AKS is Azure's"),
        ("encryption", "wireguard", "transit encryption"),
        ("advancedPolicies", "dns", ""),
    ],
)
def test_what_is_only_ekss_of_cilium_is_refused(key: str, value: str, said: str) -> None:
    (problem,) = refused(cilium={key: value})
    assert problem.key == f"karpstack:cilium.{key}"
    assert said in problem.consequence


@pytest.mark.parametrize(
    ("cilium", "mode", "warned"),
    [
        ({"defaultDeny": True}, "Required", False),
        ({"advancedPolicies": "FQDN"}, "Required", True),
        ({"hubble": True}, "Required", False),
        ({"defaultDeny": True}, "Disabled", False),
    ],
)
def test_a_dns_server_on_the_node_is_warned_of(cilium: dict[str, Any], mode: str, warned: bool) -> None:
    loaded = settings.load(example(NAP, cilium=cilium))
    assert isinstance(loaded, settings.AksSettings)
    said = list(dns_on_the_node("batch", {"localDNS": {"mode": mode}}, loaded.cilium))
    assert bool(said) == warned
    assert all(problem.warning for problem in said)
