"""`preflight` and `preflight destroy` ask the account or subscription of the stack, or none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from karpstack.text.codes import Code
from tests.unit.example_stack import ROOT
from tests.unit.preflight.fake_server import FakeServer
from tests.unit.text.test_loopback_asks_no_proxy import kubeconfig

OWN, OTHER = "11111111-2222-3333-4444-555555555555", "99999999-9999-9999-9999-999999999999"
GROUP = f"/subscriptions/{OWN}/resourceGroups/karpstack-aks-nap"
CLUSTER = f"{GROUP}/providers/Microsoft.ContainerService/managedClusters/karpstack-aks-nap"
OUTPUTS = {"cloud": "azure", "clusterName": "karpstack-aks-nap", "region": "westus2", "karpenterVersion": "managed"}
ACCOUNT = "222222222222"
#: What AWS's STS says of a login of another account.
CALLER = """<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>
<Arn>arn:aws:iam::111111111111:user/me</Arn><UserId>A</UserId><Account>111111111111</Account>
</GetCallerIdentityResult><ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></GetCallerIdentityResponse>"""


@pytest.mark.parametrize(("stack", "place"), [("aks-nap", OWN), ("eks", ACCOUNT)])
def test_before_up_another_place_than_the_stacks_is_refused(
    stack: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What somebody else has there would count as the stack's own."""
    arn = f"arn:aws:iam::{ACCOUNT}:role/karpstack-eks"
    role = {"type": "aws:iam/role:Role", "urn": "urn:pulumi:eks::karpstack::a::a", "custom": True, "id": arn}
    on_aws = json.dumps({"version": 3, "deployment": {"resources": [role]}})
    (tmp_path / "state.json").write_text(on_aws if stack == "eks" else state())
    run_as_pulumi(tmp_path, monkeypatch)
    (tmp_path / f"Pulumi.{stack}.yaml").write_text((ROOT / f"Pulumi.{stack}.yaml").read_text())
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with FakeServer() as server:
        server.otherwise = 200, CALLER
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.port}")
        command = [sys.executable, "-m", "karpstack", "preflight", stack]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert result.returncode == Code.UNKNOWN, result.stdout
    assert "the stack's resources are in the " in result.stderr
    assert place in result.stderr


def run_as_pulumi(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a script that prints the folder's state.json be the engine, and the folder a project."""
    (folder / "Pulumi.yaml").write_text("name: karpstack\nruntime: python\n")
    (folder / "pulumi").write_text(f"#!/bin/sh\ncat {folder}/state.json\n")
    (folder / "pulumi").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


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
    (tmp_path / "outputs.json").write_text(json.dumps(OUTPUTS))
    (tmp_path / "state.json").write_text(state())
    run_as_pulumi(tmp_path, monkeypatch)
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
        kubeconfig(tmp_path, here)
        command = [sys.executable, "-m", "karpstack", "preflight", "destroy", "aks-nap", "--kubeconfig", "kubeconfig"]
        result = subprocess.run([*command, *given], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    if subscription == OWN:
        assert result.returncode == Code.GOOD, result.stderr
        assert "No findings: " in result.stdout
    else:
        assert result.returncode == Code.UNKNOWN, result.stdout
        assert "give the stack's subscription" in result.stderr
