"""Up, again, by hand, down: what people do with a rehearsed stack, and what must not be left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from kubernetes import client

from rehearsal.daemon import read
from tests.rehearsal.conftest import LIMIT, ROOT, RehearsedStack, descendants, new_stack

SPOT_TO_SPOT = "karpstack:karpenter/featureGates/spotToSpotConsolidation"


def test_a_second_up_changes_nothing(eks: RehearsedStack) -> None:
    output = eks.succeed("up")
    assert " unchanged" in output
    for word in ("created", "updated", "replaced", "deleted"):
        assert f" {word}" not in output, output


@pytest.mark.parametrize(
    "command",
    [
        ("pulumi", "preview", "--expect-no-changes", "--non-interactive"),
        ("pulumi", "refresh", "--yes", "--skip-preview", "--expect-no-changes", "--non-interactive"),
        ("kubectl", "get", "nodes", "-o", "name"),
        ("helm", "status", "karpenter", "--namespace", "kube-system"),
    ],
)
def test_commands_by_hand(eks: RehearsedStack, command: tuple[str, ...]) -> None:
    result = eks.by_hand(*command)
    assert result.returncode == 0, result.stdout


def test_status_names_every_engine_and_stays_below_the_memory_limit(eks: RehearsedStack) -> None:
    output = eks.succeed("status")
    for engine in (
        "daemon",
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kwok",
        "karpenter-aws",
    ):
        assert engine in output, output
    resident = sum(process.memory_info().rss for process in descendants(eks.info))
    assert resident < 1.5 * 2**30, output


def test_the_checkout_stays_clean(eks: RehearsedStack) -> None:
    changed = subprocess.run(
        ["git", "status", "--porcelain", "--", "Pulumi.yaml", "Pulumi.eks.yaml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "encryptionsalt" not in (ROOT / "Pulumi.eks.yaml").read_text(), changed


def test_secrets_are_in_no_log_and_not_plain_in_the_state(eks: RehearsedStack) -> None:
    kubeconfig = eks.by_hand("pulumi", "stack", "output", "kubeconfig", "--show-secrets", "--non-interactive").stdout
    assert "certificate-authority-data" in kubeconfig
    state = eks.by_hand("pulumi", "stack", "export", "--non-interactive").stdout
    assert "aws eks get-token" not in state
    authority = next(
        line.split(":", 1)[1].strip() for line in kubeconfig.splitlines() if "certificate-authority-data" in line
    )
    outputs = eks.by_hand("pulumi", "stack", "output", "--json", "--non-interactive").stdout
    assert authority.strip('",') not in outputs
    tokens = [
        path.read_text().strip() for path in eks.folder.root.rglob("*") if path.is_file() and "token" in path.name
    ]
    for log in eks.folder.logs.iterdir():
        text = log.read_text(errors="replace")
        for token in filter(None, tokens):
            assert token not in text, log


def controller(stack: RehearsedStack) -> psutil.Process:
    return next(process for process in descendants(stack.info) if process.name() == "karpenter-aws")


def test_two_stacks_side_by_side_one_with_irsa_and_an_upgrade(eks: RehearsedStack, tmp_path: Path) -> None:
    other = new_stack(tmp_path)
    other.configure(**{"karpstack:name": "other", "karpstack:karpenter/identity": "irsa"})
    other.configure(**{SPOT_TO_SPOT: False})
    try:
        other.succeed("up")
        assert other.outputs()["clusterName"] == "other"
        assert other.by_hand("kubectl", "wait", "--for=condition=Ready", "ec2nodeclass", "--all").returncode == 0
        before = controller(other)
        assert "SpotToSpotConsolidation=false" in before.environ()["FEATURE_GATES"]
        # A feature gate is switched on by upgrading the running release.
        other.configure(**{SPOT_TO_SPOT: True})
        assert "1 updated" in other.succeed("up")
        after = controller(other)
        assert after.pid != before.pid
        assert "SpotToSpotConsolidation=true" in after.environ()["FEATURE_GATES"]
        assert "sts" in after.environ()["AWS_WEB_IDENTITY_TOKEN_FILE"]
        assert eks.outputs()["clusterName"] == "karpstack-eks"
        assert set(other.info.providers.values()).isdisjoint(eks.info.providers.values())
    finally:
        other.command("down", "--force")
    assert eks.by_hand("kubectl", "get", "--raw", "/readyz").stdout == "ok"


def test_destroy_with_provisioned_nodes_leaves_nothing_in_the_account(fresh: RehearsedStack) -> None:
    fresh.succeed("up")
    applied = fresh.by_hand(
        "kubectl", "create", "deployment", "inflate", "--image=registry.k8s.io/pause:3.10", "--replicas=3"
    )
    assert applied.returncode == 0, applied.stdout
    assert fresh.wait_for(
        "nodeclaims",
        "karpenter.sh",
        lambda claim: any(
            condition["type"] == "Initialized" and condition["status"] == "True"
            for condition in claim.get("status", {}).get("conditions", [])
        ),
    )
    processes = descendants(fresh.info)
    ec2, iam = fresh.aws("ec2"), fresh.aws("iam")

    def instances() -> list[str]:
        found = ec2.describe_instances(Filters=[{"Name": "instance-state-name", "Values": ["pending", "running"]}])
        return [instance["InstanceId"] for group in found["Reservations"] for instance in group["Instances"]]

    assert len(instances()) >= 3  # two system nodes and Karpenter's
    result = fresh.by_hand("pulumi", "destroy", "--yes", "--skip-preview", "--non-interactive")
    assert result.returncode == 0, result.stdout
    assert instances() == []
    assert ec2.describe_launch_templates()["LaunchTemplates"] == []
    assert ec2.describe_network_interfaces()["NetworkInterfaces"] == []
    assert iam.list_instance_profiles()["InstanceProfiles"] == []
    assert ec2.describe_vpcs(Filters=[{"Name": "is-default", "Values": ["false"]}])["Vpcs"] == []
    assert ec2.describe_volumes()["Volumes"] == []
    fresh.succeed("down")
    assert not [process for process in processes if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]


def test_a_crash_is_reported_by_name_with_the_last_lines(fresh: RehearsedStack) -> None:
    fresh.succeed("up")
    victim = next(process for process in descendants(fresh.info) if process.name() == "kube-scheduler")
    victim.send_signal(signal.SIGABRT)
    deadline = time.monotonic() + 20
    while fresh.info.alive and time.monotonic() < deadline:
        time.sleep(0.1)
    result = fresh.command("status")
    assert result.returncode == 3  # nothing goes on without it, so the rest has ended
    assert "kube-scheduler" in result.stdout
    assert "the last lines of" in result.stdout


def test_ctrl_c_in_up_leaves_no_process_and_the_next_up_works(fresh: RehearsedStack) -> None:
    command = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "rehearsal",
            "up",
            fresh.folder.stack,
            "--state",
            str(fresh.folder.root.parent),
            "--config-file",
            str(fresh.configuration),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + LIMIT
        while not (fresh.folder.logs / "kube-apiserver.log").exists() and time.monotonic() < deadline:
            assert command.poll() is None
            time.sleep(0.1)
        info = read(fresh.folder)
        assert info
        processes = descendants(info)
        os.killpg(command.pid, signal.SIGINT)  # as a terminal does: to the whole foreground group
        output, _ = command.communicate(timeout=120)
    finally:
        command.kill()
    assert command.returncode == 130, output
    _, alive = psutil.wait_procs(processes, timeout=5)
    assert not alive, output
    fresh.succeed("up")


def test_an_interrupted_pulumi_up_is_taken_up_again(fresh: RehearsedStack) -> None:
    # The first `up` stops at a policy, halfway: the account keeps what was made by then.
    fresh.configure(**{"karpstack:nodePools/default/limits": None})
    failed = fresh.command("up", "--keep")
    assert failed.returncode == 1
    fresh.configure(**{"karpstack:nodePools/default/limits": {"cpu": 100}})
    output = fresh.succeed("up")
    assert "unchanged" in output
    pools: Any = client.CustomObjectsApi(fresh.api()).list_cluster_custom_object("karpenter.sh", "v1", "nodepools")
    assert [pool["metadata"]["name"] for pool in pools["items"]] == ["default"]
