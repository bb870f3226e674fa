"""kwok's stages: what the stand-ins write is what the stages wait for, and no stage says more than a kubelet would."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.rehearsal.cluster import servers
from karpstack.rehearsal.cluster.cilium import READY_ANNOTATION
from karpstack.rehearsal.cluster.controller import LABEL
from karpstack.rehearsal.cluster.nodes import CNI_ANNOTATION

FOLDER = Path(servers.__file__).parent / "stages"
STAGES: dict[str, dict[str, Any]] = {
    path.stem: yaml.safe_load(path.read_text()) for path in sorted(FOLDER.glob("*.yaml"))
}


def expressions(stage: str) -> dict[str, Any]:
    return {each["key"]: each for each in STAGES[stage]["spec"]["selector"]["matchExpressions"]}


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_is_named_after_its_file_and_selects_what_it_changes(name: str) -> None:
    stage = STAGES[name]
    assert (stage["apiVersion"], stage["kind"], stage["metadata"]["name"]) == ("kwok.x-k8s.io/v1alpha1", "Stage", name)
    assert stage["spec"]["resourceRef"]["kind"].lower() == name.split("-")[0]
    assert expressions(name)


def test_a_node_turns_ready_only_by_the_mark_of_the_cilium_stand_in() -> None:
    assert expressions("node-ready")[f'.metadata.annotations["{CNI_ANNOTATION}"]']["operator"] == "Exists"
    writers = [name for name, stage in STAGES.items() if stage["spec"]["resourceRef"]["kind"] == "Node"]
    assert writers == ["node-heartbeat", "node-ready"]
    assert expressions("node-heartbeat").keys() == {'.status.conditions.[] | select( .type == "Ready" ) | .status'}


@pytest.mark.parametrize("name", ["node-ready", "node-heartbeat"])
def test_a_stage_leaves_the_kubelets_version_alone(name: str) -> None:
    # kwok's own stage puts kwok-v0.8.0 there, and every node would have drifted.
    assert "nodeInfo" not in STAGES[name]["spec"]["next"]["statusTemplate"]


def test_the_pods_that_the_rehearsal_plays_wait_for_it() -> None:
    (key,) = (key for key in expressions("pod-ready") if READY_ANNOTATION in key)
    label, value = LABEL.split("=")
    assert f'.metadata.labels["{label}"] == "{value}"' in key
    assert '.metadata.labels["k8s-app"] == "cilium"' in key
    assert f'.metadata.annotations["{READY_ANNOTATION}"]' in expressions("pod-not-ready")
