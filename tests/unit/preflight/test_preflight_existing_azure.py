"""The look before `up` at an AKS cluster that is there, in the simulated subscription; what runs in it is said here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from karpstack.components.documents.roles import Role as Given
from karpstack.components.settings.workloads import Workloads
from karpstack.preflight.azure import assignments, locks, names, rights
from karpstack.preflight.azure.checks import EXISTING
from karpstack.preflight.azure.subject import ExistingSubject, existing_subject
from karpstack.preflight.finding import run
from karpstack.preflight.stack import State
from karpstack.rehearsal.azure.identity import roles
from karpstack.rehearsal.azure.identity.entra import Principal
from tests.unit.example_stack import loaded
from tests.unit.found import let_run
from tests.unit.preflight.preflight_azure_world import asked, lock, somebody
from tests.unit.rehearsal.provider_azure_world import Provider
from tests.unit.rehearsal.test_azure_described import ID, Subscriptions

RUNS = Workloads(places=2)
SUBSCRIPTION = "12345678-1234-1234-1234-123456789012"
VNET = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/network/providers/Microsoft.Network/virtualNetworks/shop"
NODES = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/MC_shop_Shop_1_westus2"
SELF_HOSTED: dict[str, Any] = {"mode": "self-hosted", "karpenter": {"sshPublicKey": "<ssh-key>"}}


def manual(described: dict[str, Any]) -> None:
    """Nobody has switched on node auto provisioning."""
    described["nodeProvisioningProfile"] = {"mode": "Manual"}


@pytest.fixture
def subscription(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Subscriptions]:
    let_run(monkeypatch, RUNS)
    made = Subscriptions(tmp_path)
    yield made
    for provider in made.made:
        provider.azure.stop()


def looked_at(provider: Provider, principal: Principal | None = None, **changes: Any) -> ExistingSubject:
    given = loaded("aks-existing-cluster", {"azure-native:subscriptionId": SUBSCRIPTION, **changes})
    return existing_subject(asked(provider.world, principal), given, State())


def said(seen: ExistingSubject) -> dict[str, list[tuple[str, str]]]:
    return {
        one.name: [(finding.severity, finding.what) for finding in one.findings]
        for one in run(EXISTING, seen)
        if one.findings
    }


@pytest.mark.parametrize(("change", "mode"), [(lambda described: None, {}), (manual, SELF_HOSTED)])
def test_nothing_is_in_the_way_of_the_examples(subscription: Subscriptions, change: Any, mode: dict[str, Any]) -> None:
    seen = looked_at(subscription(change), nodePools__general__limits={"cpu": 8}, **mode)
    assert {name: severity for name, ((severity, _),) in said(seen).items()} == {"subscription": "note"}


def test_a_cluster_that_is_not_there(subscription: Subscriptions) -> None:
    told = said(looked_at(subscription(), cluster__existing="Shop_9"))
    assert [severity for severity, _ in told["cluster"]] == ["error"]
    assert "does not exist in the resource group shop" in told["cluster"][0][1]
    assert set(told) == {"subscription", "cluster", "quota of NodePools"}


def test_whoever_gets_no_kubeconfig_is_not_let_in(subscription: Subscriptions) -> None:
    provider = subscription()
    principal = somebody(provider.world, roles.READER)
    told = said(looked_at(provider, principal))
    assert any("does not give the deployer the necessary access" in what for _, what in told["cluster"])
    assert any("listClusterUserCredential/action" in what and ID.lower() in what.lower() for _, what in told["rights"])


def test_self_hosted_roles_are_given_on_what_is_there(subscription: Subscriptions) -> None:
    provider = subscription(manual)
    principal = somebody(provider.world, roles.CONTRIBUTOR)
    told = [finding.what for finding in rights.rights(looked_at(provider, principal, **SELF_HOSTED))]
    lacking = [what for what in told if "roleAssignments/write" in what]
    assert any(what.endswith(f"on {NODES}") for what in lacking)
    assert any(what.endswith(f"on {VNET}/subnets/nodes") for what in lacking)
    assert len(lacking) == len(told)
    # With node auto provisioning nothing is made in Azure.
    assert not list(rights.rights(looked_at(subscription(), somebody(subscription.made[-1].world, roles.CONTRIBUTOR))))


def test_a_lock_on_the_nodes_group(subscription: Subscriptions) -> None:
    provider = subscription()
    lock(provider.world, NODES, "ReadOnly")
    (finding,) = locks.locks(looked_at(provider))
    assert (finding.severity, NODES in finding.what) == ("error", True)


def test_only_self_hosted_makes_a_resource_group(subscription: Subscriptions) -> None:
    provider = subscription(manual)
    provider.azure.arm.put(
        f"/subscriptions/{SUBSCRIPTION}/resourceGroups/karpstack-shop", "2021-04-01", {"location": "westus2"}
    )
    assert not list(names.resource_group(looked_at(provider)))
    (finding,) = names.resource_group(looked_at(provider, **SELF_HOSTED))
    assert "the resource group karpstack-shop already exists" in finding.what


def test_whoever_deploys_is_given_what_the_look_asks_for(subscription: Subscriptions) -> None:
    given = loaded("aks-existing-cluster", {"azure-native:subscriptionId": SUBSCRIPTION})
    definition = assignments.definition(given)
    assert "Microsoft.ContainerService/managedClusters/write" not in definition["Actions"]
    assert "Microsoft.ContainerService/managedClusters/listClusterUserCredential/action" in definition["Actions"]
    role, administrator = assignments.assignments(given)
    assert (role.condition, administrator.role) == ("", "Azure Kubernetes Service RBAC Cluster Admin")
    assert administrator.scope.lower() == ID.lower()

    given = loaded("aks-existing-cluster", {"azure-native:subscriptionId": SUBSCRIPTION, **SELF_HOSTED})
    role, _ = assignments.assignments(given)
    assert Given.MANAGED_IDENTITY_OPERATOR.value in role.condition
    assert "Microsoft.Authorization/roleAssignments/write" in assignments.definition(given)["Actions"]
