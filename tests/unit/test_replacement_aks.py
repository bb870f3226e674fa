"""The same as test_replacement.py on AKS: what would be destroyed is refused by the stack's last state."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from karpstack.components import aks, eks, settings
from karpstack.components.replacement import ReplacementError
from tests.unit.example_stack import example, written
from tests.unit.found import AKS_WORKLOADS, let_run
from tests.unit.mock_engine import SUBSCRIPTION, Deployment, deploy

CLUSTER = "Shop_1"
MANUAL = {"nodeProvisioningProfile": {"mode": "Manual"}}
SELF_HOSTED: dict[str, Any] = {"mode": "self-hosted", "karpenter": {"sshPublicKey": "<ssh-key>"}}
ONE, BATCH = written(["<subnets>/one", "<subnets>/batch"])
EXISTING: dict[str, Any] = {"network__subnetCidr": None, "network__subnetId": ONE}
OWN = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{{0}}/providers/Microsoft.ContainerService/managedClusters/{{0}}"
THERE = OWN.format("shop").replace("managedClusters/shop", f"managedClusters/{CLUSTER}")
OTHER = "22222222-2222-2222-2222-222222222222"
ROUTED = {"network__outboundType": "userDefinedRouting"}
NAP: dict[str, Any] = {"mode": "nap"}
KEPT = {"logRetentionDays": 30, "prometheus": True}
OF_OTHERS = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/hub/providers/Microsoft.Monitor/accounts/all-clusters"


def environment(stack: str, last: dict[str, Any] | None = None, **changes: Any) -> Deployment:
    existing = stack == "existing"
    loaded = settings.load(
        example("aks-existing-cluster", **(changes if changes == NAP else {**SELF_HOSTED, **changes}))
        if existing
        else example(stack, **changes)
    )
    with pytest.MonkeyPatch.context() as patch:
        let_run(patch, AKS_WORKLOADS)
        kind: Any = aks.ExistingEnvironment if existing else aks.Environment
        return deploy(lambda: kind("aks", loaded), clusters=[CLUSTER, "other"], told=MANUAL, last=last)


@cache
def last(stack: str, **changes: Any) -> dict[str, Any]:
    return state(environment(stack, **changes), stack)


def state(made: Deployment, stack: str) -> dict[str, Any]:
    """The state after an `up`, as the engine has it."""
    known: dict[str, Any] = {}
    for urn, each in made.resources.items():
        outputs = dict(each.inputs) | made.outputs.get(urn, {})
        if each.type == "azure-native:resources:ResourceGroup":
            outputs["name"] = each.inputs["resourceGroupName"]
        if each.type.startswith("karpstack:aks:") and each.type.endswith("Cluster"):
            outputs["id"] = (
                THERE if stack == "existing" else OWN.format("karpstack-" + stack.removesuffix("-self-hosted"))
            )
        if each.type == "azure-native:containerservice:ManagedCluster":
            outputs["location"] = "West US 2"  # as ARM writes it at times
        known[urn] = {"type": each.type, "outputs": outputs}
    return known


@cache
def with_workspaces() -> dict[str, Any]:
    return state(environment("aks-nap", addons=KEPT), "aks-nap")


def in_a_network() -> dict[str, Any]:
    return last("aks-nap", **EXISTING)


@pytest.mark.parametrize(
    ("stack", "changes", "texts"),
    [
        (
            "aks-nap",
            {"name": "other"},
            ['karpstack:name = "other", was "karpstack-aks-nap"', "would be deleted, with everything"],
        ),
        ("aks-nap", {"azure-native:location": "eastus"}, ['location = "eastus", was "westus2"', "its resource group"]),
        ("aks-nap", {"azure-native:subscriptionId": OTHER}, [f'was "{SUBSCRIPTION}"', "in another subscription"]),
        ("aks-nap", {"network__podCidr": "10.100.0.0/16"}, ['network.podCidr = "10.100.0.0/16", was "10.244.0.0/16"']),
        (
            "aks-nap",
            {"network__serviceCidr": "10.1.0.0/16"},
            ['network.serviceCidr = "10.1.0.0/16", was "10.0.0.0/16"'],
        ),
        (
            "aks-self-hosted",
            {"network__outboundType": "userAssignedNATGateway"},
            ['network.outboundType = "userAssignedNATGateway", was "loadBalancer"'],
        ),
        ("aks-nap", EXISTING, ["karpstack:network.subnetId =", "was (not set)", "would delete its own network"]),
        ("aks-nap", {"network__subnetCidr": "10.224.0.0/18"}, ["network.subnetCidr", "InUsePrefixCannotBeDeleted"]),
        ("existing", {"cluster__existing": "other"}, ['existing = "shop/other", was "shop/Shop_1"', "NodePools"]),
        ("existing", {"cluster__resourceGroup": "more"}, ['existing = "more/Shop_1", was "shop/Shop_1"']),
        ("existing", {"name": "other"}, ["karpstack:name", "new identity"]),
        ("existing", NAP, ['karpstack:mode = "nap", was "self-hosted"', "with them all NodePools"]),
    ],
)
def test_what_would_be_destroyed_is_refused(stack: str, changes: dict[str, Any], texts: list[str]) -> None:
    with pytest.raises(ReplacementError) as caught:
        environment(stack, last(stack), **changes)
    for text in (*texts, "fix: ", "allowReplacement", "nothing was changed"):
        assert text in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "texts"),
    [
        ({}, ["network.subnetId = (not set)", ONE]),
        (
            {"network__subnetCidr": None, "network__subnetId": BATCH},
            ["karpstack:network.subnetId =", f"set it back to {ONE}"],
        ),
        ({**EXISTING, **ROUTED}, ['"userDefinedRouting", was "loadBalancer"']),
    ],
)
def test_another_subnet_is_refused(changes: dict[str, Any], texts: list[str]) -> None:
    with pytest.raises(ReplacementError) as caught:
        environment("aks-nap", in_a_network(), **changes)
    assert all(text in str(caught.value) for text in texts)


@pytest.mark.parametrize(
    ("addons", "texts"),
    [
        ({"prometheus": True}, ["addons.logRetentionDays = 0, was 30", "with all logs in it"]),
        ({"logRetentionDays": 30}, ["addons.prometheus = false, was true", "with all metrics in it"]),
        ({**KEPT, "metricsWorkspaceId": OF_OTHERS}, ["addons.metricsWorkspaceId = ", "was (not set)"]),
    ],
)
def test_a_workspace_is_not_deleted_with_what_it_keeps(addons: dict[str, Any], texts: list[str]) -> None:
    before = with_workspaces()
    assert environment("aks-nap", before, addons={**KEPT, "logRetentionDays": 90}).resources
    with pytest.raises(ReplacementError) as caught:
        environment("aks-nap", before, addons=addons)
    assert all(text in str(caught.value) for text in texts), str(caught.value)


def test_another_kind_of_stack_is_refused() -> None:
    with pytest.raises(ReplacementError, match=r'cluster.existing = "shop/Shop_1", was \(not set\)'):
        environment("existing", last("aks-self-hosted"))
    with pytest.raises(ReplacementError, match=r'cluster.existing = \(not set\), was "shop/Shop_1"'):
        environment("aks-self-hosted", last("existing"))


@pytest.mark.parametrize(
    ("stack", "changes"),
    [
        ("aks-nap", {}),
        ("aks-nap", {"network__vnetCidr": "10.224.0.0/15"}),
        ("aks-nap", {"systemNodes__count": 3, "tags": {"owner": "others"}}),
        ("aks-self-hosted", {"karpenter__replicas": 1}),
        ("existing", {}),
    ],
)
def test_what_destroys_nothing_is_taken(stack: str, changes: dict[str, Any]) -> None:
    assert environment(stack, last(stack), **changes).resources
    assert environment("aks-nap", in_a_network(), network__subnetCidr=None, network__subnetId=ONE.upper()).resources


def test_with_consent_it_goes_on_without_protection() -> None:
    changes: dict[str, Any] = {"cluster__deletionProtection": True, "network__podCidr": "10.100.0.0/16"}
    made = environment("aks-nap", last("aks-nap"), allowReplacement=["cluster"], **changes)
    cluster = made.one("aks-cluster-control-plane")
    assert not cluster.request.protect
    assert not cluster.request.hooks.before_create or "kept" not in str(cluster.request.hooks.before_create)


def test_environments_of_one_name_have_hooks_of_other_names() -> None:
    loaded = [settings.load(example(stack)) for stack in ("eks", "aks-nap", "aks-existing-cluster")]
    kinds: tuple[Any, ...] = (eks.Environment, aks.Environment, aks.ExistingEnvironment)

    def program() -> None:
        for kind, each in zip(kinds, loaded, strict=True):
            kind("shop", each)

    with pytest.MonkeyPatch.context() as patch:
        let_run(patch, AKS_WORKLOADS)
        hooks = deploy(program, clusters=[CLUSTER, "other"]).hooks
    assert sum(hook.endswith("shop-kubernetes-kept") for hook in hooks) == len(kinds)
    assert [one for one in hooks if hooks.count(one) > 1] == []


@pytest.mark.parametrize("stack", ["aks-nap", "aks-self-hosted"])
def test_the_engines_replacements_are_refused_too(stack: str) -> None:
    made = environment(stack, addons={"logRetentionDays": 30, "prometheus": True})
    for name in (
        "aks-group",
        "aks-network-vnet",
        "aks-network-nodes",
        "aks-cluster-control-plane",
        "aks-kubernetes",
        "aks-workspaces-logs",
        "aks-workspaces-metrics",
    ):
        (resource,) = [each for each in made.resources.values() if each.name == name and ":aks:" not in each.type]
        assert f"karpstack:aks:Environment:{name}-kept" in resource.request.hooks.before_create
