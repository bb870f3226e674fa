"""A stack file with the NodePools and node classes of a snapshot: the base of a what-if of a cluster made elsewhere."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import yaml

from karpstack.components.documents import manifests
from karpstack.components.documents.addons import EBS_CSI_STARTUP_TAINT
from karpstack.karpenter import crds
from karpstack.karpenter.instance_types import ARCHITECTURE, ZONE
from karpstack.text import refusals
from karpstack.text.projects import section
from karpstack.text.shown import listed, value
from karpstack.text.yaml_file import YamlError, read

from .api_nodes import OF_CLASS, OF_THE_IMAGE, spec_of_class
from .drift import image_family
from .model import NodeClass, NodePool, Snapshot
from .pod_limits import Interfaces, class_name, interfaces, own_limit, pods_of
from .problems import SnapshotError, finding
from .rehearsed_controller import Controller

_ANY_IMAGE: Final = "custom"  # the image family that goes with each image
_REGIONS: Final = {"aws": "aws:region", "azure": "azure-native:location"}
_HEADER: Final = """\
# The NodePools, node classes, NodeOverlays and, if it is known, the controller of a snapshot, for a what-if; everything
# else is as in {like}.
# Of a node class it has what says how large nodes are. The rest is that of the class {model} there; so is the image,
# unless the node class has another image family: then it is the newest of that family, or what the other file names.
"""
# Images are of the cluster's Kubernetes version, or of its account: a rehearsal has neither.
_OF_AWS: Final = "EC2NodeClass"
#: Settings of the controller that decide what it does.
_OF_KARPENTER: Final = ("chartVersion", "featureGates", "settings")
#: Image families that every Kubernetes version has which can be rehearsed.
_FAMILIES: Final = ("al2023", "bottlerocket")
#: What a snapshot has of a node class: where it has none of it, the cluster has none. Images are the other file's.
_OF_CLASS: Final = OF_CLASS - {"amiFamily", *OF_THE_IMAGE}
_ARCHITECTURES: Final = frozenset({"amd64", "arm64"})
_EACH: Final = "*"
_NAMED: Final = 5  # objects in a note
#: The mappings and lists that are read of the other file's sections.
_SHAPES: Final[Mapping[str, Mapping[str, Any]]] = {
    "addons": {},
    "cilium": {},
    "cluster": {},
    "karpenter": {"featureGates": {}, "settings": {}},
    "network": {},
    "nodeClasses": {_EACH: {"amiSelectorTerms": [{}], "blockDeviceMappings": [{"ebs": {}}], "kubelet": {}}},
    "nodeProvisioning": {},
}


class StackFile(NamedTuple):
    """A stack file.

    Attributes:
        text: Its text.
        notes: What of it is to be known: a sentence each.
        node_classes: Name of each node class of the snapshot -> its section.
        node_pools: The same of the NodePools.
        unseen: What of the snapshot is not in it: a sentence each.
    """

    text: str
    notes: list[str]
    node_classes: Mapping[str, Mapping[str, Any]]
    node_pools: Mapping[str, Mapping[str, Any]]
    unseen: list[str]


class _Plain(yaml.SafeDumper):
    """Writes what stands twice twice: who edits the one must not change the other."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def stack_file(snapshot: Snapshot, like: Path, built: Sequence[str] = (), cluster: Snapshot | None = None) -> StackFile:
    """A stack file.

    Args:
        snapshot: Whose NodePools, NodeOverlays and node classes it has, its controller, its region and, on AWS, its
            zones.
        like: The stack file from which all else is taken; of the same cloud.
        built: Releases of Karpenter that can be rehearsed; of no matter if nothing is to be rehearsed.
        cluster: The cluster whose nodes these are, before any change of its NodePools and node classes: the snapshot
            itself if not given.

    Raises:
        SnapshotError: The snapshot has no NodePools, or the other file is none of its cloud.
    """
    content = _read(like)
    config = content["config"]
    cluster = cluster or snapshot
    snapshot = _without_what_none_has(snapshot)
    cloud, region = snapshot.cluster.cloud, snapshot.cluster.region
    if not snapshot.node_pools:
        raise SnapshotError.of(finding("snapshot-no-node-pools", "", "nodePools"))
    if cloud not in _REGIONS or config.get("karpstack:cloud") != cloud:
        other = value(config.get("karpstack:cloud"))
        raise SnapshotError.of(finding("snapshot-other-cloud", "", "cloud", value(cloud), like=str(like), other=other))
    models = config.get("karpstack:nodeClasses")
    model = next(iter(models or ()), "")
    base = models[model] if models else {}
    images = _images(models or {})
    like_karpenter = None if config.get("karpstack:mode") == "nap" else config.get("karpstack:karpenter") or {}
    controller, limit = Controller.of(snapshot, like_karpenter, built), interfaces(cluster)
    if limit and (controller.reserves or Controller.of(cluster, like_karpenter, built).reserves):
        limit = limit._replace(reserved=0)
    pods = {one.name: pods_of(cluster, one) if not limit else set() for one in snapshot.node_classes}
    classes = {one.name: _node_class(one, base, images, _number(pods[one.name])) for one in snapshot.node_classes}
    network = config.get("karpstack:network")
    zones = _zones(cluster) if cloud == "aws" and network is not None else []
    pools = {one.name: _node_pool(one, config, _limits_of(one, snapshot, zones)) for one in snapshot.node_pools}
    changed = {
        **{key: one for key, one in config.items() if key != "karpstack:nodeOverlays"},
        **({_REGIONS[cloud]: region} if region else {}),
        "karpstack:nodeClasses": classes or models,
        "karpstack:nodePools": pools,
    }
    if controller.overlays:
        changed["karpstack:nodeOverlays"] = controller.overlays
    if karpenter := controller.section(limit.reserved if limit else 0):
        changed["karpstack:karpenter"] = karpenter
    if config.get("karpstack:mode") == "nap":
        # The NodePools that AKS creates are in the snapshot like all others, if the cluster has them.
        provisioning = config.get("karpstack:nodeProvisioning") or {}
        changed["karpstack:nodeProvisioning"] = {**provisioning, "defaultNodePools": "None"}
    if zones:
        changed["karpstack:network"] = {**network, "zones": zones}
    text = yaml.dump({**content, "config": changed}, Dumper=_Plain, sort_keys=False, width=120)
    notes = [
        *controller.notes(),
        *_taken(config, snapshot, base, classes, like.name),
        *_notes(snapshot, pods, limit),
        *_unused(snapshot),
    ]
    return StackFile(_HEADER.format(like=like.name, model=model) + text, notes, classes, pools, [*controller.unseen()])


def _read(like: Path) -> dict[str, Any]:
    """The content of a stack file, with each section that is read here as a mapping.

    Raises:
        SnapshotError: It is no stack file, or such a section has another shape.
    """
    try:
        content = read(like)
    except YamlError as error:
        raise SnapshotError.of(finding("snapshot-like-unreadable", like, message=str(error))) from error
    config = content.get("config") if isinstance(content, dict) else None
    if not isinstance(config, dict):
        raise SnapshotError.of(finding("snapshot-like-no-config", like))
    sections = {name: section(config, name) for name in _SHAPES if config.get(f"karpstack:{name}") is not None}
    wrong = [at for name, found in sections.items() for at in _misshapen(found, _SHAPES[name], f"karpstack:{name}")]
    if wrong:
        raise SnapshotError.of(*(finding("snapshot-like-shape", like, at) for at in wrong))
    return {**content, "config": {**config, **{f"karpstack:{name}": found for name, found in sections.items()}}}


def _misshapen(found: Any, shape: Any, where: str) -> Iterator[str]:
    """Where there is no mapping, or no list, and the shape has one."""
    if not isinstance(found, type(shape)):
        yield where
    elif isinstance(found, list):
        for number, one in enumerate(found):
            yield from _misshapen(one, shape[0], f"{where}[{number}]")
    else:
        for key, one in found.items():
            if _EACH in shape or (key in shape and one is not None):
                yield from _misshapen(one, shape.get(_EACH) or shape[key], f"{where}.{key}")


def _without_what_none_has(snapshot: Snapshot) -> Snapshot:
    """The same with node classes as a snapshot has them.

    In a file that somebody wrote they could have user data, a role or another account's disk, which nodes would get.
    """
    classes = [one.model_copy(update={"spec": spec_of_class(one.spec)}) for one in snapshot.node_classes]
    return snapshot.model_copy(update={"node_classes": classes})


def refusal(text: str) -> str:
    """Why the program would refuse a stack file; empty where it would not."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "Pulumi.whatif.yaml"
        path.write_text(text)
        return refusals.settings_refusal(path)


def _images(models: Mapping[str, Any]) -> dict[str, Any]:
    """The image for each image family, as the other file's first node class of that family selects it."""
    found: dict[str, Any] = {one: [{"alias": f"{one}@latest"}] for one in _FAMILIES}
    for model in reversed(list(models.values())):
        if (family := image_family(model)) and "amiSelectorTerms" in model:
            found[family] = model["amiSelectorTerms"]
    return found


def _node_class(of: NodeClass, base: Mapping[str, Any], images: Mapping[str, Any], pods: int | None) -> dict[str, Any]:
    """The section of a node class.

    Args:
        of: The node class.
        base: The other file's.
        images: Image family -> how the other file selects its image.
        pods: How many pods its nodes take, if it does not say it and they show it.
    """
    made = {key: value for key, value in base.items() if key not in _OF_CLASS}
    is_aws, family = of.kind == _OF_AWS, image_family(of.spec)
    if is_aws and family in images and family != image_family(base):
        made["amiSelectorTerms"] = images[family]
    # Where manifests are silent, the API server has its own default, and not the other file's value.
    spec = of.spec if is_aws else crds.completed("azure", of.kind, of.spec)
    made |= {key: value for key, value in spec.items() if value and key not in OF_THE_IMAGE}
    if is_aws and family not in (*images, _ANY_IMAGE):  # the other file's image is of another family
        made.pop("amiFamily", None)
    if of.spec.get("blockDeviceMappings"):
        made["blockDeviceMappings"] = [_disk(one, base) for one in made["blockDeviceMappings"]]
    if own_limit(of.spec):
        return made
    if is_aws:  # null leaves it to Karpenter, and not to the program
        return {**made, "kubelet": {**(made.get("kubelet") or {}), "maxPods": pods}}
    return {**made, **({"maxPods": pods} if pods else {})}


def _disk(mapping: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """A block device mapping; where the snapshot does not say whether the volume is encrypted, as the other file's."""
    disk = mapping.get("ebs") or {}
    others = [(one.get("deviceName"), one.get("ebs") or {}) for one in base.get("blockDeviceMappings") or ()]
    same = [ebs for name, ebs in others if ebs and name == mapping.get("deviceName")]
    like = next(iter(same or [ebs for _, ebs in others]), {})
    known = {key: value for source in (like, disk) for key, value in source.items() if key == "encrypted"}
    return {**mapping, "ebs": {**disk, **known}}


def _node_pool(pool: NodePool, config: Mapping[str, Any], limits: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The spec of a NodePool as the program makes it.

    Args:
        pool: The NodePool.
        config: The other file's settings: they decide what the program adds.
        limits: Label -> values that its node class leaves. Rehearsed node classes have subnets in all zones, and images
            of all architectures. No node drifts by a requirement that it meets.
    """
    cluster, cilium, addons = (config.get(f"karpstack:{name}") or {} for name in ("cluster", "cilium", "addons"))
    # Whether an existing AKS cluster has Cilium, the program looks up.
    ours = not cluster.get("existing")
    taints = [manifests.CILIUM_STARTUP_TAINT] if ours or cilium.get("install") else []
    if ours and addons.get("ebsCsi"):
        taints.append(EBS_CSI_STARTUP_TAINT)
    kind, labels = manifests.EC2_NODE_CLASS, None
    if config["karpstack:cloud"] == "azure":
        kind, labels = manifests.AKS_NODE_CLASS, manifests.AKS_DATAPLANE_LABEL if ours else None
    spec: dict[str, Any] = manifests.node_pool(
        pool.name, pool.spec, node_class=kind, labels=labels, startup_taints=taints
    )["spec"]
    for key, values in limits.items():
        spec["template"]["spec"]["requirements"].append({"key": key, "operator": "In", "values": [*values]})
    return spec


def _number(pods: Collection[int]) -> int | None:
    """How many pods each rehearsed node takes: where nodes differ, as many as the one with the most."""
    return max(pods, default=None)


def _taken(
    config: Mapping[str, Any], snapshot: Snapshot, base: Mapping[str, Any], classes: Mapping[str, Any], like: str
) -> Iterator[str]:
    """What is taken from the other file and decides what Karpenter does, because a snapshot does not have it."""
    karpenter, cluster = (config.get(f"karpstack:{key}") or {} for key in ("karpenter", "cluster"))
    known = snapshot.karpenter
    assumed = [key for key in _OF_KARPENTER if known is None or (key == "chartVersion" and not known.version)]
    found = {f"karpenter.{key}": karpenter.get(key) for key in assumed}
    found["cluster.version"] = cluster.get("version")
    told = [f"{key}: {json.dumps(value)}" for key, value in found.items() if value]
    own = {key for one in snapshot.node_classes for key in one.spec if key not in OF_THE_IMAGE}
    if keys := sorted(key for key in base.keys() - own if any(one.get(key) == base[key] for one in classes.values())):
        told.append(f"of each node class {', '.join(keys)}")
    if told:
        yield (
            f"these settings are those of {like}, because a snapshot does not have them; change those that differ in "
            f"your cluster: {'; '.join(told)}"
        )


def _notes(snapshot: Snapshot, pods_of_class: Mapping[str, set[int]], limit: Interfaces | None) -> Iterator[str]:
    silent = [one for one in snapshot.node_classes if not own_limit(one.spec)]
    if limit:
        if silent:
            yield from _of_interfaces(limit)
        return
    for one in silent:
        pods = pods_of_class[one.name]
        if not pods and snapshot.cluster.cloud == "azure":
            yield (
                f"AKSNodeClass {one.name}: no node shows how many pods a node takes, so it is assumed that the network "
                "is an overlay, with 250 pods on each node; if it is not, set maxPods"
            )
        if len(pods) > 1:
            yield (
                f"nodeClasses.{one.name}: in the cluster, its nodes take {min(pods)} to {max(pods)} pods, by instance "
                f"type; here each takes {max(pods)}, so Karpenter packs small pods more densely. For fewer pods on "
                f"each node, set maxPods to {min(pods)}"
            )


def _unused(snapshot: Snapshot) -> Iterator[str]:
    """Say of which NodePools and node classes Karpenter launches no nodes in the cluster."""
    unused = [f"NodePool {one.name}" for one in snapshot.node_pools if not one.ready]
    unused += [f"{one.kind} {one.name}" for one in snapshot.node_classes if not one.ready]
    if unused:
        yield (
            f"in the cluster, Karpenter launches no nodes of {listed(unused, _NAMED)} (not Ready, or being deleted); "
            "the rehearsal launches them, so the answer can have nodes that your cluster does not get"
        )


def _of_interfaces(limit: Interfaces) -> Iterator[str]:
    """Say what was assumed or concluded of the pods that network interfaces have addresses for."""
    if not limit.seen:
        yield (
            "no node shows how many pods a node takes, so it is assumed that the VPC CNI limits them by instance type, "
            "without prefix delegation and without reserved network interfaces; if it does not, set kubelet.maxPods of "
            "the node classes, or karpenter.settings.reservedENIs"
        )
    if limit.reserved:
        yield (
            f"nodes take as many pods as with {limit.reserved} reserved network interfaces (custom networking), so "
            f"karpenter.settings.reservedENIs is {limit.reserved}"
        )


def _limits_of(pool: NodePool, snapshot: Snapshot, zones: Collection[str]) -> dict[str, list[str]]:
    """The zones and the architectures of a NodePool's node class, each only where these are not all."""
    named = class_name(pool.spec)
    limits: dict[str, list[str]] = {}
    for one in snapshot.node_classes:
        if one.name == named and {*one.zones} < {*zones}:
            limits[ZONE] = one.zones
        if one.name == named and one.architectures and {*one.architectures} < _ARCHITECTURES:
            limits[ARCHITECTURE] = one.architectures
    return limits


def _zones(snapshot: Snapshot) -> list[str]:
    """The zones of all node classes' subnets; none where one does not tell."""
    if not all(one.zones for one in snapshot.node_classes):
        return []
    return sorted({zone for one in snapshot.node_classes for zone in one.zones})
