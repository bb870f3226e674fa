"""What `pulumi up` changed, by the engine's events as they stand in github.com/pulumi/pulumi's apitype."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from karpstack.whatif.changes import ChangesError, changes

URN = "urn:pulumi:eks::karpstack::karpstack:eks:Nodes$kubernetes:karpenter.sh/v1:NodePool::eks-nodes-pool-default"


def step(op: str, kind: str = "resourcePreEvent") -> dict[str, Any]:
    metadata = {"op": op, "urn": URN, "type": "kubernetes:karpenter.sh/v1:NodePool", "old": None, "new": None}
    return {"sequence": 1, "timestamp": 1, kind: {"metadata": metadata}}


def log(folder: Path, *events: object) -> Path:
    path = folder / "events.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return path


def test_a_replacement_is_one_change_and_what_stays_is_none(tmp_path: Path) -> None:
    events = [step(op) for op in ("same", "update", "create-replacement", "replace", "delete-replaced")]
    found = changes(
        log(tmp_path, {"preludeEvent": {}}, *events, step("update", "resOutputsEvent"), {"cancelEvent": {}})
    )
    assert [one["op"] for one in found] == ["update", "replace"]
    assert found[0] == {"op": "update", "type": "kubernetes:karpenter.sh/v1:NodePool", "name": "eks-nodes-pool-default"}


def test_what_is_no_log_is_refused(tmp_path: Path) -> None:
    for path in (
        tmp_path / "none",
        log(tmp_path, [1]),
        log(tmp_path, {"resourcePreEvent": {"metadata": {"op": "update"}}}),
    ):
        with pytest.raises(ChangesError, match="Pulumi's events cannot be read"):
            changes(path)


def test_what_differs_is_told_and_of_a_version_how(tmp_path: Path) -> None:
    release = step("update")
    release["resourcePreEvent"]["metadata"] |= {
        "diffs": ["version", "values"],
        "old": {"inputs": {"version": "1.14.3", "values": {"password": "old"}}},
        "new": {"inputs": {"version": "1.15.1", "values": {"password": "new"}}},
    }
    (found,) = changes(log(tmp_path, release))
    assert found["what"] == "version 1.14.3 to 1.15.1, values"


def test_the_order_of_requirements_and_their_min_values_are_told(tmp_path: Path) -> None:
    def told(*requirements: dict[str, Any]) -> str:
        changed = step("update")
        sides = [{"inputs": {"spec": {"requirements": one}}} for one in (list(before), list(requirements))]
        changed["resourcePreEvent"]["metadata"] |= {"diffs": ["spec"], "old": sides[0], "new": sides[1]}
        return changes(log(tmp_path, changed))[0]["what"]

    before = [{"key": key, "operator": "In", "values": ["a", "b"]} for key in ("x", "y")]
    assert told(*reversed(before)) == "spec, in its order only"
    words = "requirements[x In].minValues (not set) to 2"
    assert words in told({**before[0], "minValues": 2}, before[1])
    assert words in told({**before[0], "minValues": 2, "values": ["a"]}, before[1])


def test_of_a_node_pool_each_field_is_told_with_its_values(tmp_path: Path) -> None:
    def spec(*requirements: dict[str, Any], **fields: Any) -> dict[str, Any]:
        return {"inputs": {"spec": {**fields, "template": {"spec": {"requirements": list(requirements)}}}}}

    arch = {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}
    old = {"key": "a/size", "operator": "In", "values": ["4", "8"]}
    changed = step("update")
    changed["resourcePreEvent"]["metadata"] |= {
        "diffs": ["spec"],
        "old": spec(arch, old, weight=10, limits={"cpu": "40"}),
        "new": spec({**old, "values": ["8"]}, {"key": "b", "operator": "Exists"}, arch, limits={"cpu": "20"}),
    }
    (found,) = changes(log(tmp_path, changed))
    assert found["what"] == (
        "limits.cpu 40 to 20, "
        'template.spec.requirements[a/size In] ["4", "8"] to ["8"], '
        "template.spec.requirements[b Exists] (not set) to set, "
        "weight 10 to (not set)"
    )


def test_an_added_taint_is_told_as_a_whole(tmp_path: Path) -> None:
    taint = {"key": "workload", "effect": "NoSchedule", "value": "general"}
    changed = step("update")
    sides = [{"inputs": {"spec": {"taints": one}}} for one in ([], [taint])]
    changed["resourcePreEvent"]["metadata"] |= {"diffs": ["spec"], "old": sides[0], "new": sides[1]}
    (found,) = changes(log(tmp_path, changed))
    assert found["what"] == 'taints[workload NoSchedule] (not set) to {"value": "general"}'


def test_of_a_node_class_plain_fields_have_values_and_others_names(tmp_path: Path) -> None:
    old, new = ({"osDiskSizeGB": size, "userData": data} for size, data in ((256, "a"), (512, "secret")))
    changed = step("update")
    changed["resourcePreEvent"]["metadata"] |= {
        "type": "kubernetes:karpenter.azure.com/v1beta1:AKSNodeClass",
        "diffs": ["spec"],
        "old": {"inputs": {"spec": old}},
        "new": {"inputs": {"spec": new}},
    }
    (found,) = changes(log(tmp_path, changed))
    assert found["what"] == "osDiskSizeGB 256 to 512, userData"
