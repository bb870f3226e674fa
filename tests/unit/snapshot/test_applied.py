"""Manifests of NodePools and node classes, applied to a snapshot."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.snapshot.applied import applied
from karpstack.snapshot.manifest_files import Manifests, read
from karpstack.snapshot.problems import SnapshotError
from tests.unit.snapshot.made import snapshot

TEMPLATE = {
    "spec": {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}],
    }
}
POOL = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "general"},
    "spec": {"weight": 5, "template": TEMPLATE},
}
CLASS = {
    "apiVersion": "karpenter.k8s.aws/v1",
    "kind": "EC2NodeClass",
    "metadata": {"name": "default"},
    "spec": {"amiSelectorTerms": [{"alias": "al2023@v20261101"}], "kubelet": {"maxPods": 58}, "userData": "echo 1"},
}
OTHER = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "general"}}
CLUSTER = snapshot(
    nodePools=[{"name": "general", "spec": {"weight": 1}}, {"name": "batch", "spec": {"weight": 2}}],
    nodeClasses=[
        {
            "apiVersion": "karpenter.k8s.aws/v1",
            "kind": "EC2NodeClass",
            "name": "default",
            "spec": {"amiSelectorTerms": [{"alias": "al2023@v20261101"}]},
            "zones": ["us-east-1a"],
        }
    ],
)

CHARTS = Path(__file__).parent / "data/charts"


def manifests(*items: Any) -> Manifests:
    return Manifests({(one["kind"], one["metadata"]["name"]): one for one in items}, {})


DEPLOYED = applied(CLUSTER, manifests(POOL, CLASS), is_base=True).snapshot


def changed(of: Any, **spec: Any) -> dict[str, Any]:
    return {**of, "spec": {**of["spec"], **spec}}


def annotated(annotations: dict[str, str]) -> dict[str, Any]:
    return changed(POOL, template={**TEMPLATE, "metadata": {"annotations": annotations}})


def written(folder: Path, *items: Any, name: str = "a.yaml") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("---\n".join(yaml.safe_dump(item) if item else "" for item in items))
    return folder


def weights(*items: Any, before: Manifests | None = None) -> dict[str, Any]:
    made = applied(CLUSTER, manifests(*items), before)
    return {one.name: one.spec.get("weight") for one in made.snapshot.node_pools}


def code(error: pytest.ExceptionInfo[SnapshotError]) -> str:
    (found,) = error.value.findings
    return found.code


def test_what_manifests_name_is_changed_and_the_rest_stays() -> None:
    assert weights(POOL) == {"general": 5, "batch": 2}
    made = applied(CLUSTER, manifests(POOL))
    assert made.notes == [
        "the manifests do not have NodePool batch, EC2NodeClass default, which stay as the snapshot has them"
    ]


def test_what_is_in_the_earlier_manifests_alone_is_removed() -> None:
    batch = {**POOL, "metadata": {"name": "batch"}}
    assert weights(POOL, before=manifests(POOL, batch)) == {"general": 5}


def test_a_node_class_keeps_the_zones_of_its_subnets_and_a_new_one_has_those_of_the_others() -> None:
    made = applied(CLUSTER, manifests(CLASS, {**CLASS, "metadata": {"name": "new"}})).snapshot
    assert {one.name: (one.zones, one.spec.get("kubelet")) for one in made.node_classes} == {
        "default": (["us-east-1a"], {"maxPods": 58}),
        "new": (["us-east-1a"], {"maxPods": 58}),
    }


ALIAS = [{"alias": "al2023@v20261101"}]
ID = [{"id": "ami-1"}]


@pytest.mark.parametrize(
    ("had", "architectures", "given", "found", "of_new"),
    [
        (ALIAS, ["amd64", "arm64"], ALIAS, ["amd64", "arm64"], ["amd64", "arm64"]),
        ([], ["amd64"], ID, ["amd64"], ["amd64"]),
        ([], ["amd64"], ALIAS, [], []),  # other images
        ([], [], ID, [], []),
    ],
)
def test_a_node_class_keeps_the_architectures_of_its_images(
    had: list[Any], architectures: list[str], given: list[Any], found: list[str], of_new: list[str]
) -> None:
    (of,) = CLUSTER.node_classes
    of = of.model_copy(update={"spec": {"amiSelectorTerms": had}, "architectures": architectures})
    given_class = changed(CLASS, amiSelectorTerms=given)
    new = {**given_class, "metadata": {"name": "new"}}
    made = applied(CLUSTER.model_copy(update={"node_classes": [of]}), manifests(given_class, new)).snapshot
    assert {one.name: one.architectures for one in made.node_classes} == {"default": found, "new": of_new}


@pytest.mark.parametrize("ready", [True, False])
def test_what_karpenter_does_not_use_is_not_used_after_manifests(ready: bool) -> None:
    unused = {
        part: [one.model_copy(update={"ready": ready}) for one in getattr(CLUSTER, part)]
        for part in ("node_pools", "node_classes")
    }
    new = [{**one, "metadata": {"name": "new"}} for one in (POOL, CLASS)]
    status = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    items = [{**one, **status} for one in (POOL, CLASS, *new)]
    made = applied(CLUSTER.model_copy(update=unused), manifests(*items)).snapshot
    assert {one.name: one.ready for one in made.node_pools} == {"general": ready, "batch": ready, "new": True}
    assert {one.name: one.ready for one in made.node_classes} == {"default": ready, "new": True}


def test_what_a_snapshot_does_not_have_of_a_node_class_is_said() -> None:
    (note,) = applied(CLUSTER, manifests(CLASS)).unseen
    new = {**CLASS, "metadata": {"name": "new"}}
    assert not applied(CLUSTER, manifests(new)).unseen  # no node has it
    assert not applied(CLUSTER, manifests(CLASS, new), manifests(CLASS)).unseen
    assert note.startswith("EC2NodeClass default: a snapshot does not have all of amiSelectorTerms, userData, so")


def test_what_is_not_rehearsed_of_a_new_node_class_is_said_where_nodes_get_it() -> None:
    """A NodePool that is moved to it: its subnets may be in fewer zones, and its image another."""
    reference = {**TEMPLATE["spec"]["nodeClassRef"], "name": "default"}  # type: ignore[dict-item]
    pool = {"name": "general", "spec": {"template": {"spec": {"nodeClassRef": reference}}}}
    cluster = snapshot(
        nodes=[{"name": "one", "nodePool": "general"}],
        nodePools=[pool, {**pool, "name": "empty"}],
        nodeClasses=[one.model_dump(by_alias=True) for one in CLUSTER.node_classes],
    )
    moved = json.loads(json.dumps(POOL).replace('"default"', '"new"'))
    empty = {**moved, "metadata": {"name": "empty"}}
    terms = [{"tags": {"zone": "a"}}]
    old, new = changed(CLASS, subnetSelectorTerms=terms), {**CLASS, "metadata": {"name": "new"}}

    def said(*items: Any, before: Manifests | None = None) -> list[str]:
        found = applied(cluster, manifests(*items), before).unseen
        return [one.partition(" of it is not")[0] for one in found if "it is new" in one]

    told = ["EC2NodeClass new: it is new, and amiSelectorTerms, userData"]
    assert said(new, moved) == told
    assert said(CLASS, new, moved, before=manifests(CLASS)) == []  # all as in the node class before
    in_base = manifests(old)
    assert said(old, new, moved, before=in_base) == ["EC2NodeClass new: it is new, and subnetSelectorTerms"]
    other = changed(new, subnetSelectorTerms=[{"id": "subnet-1"}])
    assert said(old, other, moved, before=in_base) == ["EC2NodeClass new: it is new, and subnetSelectorTerms"]
    # A NodePool without nodes, or a new one, gets the pods of others.
    assert said(new, empty) == told
    assert said(old, other, empty, before=in_base) == ["EC2NodeClass new: it is new, and subnetSelectorTerms"]
    assert said(CLASS, new, {**moved, "metadata": {"name": "blue"}}, before=manifests(CLASS)) == []
    blue = {**moved, "metadata": {"name": "blue"}}
    assert said(old, new, blue, before=in_base) == ["EC2NodeClass new: it is new, and subnetSelectorTerms"]


def test_a_node_class_that_a_node_pool_names_does_not_go() -> None:
    with pytest.raises(SnapshotError) as refused:
        applied(applied(CLUSTER, manifests(POOL)).snapshot, manifests(POOL), manifests(POOL, CLASS))
    assert code(refused) == "snapshot-manifest-no-class"


def test_what_is_not_rehearsed_of_another_node_class_is_said_where_nodes_move_to_it() -> None:
    def pool(of: str) -> dict[str, Any]:
        return json.loads(json.dumps(POOL).replace('"default"', f'"{of}"'))  # type: ignore[no-any-return]

    old, second = CLASS, {**changed(CLASS, userData="echo 2"), "metadata": {"name": "second"}}
    (known,) = CLUSTER.node_classes
    cluster = snapshot(
        nodes=[{"name": "one", "nodePool": "general"}],
        nodePools=[{"name": "general", "spec": pool("default")["spec"]}],
        nodeClasses=[{**known.model_dump(by_alias=True), "name": name} for name in ("default", "second")],
    )

    def said(*items: Any) -> list[str]:
        return applied(cluster, manifests(pool("second"), *items), manifests(pool("default"), *items)).unseen

    moved = "of it is not rehearsed, and nodes of NodePool general move to it"
    assert said(old, second) == [f"EC2NodeClass second: userData {moved}"]
    assert said(old) == [f"EC2NodeClass second: what a snapshot does not have {moved}"]
    assert said(second) == [f"EC2NodeClass second: amiSelectorTerms, userData {moved}"]
    assert said(old, {**CLASS, "metadata": {"name": "second"}}) == []


def test_a_base_with_other_images_than_the_snapshot_is_taken() -> None:
    """A pull request after the one that moved the image: the snapshot is older than both of its sides."""
    newer = manifests(changed(CLASS, amiSelectorTerms=[{"alias": "al2023@v20261115"}]), POOL)
    base = applied(CLUSTER, newer, is_base=True)
    assert base.notes[0].startswith("EC2NodeClass default: amiSelectorTerms of the base is not that of the snapshot")
    assert applied(base.snapshot, newer, newer).unseen == []
    with pytest.raises(SnapshotError, match="amiSelectorTerms changes"):
        applied(CLUSTER, newer)


def test_no_annotations_and_none_are_not_the_same() -> None:
    template = {**TEMPLATE, "metadata": {"labels": {"a": "b"}}}
    old, new = (
        changed(POOL, template=one)
        for one in (template, {**template, "metadata": {"labels": {"a": "b"}, "annotations": {}}})
    )
    with pytest.raises(SnapshotError, match="annotations"):
        applied(CLUSTER, manifests(new), manifests(old))


def test_reserved_capacity_is_not_rehearsed_whether_or_not_the_manifests_have_the_node_class() -> None:
    def pool(*kinds: str) -> dict[str, Any]:
        wanted = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [*kinds]}
        spec = {**TEMPLATE["spec"], "requirements": [wanted]}
        return changed(POOL, template={"spec": spec})

    plain, reserved = pool("on-demand"), pool("on-demand", "reserved")
    with_it = applied(CLUSTER, manifests(reserved)).snapshot
    said = "NodePool general: reserved capacity is not rehearsed"
    for cluster, item in ((CLUSTER, reserved), (with_it, plain)):
        for before in (None, manifests(POOL)):
            made = applied(cluster, manifests(item), before)
            assert [note.partition(",")[0] for note in made.unseen] == [said]
            assert not any("reserved" in note for note in made.notes)
    # What does not change is told, and keeps no answer from being safe.
    made = applied(with_it, manifests(reserved))
    assert not made.unseen
    assert made.notes[0].startswith(said)
    assert not any("reserved" in note for note in applied(CLUSTER, manifests(plain)).notes)


@pytest.mark.parametrize(
    ("operator", "values", "allowed"), [("NotIn", ["spot"], True), ("NotIn", ["reserved"], False), ("Exists", [], True)]
)
def test_reserved_capacity_is_allowed_by_a_node_class_that_selects_it(
    operator: str, values: list[str], allowed: bool
) -> None:
    def pool(**wanted: Any) -> dict[str, Any]:
        requirements = [{"key": "karpenter.sh/capacity-type", **wanted}]
        return changed(POOL, template={"spec": {**TEMPLATE["spec"], "requirements": requirements}})

    of_class = changed(CLASS, capacityReservationSelectorTerms=[{"id": "cr-1"}])
    old, new = pool(operator="In", values=["on-demand"]), pool(operator=operator, values=values)
    made = applied(applied(CLUSTER, manifests(old)).snapshot, manifests(new, of_class), manifests(old, of_class))
    assert any("reserved capacity" in one for one in made.unseen) == allowed


def test_what_a_snapshot_left_out_may_be_removed_by_the_manifests() -> None:
    left_out = [
        {"what": what, "count": 1, "why": "x"}
        for what in ("annotations of the templates of NodePools", "tags of node classes", "images")
    ]
    cluster = CLUSTER.model_copy(update={"left_out": snapshot(leftOut=left_out).left_out})
    bare = {**CLASS, "spec": {}}
    assert [note.partition(", so")[0] for note in applied(cluster, manifests(POOL, bare)).unseen] == [
        "NodePool general: a snapshot does not have all of template.metadata.annotations",
        "EC2NodeClass default: a snapshot does not have all of tags",
    ]
    assert not applied(cluster, manifests(POOL, bare), manifests(POOL, bare)).unseen
    assert not applied(CLUSTER, manifests(POOL, bare)).unseen


def test_what_a_snapshot_does_not_have_of_disks_and_of_annotations_is_said() -> None:
    disk = {"deviceName": "/dev/xvda", "ebs": {"volumeSize": "50Gi", "kmsKeyID": "alias/new"}}
    item = {**CLASS, "spec": {"blockDeviceMappings": [disk]}}
    notes = applied(CLUSTER, manifests(annotated({"example.com/a": "1"}), item)).unseen
    assert [note.partition(", so")[0] for note in notes] == [
        "NodePool general: a snapshot does not have all of template.metadata.annotations",
        "EC2NodeClass default: a snapshot does not have all of blockDeviceMappings",
    ]
    kept = {"karpenter.sh/do-not-disrupt": "true"}
    assert len(applied(CLUSTER, manifests(annotated(kept))).notes) == 1


@pytest.mark.parametrize(
    ("item", "before", "keys"),
    [
        (changed(CLASS, userData="echo 2"), CLASS, "userData"),
        (changed(CLASS, tags={"a": "b"}), CLASS, "tags"),
        (changed(CLASS, amiSelectorTerms=[{"alias": "al2023@v20261118"}]), CLASS, "amiSelectorTerms"),
        (changed(CLASS, amiSelectorTerms=[{"alias": "al2023@v20261118"}]), None, "amiSelectorTerms"),
        (
            changed(CLASS, blockDeviceMappings=[{"deviceName": "/dev/xvda", "ebs": {"iops": 4000}}]),
            changed(CLASS, blockDeviceMappings=[{"deviceName": "/dev/xvda", "ebs": {"iops": 3000}}]),
            "blockDeviceMappings",
        ),
        (annotated({"example.com/a": "2"}), annotated({"example.com/a": "1"}), "template.metadata.annotations"),
        (annotated({"example.com/a": "1"}), POOL, "template.metadata.annotations"),
    ],
)
def test_a_change_that_a_rehearsal_would_not_see_is_refused(item: Any, before: Any, keys: str) -> None:
    with pytest.raises(SnapshotError) as error:
        applied(CLUSTER, manifests(item), manifests(before) if before else None)
    assert code(error) == "snapshot-manifest-unseen"
    assert f"{keys} changes, so Karpenter would replace its nodes, or those that no longer match" in str(error.value)


def test_a_change_of_what_decides_the_size_of_nodes_is_taken() -> None:
    made = applied(CLUSTER, manifests(changed(CLASS, kubelet={"maxPods": 110})), manifests(CLASS))
    assert made.snapshot.node_classes[0].spec["kubelet"] == {"maxPods": 110}
    assert made.notes == [
        "the manifests do not have NodePool general, NodePool batch, which stay as the snapshot has them"
    ]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({**CLASS, "kind": "AKSNodeClass"}, "snapshot-manifest-cloud"),
        ({**POOL, "spec": 3}, "snapshot-manifest-not-karpenters"),
        ({key: value for key, value in POOL.items() if key != "spec"}, "snapshot-manifest-not-karpenters"),
        (changed(POOL, template=3), "snapshot-manifest-not-karpenters"),
    ],
)
def test_what_karpenter_would_not_have_is_refused(item: Any, expected: str) -> None:
    with pytest.raises(SnapshotError) as error:
        applied(CLUSTER, manifests(item))
    assert code(error) == expected


def test_all_files_of_a_folder_are_read_and_other_kinds_counted(tmp_path: Path) -> None:
    written(tmp_path, POOL, OTHER, None)
    written(tmp_path / "classes", {"apiVersion": "v1", "kind": "List", "items": [CLASS, OTHER]}, name="b.yml")
    written(tmp_path / ".git", POOL)
    (tmp_path / "notes.md").write_text("{{")
    found = read(tmp_path)
    objects = {("NodePool", "general"): POOL, ("EC2NodeClass", "default"): CLASS}
    assert found == Manifests(objects, {"ConfigMap": 2}, {("ConfigMap", "general"): {**OTHER, "besides": OTHER}})


def test_a_hidden_file_is_read_as_kubectl_does_and_a_hidden_folder_is_told(tmp_path: Path) -> None:
    batch = {**POOL, "metadata": {"name": "batch"}}
    written(tmp_path, POOL)
    written(tmp_path, batch, name=".batch.yaml")
    written(tmp_path / ".more", OTHER)
    found = read(tmp_path)
    assert set(found.objects) == {("NodePool", "general"), ("NodePool", "batch")}
    assert applied(CLUSTER, found).notes[-1] == "ignored in the manifests: 1 file in a hidden folder"


def test_a_plan_of_terraform_is_read(tmp_path: Path) -> None:
    resources = [
        {"type": "kubernetes_manifest", "values": {"manifest": POOL}},
        {"type": "aws_vpc", "values": {"cidr_block": "10.0.0.0/8"}},
    ]
    inner = [
        {"type": "kubectl_manifest", "values": {"yaml_body": yaml.safe_dump(CLASS)}},
        {
            "type": "kustomization_resource",
            "values": {"manifest": json.dumps(changed(POOL, weight=1) | {"metadata": {"name": "b"}})},
        },
    ]
    root = {"resources": resources, "child_modules": [{"resources": inner}]}
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"format_version": "1.2", "planned_values": {"root_module": root}}))
    assert list(read(plan).objects) == [("NodePool", "general"), ("EC2NodeClass", "default"), ("NodePool", "b")]


def test_a_name_that_no_file_can_have_is_an_error_in_words() -> None:
    with pytest.raises(SnapshotError, match="File name too long"):
        read(Path("x" * 300))


def planned(folder: Path, actions: list[str], *kept: Any) -> Path:
    """A plan that does something to a NodePool and to a ConfigMap."""
    changes = [
        {"change": {"actions": actions, "before": {"manifest": POOL}}},
        {"change": {"actions": actions, "before": {"yaml_body": yaml.safe_dump(OTHER)}}},
    ]
    root = {"resources": [{"values": {"manifest": one}} for one in kept]}
    plan = folder / "plan.json"
    plan.write_text(json.dumps({"planned_values": {"root_module": root}, "resource_changes": changes}))
    return plan


@pytest.mark.parametrize("kept", [(), (CLASS,)])
def test_a_node_pool_that_a_plan_of_terraform_deletes_goes(tmp_path: Path, kept: tuple[Any, ...]) -> None:
    made = applied(CLUSTER, read(planned(tmp_path, ["delete"], *kept)))
    assert [one.name for one in made.snapshot.node_pools] == ["batch"]
    assert not any("general" in note for note in made.notes)


def test_what_a_plan_of_terraform_deletes_and_the_cluster_does_not_have_is_named(tmp_path: Path) -> None:
    cluster = snapshot(nodePools=[{"name": "batch", "spec": {"weight": 2}}])
    made = applied(cluster, read(planned(tmp_path, ["delete"])))
    assert made.notes[0] == "the change removes NodePool general, which the cluster does not have"


OF_POOL = {"manifest": POOL}
OF_CLASS = {"manifest": CLASS}
OF_OTHER = {"manifest": OTHER}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"actions": ["update"], "before": {"version": "1.34"}, "after": {"version": "1.35"}}, True),
        ({"actions": ["delete"], "before": {"version": "1.34"}}, True),
        ({"actions": ["no-op"]}, False),
        ({"actions": ["read"]}, False),
        ({"actions": ["update"], "before": OF_CLASS, "after": OF_CLASS}, False),
        (
            {
                **{"actions": ["update"], "before": OF_CLASS, "after": OF_CLASS},
                "after_unknown": {"manifest": {"spec": {"tags": {"built": True}}}},
            },
            True,
        ),
        ({"actions": ["update"], "before": OF_POOL, "after": {}, "after_unknown": {"manifest": True}}, True),
        ({"actions": ["update"], "before": OF_OTHER, "after": OF_OTHER}, True),
        ({"actions": ["create"], "after": {}, "after_unknown": {"yaml_body": True}}, True),
    ],
)
@pytest.mark.parametrize("deferred", [False, True])
def test_what_a_plan_of_terraform_changes_besides_is_told(
    tmp_path: Path, change: Any, told: bool, deferred: bool
) -> None:
    of_cluster = {"address": "aws_eks_cluster.this", "change": change}
    of_pool = {"address": "pool", "change": {"actions": ["no-op"], "before": OF_POOL, "after": OF_POOL}}
    changes: dict[str, Any] = {
        "resource_changes": [of_pool, *([] if deferred else [of_cluster])],
        "deferred_changes": [{"resource_change": of_cluster}] if deferred else [],
    }
    planned = {"root_module": {"resources": [{"values": OF_POOL}, {"values": change.get("after", {})}]}}
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"planned_values": planned, **changes}))
    said = ["the plan also changes aws_eks_cluster.this, and what that does to nodes is not rehearsed"]
    assert applied(DEPLOYED, read(plan)).unseen == (said if told else [])


def test_a_plan_of_terraform_says_what_there_was_before(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"

    def unseen(after: Any) -> list[str]:
        before = {"actions": ["update"], "before": OF_CLASS, "after": {"manifest": after}}
        planned = {"root_module": {"resources": [{"values": {"manifest": after}}, {"values": OF_POOL}]}}
        plan.write_text(json.dumps({"planned_values": planned, "resource_changes": [{"change": before}]}))
        return applied(cluster, read(plan)).unseen

    cluster = DEPLOYED
    assert unseen(CLASS) == []
    with pytest.raises(SnapshotError, match="userData changes"):
        unseen(changed(CLASS, userData="echo 2"))
    # It is older than what was planned from.
    cluster = CLUSTER
    (said,) = unseen(CLASS)
    assert said.startswith("before the plan, the plan and the snapshot do not have the same of EC2NodeClass default;")


@pytest.mark.parametrize(
    ("annotations", "told"),
    [
        ({"helm.sh/resource-policy": "keep"}, True),
        ({"argocd.argoproj.io/sync-options": "Prune=false"}, True),
        ({"kustomize.toolkit.fluxcd.io/prune": "disabled"}, True),
        ({"kustomize.toolkit.fluxcd.io/prune": "enabled"}, False),
    ],
)
def test_an_object_that_a_tool_may_keep_is_told_if_it_is_removed(annotations: dict[str, str], told: bool) -> None:
    before = manifests({**POOL, "metadata": {"name": "general", "annotations": annotations}}, CLASS)
    found = applied(DEPLOYED, manifests(CLASS), before).unseen
    said = "NodePool general: its annotations may let a tool keep it, and the rehearsal removes it"
    assert found == ([said] if told else [])


def test_an_action_that_a_plan_of_terraform_invokes_is_told(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    planned = {"root_module": {"resources": [{"values": OF_POOL}]}}
    for actions in (
        {"action_invocations": [{"address": "action.stop"}]},
        {"deferred_action_invocations": [{"action_invocation": {"address": "action.stop"}}]},
    ):
        plan.write_text(json.dumps({"planned_values": planned, **actions}))
        (said,) = applied(CLUSTER, read(plan), manifests(POOL)).unseen
        assert said.startswith("the plan also changes action.stop")


def test_a_plan_of_terraform_that_ended_with_an_error_is_refused(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"planned_values": {}, "errored": True}))
    with pytest.raises(SnapshotError, match="plan again"):
        read(plan)


def test_a_node_pool_that_a_plan_of_terraform_replaces_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="NodePool general is deleted and created again"):
        read(planned(tmp_path, ["delete", "create"], POOL))
    assert not read(planned(tmp_path, ["update"], POOL)).removed


@pytest.mark.parametrize(
    ("item", "unknown", "refused"),
    [
        (POOL, {"spec": {"template": {}}}, False),
        (POOL, {"spec": {"template": {"spec": {"taints": [{"value": True}]}}}}, True),
        ({"kind": "NodeOverlay"}, {"spec": {"price": True}}, True),
    ],
)
def test_a_plan_that_does_not_know_all_of_a_node_pool_or_overlay_is_refused(
    tmp_path: Path, item: object, unknown: object, refused: bool
) -> None:
    resources = [
        {"address": "a", "values": {"manifest": item}},
        {"address": "b", "values": {"manifest": CLASS}},
    ]
    after = {"a": {"manifest": unknown}, "b": {"manifest": {"spec": {"role": True}}}}
    changes = [{"address": address, "change": {"after_unknown": parts}} for address, parts in after.items()]
    plan = tmp_path / "plan.json"
    planned = {"root_module": {"resources": resources}}
    plan.write_text(json.dumps({"planned_values": planned, "resource_changes": changes}))
    if not refused:
        assert read(plan).ignored == {}
        return
    with pytest.raises(SnapshotError, match="of a a part is known after apply alone"):
        read(plan)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a: {{ .Values.a }}", "snapshot-manifest-unreadable"),
        (yaml.safe_dump(OTHER), "snapshot-manifest-none"),
        ("", "snapshot-manifest-none"),
        (json.dumps({"planned_values": [1]}), "snapshot-manifest-none"),
        (
            json.dumps({"planned_values": {"root_module": {"resources": "x", "child_modules": [1]}}}),
            "snapshot-manifest-none",
        ),
        (
            json.dumps({"planned_values": {"root_module": {"resources": [{"values": {"yaml_body": "a: ["}}]}}}),
            "snapshot-manifest-unreadable",
        ),
        (yaml.safe_dump_all([POOL, POOL]), "snapshot-manifest-twice"),
        (yaml.safe_dump({**POOL, "apiVersion": "karpenter.sh/v1beta1"}), "snapshot-manifest-version"),
        (None, "snapshot-manifest-folder"),
    ],
)
def test_what_is_no_manifest_of_karpenters_is_refused(tmp_path: Path, content: str | None, expected: str) -> None:
    if content is not None:
        (tmp_path / "a.yaml").write_text(content)
    with pytest.raises(SnapshotError) as error:
        read(tmp_path)
    assert code(error) == expected


@pytest.mark.timeout(10)
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(SnapshotError, match="a pipe"):
        read(tmp_path / "pipe.yaml")


def claim(cpu: str) -> dict[str, Any]:
    spec = {"resources": {"requests": {"cpu": cpu}}}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "alone"}, "spec": spec}


def test_a_change_of_an_object_that_karpenter_reads_and_a_rehearsal_lacks_is_refused(tmp_path: Path) -> None:
    before = read(written(tmp_path / "before", POOL, claim("1")))
    assert applied(CLUSTER, read(written(tmp_path / "same", POOL, claim("1"))), before)
    for after in ([POOL, claim("2")], [POOL]):
        with pytest.raises(SnapshotError, match="NodeClaim alone"):
            applied(CLUSTER, read(written(tmp_path / "after", *after)), before)


@pytest.mark.parametrize("missing", ["nodeClassRef", "requirements"])
def test_a_part_of_a_node_pool_is_refused(missing: str) -> None:
    part = {"spec": {key: value for key, value in TEMPLATE["spec"].items() if key != missing}}
    with pytest.raises(SnapshotError, match=rf"spec\.template\.spec\.{missing}, which a NodePool needs"):
        applied(CLUSTER, manifests(changed(POOL, template=part)))


def test_what_a_manifest_no_longer_has_is_said() -> None:
    limits, taints = {"cpu": "10", "memory": "40Gi"}, [{"key": "a", "effect": "NoSchedule"}]
    # Of what the cluster has, the API server writes expireAfter into each NodePool.
    template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "taints": taints, "expireAfter": "720h"}}
    spec = {"weight": 1, "limits": limits, "disruption": {"consolidateAfter": "1m"}, "template": template}
    cluster = snapshot(nodePools=[{"name": "general", "spec": spec}])
    notes = applied(cluster, manifests(changed(POOL, limits={"cpu": "10"}))).notes
    assert notes == [
        "NodePool general: the manifest does not have spec.disruption, spec.limits.memory, spec.template.spec.taints, "
        "so they count as removed, or have their default"
    ]


def test_an_object_that_karpenter_reads_may_change_unseen(tmp_path: Path) -> None:
    found = applied(CLUSTER, read(written(tmp_path / "alone", POOL, claim("1"))))
    assert [note.rpartition(": ")[2] for note in found.unseen] == ["NodeClaim alone"]


def test_an_object_is_none_of_a_plan_by_a_key_of_plans(tmp_path: Path) -> None:
    found = read(written(tmp_path, {**POOL, "planned_values": {}}))
    assert list(found.objects) == [("NodePool", "general")]


def test_a_change_of_other_objects_is_named(tmp_path: Path) -> None:
    before = read(written(tmp_path / "before", POOL, OTHER))
    after = read(written(tmp_path / "after", POOL, {**OTHER, "data": {"a": "b"}}))
    said = "also changed in the manifests, and not rehearsed: ConfigMap general"
    assert said in applied(CLUSTER, after, before).notes
    assert not any("also changed" in note for note in applied(CLUSTER, before, before).notes)


RELEASE = {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": {"name": "karpenter"}}
BUDGET = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}}
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cluster-vars", "namespace": "flux-system"}}
SCALER = {"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler", "metadata": {"name": "web"}}
ROLE = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {
        "name": "core",
        "labels": {"app.kubernetes.io/name": "karpenter", "helm.sh/chart": "karpenter-1.14.1"},
    },
}


@pytest.mark.parametrize("item", [RELEASE, BUDGET, ROLE, CONFIG, SCALER])
def test_a_change_of_another_object_is_told(tmp_path: Path, item: dict[str, Any]) -> None:
    before = read(written(tmp_path / "before", POOL, item))
    after = read(written(tmp_path / "after", POOL, changed({"spec": {}, **item}, rules=[1])))
    namespace = item["metadata"].get("namespace")
    name = f"{item['kind']} {f'{namespace}/' if namespace else ''}{item['metadata']['name']}"
    assert applied(CLUSTER, after, before).unseen == [f"not rehearsed, so the answer leaves out what they do: {name}"]
    assert applied(CLUSTER, before, before).unseen == []
    (said,) = applied(CLUSTER, after).unseen
    assert said.endswith(f"whether they change: {name}")


def test_a_change_of_a_chart_s_values_is_told(tmp_path: Path) -> None:
    values = [read(written(tmp_path / name, POOL, {"replicas": count})) for name, count in (("a", 2), ("b", 0))]
    (said,) = applied(CLUSTER, values[1], values[0]).unseen
    assert said.endswith("what they do: document that is no object a.yaml:1")
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    quiet = [read(written(tmp_path / name, POOL, {**service, "spec": {"a": name}})) for name in ("c", "d")]
    assert applied(CLUSTER, quiet[1], quiet[0]).unseen == []


def test_the_labels_and_roles_that_a_release_of_the_chart_brings_are_no_risk(tmp_path: Path) -> None:
    labelled = json.loads(json.dumps(ROLE).replace("1.14.1", "1.14.2"))
    before = read(written(tmp_path / "before", POOL, deployment("1.14.1"), ROLE))
    relabelled = read(written(tmp_path / "relabelled", POOL, deployment("1.14.1"), labelled))
    after = read(written(tmp_path / "after", POOL, deployment("1.14.2"), {**labelled, "rules": []}))
    assert not any("ClusterRole core" in one for one in applied(CLUSTER, relabelled, before).notes[:-1])
    assert applied(CLUSTER, after, before).unseen == []


@pytest.mark.parametrize(
    "annotations",
    [
        {"helm.sh/hook": "post-upgrade"},
        {"argocd.argoproj.io/hook": "PostSync"},
        {"argocd.argoproj.io/sync-options": "Replace=true,Force=true"},
    ],
)
def test_an_object_that_a_tool_deletes_and_creates_again_is_told(annotations: dict[str, str]) -> None:
    item = manifests({**POOL, "metadata": {"name": "general", "annotations": annotations}})
    (said,) = applied(CLUSTER, item, item).unseen
    assert (
        said == "NodePool general: its annotations may let a tool delete it and create it again, which is not rehearsed"
    )


@pytest.mark.parametrize("name", ["kustomization.yaml", "Kustomization"])
def test_a_kustomization_below_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    folder = written(tmp_path / "a", POOL)
    written(folder / "of-flux", {"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization"}, name=name)
    assert len(read(folder).objects) == 1
    (folder / "inner").mkdir()
    (folder / "inner" / name).write_text("resources: [pool.yaml]\n")
    with pytest.raises(SnapshotError) as refused:
        read(folder)
    assert code(refused) == "snapshot-manifest-kustomization"


def overlay(price: str, name: str = "cheap") -> dict[str, Any]:
    spec = {"requirements": [], "price": price}
    return {"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": name}, "spec": spec}


OVERLAYS = [{"name": "cheap", "spec": overlay("1.0")["spec"]}, {"name": "off", "spec": {}, "ready": False}]


def test_overlays_are_added_changed_and_removed() -> None:
    cluster = snapshot(nodePools=[{"name": "general", "spec": {}}], nodeOverlays=OVERLAYS)

    def prices(before: Manifests | None, *items: Any) -> dict[str, Any]:
        made = applied(cluster, manifests(*items), before).snapshot
        return {one.name: (one.spec.get("price"), one.ready) for one in made.node_overlays}

    assert prices(None, overlay("0.5"), overlay("2.0", "new")) == {
        "cheap": ("0.5", True),
        "off": (None, False),
        "new": ("2.0", True),
    }
    assert prices(manifests(overlay("1.0")), POOL) == {"off": (None, False)}
    unready = {**overlay("1.0", "off"), "spec": {}}
    assert prices(None, unready) == {"cheap": ("1.0", True), "off": (None, False)}
    assert [note.partition(":")[0] for note in applied(cluster, manifests(overlay("0.5"))).unseen] == [
        "NodeOverlay off"
    ]
    assert not applied(cluster, manifests(POOL)).unseen
    (note,) = applied(cluster, manifests(POOL)).notes
    assert note == "the manifests do not have NodeOverlay cheap, NodeOverlay off, which stay as the snapshot has them"


def deployment(image: str = "1.14.3", **variables: str) -> dict[str, Any]:
    env = [{"name": name, "value": value} for name, value in variables.items()]
    container = {"name": "controller", "image": f"public.ecr.aws/karpenter/controller:{image}@sha256:0", "env": env}
    spec = {"template": {"spec": {"containers": [container]}}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "karpenter"}, "spec": spec}


def test_the_controller_of_manifests_is_the_clusters(tmp_path: Path) -> None:
    found = read(written(tmp_path, deployment(BATCH_IDLE_DURATION="5s", LOG_LEVEL="debug"), POOL, OTHER))
    assert found.ignored == {"ConfigMap": 1}
    made = applied(CLUSTER, found)
    karpenter = made.snapshot.karpenter
    assert karpenter
    assert (karpenter.version, karpenter.settings) == ("1.14.3", {"batchIdleDuration": "5s"})
    assert not any("LOG_LEVEL" in note for note in made.notes)
    assert any("does not have Karpenter's settings" in note for note in made.notes)
    assert not any("Karpenter's settings" in note for note in applied(made.snapshot, found).notes)


def test_a_setting_that_a_rehearsal_does_not_have_is_told_or_refused_if_it_changes() -> None:
    old, new = (manifests(deployment(INTERRUPTION_QUEUE=name)) for name in ("one", "two"))
    assert any("does not have INTERRUPTION_QUEUE" in note for note in applied(CLUSTER, new).unseen)
    assert not applied(CLUSTER, old, old).unseen
    for after in (new, manifests(POOL)):
        with pytest.raises(SnapshotError, match="Deployment karpenter") as error:
            applied(CLUSTER, after, old)
        assert code(error) == "snapshot-manifest-unseen-setting"


def test_a_field_that_is_null_is_none(tmp_path: Path) -> None:
    """The API server drops it; a chart writes it where a value is empty."""
    node_class = changed(CLASS, kubelet=None)
    folder = written(tmp_path / "a", changed(POOL, limits=None), node_class)
    made = applied(CLUSTER, read(folder)).snapshot
    assert "limits" not in made.node_pools[0].spec
    assert "kubelet" not in made.node_classes[0].spec


def test_what_is_removed_is_of_its_kind() -> None:
    other = Manifests({}, {}, removed=frozenset({("AKSNodeClass", "default")}))
    made = applied(CLUSTER, other)
    assert [one.name for one in made.snapshot.node_classes] == ["default"]
    assert "which the cluster does not have" in made.notes[0]


@pytest.mark.parametrize("pods", [58, 110])
def test_a_kubelet_field_that_a_snapshot_does_not_have_is_refused_beside_others_too(pods: int) -> None:
    before, after = (
        manifests(changed(CLASS, kubelet={"maxPods": most, "staticPodURL": url}))
        for most, url in ((58, "https://a"), (pods, "https://b"))
    )
    with pytest.raises(SnapshotError, match=r"EC2NodeClass default: kubelet\.staticPodURL changes, so"):
        applied(CLUSTER, after, before)
    assert applied(CLUSTER, before, before)


def test_another_image_than_the_clusters_is_refused() -> None:
    item = changed(CLASS, amiSelectorTerms=[{"id": "ami-1"}])
    with pytest.raises(SnapshotError) as refused:
        applied(CLUSTER, manifests(item))
    assert code(refused) == "snapshot-manifest-unseen"


EVIL = changed(POOL, weight=77)


@pytest.mark.parametrize(
    "document",
    [
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePoolList",
            "items": [{"metadata": EVIL["metadata"], "spec": EVIL["spec"]}],
        },
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "items": [EVIL]},
        {**changed(POOL, weight=1), "items": [EVIL]},
        {"kind": "List", "items": [{"kind": "NodePoolList", "apiVersion": "karpenter.sh/v1", "items": [EVIL]}]},
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePoolList",
            "items": [{**EVIL, "apiVersion": "", "kind": None}],
        },
    ],
)
def test_what_kubectl_takes_for_a_list_is_one(document: dict[str, Any], tmp_path: Path) -> None:
    """It looks for a list of items, and not at the kind; items without a kind have the list's."""
    found = read(written(tmp_path / "a", document))
    assert found.objects["NodePool", "general"]["spec"]["weight"] == 77


def test_a_kind_of_that_name_in_another_group_is_ignored(tmp_path: Path) -> None:
    other = {**POOL, "apiVersion": "container.gcp.crossplane.io/v1beta1", "metadata": {"name": "gke"}}
    found = read(written(tmp_path / "a", POOL, other))
    assert (list(found.objects), found.ignored) == ([("NodePool", "general")], {"NodePool": 1})


def test_a_plan_that_deletes_a_kind_of_that_name_in_another_group_removes_none_of_karpenters(tmp_path: Path) -> None:
    other = {**POOL, "apiVersion": "container.gcp.crossplane.io/v1beta1"}
    root = {"resources": [{"type": "kubernetes_manifest", "values": {"manifest": POOL}}]}
    deleted = {"address": "a", "change": {"actions": ["delete"], "before": {"manifest": other}}}
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"planned_values": {"root_module": root}, "resource_changes": [deleted]}))
    found = read(plan)
    assert (list(found.objects), found.removed) == ([("NodePool", "general")], frozenset())


def test_json_may_have_halves_of_a_character(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "a.json").write_text(
        json.dumps({**POOL, "metadata": {"name": "general", "annotations": {"a": "\U0001f600"}}})
    )
    assert read(folder).objects["NodePool", "general"]["metadata"]["annotations"] == {"a": "\U0001f600"}


def test_an_object_with_an_empty_list_of_items_is_that_list(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError) as refused:
        read(written(tmp_path / "a", {**POOL, "items": None}))
    assert code(refused) == "snapshot-manifest-none"


def test_a_file_that_is_named_by_its_suffix_is_read(tmp_path: Path) -> None:
    assert read(written(written(tmp_path / "a", OTHER), POOL, name=".yaml")).objects


def test_objects_of_one_name_are_all_compared(tmp_path: Path) -> None:
    first, last = ({**CLAIM, "metadata": {"generateName": "a-"}, "spec": {"a": number}} for number in (1, 2))
    base, change = (read(written(tmp_path / name, POOL, one, last)) for name, one in (("a", first), ("b", last)))
    with pytest.raises(SnapshotError, match="NodeClaim"):
        applied(CLUSTER, change, base)


def test_a_pointer_of_git_lfs_is_refused(tmp_path: Path) -> None:
    folder = written(tmp_path / "a", POOL)
    (folder / "z.yaml").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n")
    with pytest.raises(SnapshotError, match="pointer of Git LFS"):
        read(folder)


def test_a_second_controller_is_refused(tmp_path: Path) -> None:
    decoy = deployment() | {"metadata": {"name": "docs", "labels": {"app.kubernetes.io/name": "karpenter"}}}
    with pytest.raises(SnapshotError) as refused:
        read(written(tmp_path / "a", deployment(BATCH_IDLE_DURATION="5s"), decoy))
    assert code(refused) == "snapshot-manifest-twice"


CLAIM = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "a"}, "spec": {"a": 1}}


CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "nodepools.karpenter.sh"},
    "spec": {"group": "karpenter.sh"},
}
CONTAINERS = deployment()["spec"]["template"]["spec"]["containers"]


def in_pod(**fields: Any) -> dict[str, Any]:
    item = deployment()
    item["spec"]["template"]["spec"] |= fields
    return item


def with_labels(labels: dict[str, str]) -> dict[str, Any]:
    item = deployment()
    item["spec"]["template"]["metadata"] = {"labels": labels}
    return item


def test_the_definitions_of_another_release_are_told(tmp_path: Path) -> None:
    old, new = [deployment("1.14.2"), CRD], [deployment("1.14.3"), changed(CRD, scope="Namespaced")]
    base, change = (read(written(tmp_path / name, POOL, *items)) for name, items in (("a", old), ("b", new)))
    assert "CustomResourceDefinition nodepools.karpenter.sh" in applied(CLUSTER, change, base).notes[0]


@pytest.mark.parametrize("to", ["aws-1.13.0", "aws-1.14.1"])
def test_charts_as_helm_renders_them(to: str) -> None:
    """A new release can bring new settings: they are named. The same release, rendered again, changes nothing."""
    old, new = (read(CHARTS / f"{name}.yaml") for name in ("aws-1.13.0", to))
    made = applied(applied(CLUSTER, old).snapshot, new, old)
    brought = ["Deployment karpenter: AWS_FEATURE_GATES changes with the release, and is not rehearsed"]
    assert made.unseen == ([] if to == "aws-1.13.0" else brought)
    assert made.snapshot.karpenter
    assert made.snapshot.karpenter.version == to.removeprefix("aws-")
    assert made.snapshot.karpenter.feature_gates.get("capacityBuffer") == (None if to == "aws-1.13.0" else False)


def test_the_chart_of_azure_as_helm_renders_it() -> None:
    made = applied(CLUSTER, read(CHARTS / "azure-1.10.2.yaml")).snapshot.karpenter
    assert made
    assert (made.version, made.settings["batchMaxDuration"]) == ("1.10.2", "10s")
    assert not any(made.feature_gates.values())


def test_a_gate_of_the_same_release_is_refused() -> None:
    old = read(CHARTS / "aws-1.14.1.yaml")
    text = (CHARTS / "aws-1.14.1.yaml").read_text()
    item = yaml.safe_load(text.replace("NodeClassCEL=false", "NodeClassCEL=true"))
    with pytest.raises(SnapshotError, match="AWS_FEATURE_GATES"):
        applied(CLUSTER, manifests(item), old)


def test_other_owners_are_refused_and_other_annotations_told() -> None:
    before = manifests(POOL)
    owned = {**POOL, "metadata": {"name": "general", "ownerReferences": [{"uid": "1"}]}}
    annotated = {**POOL, "metadata": {"name": "general", "annotations": {"karpenter.sh/a": "1", "b/c": "1"}}}
    with pytest.raises(SnapshotError, match="ownerReferences"):
        applied(CLUSTER, manifests(owned), before)
    (said,) = applied(CLUSTER, manifests(annotated), before).unseen
    assert said.endswith("not rehearsed: b/c")
    labelled = {**POOL, "metadata": {"name": "general", "labels": {"helm.sh/chart": "a-2", "d/e": "1"}}}
    (said,) = applied(CLUSTER, manifests(labelled), before).unseen
    assert said.startswith("NodePool general: labels change")
    assert said.endswith("not rehearsed: d/e")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ([CLAIM], [changed(CLAIM, a=2), {**CLAIM, "apiVersion": "example.org/v1"}], "NodeClaim"),
        ([deployment()], [changed(deployment(), replicas=0)], "replicas"),
        ([deployment("stable")], [deployment("canary")], "image"),
        ([deployment("1.14.3")], [deployment("evil")], "image"),
        ([deployment("1.14.3")], [deployment("v1.14.3")], "image"),
        ([deployment()], [{**deployment(), "metadata": {"name": "karpenter", "namespace": "other"}}], "namespace"),
        ([deployment()], [with_labels({"azure.workload.identity/use": "true"})], "template.metadata.labels"),
        ([deployment()], [changed(deployment(), paused=True)], "paused"),
        ([deployment()], [in_pod(serviceAccountName="default")], "serviceAccountName"),
        ([deployment()], [in_pod(nodeSelector={"a": "b"})], "nodeSelector"),
        ([deployment()], [in_pod(containers=[*CONTAINERS, {"name": "other"}])], "containers"),
        ([deployment()], [in_pod(containers=[CONTAINERS[0] | {"command": ["sleep"]}])], "command"),
        ([deployment()], [in_pod(containers=[CONTAINERS[0] | {"args": ["--a=1", "version"]}])], "args"),
        ([deployment()], [deployment(CLUSTER_NAME="other")], "CLUSTER_NAME"),
        ([deployment()], [deployment(FEATURE_GATES="nodeOverlay=true")], "FEATURE_GATES"),
        ([deployment()], [deployment(BATCH_IDLE_DURATION="+300s")], "BATCH_IDLE_DURATION"),
        (
            [deployment(PREFERENCE_POLICY="$(LOG_A)", LOG_A="Respect")],
            [deployment(PREFERENCE_POLICY="$(LOG_A)", LOG_A="Ignore")],
            "PREFERENCE_POLICY",
        ),
        ([CRD], [], "CustomResourceDefinition"),
        ([CRD], [changed(CRD, scope="Namespaced")], "CustomResourceDefinition"),
        ([deployment()], [json.loads(json.dumps(deployment()).replace("public.ecr.aws", "example.org"))], "image"),
        ([deployment()], [json.loads(json.dumps(deployment()).replace("sha256:0", "sha256:1"))], "image"),
    ],
)
def test_what_karpenter_is_or_reads_and_a_rehearsal_lacks_is_refused(
    old: list[Any], new: list[Any], said: str, tmp_path: Path
) -> None:
    base, change = (read(written(tmp_path / name, POOL, *items)) for name, items in (("a", old), ("b", new)))
    with pytest.raises(SnapshotError, match=said):
        applied(CLUSTER, change, base)
    assert applied(CLUSTER, base, base)


@pytest.mark.parametrize("of", ["envFrom", "env"])
def test_a_config_map_of_the_controller_that_changes_is_refused(of: str, tmp_path: Path) -> None:
    item = deployment()
    (container,) = item["spec"]["template"]["spec"]["containers"]
    reference = {"configMapKeyRef": {"name": "general", "key": "a"}}
    container |= {
        of: [{"configMapRef": {"name": "general"}}] if of == "envFrom" else [{"name": "A", "valueFrom": reference}]
    }
    base, change = (read(written(tmp_path / name, POOL, item, {**OTHER, "data": {"a": name}})) for name in ("a", "b"))
    with pytest.raises(SnapshotError, match="ConfigMap general"):
        applied(CLUSTER, change, base)


def test_a_changed_file_in_a_hidden_folder_is_told_and_refused_if_it_names_karpenter(tmp_path: Path) -> None:
    base, change, evil = (written(tmp_path / name, POOL) for name in ("base", "change", "evil"))
    written(change / ".more", OTHER)
    written(evil / ".more", EVIL)
    first, second, third = map(read, (base, change, evil))
    assert "file in a hidden folder .more/a.yaml" in applied(CLUSTER, second, first).notes[0]
    with pytest.raises(SnapshotError, match="hidden folder"):
        applied(CLUSTER, third, first)
    for content in (json.dumps(EVIL).replace("karp", "k\\u0061rp").encode(), yaml.safe_dump(EVIL).encode("utf-16")):
        (evil / ".more" / "a.yaml").write_bytes(content)
        with pytest.raises(SnapshotError, match="hidden folder"):
            applied(CLUSTER, read(evil), first)
