"""A snapshot of objects of the API, wherever they come from: a cluster, or files."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from pydantic import TypeAdapter, ValidationError

from karpstack.karpenter.quantities import go_duration
from karpstack.text.shown import cut, visible

from .api_fields import known_or_none
from .api_nodes import CLOUDS, Prices, claim_of, class_of, cluster_of, node_of, overlay_of, pool_keys, pool_of
from .api_pod import KEPT_ANNOTATIONS, OF_CONTROLLERS, namespace_keys, node_keys, pod_keys, pod_of, selector_keys
from .api_volumes import Mounted, Volumes
from .controller import karpenter_of, only_one
from .formats import Labels, Name, Namespace
from .grouping import Member, Owner, workloads
from .left_out import NOT_UNDERSTOOD, OBJECTS, Ledger
from .model import (
    KIND,
    VERSION,
    Controller,
    NamespaceOf,
    PodDisruptionBudget,
    PriorityClass,
    Snapshot,
)
from .pod import LabelSelector, Pod
from .problems import mistake
from .reading import explained

Source = Literal["cluster", "exports", "kubereplay", "simkube"]
Item = Mapping[str, Any]

_ENDED: Final = ("Succeeded", "Failed")
#: PriorityClasses that every cluster has.
BUILT_IN: Final = ("system-cluster-critical", "system-node-critical")
#: Controllers whose template says what their pods are, and where their number is.
_NUMBERS: Final[dict[str, str | None]] = {
    "Deployment": "replicas",
    "StatefulSet": "replicas",
    "ReplicaSet": "replicas",
    "DaemonSet": None,
    "Job": "parallelism",
}
NODE_CLASSES: Final = tuple(CLOUDS)
#: The kinds of which something gets into a snapshot.
KINDS: Final = (
    *_NUMBERS,
    "Namespace",
    "Node",
    "NodeClaim",
    "NodeOverlay",
    "NodePool",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodDisruptionBudget",
    "PriorityClass",
    *NODE_CLASSES,
)
#: API version -> groups of the kinds whose names others use too.
_GROUPS: Final = {
    "Deployment": "apps/",
    "StatefulSet": "apps/",
    "ReplicaSet": "apps/",
    "DaemonSet": "apps/",
    "Job": "batch/",
    "PodDisruptionBudget": "policy/",
    "NodePool": "karpenter.sh/",
    "NodeClaim": "karpenter.sh/",
    "NodeOverlay": "karpenter.sh/",
}
_NAMESPACE: Final = TypeAdapter[str](Namespace)
_NAME: Final = TypeAdapter[str](Name)
_LABELS: Final = TypeAdapter[dict[str, str]](Labels)


def snapshot_of(items: Iterable[Item], taken: datetime, source: Source, ledger: Ledger | None = None) -> Snapshot:
    """The snapshot of a cluster.

    What a single object has that is not as the format has it leaves that object out, and is counted.

    Args:
        items: Its objects, each with `kind` and `apiVersion`; of those that are there twice, the last counts.
        taken: When they were read.
        source: Where they come from.
        ledger: What was left out before.

    Raises:
        SnapshotError: What they are together is no snapshot: more pods than any cluster holds.
    """
    try:
        return _Taking(items, taken, ledger or Ledger()).snapshot(source)
    except ValidationError as error:
        raise explained(error) from error


class _Taking:
    def __init__(self, items: Iterable[Item], taken: datetime, ledger: Ledger) -> None:
        self._ledger = ledger
        self._taken = taken
        found: defaultdict[str, dict[tuple[str, str], Item]] = defaultdict(dict)
        for item in items:
            kind = str(item.get("kind"))
            if kind not in KINDS or not str(item.get("apiVersion")).startswith(_GROUPS.get(kind, "")):
                ledger.add(f"{OBJECTS}{cut(visible(kind), 60)}", "no scheduling depends on them")
                continue
            if not _well_formed(item):
                ledger.add(f"{OBJECTS}{kind}{NOT_UNDERSTOOD}", "they are not of the API's shape")
                continue
            metadata = item["metadata"]
            found[kind][metadata.get("namespace") or "", metadata["name"]] = item
        self._found = found
        self._volumes = Volumes(self._all("PersistentVolumeClaim"), self._all("PersistentVolume"), ledger)
        self._unknown: set[str] = set()

    def snapshot(self, source: Source) -> Snapshot:
        """All of it."""
        members = list(self._pods())
        members += self._templates({member.owner for member in members})
        budgets = list(self._each("PodDisruptionBudget", self._budget))
        keys = {key for member in members for key in pod_keys(member.pod)}
        keys |= {key for budget in budgets for key in selector_keys(budget.selector)}
        pods = [member.pod for member in members]
        self._ledger.add(
            "labels of pods",
            "nothing selects pods by them",
            sum(len(member.labels.keys() - keys - OF_CONTROLLERS) for member in members),
        )
        pools = list(self._each("NodePool", lambda item: pool_of(item, self._ledger)))
        asked = {key for pod in pods for key in node_keys(pod)} | pool_keys(pools)
        found = self._found
        cluster = cluster_of(self._all("Node"), self._all(*NODE_CLASSES), sum(member.count for member in members))
        prices = Prices(cluster.cloud, cluster.region)
        claims = list(self._each("NodeClaim", lambda item: claim_of(item, prices)))
        claim_of_node = {claim.node: claim.name for claim in claims if claim.node}
        made = workloads(members, keys, self._ledger)
        for key in sorted(self._unknown):
            self._ledger.add(f"{cut(visible(key), 60)} of pods", "the format does not have it")
        used = {workload.namespace for workload in made} | {budget.namespace for budget in budgets}
        return Snapshot(
            kind=KIND,
            version=VERSION,
            taken=self._taken,
            source=source,
            cluster=cluster,
            namespaces=self._namespaces(used, {key for pod in pods for key in namespace_keys(pod)}),
            priority_classes=sorted(self._each("PriorityClass", _priority_class), key=lambda one: one.name),
            workloads=made,
            pod_disruption_budgets=sorted(budgets, key=lambda one: (one.namespace, one.name)),
            node_pools=sorted(pools, key=lambda one: one.name),
            node_classes=[
                made_class
                for kind in NODE_CLASSES
                if found[kind]
                for made_class in self._each(kind, lambda item: class_of(item, self._ledger))
            ],
            node_overlays=sorted(self._each("NodeOverlay", overlay_of), key=lambda one: one.name),
            karpenter=only_one(self._each("Deployment", karpenter_of), self._ledger),
            node_claims=sorted(claims, key=lambda one: one.name),
            nodes=sorted(
                self._each(
                    "Node",
                    lambda item: node_of(item, claim_of_node.get(item["metadata"]["name"]), asked, prices),
                ),
                key=lambda one: one.name,
            ),
            left_out=self._ledger.all(),
        )

    def _all(self, *kinds: str) -> list[Item]:
        return [item for kind in kinds for item in self._found[kind].values()]

    def _each(self, kind: str, make: Any) -> Iterator[Any]:
        """What is made of each object of a kind; one of which nothing can be made is counted."""
        for item in self._all(kind):
            made = self._made(item, make)
            if made is not None:
                yield made

    def _made(self, item: Item, make: Any) -> Any:
        try:
            return make(item)
        except ValidationError as error:
            why = mistake(error)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            why = f"something of them is {type(error).__name__} where the API has another thing"
        self._ledger.add(f"{OBJECTS}{item['kind']}{NOT_UNDERSTOOD}", cut(visible(why), 400))
        return None

    def _pods(self) -> Iterator[Member]:
        for item in self._all("Pod"):
            metadata = item["metadata"]
            phase = (item.get("status") or {}).get("phase")
            if phase in _ENDED:
                self._ledger.add("pods that have ended", "they take no room")
            elif metadata.get("deletionTimestamp"):
                self._ledger.add("pods that are ending", "what replaces them is there, or waits")
            elif (item.get("spec") or {}).get("schedulingGates"):
                self._ledger.add("pods with scheduling gates", "no scheduler looks at them")
            elif member := self._made(item, self._pod):
                yield member

    def _pod(self, item: Item) -> Member:
        metadata, spec = item["metadata"], item["spec"]
        namespace = metadata["namespace"]
        node = spec.get("nodeName") or None
        owner = self._owner(namespace, item, node)
        pod = self._scheduled(metadata, spec, daemon=owner.controller.kind == "DaemonSet")
        # The pod in the rehearsal is new, so its whole time would begin once more.
        left = _time_left(pod.do_not_disrupt, (item.get("status") or {}).get("startTime"), self._taken)
        if pod.do_not_disrupt and not left:
            self._ledger.add("do-not-disrupt of pods, for a time", "the time was over")
        pod = pod.model_copy(update={"do_not_disrupt": left})
        mounted = tuple(self._volumes.of(namespace, metadata["name"], spec))
        return Member(owner, pod, _LABELS.validate_python(_labels(metadata)), mounted, node and _named(node))

    def _scheduled(self, metadata: Mapping[str, Any], spec: Mapping[str, Any], *, daemon: bool) -> Pod:
        pod = pod_of(metadata, spec, self._unknown, daemon=daemon)
        self._ledger.add_of_pod(spec)
        annotations = metadata.get("annotations") or {}
        self._ledger.add_annotations(annotations, sum(key in annotations for key in KEPT_ANNOTATIONS))
        return pod

    def _owner(self, namespace: str, item: Item, node: str | None = None) -> Owner:
        """What keeps an object in the end: the Deployment of a ReplicaSet's pod, the CronJob of a Job's."""
        name, kind, version = item["metadata"]["name"], item["kind"], item.get("apiVersion") or "v1"
        metadata = item["metadata"]
        for _ in range(10):  # a circle has no end
            above = [one for one in metadata.get("ownerReferences") or () if one.get("controller")]
            if not above:
                break
            version, kind, name = above[0]["apiVersion"], above[0]["kind"], above[0]["name"]
            if kind == "Node":  # a static pod: the kubelet puts the node's name behind its own
                name = item["metadata"]["name"].removesuffix(f"-{node}")
                break
            metadata = self._found[kind].get((namespace, name), {}).get("metadata") or {}
        return Owner(_NAMESPACE.validate_python(namespace), Controller(api_version=version, kind=kind), _named(name))

    def _templates(self, there: set[Owner]) -> Iterator[Member]:
        """The pods of controllers of which no pod was read: as many as their templates are to make."""
        for kind, number in _NUMBERS.items():
            for item in self._all(kind):
                members = self._made(item, lambda item, number=number: self._of_template(item, number, there))
                yield from members or ()

    def _of_template(self, item: Item, number: str | None, there: set[Owner]) -> list[Member]:
        metadata, spec = item["metadata"], item["spec"]
        namespace = metadata["namespace"]
        owner = self._owner(namespace, item)
        if owner in there:
            return []
        if owner.name != metadata["name"] and self._found[owner.controller.kind].get((namespace, owner.name)):
            return []  # who is above it says how many
        if _finished(item):
            self._ledger.add("Jobs that have ended", "they have no pods any more")
            return []
        count = 0 if number is None else int(spec[number] if spec.get(number) is not None else 1)
        if number is not None and not count:
            self._ledger.add("controllers of no pods", "there is nothing to schedule")
            return []
        template = spec["template"]
        inner, pod_spec = template.get("metadata") or {}, template["spec"]
        pod = self._scheduled(inner, pod_spec, daemon=item["kind"] == "DaemonSet")
        mounted: list[Mounted] = list(self._volumes.of(namespace, "", pod_spec))
        mounted += [self._volumes.template(one["spec"]) for one in spec.get("volumeClaimTemplates") or ()]
        return [Member(owner, pod, _LABELS.validate_python(_labels(inner)), tuple(mounted), count=count)]

    def _budget(self, item: Item) -> PodDisruptionBudget:
        spec, metadata = item["spec"], item["metadata"]
        selector = spec.get("selector")
        return PodDisruptionBudget(
            namespace=metadata["namespace"],
            name=metadata["name"],
            selector=known_or_none(LabelSelector, selector, self._unknown) if selector is not None else None,
            min_available=spec.get("minAvailable"),
            max_unavailable=spec.get("maxUnavailable"),
            unhealthy_pod_eviction_policy=spec.get("unhealthyPodEvictionPolicy"),
        )

    def _namespaces(self, used: set[str], keys: set[str]) -> list[NamespaceOf]:
        found = self._found["Namespace"]
        made = []
        for name in sorted(used):
            labels = _labels((found.get(("", name)) or {}).get("metadata") or {})
            made.append(NamespaceOf(name=name, labels={key: labels[key] for key in sorted(keys & labels.keys())}))
        return made


def _time_left(do_not_disrupt: str | None, started: Any, at: datetime) -> str | None:
    """Return for how long a pod is still protected; None if the time is over (IsDoNotDisruptActive in Karpenter)."""
    if not do_not_disrupt or not isinstance(started, str):
        return do_not_disrupt
    try:
        whole = go_duration(do_not_disrupt)
        left = min(datetime.fromisoformat(started) + whole - at, whole)
    except (ValueError, OverflowError, TypeError):  # "true"; or what Karpenter does not understand either
        return do_not_disrupt
    hours, minutes = divmod(math.ceil(left / timedelta(minutes=1)), 60)
    return f"{hours}h{minutes}m" if left > timedelta() else None


def _well_formed(item: Item) -> bool:
    """Whether an object has the outline of one of the API's: what is read of it before it is looked at in detail."""
    metadata = item.get("metadata")
    parts = [item.get("spec"), item.get("status")]
    if not isinstance(metadata, Mapping) or not all(part is None or isinstance(part, Mapping) for part in parts):
        return False
    labels, owners = metadata.get("labels") or {}, metadata.get("ownerReferences") or []
    return (
        isinstance(metadata.get("name"), str)
        and isinstance(metadata.get("namespace"), str | None)
        and isinstance(metadata.get("annotations") or {}, Mapping)
        and isinstance(labels, Mapping)
        and all(isinstance(value, str) for value in labels.values())
        and isinstance(owners, list)
        and all(isinstance(one, Mapping) for one in owners)
    )


def _named(name: str) -> str:
    return _NAME.validate_python(name)


def _labels(metadata: Mapping[str, Any]) -> Mapping[str, str]:
    return metadata.get("labels") or {}


def _finished(item: Item) -> bool:
    conditions = (item.get("status") or {}).get("conditions") or ()
    return item["kind"] == "Job" and any(
        one["type"] in ("Complete", "Failed") and one["status"] == "True" for one in conditions
    )


def _priority_class(item: Item) -> PriorityClass | None:
    name = item["metadata"]["name"]
    if name in BUILT_IN:
        return None
    policy = item.get("preemptionPolicy")
    return PriorityClass(
        name=name, value=item["value"], preemption_policy=policy if policy != "PreemptLowerPriority" else None
    )
