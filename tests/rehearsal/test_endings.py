"""Crashed, interrupted, killed: how a rehearsal ends, and what the next command makes of what is left."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from typing import Any

import psutil
from kubernetes import client

from karpstack.rehearsal.engines import EngineSet
from karpstack.rehearsal.session import daemon
from karpstack.rehearsal.session.daemon import read
from karpstack.rehearsal.session.stack_file import StackFile
from karpstack.rehearsal.state import ownership
from tests.rehearsal.conftest import LIMIT, ROOT, RehearsedStack, descendants

OURS = {"app.kubernetes.io/part-of": "karpstack-scale-test", "app.kubernetes.io/instance": "killed"}


def a_crash_is_told_by_name_with_the_last_lines(fresh: RehearsedStack) -> None:
    victim = next(process for process in descendants(fresh.info) if process.name() == "kube-scheduler")
    victim.send_signal(signal.SIGABRT)
    deadline = time.monotonic() + 20
    while fresh.info.alive and time.monotonic() < deadline:
        time.sleep(0.1)
    result = fresh.command("status")
    assert result.returncode == 1  # nothing goes on without it, so the rest has ended
    assert "kube-scheduler" in result.stdout
    assert "the last lines of" in result.stdout


def test_ctrl_c_in_up_leaves_no_process_and_a_crash_of_the_next_is_told(fresh: RehearsedStack) -> None:
    command = subprocess.Popen(
        fresh.words("up"),
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
    a_crash_is_told_by_name_with_the_last_lines(fresh)


def what_a_killed_scale_test_left_does_not_hinder_down(fresh: RehearsedStack) -> None:
    """Its NodePool has a node, whose node class `pulumi destroy` would wait for without end."""
    api = fresh.api()
    core: Any = client.CoreV1Api(api)
    apps: Any = client.AppsV1Api(api)
    pools: Any = client.CustomObjectsApi(api)
    spec = pools.get_cluster_custom_object("karpenter.sh", "v1", "nodepools", "default")["spec"]
    spec["template"]["metadata"] = {"labels": {"killed": "yes"}}
    pools.create_cluster_custom_object(
        "karpenter.sh",
        "v1",
        "nodepools",
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": "killed", "labels": OURS},
            "spec": spec,
        },
    )
    core.create_namespace({"metadata": {"name": "killed", "labels": OURS}})
    container = {"name": "pause", "image": "pause", "resources": {"requests": {"cpu": "100m"}}}
    pod = {"metadata": {"labels": OURS}, "spec": {"containers": [container], "nodeSelector": {"killed": "yes"}}}
    apps.create_namespaced_deployment(
        "killed",
        {"metadata": {"name": "killed"}, "spec": {"replicas": 1, "selector": {"matchLabels": OURS}, "template": pod}},
    )
    assert fresh.wait_for(
        "nodeclaims",
        "karpenter.sh",
        lambda claim: any(
            condition["type"] == "Initialized" and condition["status"] == "True"
            for condition in claim.get("status", {}).get("conditions", [])
        ),
    )
    output = fresh.succeed("down")
    assert "Removing what an interrupted scale test left: namespace/killed, nodepool.karpenter.sh/killed." in output
    assert "deleted" in output


def test_an_interrupted_up_is_taken_up_again_and_a_killed_scale_test_hinders_no_down(
    fresh: RehearsedStack,
) -> None:
    # The first `up` stops at a policy, halfway: the account keeps what was made by then.
    fresh.configure(**{"karpstack:nodePools/default/limits": None})
    failed = fresh.command("up", "--keep")
    assert failed.returncode == 1
    fresh.configure(**{"karpstack:nodePools/default/limits": {"cpu": 100}})
    output = fresh.succeed("up")
    assert "unchanged" in output
    pools: Any = client.CustomObjectsApi(fresh.api()).list_cluster_custom_object("karpenter.sh", "v1", "nodepools")
    assert [pool["metadata"]["name"] for pool in pools["items"]] == ["default"]
    what_a_killed_scale_test_left_does_not_hinder_down(fresh)


def test_the_daemon_of_a_deleted_state_folder_is_found_and_ended(fresh: RehearsedStack) -> None:
    ownership.claim(fresh.folder)
    started = daemon.start(fresh.folder.create(), StackFile.load(fresh.configuration), EngineSet.current())
    processes = descendants(started.listening())
    shutil.rmtree(fresh.folder.root)
    found = fresh.command("status")
    assert found.returncode == 1
    assert "its state is lost, but" in found.stdout
    assert f"pid {started.process.pid}" in found.stdout
    assert "stopped what was left: daemon" in fresh.succeed("down")
    started.process.wait()
    _, alive = psutil.wait_procs(processes, timeout=5)
    assert not alive
    assert not fresh.folder.root.exists()
