"""The AKS environment with node auto provisioning: a story, what is wrong in one place is found, and down."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from tests.rehearsal import azure
from tests.rehearsal.azure import flat
from tests.rehearsal.conftest import ROOT, RehearsedStack, brought_up, preview_as_production
from tests.rehearsal.listening import a_stranger_gets_nothing, needs_linux, needs_root, only_what_is_declared_listens
from tests.rehearsal.test_kept import UNRULED, run

WITHOUT_POOLS = {"defaultNodePools": "None", "allowStrandedNodes": True}
PROTECTION = "karpstack:cluster/deletionProtection"


@pytest.fixture(scope="module")
def aks_nap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RehearsedStack]:
    """The environment; each test puts it right again, but for the last two, which end it."""
    yield from brought_up(tmp_path_factory, "aks-nap")


@needs_linux
@needs_root
def test_nobody_else_gets_in(aks_nap: RehearsedStack) -> None:
    only_what_is_declared_listens(aks_nap)
    a_stranger_gets_nothing(aks_nap)


def test_production_settings_find_nothing_new(aks_nap: RehearsedStack) -> None:
    # It has no logs, for a reason, and breaks no other rule.
    assert preview_as_production(aks_nap).count("exceptions-in-force") == 1


def test_story(aks_nap: RehearsedStack, tmp_path: Path) -> None:
    assert azure.only_claim(aks_nap, "nap-weight-pinned", tmp_path)["instance_type"] == "Standard_D8_v4"


def test_the_looks_before_up_and_destroy_ask_the_subscription(aks_nap: RehearsedStack) -> None:
    """What they take for the stack's own is what Pulumi's state calls it."""
    configuration = ("--config-file", str(aks_nap.configuration))
    for look in (("aks-nap", *configuration), ("destroy", "aks-nap")):
        result = aks_nap.done(sys.executable, "-m", "karpstack", "preflight", *look, "--format", "json")
        found = [finding for check in json.loads(result)["checks"] for finding in check["findings"]]
        assert all(finding["severity"] == "note" for finding in found), found


def test_a_cluster_that_may_not_join_its_subnet_is_found(aks_nap: RehearsedStack, tmp_path: Path) -> None:
    role = azure.delete(aks_nap, "aks-identity-roles-subnet")
    identity = azure.resource(aks_nap, "aks-identity-identity")["outputs"]
    said = flat(aks_nap.failing_story(tmp_path, azure.STORY, within=45))
    assert f"The client '{identity['clientId']}' with object id '{identity['principalId']}'" in said, said
    # Whichever comes first: the controller makes a machine, or looks at the subnet again, which it does now and then.
    scope = role["inputs"]["scope"]
    joining = f"action(s) 'Microsoft.Network/virtualNetworks/subnets/join/action' on the linked scope(s) '{scope}'"
    reading = f"action 'Microsoft.Network/virtualNetworks/subnets/read' over scope '{scope}'"
    assert ("ERROR CODE: LinkedAuthorizationFailed" in said and joining in said) or (
        "ERROR CODE: AuthorizationFailed" in said and reading in said
    ), said
    # What the next test needs comes with what is mended.
    aks_nap.configure(**{"karpstack:nodeProvisioning": WITHOUT_POOLS})
    aks_nap.mend("1 created", "1 updated")


def test_a_cluster_without_the_pools_of_aks_is_refused_their_story(aks_nap: RehearsedStack, tmp_path: Path) -> None:
    pools: Any = client.CustomObjectsApi(aks_nap.api()).list_cluster_custom_object("karpenter.sh", "v1", "nodepools")
    assert [pool["metadata"]["name"] for pool in pools["items"]] == ["batch"]
    refused = aks_nap.command("run", "--scenarios", "nap-default", "--report", str(tmp_path))
    assert refused.returncode != 0
    for words in ("the stack has no NodePool 'default'", "the stack output defaultNodePools is empty"):
        assert words in flat(refused.stdout), refused.stdout


@pytest.mark.parametrize(
    ("changes", "texts"),
    [
        ({"karpstack:network/podCidr": "10.100.0.0/16"}, ['was "10.244.0.0/16"', "would be deleted, with everything"]),
        ({"karpstack:name": "other"}, ['karpstack:name = "other", was "karpstack-aks-nap"']),
        (
            {"karpstack:cluster/publicAccessCidrs": ["1.1.1.0/24"]},
            ["publicAccessCidrs [] (a private cluster) -> a list"],
        ),
    ],
)
def test_a_change_of_one_line_is_an_error_at_preview(
    aks_nap: RehearsedStack, changes: dict[str, Any], texts: list[str]
) -> None:
    refused = run(aks_nap, "preview", changes)
    assert refused.returncode != 0
    assert all(text in refused.stdout for text in texts), refused.stdout


@pytest.mark.parametrize("protected", [True, False])
def test_what_no_rule_knows_the_engine_reports(aks_nap: RehearsedStack, tmp_path: Path, protected: bool) -> None:
    (tmp_path / "Pulumi.yaml").write_text((ROOT / "Pulumi.yaml").read_text())
    (tmp_path / "__main__.py").write_text(UNRULED.replace("eks_identity", "aks_identity"))
    changes = {"karpstack:network/podCidr": "10.100.0.0/16", PROTECTION: protected}
    refused = run(aks_nap, "preview", changes, "--cwd", str(tmp_path))
    assert refused.returncode != 0
    assert "aks-cluster-control-plane (azure-native:containerservice:ManagedCluster) would be" in refused.stdout or (
        protected and "marked for protection" in refused.stdout
    ), refused.stdout


def test_consent_lets_the_engine_go_on(aks_nap: RehearsedStack) -> None:
    changes = {"karpstack:network/podCidr": "10.100.0.0/16", "karpstack:allowReplacement": ["cluster"]}
    allowed = run(aks_nap, "preview", changes)
    assert allowed.returncode == 0, allowed.stdout
    assert "aks-cluster-control-plane delete replaced" in allowed.stdout or "replace" in allowed.stdout, allowed.stdout


def test_rotated_certificates_replace_nothing(aks_nap: RehearsedStack, tmp_path: Path) -> None:
    """The last state has another address and another authority of the API server than the cluster has now."""
    pools: Any = client.CustomObjectsApi(aks_nap.api())
    before = pools.get_cluster_custom_object("karpenter.sh", "v1", "nodepools", "batch")["metadata"]["uid"]
    exported = tmp_path / "state.json"
    done = aks_nap.by_hand("pulumi", "stack", "export", "--show-secrets", "--file", str(exported))
    assert done.returncode == 0, done.stdout
    state = json.loads(exported.read_text())
    (provider,) = [one for one in state["deployment"]["resources"] if one["urn"].endswith("::aks-kubernetes")]
    for properties in (provider["inputs"], provider["outputs"]):
        config = json.loads(json.loads(properties["kubeconfig"]["plaintext"]))
        config["clusters"][0]["cluster"] = {"server": "https://127.0.0.1:1", "certificate-authority-data": "Q0E="}
        properties["kubeconfig"]["plaintext"] = json.dumps(json.dumps(config))
    exported.write_text(json.dumps(state))
    done = aks_nap.by_hand("pulumi", "stack", "import", "--file", str(exported))
    assert done.returncode == 0, done.stdout
    updated = aks_nap.done("pulumi", "up", "--yes", "--skip-preview", "--non-interactive")
    assert "aks-kubernetes updated" in updated, updated
    assert "replaced" not in updated, updated
    after = pools.get_cluster_custom_object("karpenter.sh", "v1", "nodepools", "batch")["metadata"]["uid"]
    assert after == before


def test_down_leaves_nothing(aks_nap: RehearsedStack) -> None:
    azure.down(aks_nap)
