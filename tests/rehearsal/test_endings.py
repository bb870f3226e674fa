"""Destroyed, crashed, interrupted: how a rehearsal ends, each with a stack of its own, and what it must not leave."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Any

import psutil
from kubernetes import client

from rehearsal.session.daemon import read
from tests.rehearsal.conftest import LIMIT, ROOT, RehearsedStack, descendants


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
