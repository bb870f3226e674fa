"""An AKS cluster that is there: what the program puts on it, and what it refuses before anything is made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import kubernetes.client
import pulumi
import pytest
import yaml
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis.strategies import DataObject, data

from components import aks, settings
from components.aks import node_bootstrap
from components.problems import SettingsError
from components.settings.existing_aks_cluster import FoundCluster, FoundPool, Workloads, problems
from components.workloads import aks as existing_workloads
from karpenter.findings import Finding
from tests.mutations import mutations
from tests.unit.example_stack import ROOT, configuration, raw
from tests.unit.mock_engine import SUBSCRIPTION, Deployment, Registered, deploy
from tests.unit.test_settings_arrive import keys

STACK = ROOT / "examples" / "existing-aks-cluster" / "Pulumi.aks-existing-cluster.yaml"
NAME, CLUSTER, GROUP = "karpstack-shop", "Shop_1", "shop"
HUB = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/hub/providers/Microsoft.Network/virtualNetworks/hub"
ONE, BATCH = (f"{HUB}/subnets/{name}" for name in ("one", "batch"))
NODES = "MC_shop_Shop_1_westus2"
NODE_CLASS = "kubernetes:karpenter.azure.com/v1beta1:AKSNodeClass"
NODE_POOL = "kubernetes:karpenter.sh/v1:NodePool"
RELEASE = "kubernetes:helm.sh/v3:Release"
ASSIGNMENT = "azure-native:authorization:RoleAssignment"
RUNS = Workloads(places=2)
KEY = configuration("aks-self-hosted")["karpstack:karpenter"]["sshPublicKey"]
SELF_HOSTED: dict[str, Any] = {"mode": "self-hosted", "karpenter": {"sshPublicKey": KEY}}
MANUAL = {"nodeProvisioningProfile": {"mode": "Manual"}}


def config(**changes: Any) -> dict[str, str]:
    """The example's configuration in the subscription that the mocks have; None removes a key."""
    said = yaml.safe_load(STACK.read_text())["config"]
    said["azure-native:subscriptionId"] = SUBSCRIPTION
    for path, value in changes.items():
        first, *rest = path.split("__")
        *parents, last = [first if ":" in first else f"karpstack:{first}", *rest]
        section = said
        for step in parents:
            section = section.setdefault(step, {})
        if value is None:
            section.pop(last)
        else:
            section[last] = value
    return raw(said)


def example(**changes: Any) -> settings.ExistingAksSettings:
    loaded = settings.load(config(**changes))
    assert isinstance(loaded, settings.ExistingAksSettings)
    return loaded


def deployed(
    runs: Workloads = RUNS,
    *,
    preview: bool = False,
    clusters: Sequence[str] = (CLUSTER, "Shop_2"),
    told: dict[str, Any] | None = None,
    **changes: Any,
) -> Deployment:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(existing_workloads, "look", lambda *given, **more: runs)
        patch.setattr(node_bootstrap, "secrets", SimpleNamespace(choice=lambda alphabet: alphabet[0]))
        args = example(**changes)
        return deploy(lambda: aks.ExistingEnvironment("aks", args), preview, clusters=clusters, told=told)


@cache
def nap() -> Deployment:
    return deployed()


@cache
def self_hosted() -> Deployment:
    return deployed(told=MANUAL, **SELF_HOSTED)


def one(deployment: Deployment, kind: str) -> dict[str, Any]:
    (only,) = deployment.of(kind)
    return only.inputs


def in_azure(deployment: Deployment) -> set[str]:
    return {each.type.removeprefix("azure-native:") for each in deployment.resources.values() if "azure-" in each.type}


def controller(deployment: Deployment) -> Registered:
    return deployment.one("aks-karpenter-charts-controller", RELEASE)


def test_with_node_auto_provisioning_nothing_is_made_in_azure() -> None:
    assert not in_azure(nap())
    assert not nap().of(RELEASE)
    assert [each.inputs["metadata"]["name"] for each in (*nap().of(NODE_CLASS), *nap().of(NODE_POOL))] == [
        "default",
        "general",
    ]


def test_where_the_dataplane_is_cilium_nodes_wait_for_it_and_otherwise_not() -> None:
    template = one(nap(), NODE_POOL)["spec"]["template"]
    assert template["metadata"]["labels"] == {"kubernetes.azure.com/ebpf-dataplane": "cilium"}
    assert [taint["key"] for taint in template["spec"]["startupTaints"]] == ["node.cilium.io/agent-not-ready"]
    profile = {"networkPlugin": "azure", "networkDataplane": "azure"}
    other = one(deployed(told={"networkProfile": profile}), NODE_POOL)["spec"]["template"]
    assert "metadata" not in other
    assert "startupTaints" not in other["spec"]


def test_self_hosted_the_identity_is_the_stacks_and_its_rights_are_on_what_is_there() -> None:
    made = self_hosted()
    assert in_azure(made) == {
        "resources:ResourceGroup",
        "managedidentity:UserAssignedIdentity",
        "managedidentity:FederatedIdentityCredential",
        "authorization:RoleAssignment",
    }
    assert one(made, "azure-native:resources:ResourceGroup")["resourceGroupName"] == NAME
    federated = one(made, "azure-native:managedidentity:FederatedIdentityCredential")
    assert federated["issuer"] == "https://westus2.oic.prod-aks.azure.com/t/there/"
    nodes = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{NODES}"
    assert sorted(each.inputs["scope"] for each in made.of(ASSIGNMENT)) == sorted([nodes, nodes, nodes, ONE])
    values = controller(made).inputs["values"]
    assert values["additionalLabels"] == {"karpstack.io/stack": NAME}
    variables = {each["name"]: each.get("value") for each in values["controller"]["env"]}
    assert {
        "ARM_RESOURCE_GROUP": GROUP,
        "AZURE_NODE_RESOURCE_GROUP": NODES,
        "VNET_SUBNET_ID": ONE,
        "VNET_GUID": "guid-of-hub",
        "KUBELET_IDENTITY_CLIENT_ID": "kubelet-there",
    }.items() <= variables.items()
    assert values["settings"]["clusterName"] == CLUSTER
    assert values["settings"]["clusterEndpoint"] == f"https://{CLUSTER}-ijklmnop.hcp.westus2.azmk8s.io:443"
    assert {each.inputs["name"] for each in made.of(RELEASE)} == {"karpenter", "karpenter-crd"}


def test_self_hosted_other_subnets_and_anothers_kubelet_identity_get_roles_too() -> None:
    foreign = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/shop/providers/x/y/kubelet"
    told = {**MANUAL, "identityProfile": {"kubeletidentity": {"clientId": "c", "resourceId": foreign}}}
    made = deployed(told=told, **SELF_HOSTED, nodeClasses__default__vnetSubnetID=BATCH)
    assert {foreign, ONE, BATCH} <= {each.inputs["scope"] for each in made.of(ASSIGNMENT)}


def test_self_hosted_machines_carry_the_add_ons_identities_and_the_controller_may_give_them() -> None:
    foreign = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/shop/providers/x/y/kubelet"
    nodes = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{NODES}"
    vaults = f"{nodes}/providers/x/y/vaults"
    told = {
        **MANUAL,
        "identityProfile": {"kubeletidentity": {"clientId": "c", "resourceId": foreign}},
        "addonProfiles": {
            "azureKeyvaultSecretsProvider": {"enabled": True, "identity": {"resourceId": vaults}},
            "azurepolicy": {"enabled": False},
        },
    }
    made = deployed(told=told, **SELF_HOSTED)
    variables = {each["name"]: each.get("value") for each in controller(made).inputs["values"]["controller"]["env"]}
    assert variables["NODE_IDENTITIES"] == f"{foreign},{vaults}"
    operators = [one.inputs["scope"] for one in made.of(ASSIGNMENT) if one.name.endswith(("-kubelet", "-addons"))]
    assert sorted(operators) == sorted([foreign, nodes])


def test_the_kubeconfig_is_the_clusters_and_a_secret() -> None:
    provider = nap().one("aks-kubernetes")
    assert provider.secrets == {"kubeconfig"}
    identifier = provider.inputs["clusterIdentifier"]
    assert identifier == f"id-of-{CLUSTER}".lower()
    said = json.loads(provider.inputs["kubeconfig"])
    assert said["clusters"][0]["cluster"]["server"] == f"https://{CLUSTER}.example:443"
    assert said["users"][0]["user"]["exec"]["command"] == "kubelogin"
    local = deployed(told={"disableLocalAccounts": False}, cluster__localAccounts=True)
    assert "name: admin" in local.one("aks-kubernetes").inputs["kubeconfig"]


def test_all_of_it_is_known_at_the_first_preview() -> None:
    previewed = deployed(preview=True, told=MANUAL, **SELF_HOSTED)
    variables = {
        each["name"]: each.get("value") for each in controller(previewed).inputs["values"]["controller"]["env"]
    }
    assert variables["VNET_GUID"] == "guid-of-hub"


def test_a_cluster_that_is_not_there_is_refused_before_anything_is_made() -> None:
    with pytest.raises(SettingsError, match=r'cluster\.existing = "Shop_1"\n.*is not in the resource group shop of'):
        deployed(clusters=[])


def test_what_is_wrong_is_refused_before_anything_is_made() -> None:
    with pytest.raises(SettingsError, match=r"nodeProvisioningProfile\.mode is Manual"):
        deployed(told=MANUAL)


def test_what_may_be_meant_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lambda text, *rest: said.append(text))
    deployed(replace(RUNS, autoscalers=["kube-system/cluster-autoscaler"]))
    (text,) = (each for each in said if "Cluster Autoscaler" in each)
    assert "docs/move-to-nap.md" in text


def test_a_proxy_of_the_clusters_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lambda text, *rest: said.append(text))
    security = {"workloadIdentity": {"enabled": True}, "customCATrustCertificates": ["x"]}
    deployed(
        told=MANUAL | {"httpProxyConfig": {"httpProxy": "http://p:1/"}, "securityProfile": security}, **SELF_HOSTED
    )
    # The SDK's version of the API does not say whether it is switched off.
    assert [
        text.partition("has ")[2].partition(",")[0] for text in said if "of a Karpenter that is not AKS's" in text
    ] == [
        "an HTTP proxy (unless `az aks show --query httpProxyConfig.enabled` says false)",
        "certificate authorities of its own",
    ]


def test_a_cluster_is_not_asked_whom_it_does_not_let_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(existing_workloads, "look", lambda *given, **more: pytest.fail("was asked"))
    args = example(cluster__localAccounts=True)
    with pytest.raises(SettingsError, match="has no local accounts"):
        deploy(lambda: aks.ExistingEnvironment("aks", args), clusters=[CLUSTER])
    args, stopped = example(), {"powerState": {"code": "Stopped"}}
    with pytest.raises(SettingsError, match="is stopped"):
        deploy(lambda: aks.ExistingEnvironment("aks", args), clusters=[CLUSTER], told=stopped)


SYSTEM = FoundPool(name="system", mode="System", windows=False, autoscaled=False, subnet_id=ONE, pod_subnet=False)
GENERAL = replace(SYSTEM, name="general", mode="User")


def found(**changes: Any) -> FoundCluster:
    """A cluster on which the example works, with changes; those that `Workloads` has are its."""
    known: dict[str, Any] = {
        "location": "westus2",
        "state": "Succeeded",
        "stopped": False,
        "version": "1.36",
        "managed_identity": True,
        "rbac": True,
        "provisioning": "Auto",
        "default_pools": False,
        "plugin": "azure",
        "overlay": True,
        "dataplane": "cilium",
        "policy": "cilium",
        "ipv6": False,
        "entra": True,
        "local_accounts": False,
        "issuer": "https://issuer",
        "workload_identity": True,
        "node_group": NODES,
        "group_locked": False,
        "proxied": "no",
        "certified": False,
        "subnets": ["one", "batch"],
        "pools": [SYSTEM, GENERAL],
        "workloads": RUNS,
    }
    inside = {key: changes.pop(key) for key in [*changes] if key not in known}
    return FoundCluster(**{**known, **changes, **({"workloads": replace(RUNS, **inside)} if inside else {})})


def manual(**changes: Any) -> FoundCluster:
    return found(provisioning="Manual", **changes)


def said(cluster: FoundCluster, **changes: Any) -> list[Finding]:
    return list(problems(example(**changes), cluster))


def pool(**changes: Any) -> list[FoundPool]:
    return [SYSTEM, replace(GENERAL, **changes)]


AZ = "--resource-group shop --name Shop_1"
WRONG: dict[str, tuple[FoundCluster, dict[str, Any], str, str, str]] = {
    "being upgraded": (found(state="Upgrading"), {}, "cluster.existing", "is Upgrading", f"az aks wait {AZ} --updated"),
    "being made": (found(state="Creating"), {}, "cluster.existing", "is Creating", f"az aks wait {AZ}"),
    "stopped": (found(stopped=True), {}, "cluster.existing", "is stopped", f"az aks start {AZ}"),
    "elsewhere": (
        found(location="eastus"),
        {},
        "azure-native:location",
        "is not where Shop_1 is, eastus",
        "write eastus",
    ),
    "kubenet": (
        found(plugin="kubenet", overlay=False, dataplane="", policy=""),
        {},
        "cluster.existing",
        "kubenet",
        f"anew: az aks update {AZ} --network-plugin azure --network-plugin-mode overlay --pod-cidr <range>",
    ),
    "kubenet with policies": (
        found(plugin="kubenet", overlay=False, dataplane="", policy="calico"),
        {},
        "cluster.existing",
        "kubenet",
        f"az aks update {AZ} --network-policy none, then az aks update {AZ} --network-plugin azure",
    ),
    "calico": (
        found(policy="calico"),
        {},
        "cluster.existing",
        "Calico",
        f"az aks update {AZ} --network-dataplane cili",
    ),
    "IPv6": (found(ipv6=True), {}, "cluster.existing", "has IPv6", "IPv4 alone"),
    "pod subnets": (
        found(pools=pool(pod_subnet=True)),
        {},
        "cluster.existing",
        "gives pods of the pool general addresses of a subnet",
        "without --pod-subnet-id",
    ),
    "a service principal": (
        found(managed_identity=False),
        {},
        "cluster.existing",
        "works as a service principal",
        f"az aks update {AZ} --enable-managed-identity",
    ),
    "switched off": (
        manual(),
        {},
        "cluster.existing",
        "has node auto provisioning switched off",
        f"az aks update {AZ} --node-provisioning-mode Auto --node-provisioning-default-pools None",
    ),
    "no certificate": (
        found(),
        {"cluster__localAccounts": True},
        "cluster.localAccounts",
        "has no local accounts",
        "remove it",
    ),
    "no Entra": (found(entra=False), {}, "cluster.localAccounts", "of which Shop_1 knows nothing", "set it to true"),
    "not let in": (
        found(refusal="401 Unauthorized"),
        {},
        "cluster.existing",
        "does not let in whoever deploys, or not to do what must be done: 401 Unauthorized",
        "Azure Kubernetes Service RBAC Cluster Admin",
    ),
    "another Karpenter": (
        found(controllers=["kube-system/karpenter"]),
        {},
        "cluster.existing",
        "has a Karpenter of its own, the Deployment kube-system/karpenter",
        "docs/move-to-nap.md",
    ),
    "a node class of AKS's": (
        found(default_pools=True),
        {},
        "nodeClasses.default",
        "has the name of one that AKS brings itself",
        "choose another name",
    ),
    "a node class that nobody has": (
        found(),
        {"nodeClasses": {"mine": {}}},
        "nodePools.general.template.spec.nodeClassRef.name",
        "names no node class of this stack",
        "mine",
    ),
    "another dataplane": (
        found(dataplane="azure"),
        {"nodePools__general__template__metadata": {"labels": {"kubernetes.azure.com/ebpf-dataplane": "cilium"}}},
        'nodePools.general.template.metadata.labels["kubernetes.azure.com/ebpf-dataplane"]',
        "contradicts the network",
        "leave it out",
    ),
    "a subnet of another network": (
        found(),
        {"nodeClasses__default__vnetSubnetID": ONE.replace("/hub/subnets", "/spoke/subnets")},
        "nodeClasses.default.vnetSubnetID",
        "lies in another network than Shop_1",
        f"name a subnet of {HUB}",
    ),
    "a subnet that is not there": (
        found(),
        {"nodeClasses__default__vnetSubnetID": ONE + "1"},
        "nodeClasses.default.vnetSubnetID",
        "is not there",
        "name one of one, batch",
    ),
    "a subnet beside AKS's network": (
        found(pools=[replace(SYSTEM, subnet_id="")]),
        {"nodeClasses__default__vnetSubnetID": ONE},
        "nodeClasses.default.vnetSubnetID",
        "in a network that AKS has made",
        "remove it",
    ),
    "two Karpenters": (found(), SELF_HOSTED, "mode", "beside the one that AKS runs", "--node-provisioning-mode Manual"),
    "no issuer": (
        manual(issuer=""),
        SELF_HOSTED,
        "cluster.existing",
        "has no OIDC issuer",
        f"az aks update {AZ} --enable-oidc-issuer --enable-workload-identity",
    ),
    "no workload identity": (
        manual(workload_identity=False),
        SELF_HOSTED,
        "cluster.existing",
        "or no workload identity",
        "--enable-workload-identity",
    ),
    "a locked group": (
        manual(group_locked=True),
        SELF_HOSTED,
        "cluster.existing",
        f"has its node resource group {NODES} locked",
        "--nrg-lockdown-restriction-level Unrestricted",
    ),
    "self-hosted in AKS's network": (
        manual(pools=[replace(SYSTEM, subnet_id="")]),
        SELF_HOSTED,
        "network.subnetId",
        "leaves open where nodes live",
        f"az network vnet list --resource-group {NODES}",
    ),
    "self-hosted without Cilium": (
        manual(dataplane="azure"),
        SELF_HOSTED,
        "mode",
        "is made here for Azure CNI overlay with Cilium",
        f"update-azure-cni says: az aks update {AZ} --network-dataplane cilium",
    ),
    "self-hosted in the nodes' subnet": (
        manual(overlay=False, dataplane="azure", policy="azure"),
        SELF_HOSTED,
        "mode",
        "no overlay, dataplane azure",
        f"says: az aks update {AZ} --network-policy none, then az aks update {AZ} --network-plugin azure "
        f"--network-plugin-mode overlay --pod-cidr <range>, then az aks update {AZ} --network-dataplane cilium",
    ),
    "self-hosted on an old cluster": (manual(version="1.30"), SELF_HOSTED, "mode", "the cluster has 1.30", "nap"),
    "CRDs of another release": (
        manual(foreign_definitions=["nodepools.karpenter.sh"]),
        SELF_HOSTED,
        "cluster.existing",
        "has nodepools.karpenter.sh already, which Helm has not made",
        "kubectl label crd nodepools.karpenter.sh",
    ),
    "self-hosted beside another": (
        manual(controllers=["karpenter/karpenter"], foreign_definitions=["nodepools.karpenter.sh"]),
        SELF_HOSTED,
        "cluster.existing",
        "has a Karpenter of its own",
        "brings its own",
    ),
    "few places": (manual(places=1), SELF_HOSTED, "karpenter.replicas", "is more than Shop_1 has places for, 1", "add"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_cluster_that_cannot_do_is_refused(case: str) -> None:
    cluster, changes, key, consequence, fix = WRONG[case]
    (problem,) = said(cluster, **changes)
    assert (problem.key.removeprefix("karpstack:"), problem.warning) == (key, False)
    assert consequence in problem.consequence
    assert fix in problem.fix


DOUBTFUL: dict[str, tuple[FoundCluster, dict[str, Any], str]] = {
    "a failed update": (found(state="Failed"), {}, "is Failed: its last update"),
    "both scale": (found(pools=pool(autoscaled=True)), {}, "and only taints keep the two apart"),
    "both scale, self-hosted": (manual(pools=pool(autoscaled=True)), SELF_HOSTED, "both may make a node"),
    "a proxy, self-hosted": (
        manual(proxied="yes"),
        SELF_HOSTED,
        "has an HTTP proxy, of which AKS tells its pools' nodes",
    ),
    "certificates, self-hosted": (
        manual(certified=True),
        SELF_HOSTED,
        "has certificate authorities of its own, of whic",
    ),
    "Windows": (found(pools=pool(windows=True)), {}, "has the Windows pool general, which node auto provisioning does"),
    "CRDs of a Karpenter that was there": (
        found(own_definitions=["nodepools.karpenter.sh"]),
        {},
        "has nodepools.karpenter.sh of a Helm release karpenter-crd",
    ),
    "an autoscaler of its own": (found(autoscalers=["kube-system/ca"]), {}, "has a Cluster Autoscaler of its own"),
    "another subnet": (found(), {"nodeClasses__default__vnetSubnetID": BATCH}, "is another subnet than that of the s"),
}


@pytest.mark.parametrize("case", DOUBTFUL)
def test_what_may_be_meant_is_a_warning(case: str) -> None:
    cluster, changes, consequence = DOUBTFUL[case]
    (problem,) = said(cluster, **changes)
    assert problem.warning
    assert consequence in problem.consequence


def test_where_it_works_nothing_is_said() -> None:
    assert not said(found())
    assert not said(manual(), **SELF_HOSTED)
    # Its own release, at the next `up`.
    assert not said(manual(own_definitions=["nodepools.karpenter.sh"]), **SELF_HOSTED)
    # AKS's own Karpenter hands both on.
    assert not said(found(proxied="yes", certified=True))
    assert not said(found(default_pools=True), nodeClasses={}, nodePools={})


def test_what_keeps_node_auto_provisioning_off_is_told_at_once() -> None:
    keeps = manual(pools=[SYSTEM, replace(GENERAL, autoscaled=True), replace(GENERAL, name="x", autoscaled=True)])
    told = [problem.consequence for problem in said(keeps)]
    assert [text.split(",")[0] for text in told[:2]] == ["has the pool general", "has the pool x"]
    assert "AKS refuses node auto provisioning beside it" in told[0]
    assert "switched off" in told[2]


@pytest.mark.parametrize(
    ("cluster", "consequence", "fix"),
    [
        (manual(rbac=False), "has no Kubernetes RBAC (enableRBAC)", "take another cluster"),
        (
            manual(pools=pool(windows=True)),
            "has the Windows pool general",
            "az aks nodepool delete --resource-group shop --cluster-name Shop_1 --name general",
        ),
    ],
)
def test_what_aks_refuses_is_refused_before_it_is_asked(cluster: FoundCluster, consequence: str, fix: str) -> None:
    first, last = said(cluster)
    assert consequence in first.consequence
    assert fix in first.fix
    assert "switched off" in last.consequence
    assert not first.warning


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "no name": ({"cluster__existing": "shop cluster"}, "cluster.existing", "cannot be used"),
    "no group": ({"cluster__resourceGroup": None}, "cluster.resourceGroup", "is required"),
    "a version": ({"cluster__version": "1.36"}, "cluster.version", "is about a cluster that the stack makes"),
    "admins": ({"cluster__admins": []}, "cluster.admins", "is about a cluster that the stack makes"),
    "a range": ({"network__podCidr": "10.0.0.0/16"}, "network.podCidr", "is about a cluster that the stack makes"),
    "a plugin": ({"network__networkPlugin": "azure"}, "network.networkPlugin", "is about a cluster that the stack mak"),
    "system nodes": ({"systemNodes": {"count": 2}}, "systemNodes", "is about a pool that the stack makes"),
    "AKS's NodePools": ({"nodeProvisioning": {}}, "nodeProvisioning", "is said in the cluster's own profile"),
    "Cilium": ({"cilium": {"install": True}}, "cilium", "a second one over a network that works takes pods off it"),
    "a proxy": ({"proxy": {"https": "http://p:1"}}, "proxy", "is said in the cluster's own profile"),
    "certificates": ({"trustedCertificates": []}, "trustedCertificates", "are said in the cluster's own profile"),
    "no key": ({"cluster__exists": True}, "cluster.exists", "is not a setting"),
    "no subnet": ({**SELF_HOSTED, "network__subnetId": "one"}, "network.subnetId", "is no resource ID of a subnet"),
    "a subnet for AKS's": ({"network__subnetId": ONE}, "network.subnetId", "would change nothing in mode nap"),
    "a controller beside AKS's": (
        {"karpenter": {"sshPublicKey": KEY}},
        "karpenter",
        "configures a controller of this stack's",
    ),
    "no controller": ({"mode": "self-hosted"}, "karpenter", "is required in mode self-hosted"),
    "no subnet of a node class": (
        {"nodeClasses__default__vnetSubnetID": "one"},
        "nodeClasses.default.vnetSubnetID",
        "is no resource ID of a subnet",
    ),
    "Windows": (
        {
            "nodePools__general__template__spec__requirements": [
                {"key": "kubernetes.io/os", "operator": "In", "values": ["windows"]}
            ]
        },
        "nodePools.general.template.spec.requirements[0]",
        "asks for Windows nodes",
    ),
    "no node class": (
        {**SELF_HOSTED, "nodeClasses": {"mine": {}}},
        "nodePools.general.template.spec.nodeClassRef.name",
        "names no node class of this stack",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_stack_file_that_cannot_work_is_refused(case: str) -> None:
    changes, key, consequence = REFUSED[case]
    with pytest.raises(SettingsError) as caught:
        settings.load(config(**changes))
    assert (f"karpstack:{key}", True) in [
        (problem.key, consequence in problem.consequence) for problem in caught.value.problems
    ], caught.value


#: Another value of each setting that a cluster of the stack's own does not have, or has in another section.
OTHER: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "cluster.existing": ("Shop_2", {}, {}),
    "cluster.resourceGroup": ("other", SELF_HOSTED, MANUAL),
    "cluster.localAccounts": (True, {}, {"disableLocalAccounts": False}),
    "cluster.kubelogin": ("msi", {}, {}),
    "network.subnetId": (BATCH, SELF_HOSTED, MANUAL),
    "mode": ("self-hosted", {}, {}),
}


def inputs(told: dict[str, Any], **changes: Any) -> dict[str, Any]:
    made = deployed(told=told, **changes)
    return {each.urn: each.inputs for each in made.resources.values() if each.request.custom}


@pytest.mark.parametrize("key", [key for key in OTHER if key != "mode"])
def test_another_value_changes_an_input(key: str) -> None:
    value, given, told = OTHER[key]
    assert inputs(told, **given) != inputs(told, **{**given, key.replace(".", "__"): value})


def test_every_setting_of_its_own_has_another_value_here() -> None:
    own = {key for key in keys(settings.ExistingAksSettings) if key.split(".")[0] in ("cluster", "network")}
    assert own == {key for key in OTHER if key != "mode"}


def test_the_example_names_what_its_files_have() -> None:
    loaded = settings.load(raw(yaml.safe_load(STACK.read_text())["config"]))
    assert isinstance(loaded, settings.ExistingAksSettings)
    cluster, network = (
        json.loads(STACK.with_name(f"{STACK.stem}.{part}.json").read_text()) for part in ("cluster", "network")
    )
    assert loaded.cluster.existing == cluster["cluster"]["name"]
    assert loaded.cluster.resource_group == cluster["cluster"]["resourceGroup"]
    subnets = {f"{network[0]['id']}/subnets/{one['name']}" for one in network[0]["properties"]["subnets"]}
    assert {pool["vnetSubnetId"] for pool in cluster["cluster"]["agentPoolProfiles"]} <= subnets


@examples(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(draw=data())
def test_a_broken_stack_file_ends_in_settings_or_in_sentences(draw: DataObject) -> None:
    said = yaml.safe_load(STACK.read_text())["config"]
    config = draw.draw(mutations(said))
    try:
        settings.load(raw(config if isinstance(config, dict) else {}))
    except SettingsError as error:
        told = str(error)
    else:
        told = ""
    assert len(told) < 10_000


class Fake:
    """Answers as the kubernetes client does."""

    def __init__(self) -> None:
        self.denied: tuple[str, str] | None = None
        self.deployments: list[Any] = []
        self.definitions: dict[str, dict[str, str]] = {}

    def create_self_subject_access_review(self, review: Any, **options: Any) -> SimpleNamespace:
        asked = review.spec.resource_attributes
        assert asked.verb == "create"
        return SimpleNamespace(status=SimpleNamespace(allowed=(asked.group, asked.resource) != self.denied))

    def list_deployment_for_all_namespaces(self, **options: Any) -> SimpleNamespace:
        return SimpleNamespace(items=self.deployments)

    def list_node(self, **options: Any) -> SimpleNamespace:
        ready = SimpleNamespace(type="Ready", status="True")
        node = SimpleNamespace(
            metadata=SimpleNamespace(labels={}),
            spec=SimpleNamespace(taints=None, unschedulable=None),
            status=SimpleNamespace(conditions=[ready]),
        )
        return SimpleNamespace(items=[node])

    def list_custom_resource_definition(self, field_selector: str, **options: Any) -> SimpleNamespace:
        name = field_selector.removeprefix("metadata.name=")
        found = SimpleNamespace(metadata=SimpleNamespace(annotations=self.definitions.get(name)))
        return SimpleNamespace(items=[found] if name in self.definitions else [])


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    made = Fake()
    monkeypatch.setattr(existing_workloads, "ask", lambda kubeconfig, question: question(made))
    for api in ("ApiextensionsV1Api", "AppsV1Api", "AuthorizationV1Api", "CoreV1Api"):
        monkeypatch.setattr(kubernetes.client, api, lambda client: client)
    return made


def test_the_cluster_says_who_may_do_what_is_done(fake: Fake) -> None:
    fake.denied = ("karpenter.azure.com", "aksnodeclasses")
    assert "does not let them create aksnodeclasses" in existing_workloads.look("{}", NAME, controller=False).refusal
    # Only a controller of the stack's own needs more.
    fake.denied = ("rbac.authorization.k8s.io", "clusterrolebindings")
    assert existing_workloads.look("{}", NAME, controller=False).refusal == ""
    assert "clusterrolebindings" in existing_workloads.look("{}", NAME, controller=True).refusal


def test_the_cluster_says_whose_crds_it_has_and_where_a_controller_can_run(fake: Fake) -> None:
    release = {"meta.helm.sh/release-name": "karpenter-crd", "meta.helm.sh/release-namespace": "kube-system"}
    fake.definitions = {"nodepools.karpenter.sh": release, "aksnodeclasses.karpenter.azure.com": {}}
    seen = existing_workloads.look("{}", NAME, controller=True)
    assert seen.own_definitions == ["nodepools.karpenter.sh"]
    assert seen.foreign_definitions == ["aksnodeclasses.karpenter.azure.com"]
    assert seen.places == 1
