"""A stack file from a snapshot: what Karpenter decides by, and nothing else of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.snapshot.hidden_changes import hidden
from karpstack.snapshot.model import Karpenter, NodeClass, NodeOverlay, Snapshot
from karpstack.snapshot.reading import SnapshotError, load
from karpstack.snapshot.stack_file import StackFile, stack_file
from tests.unit.command_line import karpstack
from tests.unit.snapshot import made as a_snapshot

main = karpstack("snapshot")

ROOT = Path(__file__).resolve().parents[3]
EKS = ROOT / "Pulumi.eks.yaml"
AKS = ROOT / "Pulumi.aks-self-hosted.yaml"
AKS_NAP = ROOT / "Pulumi.aks-nap.yaml"
SMALL = ROOT / "examples" / "snapshots" / "20-pods.json"


def test_it_has_the_snapshots_node_pools_and_else_what_the_other_file_has() -> None:
    snapshot = load(SMALL).snapshot
    config = yaml.safe_load(stack_file(snapshot, EKS).text)["config"]
    like = yaml.safe_load(EKS.read_text())["config"]
    specs: dict[str, Any] = {one.name: json.loads(json.dumps(one.spec)) for one in snapshot.node_pools}
    for spec in specs.values():  # what the program would add
        node = spec["template"]["spec"]
        node["startupTaints"] = [*node.get("startupTaints", []), CILIUM]
    assert config["karpstack:nodePools"] == specs
    assert set(config["karpstack:nodeClasses"]) == {one.name for one in snapshot.node_classes}
    assert config["karpstack:nodeClasses"]["default"]["metadataOptions"]["httpTokens"] == "required"
    assert config["karpstack:network"]["zones"] == ["us-east-1a", "us-east-1b", "us-east-1c"]
    ours = ("karpstack:nodePools", "karpstack:nodeClasses", "karpstack:network")
    assert {key: value for key, value in config.items() if key not in ours} == {
        key: value for key, value in like.items() if key not in ours
    }


DISK = {"deviceName": "/dev/xvda", "ebs": {"volumeSize": "50Gi", "volumeType": "gp3"}}


@pytest.mark.parametrize(
    ("like", "kind", "before", "after", "told"),
    [
        (EKS, "EC2NodeClass", {"kubelet": {"maxPods": 110}}, {}, ""),
        (EKS, "EC2NodeClass", {"kubelet": {"podsPerCore": 9, "maxPods": 110}}, {"kubelet": {"podsPerCore": 9}}, ""),
        (EKS, "EC2NodeClass", {"kubelet": {"podsPerCore": 27}}, {}, ""),
        (EKS, "EC2NodeClass", {}, {"kubelet": {"maxPods": 110}}, "kubelet changes"),
        (EKS, "EC2NodeClass", {"blockDeviceMappings": [DISK]}, {}, ""),
        (EKS, "EC2NodeClass", {"kubelet": {"maxPods": 110}}, {"kubelet": {"maxPods": 20}}, ""),
        (AKS, "AKSNodeClass", {"maxPods": 110}, {}, ""),
        (AKS, "AKSNodeClass", {}, {"maxPods": 110}, "maxPods changes"),
        (AKS_NAP, "AKSNodeClass", {}, {"imageFamily": "AzureLinux"}, ""),
        (AKS_NAP, "AKSNodeClass", {}, {"imageFamily": "Ubuntu", "osDiskSizeGB": 128}, ""),
    ],
)
def test_a_change_that_a_stack_file_hides_is_told(
    like: Path, kind: str, before: dict[str, Any], after: dict[str, Any], told: str
) -> None:
    """A stack file takes what a node class does not say from the cluster's nodes, or from the other file."""
    base, change = _of_one_class(kind, before), _of_one_class(kind, after)
    files = stack_file(base, like), stack_file(change, like, cluster=base)
    said = hidden(base, change, *files)
    assert [told in one for one in said] == ([True] if told else [])
    defaults = {"imageFamily": "Ubuntu", "osDiskSizeGB": 128} if kind == "AKSNodeClass" else {}
    same = told or {**defaults, **before} == {**defaults, **after}
    assert (files[0].text == files[1].text) == bool(same)


CILIUM = {"key": "node.cilium.io/agent-not-ready", "value": "true", "effect": "NoExecute"}
DATAPLANE = {"kubernetes.azure.com/ebpf-dataplane": "cilium"}
#: A cluster that has a network of its own.
EXISTING = ROOT / "examples" / "existing-cluster" / "Pulumi.eks-existing-cluster.yaml"


@pytest.mark.parametrize(
    ("like", "kind", "change", "told"),
    [
        (EKS, "EC2NodeClass", {"spec": {"startupTaints": [CILIUM]}}, "template.spec.startupTaints changes"),
        (EKS, "EC2NodeClass", {"spec": {"startupTaints": [{**CILIUM, "key": "example.com/a"}]}}, ""),
        (EXISTING, "EC2NodeClass", {"spec": {"startupTaints": [CILIUM]}}, ""),
        (EKS, "EC2NodeClass", {"spec": {"startupTaints": [CILIUM], "expireAfter": "720h"}}, "startupTaints changes"),
        (AKS, "AKSNodeClass", {"spec": {"startupTaints": [CILIUM]}}, "template.spec.startupTaints changes"),
        (AKS, "AKSNodeClass", {"metadata": {"labels": DATAPLANE}}, "template.metadata.labels changes"),
        (AKS, "AKSNodeClass", {"metadata": {"labels": {**DATAPLANE, "a": "b"}}}, ""),
    ],
)
@pytest.mark.parametrize("added", [True, False])
def test_a_change_that_the_program_makes_anyway_is_told(
    like: Path, kind: str, change: dict[str, Any], told: str, added: bool
) -> None:
    """The program gives NodePools what nodes with Cilium need, also those that do not say it."""
    without = _of_one_class(kind, {})
    (pool,) = without.node_pools
    template: Any = pool.spec["template"]
    more = {**template, "metadata": change.get("metadata", {}), "spec": {**template["spec"], **change.get("spec", {})}}
    limits = {"template": more, "limits": {"cpu": "9"}}  # which is no part of the hash
    with_ = without.model_copy(update={"node_pools": [pool.model_copy(update={"spec": limits})]})
    if own := list(more["spec"].get("startupTaints", [])):  # beside one of the user's own, in another order
        mine = {"key": "example.com/own", "effect": "NoSchedule"}
        more["spec"]["startupTaints"] = [*own, mine]
        template["spec"]["startupTaints"] = [mine]
    first, second = (without, with_) if added else (with_, without)
    said = hidden(first, second, stack_file(first, like), stack_file(second, like, cluster=first))
    assert [told in one for one in said] == ([True] if told else [])


def test_nodes_come_in_the_zones_of_their_node_class() -> None:
    """Rehearsed subnets are in all zones; those of a node class may be in some."""
    snapshot = _of_one_class("EC2NodeClass", {})
    (of,), (pool,) = snapshot.node_classes, snapshot.node_pools
    classes = {"default": ["us-east-1a"], "wide": ["us-east-1a", "us-east-1b"]}
    many = [of.model_copy(update={"name": name, "zones": zones}) for name, zones in classes.items()]
    wide = json.loads(json.dumps(pool.spec).replace('"default"', '"wide"'))
    pools = [pool, pool.model_copy(update={"name": "wide", "spec": wide})]
    made = stack_file(snapshot.model_copy(update={"node_classes": many, "node_pools": pools}), EKS)
    config = yaml.safe_load(made.text)["config"]
    assert config["karpstack:network"]["zones"] == ["us-east-1a", "us-east-1b"]
    found = {name: spec["template"]["spec"]["requirements"] for name, spec in config["karpstack:nodePools"].items()}
    zones = [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a"]}]
    assert found == {"all": zones, "wide": []}


@pytest.mark.parametrize(
    ("architectures", "values"),
    [([], []), (["amd64", "arm64"], []), (["amd64"], [["amd64"]]), (["arm64"], [["arm64"]])],
)
def test_nodes_come_in_the_architectures_of_their_images(architectures: list[str], values: list[list[str]]) -> None:
    """A rehearsed node class has images of both."""
    snapshot = _of_one_class("EC2NodeClass", {})
    (of,) = snapshot.node_classes
    classes = [of.model_copy(update={"architectures": architectures}), of.model_copy(update={"name": "other"})]
    made = stack_file(snapshot.model_copy(update={"node_classes": classes}), EKS)
    assert made.node_pools["all"]["template"]["spec"]["requirements"] == [
        {"key": "kubernetes.io/arch", "operator": "In", "values": one} for one in values
    ]


def test_what_karpenter_launches_no_nodes_of_is_told() -> None:
    snapshot = _of_one_class("EC2NodeClass", {})
    assert not [one for one in stack_file(snapshot, EKS).notes if "launches no nodes" in one]
    unused = {
        part: [one.model_copy(update={"ready": False}) for one in getattr(snapshot, part)]
        for part in ("node_pools", "node_classes")
    }
    (note,) = (one for one in stack_file(snapshot.model_copy(update=unused), EKS).notes if "launches no nodes" in one)
    assert "of NodePool all, EC2NodeClass default (not Ready, or being deleted);" in note


def _of_one_class(kind: str, spec: dict[str, Any]) -> Snapshot:
    """A cluster with one node that takes 110 pods."""
    cloud, region = ("aws", "us-east-1") if kind == "EC2NodeClass" else ("azure", "westeurope")
    reference = {"group": "karpenter.sh", "kind": kind, "name": "default"}
    node = {"name": "one", "labels": {}, "capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"}, "nodePool": "all"}
    return a_snapshot.snapshot(
        cluster={"cloud": cloud, "region": region},
        nodes=[node],
        nodeClasses=[{"name": "default", "apiVersion": "v1", "kind": kind, "spec": spec}],
        nodePools=[{"name": "all", "spec": {"template": {"spec": {"nodeClassRef": reference, "requirements": []}}}}],
    )


def test_it_has_nothing_of_a_node_class_that_a_snapshot_does_not_have() -> None:
    """A snapshot is somebody else's file: nodes of the stack file run no script of it, and get no role of it."""
    snapshot = load(SMALL).snapshot
    (first, *_) = snapshot.node_classes
    disk = {"volumeSize": "30Gi", "encrypted": True}
    theirs = {
        "userData": "#!/bin/sh",
        "role": "theirs",
        "associatePublicIPAddress": True,
        "metadataOptions": {"httpTokens": "optional"},
        "blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {**disk, "snapshotID": "snap-1"}}],
    }
    text = stack_file(
        snapshot.model_copy(update={"node_classes": [first.model_copy(update={"spec": theirs})]}), EKS
    ).text
    made = yaml.safe_load(text)["config"]["karpstack:nodeClasses"][first.name]
    assert made["metadataOptions"]["httpTokens"] == "required"
    assert made["blockDeviceMappings"] == [{"deviceName": "/dev/xvda", "ebs": disk}]
    assert made.keys().isdisjoint({"userData", "role", "associatePublicIPAddress"})


def test_one_of_another_cloud_is_refused() -> None:
    with pytest.raises(SnapshotError, match=r"^cloud: 'aws': the cloud of .* is 'azure'"):
        stack_file(load(SMALL).snapshot, ROOT / "Pulumi.aks-nap.yaml")


def test_one_without_node_pools_is_refused(tmp_path: Path) -> None:
    snapshot = load(SMALL).snapshot.model_copy(update={"node_pools": []})
    with pytest.raises(SnapshotError, match="nodePools: the snapshot has no NodePools"):
        stack_file(snapshot, EKS)


@pytest.mark.parametrize("text", ["[1]", "config: 3", "a: [", "{}"])
def test_what_is_no_stack_file_is_refused(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    like, output = tmp_path / "like.yaml", tmp_path / "base.yaml"
    like.write_text(text)
    assert main(["stack-file", str(SMALL), "--like", str(like), "--output", str(output)]) == 2
    assert str(like) in capsys.readouterr().err
    assert not output.exists()


def test_sections_that_pulumi_wrote_as_json_are_read_as_such(tmp_path: Path) -> None:
    like = yaml.safe_load(EKS.read_text())
    given = {key: json.dumps(value) if isinstance(value, dict) else value for key, value in like["config"].items()}
    (file := tmp_path / EKS.name).write_text(yaml.safe_dump({"config": given}))
    for snapshot in (load(SMALL).snapshot, small(pods=9, instance_type="m5.large")):
        made, asked = (stack_file(snapshot, one) for one in (file, EKS))
        assert made.notes == asked.notes
        made_config, asked_config = (yaml.safe_load(one.text)["config"] for one in (made, asked))
        for key, value in made_config.items():
            assert (json.loads(value) if isinstance(value, str) and value[:1] == "{" else value) == asked_config[key]


@pytest.mark.parametrize("value", ["x", "[", "[" * 100_000, "[1]", "3", 3, [1], True])
@pytest.mark.parametrize("name", ["cluster", "karpenter", "network", "nodeClasses"])
def test_a_section_of_another_shape_is_refused(name: str, value: object, tmp_path: Path) -> None:
    refused_at(f"karpstack:{name}", value, f"karpstack:{name}", tmp_path)


@pytest.mark.parametrize(
    ("value", "at"),
    [
        ({"default": None}, "default"),
        ({"secure": "AAAB"}, "secure"),
        ({"default": {"kubelet": []}}, "default.kubelet"),
        ({"default": {"amiSelectorTerms": "al2023@latest"}}, "default.amiSelectorTerms"),
        ({"default": {"amiSelectorTerms": ["al2023@latest"]}}, "default.amiSelectorTerms[0]"),
        ({"default": {"blockDeviceMappings": [{"ebs": "50Gi"}]}}, "default.blockDeviceMappings[0].ebs"),
    ],
)
def test_a_node_class_of_another_shape_is_refused(value: object, at: str, tmp_path: Path) -> None:
    refused_at("karpstack:nodeClasses", value, f"karpstack:nodeClasses.{at}", tmp_path)


def refused_at(key: str, value: object, at: str, folder: Path) -> None:
    like = yaml.safe_load(EKS.read_text())
    like["config"][key] = value
    (file := folder / "like.yaml").write_text(yaml.safe_dump(like))
    with pytest.raises(SnapshotError) as refused:
        stack_file(load(SMALL).snapshot, file)
    assert [(one.code, one.key) for one in refused.value.findings] == [("snapshot-like-shape", at)]


def test_images_are_of_the_other_file_and_nothing_is_an_alias() -> None:
    snapshot = load(SMALL).snapshot
    (first, *_) = snapshot.node_classes
    of_its_own = {"amiSelectorTerms": [], "kubelet": {"maxPods": 29}}
    classes = [first.model_copy(update={"name": name, "spec": of_its_own}) for name in ("default", "twin")]
    text = stack_file(snapshot.model_copy(update={"node_classes": classes}), EKS).text
    found = yaml.safe_load(text)["config"]["karpstack:nodeClasses"]
    assert found["twin"]["amiSelectorTerms"] == [{"alias": "al2023@latest"}]
    assert found["twin"]["kubelet"] == {"maxPods": 29}
    assert "&id" not in text


@pytest.mark.parametrize(
    ("spec", "image"),
    [
        ({"amiSelectorTerms": [{"alias": "bottlerocket@v1.64.0"}]}, "bottlerocket@latest"),
        ({"amiSelectorTerms": [{}], "amiFamily": "Bottlerocket"}, "bottlerocket@latest"),
        ({"amiSelectorTerms": [{"alias": "al2023@v20260714"}]}, "al2023@latest"),
        ({"amiSelectorTerms": [{"alias": "al2@v20250101"}]}, "al2023@latest"),
        ({"amiSelectorTerms": [{"id": "ami-0123456789abcdef0"}], "amiFamily": "AL2"}, "al2023@latest"),
    ],
)
@pytest.mark.parametrize("names_it", [True, False])
def test_a_node_class_keeps_its_image_family(spec: dict[str, Any], image: str, names_it: bool, tmp_path: Path) -> None:
    like = yaml.safe_load(EKS.read_text())
    if not names_it:
        del like["config"]["karpstack:nodeClasses"]["bottlerocket"]
    (file := tmp_path / "like.yaml").write_text(yaml.safe_dump(like, sort_keys=False))
    snapshot = load(SMALL).snapshot
    disks = [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "4Gi", "encrypted": True}}]
    (of, *_) = snapshot.node_classes
    for more in ({}, {"blockDeviceMappings": disks}):
        changed = of.model_copy(update={"spec": {**spec, **more}})
        text = stack_file(snapshot.model_copy(update={"node_classes": [changed]}), file).text
        found = yaml.safe_load(text)["config"]["karpstack:nodeClasses"]["default"]
        assert found["amiSelectorTerms"] == [{"alias": image}]
        # With another family than the image's, the API server refuses it.
        assert found.get("amiFamily", "").lower() in ("", image.partition("@")[0])
        devices = [one["deviceName"] for one in found.get("blockDeviceMappings", ())]
        assert devices == (["/dev/xvda"] if more else [])  # without, Karpenter has its own for the family


@pytest.mark.parametrize("family", ["Ubuntu2404", "AzureLinux"])
def test_a_node_class_of_aks_keeps_its_image_family(family: str) -> None:
    snapshot = load(SMALL).snapshot
    (of, *_) = snapshot.node_classes
    aks = of.model_copy(update={"kind": "AKSNodeClass", "spec": {"imageFamily": family}})
    cluster = snapshot.cluster.model_copy(update={"cloud": "azure", "region": "northeurope"})
    made = stack_file(snapshot.model_copy(update={"node_classes": [aks], "cluster": cluster}), AKS)
    assert yaml.safe_load(made.text)["config"]["karpstack:nodeClasses"]["default"]["imageFamily"] == family
    assert not any("imageFamily" in note for note in made.notes)


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "mine.yaml"
    output.write_text("mine")
    given = ["stack-file", str(SMALL), "--like", str(EKS), "--unchecked", "--output"]
    assert main([*given, str(output)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert output.read_text() == "mine"
    assert main([*given, str(tmp_path / "new.yaml")]) == 0


def notes(made: StackFile) -> list[str]:
    """Those that are not about the other file."""
    return [note for note in made.notes if not note.startswith("these settings are")]


@pytest.mark.parametrize(
    ("disk", "encrypted"),
    [({}, True), ({"encrypted": True}, True), ({"encrypted": False}, False)],
)
@pytest.mark.parametrize("device", ["/dev/xvda", "/dev/sda1"])
def test_volumes_stay_encrypted(disk: dict[str, bool], encrypted: bool, device: str) -> None:
    snapshot = load(SMALL).snapshot
    mappings = [{"deviceName": device, "ebs": {"volumeSize": "80Gi", **disk}}]
    (of, *_) = snapshot.node_classes
    changed = of.model_copy(update={"spec": {"blockDeviceMappings": mappings}})
    text = stack_file(snapshot.model_copy(update={"node_classes": [changed]}), EKS).text
    (found,) = yaml.safe_load(text)["config"]["karpstack:nodeClasses"]["default"]["blockDeviceMappings"]
    assert found == {"deviceName": device, "ebs": {"volumeSize": "80Gi", "encrypted": encrypted}}


def test_what_is_taken_from_the_other_file_is_told() -> None:
    (note,) = (
        one for one in stack_file(small(), EKS).notes if one.startswith("these settings are those of Pulumi.eks.yaml")
    )
    assert 'karpenter.featureGates: {"spotToSpotConsolidation": true}' in note
    assert 'cluster.version: "1.36"' in note
    assert "metadataOptions" in note


def small(**node: Any) -> Snapshot:
    """The small snapshot, of whose nodes each has this."""
    snapshot = load(SMALL).snapshot
    nodes = [one.model_copy(update=node) for one in snapshot.nodes]
    return snapshot.model_copy(update={"nodes": nodes})


def test_a_node_takes_as_many_pods_as_those_of_the_cluster_do() -> None:
    made = stack_file(small(capacity={"pods": "29"}), EKS)
    assert yaml.safe_load(made.text)["config"]["karpstack:nodeClasses"]["default"]["kubelet"]["maxPods"] == 29
    assert notes(made) == []


def test_where_they_take_as_many_as_their_types_do_that_is_said() -> None:
    snapshot = load(SMALL).snapshot
    (of, *_), (first, *others) = snapshot.node_classes, snapshot.nodes
    larger = first.model_copy(update={"capacity": {"pods": "110"}})
    snapshot = snapshot.model_copy(update={"nodes": [larger, *others]})
    (note,) = notes(stack_file(snapshot, EKS))
    assert note.startswith(
        "nodeClasses.default: in the cluster, its nodes take 58 to 110 pods, by instance type; here each takes 110"
    )
    # What the node class says itself is so for all of its nodes.
    own = of.model_copy(update={"spec": {"kubelet": {"maxPods": 58}}})
    assert notes(stack_file(snapshot.model_copy(update={"node_classes": [own]}), EKS)) == []


def of_interfaces(pods: dict[str, int], *daemon_sets: str, **more: Any) -> Snapshot:
    """The small snapshot with nodes of these types that take so many pods, and with DaemonSets of a cluster."""
    snapshot = load(SMALL).snapshot
    node = next(one for one in snapshot.nodes if one.node_pool)
    nodes = [
        node.model_copy(update={"name": type_, "instance_type": type_, "capacity": {"pods": str(number)}})
        for type_, number in pods.items()
    ]
    model = snapshot.workloads[0]
    controller = model.controller.model_copy(update={"kind": "DaemonSet"})
    own = [
        model.model_copy(update={"namespace": "kube-system", "name": name, "controller": controller})
        for name in daemon_sets
    ]
    apps = [one for one in snapshot.workloads if one.namespace != "kube-system"]
    return snapshot.model_copy(update={"nodes": nodes, "workloads": [*own, *apps], **more})


def limit(made: StackFile) -> Any:
    return yaml.safe_load(made.text)["config"]["karpstack:nodeClasses"]["default"].get("kubelet")


def settings(made: StackFile) -> Any:
    return (yaml.safe_load(made.text)["config"].get("karpstack:karpenter") or {}).get("settings", {})


OF_AZURE = {"apiVersion": "karpenter.azure.com/v1beta1", "kind": "AKSNodeClass", "spec": {}}

# Three interfaces of ten addresses, and four of fifteen (misc/eni-max-pods.txt of aws/amazon-vpc-cni-k8s).
ENI = {"m5.large": 29, "m5.2xlarge": 58}


def test_pods_of_network_interfaces_are_left_to_karpenter() -> None:
    made = stack_file(of_interfaces(ENI, "aws-node", "kube-proxy"), EKS)
    # An expression would need Karpenter's feature gate NodeClassCEL, without which no node class becomes ready.
    assert limit(made) == {"maxPods": None}
    assert not any("kubelet" in note for note in made.notes if note.startswith("these settings are"))
    assert "reservedENIs" not in settings(made)
    assert notes(made) == []
    # One type alone would be one number for all types.
    assert limit(stack_file(of_interfaces({"m5.large": 29}, "aws-node"), EKS)) == {"maxPods": None}
    # The nodes say it, whatever network the cluster has.
    assert limit(stack_file(of_interfaces(ENI, "cilium"), EKS)) == {"maxPods": None}


@pytest.mark.parametrize(
    ("pods", "reserved"),
    [({"m5.large": 20, "m5.2xlarge": 44}, "1"), ({"m5.large": 11, "m5.2xlarge": 30}, "2"), ({"t3.medium": 12}, "1")],
)
def test_reserved_interfaces_become_karpenters_setting(pods: dict[str, int], reserved: str) -> None:
    made = stack_file(of_interfaces(pods, "aws-node"), EKS)
    assert limit(made) == {"maxPods": None}
    assert settings(made)["reservedENIs"] == reserved
    note = notes(made)[0]
    assert f"as with {reserved} reserved network interfaces (custom networking)" in note


def test_prefix_delegation_is_what_the_node_class_says() -> None:
    snapshot = of_interfaces({"m5.large": 110, "m5.2xlarge": 110}, "aws-node")
    (first, *others) = snapshot.node_classes
    own = first.model_copy(update={"spec": {**first.spec, "kubelet": {"maxPods": 110}}})
    made = stack_file(snapshot.model_copy(update={"node_classes": [own, *others]}), EKS)
    assert limit(made) == {"maxPods": 110}
    # Without it, user data of the nodes says so, which a snapshot does not have: the nodes count.
    assert limit(stack_file(snapshot, EKS)) == {"maxPods": 110}


def test_what_no_node_shows_is_assumed_and_said() -> None:
    made = stack_file(of_interfaces({}, "aws-node"), EKS)
    assert limit(made) == {"maxPods": None}
    note = notes(made)[0]
    assert "it is assumed that the VPC CNI limits them by instance type, without prefix delegation" in note
    # Without the VPC CNI, Karpenter limits them all the same.
    assert limit(stack_file(of_interfaces({}, "calico-node"), EKS)) == {"maxPods": None}


def test_a_node_class_of_azure_without_nodes_is_like_the_others() -> None:
    snapshot = of_interfaces({"Standard_D2s_v5": 30})
    classes = [NodeClass.model_validate(OF_AZURE | {"name": name}) for name in ("default", "twin")]
    cluster = snapshot.cluster.model_copy(update={"cloud": "azure", "region": "westus2"})
    snapshot = snapshot.model_copy(update={"cluster": cluster, "node_classes": classes})
    found = yaml.safe_load(stack_file(snapshot, AKS).text)["config"]["karpstack:nodeClasses"]
    assert {name: one["maxPods"] for name, one in found.items()} == {"default": 30, "twin": 30}
    made = stack_file(snapshot.model_copy(update={"nodes": []}), AKS)
    assert any("it is assumed that the network is an overlay, with 250 pods" in note for note in notes(made))


def test_node_pools_that_aks_creates_are_the_snapshots() -> None:
    """A cluster with node auto provisioning has them, and the stack must not ask AKS for them once more."""
    found = load(SMALL).snapshot
    (pool, *_) = found.node_pools
    spec = {"template": {"spec": {"nodeClassRef": {"name": "default"}, "requirements": []}}}
    pools = [pool.model_copy(update={"name": name, "spec": spec}) for name in ("default", "system-surge")]
    classes = [NodeClass.model_validate(OF_AZURE | {"name": "default"})]
    cluster = found.cluster.model_copy(update={"cloud": "azure", "region": "northeurope"})
    snapshot = found.model_copy(update={"cluster": cluster, "node_pools": pools, "node_classes": classes})
    made = stack_file(snapshot, ROOT / "Pulumi.aks-nap.yaml")
    assert yaml.safe_load(made.text)["config"]["karpstack:nodeProvisioning"] == {"defaultNodePools": "None"}


def test_overlays_need_no_section_of_the_controller_and_those_of_the_other_file_go(tmp_path: Path) -> None:
    content = yaml.safe_load(EKS.read_text())
    del content["config"]["karpstack:karpenter"]
    content["config"]["karpstack:nodeOverlays"] = {"old": {}}
    (tmp_path / "Pulumi.mine.yaml").write_text(yaml.safe_dump(content))
    snapshot = load(SMALL).snapshot
    overlays = {"node_overlays": [NodeOverlay(name="cheap", spec={"requirements": []})]}
    for changed, there in ((overlays, {"cheap": {"requirements": []}}), ({}, None)):
        made = stack_file(snapshot.model_copy(update=changed), tmp_path / "Pulumi.mine.yaml")
        config = yaml.safe_load(made.text)["config"]
        assert config.get("karpstack:nodeOverlays") == there
        assert config.get("karpstack:karpenter") == ({"featureGates": {"nodeOverlay": True}} if there else None)


def test_it_has_the_snapshots_controller_and_overlays() -> None:
    known = Karpenter(version="1.14.0", feature_gates={"nodeOverlay": True}, settings={"batchIdleDuration": "7s"})
    overlay = NodeOverlay(name="cheap", spec={"requirements": [], "price": "0.05"})
    changed = {"karpenter": known, "node_overlays": [overlay]}
    made = stack_file(load(SMALL).snapshot.model_copy(update=changed), EKS, ("1.15.1", "1.14.3"))
    config = yaml.safe_load(made.text)["config"]
    assert config["karpstack:nodeOverlays"] == {"cheap": overlay.spec}
    karpenter = config["karpstack:karpenter"]
    assert (karpenter["chartVersion"], karpenter["featureGates"]) == ("1.14.3", {"nodeOverlay": True})
    assert karpenter["settings"] == {"batchIdleDuration": "7s"}
    assert karpenter["identity"] == "pod-identity"
    assert not any("karpenter.settings" in note for note in made.notes)
