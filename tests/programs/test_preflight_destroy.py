"""`preflight destroy` of a stack on Azure asks the stack's subscription, or none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from karpstack.text.codes import Code
from tests.unit.preflight.fake_server import FakeServer

OWN, OTHER = "11111111-2222-3333-4444-555555555555", "99999999-9999-9999-9999-999999999999"
GROUP = f"/subscriptions/{OWN}/resourceGroups/karpstack-aks-nap"
CLUSTER = f"{GROUP}/providers/Microsoft.ContainerService/managedClusters/karpstack-aks-nap"
OUTPUTS = {"cloud": "azure", "clusterName": "karpstack-aks-nap", "region": "westus2", "karpenterVersion": "managed"}


def state() -> str:
    stack, group, cluster = (
        {"type": kind, "urn": f"urn:pulumi:aks-nap::karpstack::{kind}::a", "custom": bool(identifier), "id": identifier}
        for kind, identifier in (
            ("pulumi:pulumi:Stack", ""),
            ("azure-native:resources:ResourceGroup", GROUP),
            ("azure-native:containerservice:ManagedCluster", CLUSTER),
        )
    )
    return json.dumps({"version": 3, "deployment": {"resources": [{**stack, "outputs": OUTPUTS}, group, cluster]}})


@pytest.mark.parametrize("written", [True, False], ids=["in the stack's file", "in the environment"])
@pytest.mark.parametrize("given", [(), ("--outputs", "outputs.json")], ids=["Pulumi's state", "outputs"])
@pytest.mark.parametrize("subscription", [OWN, OTHER])
def test_another_subscription_than_the_stacks_is_refused(
    subscription: str, given: tuple[str, ...], written: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There, every group is missing, and nothing would seem to be in the way."""
    (tmp_path / "Pulumi.yaml").write_text("name: karpstack\nruntime: python\n")
    (tmp_path / "outputs.json").write_text(json.dumps(OUTPUTS))
    (tmp_path / "state.json").write_text(state())
    (tmp_path / "pulumi").write_text(f"#!/bin/sh\ncat {tmp_path}/state.json\n")
    (tmp_path / "pulumi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    if written:
        (tmp_path / "Pulumi.aks-nap.yaml").write_text(f"config: {{azure-native:subscriptionId: {subscription}}}\n")
    monkeypatch.setenv("ARM_SUBSCRIPTION_ID", OTHER if written else subscription)
    monkeypatch.setenv("ARM_USE_MSI", "true")
    monkeypatch.setenv("IDENTITY_HEADER", "a")
    with FakeServer() as server:
        here = f"http://127.0.0.1:{server.port}"
        monkeypatch.setenv("ARM_RESOURCE_MANAGER_ENDPOINT", here)
        monkeypatch.setenv("IDENTITY_ENDPOINT", f"{here}/identity")
        token = {"access_token": "a", "expires_on": "9999999999", "resource": "x"}
        server.said = {
            "/identity": (200, json.dumps(token)),
            "/version": (200, json.dumps({"gitVersion": "v1.36.0"})),
            f"{GROUP}-nodes": (200, "{}"),
        }
        server.otherwise = 404, json.dumps({"error": {"code": "ResourceGroupNotFound", "message": "no"}})
        users, contexts = (
            [{"name": "a", "user": {"token": "t"}}],
            [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        )
        cluster = {"current-context": "a", "clusters": [{"name": "a", "cluster": {"server": here}}]}
        (tmp_path / "kubeconfig").write_text(json.dumps({**cluster, "users": users, "contexts": contexts}))
        command = [sys.executable, "-m", "karpstack", "preflight", "destroy", "aks-nap", "--kubeconfig", "kubeconfig"]
        result = subprocess.run([*command, *given], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    if subscription == OWN:
        assert result.returncode == Code.GOOD, result.stderr
        assert "No findings: " in result.stdout
    else:
        assert result.returncode == Code.UNKNOWN, result.stdout
        assert "give the stack's subscription" in result.stderr
