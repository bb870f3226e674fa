"""What is special about AKS under Pulumi's mocks; stacks/resources.yaml has what the engine is asked for."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pulumi
import pytest

from karpstack.components.aks.late_roles import wait_for_roles
from karpstack.components.aks.update_guards import (
    refuse_fixed,
    refuse_leaving_out,
    refuse_other_network,
    refuse_stranding,
    refuse_version,
    warn_of_new_nodes,
)
from karpstack.components.documents import manifests
from karpstack.components.problems import SettingsError
from karpstack.components.settings import AksSettings
from karpstack.components.settings.aks_addon_checks import dns_on_the_node
from tests.conftest import Golden
from tests.unit.example_stack import WORDS, configuration, loaded, written
from tests.unit.mock_engine import Deployment, Registered, unknown
from tests.unit.programs import made, matching, only

NAP, SELF_HOSTED = "aks-nap", "aks-self-hosted"
CLUSTER = "azure-native:containerservice:ManagedCluster"
SECRET = "kubernetes:core/v1:Secret"
HUB: dict[str, Any] = {"network.subnetCidr": None, "network.subnetId": "<subnets>/one"}
MONITORED = {"addons": {"logRetentionDays": 90, "containerInsights": True, "prometheus": True}}
both = pytest.mark.parametrize("stack", [NAP, SELF_HOSTED])


def controller(deployment: Deployment) -> dict[str, Any]:
    values: dict[str, Any] = only(deployment, "aks-karpenter-charts-controller").inputs["values"]
    return values


def environment(deployment: Deployment) -> dict[str, Any]:
    variables = controller(deployment)["controller"]["env"]
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in variables}


def outputs(deployment: Deployment) -> dict[str, Any]:
    """What scale tests know the stack by."""
    (found,) = (each for each in deployment.resources.values() if each.type.endswith(":Environment"))
    return deployment.outputs[found.urn]


@pytest.mark.parametrize(
    ("stack", "changes", "output", "value"),
    [
        (NAP, {}, "defaultNodePools", ["default", "system-surge"]),
        (NAP, {"nodeProvisioning.defaultNodePools": "None"}, "defaultNodePools", []),
        (SELF_HOSTED, {}, "defaultNodePools", []),
        (NAP, {}, "featureGates", []),
        (SELF_HOSTED, {}, "featureGates", []),
        (SELF_HOSTED, {"karpenter.featureGates.staticCapacity": True}, "featureGates", ["staticCapacity"]),
    ],
)
def test_outputs(stack: str, changes: dict[str, Any], output: str, value: list[str]) -> None:
    assert outputs(made(stack, changes))[output] == value


@both
def test_assignments_have_stable_names(stack: str) -> None:
    names, again = (
        {each.name: UUID(each.inputs["roleAssignmentName"]) for each in matching(one, "RoleAssignment")}
        for one in (made(stack), made(stack, {"tags.owner": "others"}))
    )
    assert names == again
    assert len(set(names.values())) == len(names)


def test_a_zone_of_another_subscription_is_given_by_that_ones_definition() -> None:
    other = WORDS["<zone>"].replace(WORDS["<subscription>"], "22222222-2222-2222-2222-222222222222")
    roles = matching(made(NAP, {**HUB, "cluster.privateDnsZone": other}), "RoleAssignment")
    (role,) = (one.inputs["roleDefinitionId"] for one in roles if one.inputs["scope"] == other)
    assert role.startswith(WORDS["<other-role>"])


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({}, []),
        (
            {
                "nodeClasses.a": {"vnetSubnetID": "<subnets>/batch"},
                "nodeClasses.b": {"vnetSubnetID": "<subnets>/batch"},
            },
            ["<subnets>/batch"],
        ),
    ],
)
def test_a_subnet_of_several_node_classes_is_joined_once(changes: dict[str, Any], named: list[str]) -> None:
    settings = loaded(NAP, {**HUB, **changes, "nodeClasses.c": {"vnetSubnetID": "<subnets>/one"}})
    assert isinstance(settings, AksSettings)
    assert settings.further_subnet_ids == written(named)
    assert settings.existing_subnet_ids == written(["<subnets>/one", *named])


def test_a_node_classes_subnet_is_taken_as_karpenter_compares_it() -> None:
    batch = written("<subnets>/batch")
    loaded(NAP, {**HUB, "nodeClasses.batch.vnetSubnetID": batch.replace("resourceGroups", "resourcegroups")})
    with pytest.raises(SettingsError, match="other upper and lower case letters"):
        loaded(NAP, {**HUB, "nodeClasses.batch.vnetSubnetID": batch.replace("/hub/", "/Hub/")})


def test_secrets_are_secrets_and_values_hold_none() -> None:
    release = only(made(SELF_HOSTED), "aks-karpenter-charts-controller")
    for each in made(SELF_HOSTED).of(SECRET):
        for value in each.inputs["data"].values():
            decoded = base64.b64decode(value).decode()
            assert len(decoded) < 16 or decoded not in json.dumps(release.inputs)


def token(deployment: Deployment, generation: int = 1) -> tuple[Registered, dict[str, str]]:
    secret = only(deployment, f"aks-karpenter-bootstrap-token-{generation}")
    return secret, {key: base64.b64decode(value).decode() for key, value in secret.inputs["data"].items()}


def test_the_bootstrap_token_is_one() -> None:
    secret, data = token(made(SELF_HOSTED))
    assert secret.inputs["type"] == "bootstrap.kubernetes.io/token"
    assert secret.inputs["metadata"] == {"name": f"bootstrap-token-{data['token-id']}", "namespace": "kube-system"}
    assert re.fullmatch(r"[a-z0-9]{6}\.[a-z0-9]{16}", f"{data['token-id']}.{data['token-secret']}")
    assert data["usage-bootstrap-authentication"] == "true"
    assert "usage-bootstrap-signing" not in data
    days = datetime.fromisoformat(data["expiration"]) - datetime.now(UTC)
    assert timedelta(days=364) < days <= timedelta(days=365)
    references = environment(made(SELF_HOSTED))
    for variable, key in (("BOOTSTRAP_TOKEN_ID", "token-id"), ("BOOTSTRAP_TOKEN_SECRET", "token-secret")):
        assert references[variable]["secretKeyRef"] == {"name": secret.inputs["metadata"]["name"], "key": key}
    assert references["KUBELET_BOOTSTRAP_TOKEN"] == "$(BOOTSTRAP_TOKEN_ID).$(BOOTSTRAP_TOKEN_SECRET)"


def test_the_tokens_group_may_ask_for_a_nodes_certificate_and_nothing_else() -> None:
    _, data = token(made(SELF_HOSTED))
    bindings = made(SELF_HOSTED).of("kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding")
    assert {each.inputs["roleRef"]["name"] for each in bindings} == {
        "system:node-bootstrapper",
        "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
    }
    for each in bindings:
        assert each.inputs["subjects"] == [
            {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": data["auth-extra-groups"]}
        ]


def test_the_bootstrap_token_is_kept_and_its_secret_half_is_random() -> None:
    (_, first), (_, second) = token(made(SELF_HOSTED)), token(made(SELF_HOSTED, {"tags.owner": "others"}))
    assert first["token-secret"] != second["token-secret"]
    assert first["token-id"] == second["token-id"]


def test_the_token_before_stays_for_machines_that_are_on_their_way() -> None:
    later = made(SELF_HOSTED, {"karpenter.bootstrapTokenGeneration": 2})
    (_, before), (new, now) = token(later, 1), token(later, 2)
    assert before["token-id"] == token(made(SELF_HOSTED))[1]["token-id"] != now["token-id"]
    assert environment(later)["BOOTSTRAP_TOKEN_ID"]["secretKeyRef"]["name"] == new.inputs["metadata"]["name"]


@pytest.mark.parametrize(("days", "warnings"), [(365, 0), (30, 1)])
def test_whoever_deploys_is_warned_before_the_token_expires(
    days: int, warnings: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", told.append)
    made(SELF_HOSTED, {"karpenter.bootstrapTokenDays": days})
    assert len([text for text in told if "bootstrapTokenGeneration" in text]) == warnings


def test_the_ssh_key_reaches_the_controller_and_a_changed_one_restarts_it() -> None:
    secret = made(SELF_HOSTED).one("aks-karpenter-bootstrap-ssh").inputs
    key = base64.b64decode(secret["data"]["ssh-public-key"]).decode()
    assert key == configuration(SELF_HOSTED)["karpstack:karpenter"]["sshPublicKey"]
    assert environment(made(SELF_HOSTED))["SSH_PUBLIC_KEY"]["secretKeyRef"] == {
        "name": secret["metadata"]["name"],
        "key": "ssh-public-key",
    }
    other = made(SELF_HOSTED, {"karpenter.sshPublicKey": "<ssh-key>"})
    assert other.one("aks-karpenter-bootstrap-ssh").inputs["metadata"]["name"] != secret["metadata"]["name"]


@both
def test_each_update_waits_for_the_deployers_role(stack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[str] = []

    async def wait(kubeconfig: str) -> str:
        waited.append(kubeconfig)
        return kubeconfig

    monkeypatch.setattr("tests.unit.mock_engine.accepted", wait)
    changes = {"tags.owner": "waiting"}
    assert waited == [only(made(stack, changes), "kubernetes").inputs["kubeconfig"]]
    made(stack, changes, preview=True)
    assert len(waited) == 1


def test_before_there_is_a_cluster_the_controllers_values_are_known_but_what_azure_makes() -> None:
    values = controller(made(SELF_HOSTED, preview=True))
    assert {each for each in unknown(values) if not each.startswith("controller.env")} == {
        "serviceAccount.annotations.azure.workload.identity/client-id",
        "settings.clusterEndpoint",
        "settings.clusterName",
    }
    assert {each["name"] for each in values["controller"]["env"] if any(unknown(each))} == {
        "ARM_RESOURCE_GROUP",
        "KUBELET_IDENTITY_CLIENT_ID",
        "NODE_IDENTITIES",
        "VNET_GUID",
    }


# What an update does not change, or would lose.

POOL = {
    "name": "system",
    "vmSize": "Standard_D4s_v5",
    "availabilityZones": ["1", "2"],
    "osDiskSizeGB": 128,
    "osSKU": "Ubuntu",
    "count": 2,
}
PRIVATE = {"enablePrivateCluster": True}
OPEN = {"enablePrivateCluster": False, "authorizedIPRanges": ["1.1.1.0/24"]}
IN_SUBNET = {"enableVnetIntegration": True, "subnetId": "subnet"}
BEHIND = {"httpProxyConfig": {"httpProxy": "http://proxy:3128/"}}
NOT_TAKEN_AWAY = "Write `karpstack:trustedCertificates: \\[\\]`"


def update(old: dict[str, Any], new: dict[str, Any]) -> pulumi.ResourceHookArgs:
    return pulumi.ResourceHookArgs("urn", "id", "cluster", CLUSTER, old_inputs=old, new_inputs=new)


def trusting(*certificates: str) -> dict[str, Any]:
    return {"securityProfile": {"customCATrustCertificates": [*certificates]}}


def reached(old: dict[str, Any], new: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"apiServerAccessProfile": old}, {"apiServerAccessProfile": new}


def pool(**changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"agentPoolProfiles": [POOL]}, {"agentPoolProfiles": [POOL | changes]}


def mode(**new: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"nodeProvisioningProfile": {"mode": "Auto"}}, {"nodeProvisioningProfile": new}


def version(old: str, new: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"kubernetesVersion": old}, {"kubernetesVersion": new}


@pytest.mark.parametrize(
    ("guard", "change", "text"),
    [
        (
            refuse_stranding,
            mode(mode="Manual"),
            "Auto -> Manual[^$]*limits.cpu to 0[^$]*nodeProvisioning.allowStranded",
        ),
        (refuse_stranding, mode(mode="Auto", defaultNodePools="Auto"), ""),
        (refuse_fixed, pool(vmSize="Standard_D8s_v5"), "systemNodes.vmSize Standard_D4s_v5 -> Standard_D8s_v5"),
        (refuse_fixed, pool(availabilityZones=["1"]), r"systemNodes.zones \['1', '2'\] -> \['1'\]"),
        (
            refuse_fixed,
            pool(osDiskSizeGB=256.0),
            "PropertyChangeNotAllowed[^$]*systemNodes.diskSize 128 -> 256[^$]*another stack",
        ),
        (refuse_fixed, pool(), ""),
        (refuse_fixed, pool(count=3), ""),
        (refuse_fixed, pool(osSKU="AzureLinux"), ""),
        (refuse_fixed, pool(name="other", vmSize="other"), ""),
        (refuse_other_network, reached({}, {"subnetId": "s"}), r"cluster.apiServerSubnetId \(not set\) -> s"),
        (refuse_other_network, reached({"subnetId": "s"}, {}), r"-> \(not set\)"),
        (refuse_other_network, reached({}, {"privateDNSZone": "z"}), "cluster.privateDnsZone system -> z"),
        (refuse_other_network, reached({"privateDNSZone": "none"}, {}), "none -> system[^$]*make another stack"),
        (
            refuse_other_network,
            reached(PRIVATE, OPEN),
            r"publicAccessCidrs \[\] \(a private cluster\) -> a list \(a pub",
        ),
        (
            refuse_other_network,
            reached(OPEN, PRIVATE),
            r"publicAccessCidrs a list \(a public endpoint\) -> \[\] \(a pri",
        ),
        (refuse_other_network, reached(OPEN, PRIVATE | IN_SUBNET), "publicAccessCidrs a list"),
        (refuse_other_network, reached({"privateDNSZone": "z"}, {"privateDNSZone": "none"}), ""),
        (refuse_other_network, reached({}, {"authorizedIPRanges": ["1.1.1.0/24"]}), ""),
        (refuse_other_network, reached(PRIVATE | IN_SUBNET, OPEN | IN_SUBNET), ""),
        (refuse_version, version("1.34", "1.35"), ""),
        (refuse_version, version("1.34.2", "1.34"), ""),
        (refuse_version, version("", "1.36"), ""),
        (refuse_version, version("1.34", "1.36"), "skips a minor version: AKS refuses"),
        (refuse_version, version("1.36", "1.35.4"), "goes back: AKS refuses"),
        (refuse_leaving_out, (BEHIND, {}), "stays as it is[^$]*nothing takes a proxy away"),
        (refuse_leaving_out, (trusting("a"), {"securityProfile": {}}), NOT_TAKEN_AWAY),
        (refuse_leaving_out, (trusting("a"), {}), NOT_TAKEN_AWAY),
        (refuse_leaving_out, ({}, BEHIND), ""),
        (refuse_leaving_out, (BEHIND, BEHIND), ""),
        (refuse_leaving_out, (trusting("a"), trusting()), ""),
        (refuse_leaving_out, (trusting(), {}), ""),
        (refuse_leaving_out, ({}, trusting("a")), ""),
    ],
)
def test_what_an_update_may_not_change(guard: Any, change: tuple[dict[str, Any], dict[str, Any]], text: str) -> None:
    if not text:
        guard(update(*change))
        return
    with pytest.raises(pulumi.RunError, match=text):
        guard(update(*change))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ({}, BEHIND, "karpstack:proxy will be another"),
        (trusting("a"), trusting("b"), "karpstack:trustedCertificates will be another"),
        (BEHIND | trusting("a"), BEHIND | trusting(), "karpstack:trustedCertificates will be another"),
        ({}, BEHIND | trusting("a"), "karpstack:proxy and karpstack:trustedCertificates will be another"),
        (BEHIND | trusting("a"), BEHIND | trusting("a"), ""),
        ({}, trusting(), ""),
    ],
)
def test_whoever_changes_one_is_told_that_nodes_are_made_anew(
    monkeypatch: pytest.MonkeyPatch, old: dict[str, Any], new: dict[str, Any], said: str
) -> None:
    warnings: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lambda text, *_: warnings.append(text))
    warn_of_new_nodes(update(old, new))
    assert bool(warnings) == bool(said)
    assert all(said in one and "reimages every node" in one for one in warnings)


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

    monkeypatch.setattr("asyncio.sleep", sleep)
    failed = pulumi.ErrorHookArgs("urn", "id", "cluster", CLUSTER, failed_operation=operation, errors=errors)
    again = asyncio.run(wait_for_roles(failed))
    assert (again, slept) == ((True, [pause]) if pause else (False, []))


# What runs beside Karpenter.


def test_what_is_collected(golden: Golden) -> None:
    rules = matching(made(NAP, MONITORED), "DataCollectionRule")
    golden("aks-data-collection", {each.name: each.inputs for each in sorted(rules, key=repr)})


@both
def test_a_preview_of_a_new_stack_knows_no_identity_yet(stack: str) -> None:
    registries, vaults = (f"<hub>/Microsoft.{one}" for one in ("ContainerRegistry/registries", "KeyVault/vaults"))
    addons = {
        "registryIds": [f"{registries}/one12", f"{registries}/TWO12"],
        "secretsProvider": True,
        "vaultIds": [f"{vaults}/one"],
    }
    rights = matching(made(stack, {"addons": addons}, preview=True), "RoleAssignment")
    assert len([each for each in rights if each.name.startswith("aks-addon-rights")]) == 3


@pytest.mark.parametrize(
    ("cilium", "mode", "warned"),
    [
        ({"defaultDeny": True}, "Required", False),
        ({"advancedPolicies": "FQDN"}, "Required", True),
        ({"hubble": True}, "Required", False),
        ({"advancedPolicies": "FQDN"}, "Disabled", False),
    ],
)
def test_a_dns_server_on_the_node_is_warned_of(cilium: dict[str, Any], mode: str, warned: bool) -> None:
    settings: Any = loaded(NAP, {"cilium": cilium})
    said = list(dns_on_the_node("batch", {"localDNS": {"mode": mode}}, settings.cilium))
    assert [problem.warning for problem in said] == [True] * warned


def test_the_first_policy_is_ekss() -> None:
    policy = only(made(NAP, {"cilium": {"defaultDeny": True}}), "CiliumClusterwideNetworkPolicy").inputs
    wanted = manifests.default_deny(local_dns=True)
    assert {key: policy[key] for key in ("metadata", "spec")} == {key: wanted[key] for key in ("metadata", "spec")}
    assert [*map(set, policy["spec"]["egress"])] == [
        {one, "toPorts"} for one in ("toEndpoints", "toCIDR", "toEntities")
    ]
