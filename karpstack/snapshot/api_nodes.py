"""Nodes, NodeClaims, NodePools, NodeOverlays and node classes as a snapshot has them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from karpstack.karpenter.instance_types import (
    ARCHITECTURE,
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    OPERATING_SYSTEM,
    REGION,
    ZONE,
    Facts,
)

from .api_fields import mapping, mappings
from .formats import Version, Word
from .left_out import Ledger
from .manifests import DO_NOT_DISRUPT
from .model import Cluster, Node, NodeClaim, NodeClass, NodeOverlay, NodePool, Taint

NODE_POOL: Final = "karpenter.sh/nodepool"
#: Labels of a node that are fields of their own, or say nothing.
_FIELDS: Final = frozenset(
    {ARCHITECTURE, CAPACITY_TYPE, INSTANCE_TYPE, NODE_POOL, REGION, ZONE, "kubernetes.io/hostname"}
)
#: Other labels that say how a node was bought: of EKS's node groups, and of AKS's node pools.
_BOUGHT: Final = {
    ("eks.amazonaws.com/capacityType", "ON_DEMAND"): "on-demand",
    ("eks.amazonaws.com/capacityType", "SPOT"): "spot",
    ("kubernetes.azure.com/scalesetpriority", "spot"): "spot",
    ("kubernetes.azure.com/priority", "regular"): "on-demand",
}
_WORD: Final = TypeAdapter[str](Word)
_VERSION: Final = TypeAdapter[str](Version)
_SIMULATED: Final = "kwok.x-k8s.io/node"
#: Kind of a node class -> its cloud.
CLOUDS: Final = {"EC2NodeClass": "aws", "AKSNodeClass": "azure"}
#: Fields of a node class that choose its image; a rehearsal has its own images.
OF_THE_IMAGE: Final = ("amiSelectorTerms", "imageVersion")
#: What of a node class says how large nodes are and how many pods they take.
OF_CLASS: Final = frozenset(
    {
        "amiFamily",
        "amiSelectorTerms",
        "blockDeviceMappings",
        "fipsMode",
        "imageFamily",
        "instanceStorePolicy",
        "kubelet",
        "maxPods",
        "osDiskSizeGB",
    }
)
#: The same of `kubelet`, in which the API server takes any key, also of addresses and secrets.
_OF_KUBELET: Final = frozenset(
    {
        "cpuCFSQuota",
        "evictionHard",
        "evictionMaxPodGracePeriod",
        "evictionSoft",
        "evictionSoftGracePeriod",
        "imageGCHighThresholdPercent",
        "imageGCLowThresholdPercent",
        "kubeReserved",
        "maxPods",
        "podsPerCore",
        "systemReserved",
    }
)
#: Names of what is left out: of the templates of NodePools, and, after a key, of node classes.
OF_TEMPLATES: Final = "annotations of the templates of NodePools"
OF_CLASSES: Final = " of node classes"
_WHY_NOT_OF_CLASS: Final = "it says nothing of how large nodes are, and may be secret"


class Prices:
    """USD an hour by the facts."""

    def __init__(self, cloud: str | None, region: str | None) -> None:
        self._facts = Facts.load(cloud) if cloud in ("aws", "azure") else None
        self._region = region

    def of(
        self, instance_type: str | None, zone: str | None, capacity_type: str | None, *, simulated: bool
    ) -> float | None:
        """The price of a node with Linux; None where the facts do not say, or something of it is not known."""
        if self._facts is None or not (self._region and instance_type and capacity_type):
            return None
        return self._facts.price(instance_type, capacity_type, self._region, zone or "", simulated=simulated)


def cluster_of(nodes: Collection[Mapping[str, Any]], node_classes: Iterable[Mapping[str, Any]], pods: int) -> Cluster:
    """The cluster by its nodes; its cloud by its node classes, where it has no nodes."""
    addresses = _texts(nodes, "spec", "providerID")
    clouds = Counter(scheme for scheme, found, _ in (one.partition("://") for one in addresses) if found and scheme)
    clouds.update(cloud for one in node_classes if not nodes and (cloud := CLOUDS.get(str(one.get("kind")))))
    regions = Counter(_texts(nodes, "metadata", "labels", REGION))
    versions = Counter(_texts(nodes, "status", "nodeInfo", "kubeletVersion"))
    return Cluster(
        cloud=_most(clouds, _WORD),
        region=_most(regions, _WORD),
        kubernetes=_most(versions, _VERSION),
        nodes=len(nodes),
        pods=pods,
    )


def node_of(item: Mapping[str, Any], claim: str | None, keys: Collection[str], prices: Prices) -> Node:
    """A node.

    Args:
        item: As the API has it.
        claim: Name of its NodeClaim.
        keys: Keys of labels by which pods select nodes.
        prices: The prices.

    Raises:
        ValueError: Something of it is not as the format has it.
    """
    labels, spec, status = _labels(item), item.get("spec") or {}, item.get("status") or {}
    bought = _bought(item, prices)
    ready = [one["status"] for one in status.get("conditions") or () if one["type"] == "Ready"]
    taints = [
        Taint(key=one["key"], value=one.get("value") or None, effect=one["effect"]) for one in spec.get("taints") or ()
    ]
    return Node(
        **bought,
        node_claim=claim,
        architecture=labels.get(ARCHITECTURE),
        labels={key: labels[key] for key in sorted(keys & labels.keys()) if key not in _FIELDS},
        taints=taints,
        unschedulable=bool(spec.get("unschedulable")),
        ready=ready != ["False"] and ready != ["Unknown"],
        do_not_disrupt=(item["metadata"].get("annotations") or {}).get(DO_NOT_DISRUPT) == "true",
        capacity=_resources(status.get("capacity")),
        allocatable=_resources(status.get("allocatable")),
    )


def claim_of(item: Mapping[str, Any], prices: Prices) -> NodeClaim:
    """A NodeClaim.

    Raises:
        ValueError: Something of it is not as the format has it.
    """
    spec, status = item.get("spec") or {}, item.get("status") or {}
    return NodeClaim(
        **_bought(item, prices),
        node=status.get("nodeName") or None,
        node_class=(spec.get("nodeClassRef") or {}).get("name"),
        conditions=sorted({one["type"] for one in status.get("conditions") or () if one.get("status") == "True"}),
        requests=_resources((spec.get("resources") or {}).get("requests")),
        expire_after=spec.get("expireAfter"),
    )


def pool_of(item: Mapping[str, Any], ledger: Ledger) -> NodePool:
    """A NodePool.

    Raises:
        ValueError: Something of it is not as the format has it.
    """
    spec: dict[str, Any] = json.loads(json.dumps(item["spec"]))
    metadata = (spec.get("template") or {}).get("metadata") or {}
    annotations = metadata.pop("annotations", None) or {}
    kept = {key: value for key, value in annotations.items() if key == DO_NOT_DISRUPT and isinstance(value, str)}
    if kept:
        metadata["annotations"] = kept
    ledger.add(OF_TEMPLATES, _WHY_NOT_OF_CLASS, len(annotations) - len(kept))
    return NodePool(name=item["metadata"]["name"], spec=spec, ready=_is_used(item))


def overlay_of(item: Mapping[str, Any]) -> NodeOverlay:
    """A NodeOverlay; it is ready where its status does not say, as in a manifest.

    Raises:
        ValueError: Something of it is not as the format has it.
    """
    status = item.get("status")
    conditions = (status or {}).get("conditions") or ()
    ready = status is None or any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return NodeOverlay(name=item["metadata"]["name"], spec=json.loads(json.dumps(item["spec"])), ready=ready)


def class_of(item: Mapping[str, Any], ledger: Ledger) -> NodeClass:
    """A node class, without what is the account's: subnets, roles, tags, user data.

    Raises:
        ValueError: Something of it is not as the format has it.
    """
    spec = item.get("spec") or {}
    kept = spec_of_class(spec)
    for key in spec.keys() - kept.keys():
        ledger.add(f"{key}{OF_CLASSES}", _WHY_NOT_OF_CLASS)
    for key in mapping(spec.get("kubelet")).keys() - kept.get("kubelet", {}).keys():
        ledger.add(f"kubelet.{key}{OF_CLASSES}", _WHY_NOT_OF_CLASS)
    status = item.get("status") or {}
    subnets = status.get("subnets") or ()
    return NodeClass(
        api_version=item["apiVersion"],
        kind=item["kind"],
        name=item["metadata"]["name"],
        spec=kept,
        zones=sorted({one["zone"] for one in subnets if one.get("zone")}),
        architectures=_architectures(mappings(status.get("amis"))),
        ready=_is_used(item),
    )


def _architectures(images: Iterable[Mapping[str, Any]]) -> list[str]:
    """The architectures of images; none where one image does not say its own."""
    found = [
        {
            value
            for one in mappings(image.get("requirements"))
            if one.get("key") == ARCHITECTURE and one.get("operator") == "In"
            for value in one["values"]
        }
        for image in images
    ]
    return sorted({each for one in found for each in one}) if all(found) else []


def _is_used(item: Mapping[str, Any]) -> bool:
    """Whether Karpenter launches nodes of a NodePool or node class; so it is where the status does not say.

    `NewScheduler` in sigs.k8s.io/karpenter, pkg/controllers/provisioning/provisioner.go; a NodePool is not Ready if its
    node class is being deleted or not Ready (pkg/controllers/nodepool/readiness).
    """
    conditions = (item.get("status") or {}).get("conditions") or ()
    ready = all(one["status"] == "True" for one in conditions if one["type"] == "Ready")
    return ready and not item["metadata"].get("deletionTimestamp")


def spec_of_class(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What of a node class's `spec` says how large nodes are and how many pods they take.

    What has another shape than Karpenter's is not there.
    """
    kept = {key: value for key, value in spec.items() if key in OF_CLASS}
    if "amiSelectorTerms" in kept:  # others than aliases are names and IDs of the account
        kept["amiSelectorTerms"] = [
            {"alias": one["alias"]} for one in mappings(kept["amiSelectorTerms"]) if "alias" in one
        ]
    if "blockDeviceMappings" in kept:
        kept["blockDeviceMappings"] = [_disk(one) for one in mappings(kept["blockDeviceMappings"])]
    if "kubelet" in kept:
        kept["kubelet"] = {key: value for key, value in mapping(kept["kubelet"]).items() if key in _OF_KUBELET}
    return kept


def pool_keys(pools: Iterable[NodePool]) -> set[str]:
    """Keys of labels that NodePools give their nodes, or ask of them."""
    found: set[str] = set()
    for pool in pools:
        template: Any = pool.spec.get("template") or {}
        found |= ((template.get("metadata") or {}).get("labels") or {}).keys()
        found |= {one["key"] for one in (template.get("spec") or {}).get("requirements") or ()}
    return found


def _disk(device: Mapping[str, Any]) -> dict[str, Any]:
    disk = mapping(device.get("ebs"))
    kept = {key: disk[key] for key in ("volumeSize", "volumeType", "encrypted") if key in disk}
    return {key: device[key] for key in ("deviceName", "rootVolume") if key in device} | {"ebs": kept}


def _bought(item: Mapping[str, Any], prices: Prices) -> dict[str, Any]:
    labels, metadata = _labels(item), item["metadata"]
    capacity_type = labels.get(CAPACITY_TYPE) or next(
        (meaning for (key, value), meaning in _BOUGHT.items() if labels.get(key) == value), None
    )
    instance_type, zone = labels.get(INSTANCE_TYPE), labels.get(ZONE)
    created = metadata.get("creationTimestamp")
    simulated = _SIMULATED in (metadata.get("annotations") or {})
    return {
        "name": metadata["name"],
        "node_pool": labels.get(NODE_POOL),
        "instance_type": instance_type,
        "zone": zone,
        "capacity_type": capacity_type,
        "created": datetime.fromisoformat(created) if created else None,
        # The facts have no price with Windows, which is about twice that of Linux.
        "price_per_hour": None
        if labels.get(OPERATING_SYSTEM) == "windows"
        else prices.of(instance_type, zone, capacity_type, simulated=simulated),
        "deleting": bool(metadata.get("deletionTimestamp")),
    }


def _resources(given: Any) -> dict[str, str]:
    """Quantities but for those of nothing."""
    return {resource: str(amount) for resource, amount in sorted((given or {}).items()) if str(amount) != "0"}


def _texts(items: Iterable[Mapping[str, Any]], *path: str) -> Iterator[str]:
    """The texts at a place of objects, of those that have one there."""
    for item in items:
        found: Any = item
        for key in path:
            found = found.get(key) if isinstance(found, Mapping) else None
        if isinstance(found, str) and found:
            yield found


def _labels(item: Mapping[str, Any]) -> Mapping[str, str]:
    return item["metadata"].get("labels") or {}


def _most(counted: Counter[str], wanted: TypeAdapter[str]) -> str | None:
    """The text that is there most, of those that are as they have to be."""
    for text in sorted(counted, key=lambda one: (-counted[one], one)):
        try:
            return wanted.validate_python(text)
        except ValidationError:
            continue
    return None
