"""What is left after an accident: the next command finds it and ends it."""

from __future__ import annotations

import shutil
from typing import Any

import psutil
from kubernetes import client

from rehearsal.engines import EngineSet
from rehearsal.session import daemon
from rehearsal.session.stack_file import StackFile
from rehearsal.state import ownership
from tests.rehearsal.conftest import RehearsedStack, descendants

OURS = {"app.kubernetes.io/part-of": "karpstack-scale-test", "app.kubernetes.io/instance": "killed"}


def test_the_daemon_of_a_deleted_state_folder_is_found_and_ended(fresh: RehearsedStack) -> None:
    ownership.claim(fresh.folder)
    started = daemon.start(fresh.folder.create(), StackFile.load(fresh.configuration), EngineSet.current())
    processes = descendants(started.listening())
    shutil.rmtree(fresh.folder.root)
    found = fresh.command("status")
    assert found.returncode == 3
    assert f"its daemon runs (pid {started.process.pid})" in found.stdout
    assert "stopped what was left: daemon" in fresh.succeed("down")
    started.process.wait()
    _, alive = psutil.wait_procs(processes, timeout=5)
    assert not alive
    assert not fresh.folder.root.exists()


def test_what_a_killed_scale_test_left_does_not_hinder_down(fresh: RehearsedStack) -> None:
    """Its NodePool has a node, whose node class `pulumi destroy` would wait for without end."""
    fresh.succeed("up")
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
