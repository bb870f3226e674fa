"""A what-if from its command to its answer: the program of a git ref, a workload, a change that replaces nodes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import yaml

from tests.rehearsal.conftest import IN_THE_ENVIRONMENT, ROOT

LIMIT = 540
WORKLOAD = {
    "kind": "karpstack-snapshot",
    "version": 1,
    "taken": "2026-11-22T12:00:00Z",
    "source": "made",
    "cluster": {"cloud": "aws", "region": "us-east-1"},
    "workloads": [
        {
            "namespace": "shop",
            "name": name,
            "controller": {"apiVersion": "apps/v1", "kind": "Deployment"},
            "replicas": replicas,
            "pod": {"labels": {"app": name}, "requests": {"cpu": cpu, "memory": "1Gi"}, **more},
            "nodes": nodes,
        }
        for name, replicas, cpu, more, nodes in (
            ("web", 6, "500m", {}, {"ip-10-0-0-4.ec2.internal": 4, "ip-10-0-0-9.ec2.internal": 1}),
            ("never", 1, "1", {"nodeSelector": {"nobody.example.org/has": "this"}}, {}),
        )
    ],
    "nodes": [
        {
            "name": name,
            "nodePool": pool,
            "nodeClaim": f"{pool}-{type_[:2]}x",
            "instanceType": type_,
            "zone": "us-east-1b",
            "capacityType": "spot",
        }
        for name, pool, type_ in (
            ("ip-10-0-0-4.ec2.internal", "default", "m6a.xlarge"),
            ("ip-10-0-0-9.ec2.internal", "batch", "c6a.large"),
        )
    ],
}


def whatif(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "karpstack", "whatif", "eks", "--output", str(folder), *arguments]
    return subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | IN_THE_ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
    )


def test_a_change_is_applied_to_a_ref_under_load_and_its_answer_says_what_it_replaces(tmp_path: Path) -> None:
    content = yaml.safe_load((ROOT / "Pulumi.eks.yaml").read_text())
    template = content["config"]["karpstack:nodePools"]["default"]["template"]
    template["metadata"] = {"labels": {"team": "blue"}}
    (tmp_path / "labelled.yaml").write_text(yaml.safe_dump(content))
    (tmp_path / "pods.json").write_text(json.dumps(WORKLOAD))
    (tmp_path / "limits.yml").write_text("whatif: {maxNodesReplaced: 0}\n")
    more = ("--workloads", str(tmp_path / "pods.json"), "--limits", str(tmp_path / "limits.yml"))

    done = whatif(
        tmp_path / "answers",
        "--base",
        "HEAD",
        "--change",
        str(tmp_path / "labelled.yaml"),
        "--wait-factor",
        "30",
        *more,
    )

    results = tmp_path / "answers" / "labelled"
    assert done.returncode == 1, done.stdout  # beyond the limit
    answer = json.loads((results / "whatif.json").read_text())
    assert answer["verdict"] == "limits exceeded"
    initial = answer["accuracy"]["initialNodes"]
    assert (initial["realNodes"], initial["nodes"], initial["pods"], initial["podsPlaced"]) == (2, 1, 7, 4)
    assert any("the base has no NodePool batch" in text for text in answer["unknown"])
    replaced = answer["blastRadius"]["replaced"]
    assert replaced
    assert {one["reason"] for one in replaced} == {"Drifted"}
    assert answer["after"]["nodes"] >= 1
    (never,) = answer["blastRadius"]["workloadsWithoutNode"]  # as it was before, and so no fault of the change
    assert (never["workload"], never["before"], never["atTheEnd"]) == ("never", 1, 1)
    assert answer["settings"]["shortened"] == [
        {"pool": "default", "setting": "consolidateAfter", "asked": "30s", "used": "1s"}
    ]
    assert "maxNodesReplaced" in (results / "whatif.md").read_text()
    assert (results / "whatif.html").is_file()
    assert not (results / "state").exists()
    for canary in IN_THE_ENVIRONMENT.values():
        assert not any(canary in path.read_text(errors="replace") for path in results.rglob("*") if path.is_file())
    assert not [one for one in psutil.process_iter(["cmdline"]) if str(results) in " ".join(one.info["cmdline"] or ())]


def karpenters(kind: str, name: str, version: str, **spec: object) -> dict[str, object]:
    return {"apiVersion": f"karpenter.sh/{version}", "kind": kind, "metadata": {"name": name}, "spec": spec}


def test_an_overlay_changes_which_node_replaces_a_drifted_one_and_not_the_bill(tmp_path: Path) -> None:
    """Both types have one list price. By the snapshot's NodeOverlay m6i.large is dearer, by the changed one cheaper."""
    types = {"key": "node.kubernetes.io/instance-type", "operator": "In"}
    capacity = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
    node = {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        "requirements": [{**types, "values": ["m5.large", "m6i.large"]}, capacity],
        "expireAfter": "Never",
    }
    disruption = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s", "budgets": [{"nodes": "100%"}]}
    overlay = {"requirements": [{**types, "values": ["m6i.large"]}]}
    cluster = {
        **WORKLOAD,
        "workloads": [{**WORKLOAD["workloads"][0], "replicas": 2, "nodes": {"ip-10-0-0-4.ec2.internal": 2}}],  # type: ignore[index]
        "nodes": [{**WORKLOAD["nodes"][0], "instanceType": "m5.large", "capacityType": "on-demand"}],  # type: ignore[index]
        "nodePools": [{"name": "default", "spec": {"template": {"spec": node}, "disruption": disruption}}],
        "nodeClasses": [{"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "name": "default", "spec": {}}],
        "nodeOverlays": [{"name": "licence", "spec": {**overlay, "price": "0.2"}}],
        "karpenter": {
            "version": "1.15.0",
            "featureGates": {"nodeOverlay": True},
            "settings": {"batchIdleDuration": "2s"},
        },
    }
    (tmp_path / "cluster.json").write_text(json.dumps(cluster))
    labelled = {"metadata": {"labels": {"team": "blue"}}, "spec": node}
    change = [
        karpenters("NodePool", "default", "v1", template=labelled, disruption=disruption),
        karpenters("NodeOverlay", "licence", "v1alpha1", **overlay, price="0.05"),
    ]
    (tmp_path / "change.yaml").write_text(yaml.safe_dump_all(change))

    done = whatif(
        tmp_path / "answers", "--workloads", str(tmp_path / "cluster.json"), "--change", str(tmp_path / "change.yaml")
    )

    assert done.returncode == 0, done.stdout
    answer = json.loads((tmp_path / "answers" / "change" / "whatif.json").read_text())
    before, after = (answer[side] for side in ("before", "after"))
    assert [[one["name"], one["usdPerHour"]] for one in before["byType"]] == [["m5.large", 0.096]]
    assert [[one["name"], one["usdPerHour"]] for one in after["byType"]] == [["m6i.large", 0.096]]
    assert [one["reason"] for one in answer["blastRadius"]["replaced"]] == ["Drifted"]
    assert any("not the bill" in text for text in answer["prices"])
    assert any("the cluster has Karpenter 1.15.0" in text for text in answer["unknown"])
