"""The AKS environment with self-hosted Karpenter: a story, what is wrong in one place is found and named, and down."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, watch

from karpstack.rehearsal.engines import EngineSet
from tests.rehearsal import azure, canaries
from tests.rehearsal.azure import flat
from tests.rehearsal.conftest import (
    Preview,
    RehearsedStack,
    brought_up,
    preview_as_production,
    previewing_bad_resources,
    refused_for,
)
from tests.rehearsal.dry_run import assert_verdicts
from tests.rehearsal.listening import a_stranger_gets_nothing, needs_linux, needs_root, only_what_is_declared_listens

#: What Azure resources must be refused for, in the groups of bad_resources.
REFUSED = {
    "azure identity": ("azure-federation-exact", "azure-role-scope", "azure-no-privileged-role", "tags-required"),
    "azure cluster": (
        "aks-managed-identity",
        "aks-local-accounts-off",
        "aks-workload-identity",
        "aks-overlay-cilium",
        "aks-logs",
        "cidrs-no-overlap",
        "cluster-endpoint-allow-list",
        "no-open-ingress",
        "node-max-pods",
        "node-no-public-ip",
    ),
}


@pytest.fixture(scope="module")
def aks_self_hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RehearsedStack]:
    """The environment; each test puts it right again, and the last takes it down."""
    yield from brought_up(tmp_path_factory, "aks-self-hosted")


@needs_linux
@needs_root
def test_nobody_else_gets_in(aks_self_hosted: RehearsedStack) -> None:
    only_what_is_declared_listens(aks_self_hosted)
    a_stranger_gets_nothing(aks_self_hosted)


def test_the_api_server_takes_what_we_say_it_takes(aks_self_hosted: RehearsedStack, tmp_path: Path) -> None:
    assert_verdicts(aks_self_hosted, "azure", tmp_path)


def look_anew(stack: RehearsedStack) -> None:
    """Start the controller's pods again; nobody waits for them to be well."""
    stack.done("kubectl", "-n", "kube-system", "delete", "pod", "-l", "app.kubernetes.io/name=karpenter")


def available(stack: RehearsedStack) -> None:
    """Wait until the controller's Deployment is as it should be."""
    stack.done("kubectl", "-n", "kube-system", "rollout", "status", "deployment/karpenter", "--timeout=60s")


def back_off(stack: RehearsedStack, words: str) -> str:
    """Wait until `kubectl describe pod` says of the controller why it does not start."""
    stream = watch.Watch()
    events = client.CoreV1Api(stack.api()).list_namespaced_event
    for event in stream.stream(events, "kube-system", field_selector="reason=BackOff", timeout_seconds=30):
        if words in event["object"].message:
            stream.stop()
            return str(event["object"].message)
    raise AssertionError(f"no pod's event ever said {words}")


def launching(stack: RehearsedStack, status: str, words: str = "") -> str:
    """Ask for a node, wait until its NodeClaim's condition Launched is so and says the words, and take all back."""

    def launched(claim: dict[str, Any]) -> dict[str, Any]:
        conditions = claim.get("status", {}).get("conditions", [])
        return next((dict(one) for one in conditions if one["type"] == "Launched"), {})

    def told(claim: dict[str, Any]) -> bool:
        return launched(claim).get("status") == status and words in launched(claim)["message"]

    stack.done("kubectl", "create", "deployment", "inflate", "--image=pause")
    try:
        claim = stack.wait_for("nodeclaims", "karpenter.sh", told, timeout=30)
    finally:
        stack.by_hand("kubectl", "delete", "deployment/inflate")
        stack.by_hand("kubectl", "delete", "nodeclaims", "--all", "--timeout=60s")
    assert claim, f"no NodeClaim ever said Launched {status}: {words}"
    return str(launched(claim)["message"])


def kept_out(stack: RehearsedStack, words: str) -> str:
    """Ask for a node, wait until its kubelet says the words of why it cannot join, and take all back."""
    stack.done("kubectl", "create", "deployment", "inflate", "--image=pause")
    events = client.CoreV1Api(stack.api()).list_event_for_all_namespaces
    stream = watch.Watch()
    try:
        for event in stream.stream(events, field_selector="reason=NodeRegistrationFailed", timeout_seconds=40):
            if words in event["object"].message:
                return str(event["object"].message)
    finally:
        stream.stop()
        stack.by_hand("kubectl", "delete", "deployment/inflate")
        stack.by_hand("kubectl", "delete", "nodeclaims", "--all", "--timeout=60s")
    raise AssertionError(f"no kubelet ever said {words}")


def test_production_settings_find_nothing_new(aks_self_hosted: RehearsedStack) -> None:
    # It has no logs, for a reason, and breaks no other rule.
    assert preview_as_production(aks_self_hosted).count("exceptions-in-force") == 1


@pytest.fixture(scope="module")
def preview(aks_self_hosted: RehearsedStack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Preview]:
    """Previews bad resources in the simulated subscription."""
    keys = ("azure-native:subscriptionId", "azure-native:location")
    config = {key: aks_self_hosted.configured(key) for key in keys}
    yield from previewing_bad_resources(aks_self_hosted, tmp_path_factory.mktemp("policies"), config)


@pytest.mark.parametrize("group", REFUSED)
def test_refuses_the_bad_resources_of_each_group(preview: Preview, group: str) -> None:
    assert refused_for(preview(group)) >= set(REFUSED[group])


def test_story_and_no_secret_leaves_the_place_where_it_belongs(aks_self_hosted: RehearsedStack, tmp_path: Path) -> None:
    key = "AAAAC3NzaC1lZDI1NTE5AAAAIIs8dCJrhr+neBnyA/zBCFmRNhVDmh8+ODtYhg+1Sb2N"
    canaries.plant(aks_self_hosted, "karpstack:karpenter.sshPublicKey", f"ssh-ed25519 {key} canary")
    with canaries.command_lines() as seen:
        claim = azure.only_claim(aks_self_hosted, "self-hosted-inflate", tmp_path / "report")
        printed = aks_self_hosted.succeed("review", "--output", str(tmp_path / "review"))
    secrets = {"the SSH key": key, **in_the_cluster(aks_self_hosted)}
    assert canaries.leaks(aks_self_hosted, secrets, seen, printed, tmp_path) == []
    # The key is taken back while the controller can start: Helm waits for its pods.
    aks_self_hosted.succeed("up")
    assert claim["instance_type"].startswith("Standard_D")


def in_the_cluster(stack: RehearsedStack) -> dict[str, str]:
    """What the stack's own Secrets hold for its nodes; the SSH key's is among them, or nothing would be proven."""
    secrets: Any = client.CoreV1Api(stack.api()).list_namespaced_secret("kube-system")
    found = {
        f"{secret.metadata.name}/{name}": base64.b64decode(value).decode()
        for secret in secrets.items
        if secret.metadata.name.startswith(("bootstrap-token-", "karpenter-ssh-"))
        for name, value in secret.data.items()
        if name in ("token-secret", "ssh-public-key")
    }
    assert len(found) == 2
    return found


def test_a_stack_without_a_subscription_is_refused(aks_self_hosted: RehearsedStack) -> None:
    subscription = aks_self_hosted.configured("azure-native:subscriptionId")
    aks_self_hosted.configure(**{"azure-native:subscriptionId": None})
    refused = aks_self_hosted.command("up")
    aks_self_hosted.configure(**{"azure-native:subscriptionId": subscription})
    assert refused.returncode != 0
    for words in ("azure-native:subscriptionId = (not set)", "nothing was created"):
        assert words in refused.stdout, refused.stdout


def test_a_controller_without_a_subscription_crashes_and_says_so(
    aks_self_hosted: RehearsedStack, tmp_path: Path
) -> None:
    """The configuration cannot say it; whoever edits the release can."""
    helm = ("helm", "--namespace", "kube-system")
    values = json.loads(aks_self_hosted.by_hand(*helm, "get", "values", "karpenter", "--output", "json").stdout)
    values["controller"]["env"] = [
        one for one in values["controller"]["env"] if not one["name"].endswith("SUBSCRIPTION_ID")
    ]
    (tmp_path / "values.json").write_text(json.dumps(values))
    chart = EngineSet.current().chart("karpenter-azure", "karpenter")
    aks_self_hosted.done(*helm, "upgrade", "karpenter", str(chart), "-f", str(tmp_path / "values.json"))
    back_off(aks_self_hosted, "panic: creating Azure config: subscription ID not set")
    status = aks_self_hosted.command("status")
    assert status.returncode == 1
    assert "subscription ID not set" in status.stdout
    # What Helm was told behind Pulumi's back, Helm takes back.
    assert aks_self_hosted.by_hand(*helm, "rollback", "karpenter").returncode == 0
    available(aks_self_hosted)


def test_a_federated_credential_with_another_subject_is_found(aks_self_hosted: RehearsedStack, tmp_path: Path) -> None:
    other = "system:serviceaccount:karpenter:karpenter-sa"
    credential = azure.change(aks_self_hosted, "aks-karpenter-identity-federation", subject=other)
    look_anew(aks_self_hosted)
    back_off(aks_self_hosted, "AADSTS700213")
    said = flat(aks_self_hosted.failing_story(tmp_path, azure.STORY, within=3))
    presented = "No matching federated identity record found for presented assertion subject "
    assert f"{presented}'system:serviceaccount:kube-system:karpenter-sa'" in said, said
    assert "check your federated identity credential Subject" in said
    # Entra names no resource; the rehearsal does.
    log = (aks_self_hosted.folder.logs / "daemon.log").read_text()
    assert f"To mend: the federated credential {credential['id']}" in log
    assert f"the subject '{other}'" in log
    aks_self_hosted.mend("1 updated")
    look_anew(aks_self_hosted)
    available(aks_self_hosted)


def test_a_controller_that_may_not_give_machines_their_identity_or_make_any_is_found(
    aks_self_hosted: RehearsedStack,
) -> None:
    role = azure.delete(aks_self_hosted, "aks-karpenter-identity-roles-kubelet")
    said = flat(launching(aks_self_hosted, "Unknown", "LinkedAuthorizationFailed"))
    assert f"object id '{role['outputs']['principalId']}'" in said
    # Karpenter cuts the text off in the middle of the identity's name.
    linked = f"on the linked scope(s) '{role['inputs']['scope']}/providers/Microsoft.ManagedIdentity/"
    assert f"action(s) 'Microsoft.ManagedIdentity/userAssignedIdentities/assign/action' {linked}" in said, said

    role = azure.delete(aks_self_hosted, "aks-karpenter-identity-roles-machines")
    client_id = azure.resource(aks_self_hosted, "aks-karpenter-identity-identity")["outputs"]["clientId"]
    said = flat(launching(aks_self_hosted, "Unknown", "ERROR CODE: AuthorizationFailed"))
    assert f"The client '{client_id}' with object id '{role['outputs']['principalId']}' does not have" in said, said
    assert "authorization to perform action 'Microsoft.Compute/virtualMachines/" in said, said
    assert f"over scope '{role['inputs']['scope']}/providers/Microsoft.Compute/virtualMachines/aks-" in said, said
    aks_self_hosted.mend("2 created")


def test_a_bootstrap_token_without_the_stacks_own_binding_and_an_expired_one_let_no_machine_in(
    aks_self_hosted: RehearsedStack,
) -> None:
    aks_self_hosted.done("kubectl", "delete", "clusterrolebinding", "karpstack-bootstrap-approval")
    assert "system:bootstrappers:karpstack" in kept_out(aks_self_hosted, "stays Pending")

    secret = azure.resource(aks_self_hosted, "aks-karpenter-bootstrap-token-1")["outputs"]["metadata"]["name"]
    expired = json.dumps({"stringData": {"expiration": "2026-01-01T00:00:00Z"}})
    aks_self_hosted.done("kubectl", "-n", "kube-system", "patch", "secret", secret, "-p", expired)
    assert f"Secret kube-system/{secret} exists" in kept_out(aks_self_hosted, "Unauthorized")
    # Kubernetes has deleted the Secret; its successor has the name and another token, which pods read at their start.
    aks_self_hosted.mend("2 created")
    look_anew(aks_self_hosted)
    available(aks_self_hosted)


def test_a_system_pool_that_would_change_is_refused_before_azure_is_asked(aks_self_hosted: RehearsedStack) -> None:
    aks_self_hosted.configure(**{"karpstack:systemNodes/diskSize": 256})
    refused = aks_self_hosted.command("up")
    aks_self_hosted.configure(**{"karpstack:systemNodes/diskSize": 128})
    assert refused.returncode != 0
    assert "karpstack:systemNodes.diskSize 128 -> 256" in flat(refused.stdout), refused.stdout


def test_a_mended_environment_provisions_again(aks_self_hosted: RehearsedStack) -> None:
    launching(aks_self_hosted, "True")


def test_down_leaves_nothing(aks_self_hosted: RehearsedStack) -> None:
    azure.down(aks_self_hosted)
