"""A snapshot as objects to make in a rehearsed cluster, in the order of making."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from karpstack.karpenter.quantities import exact
from karpstack.karpenter.selectors import selects

from . import claims, daemon_sets, manifests, system_workloads
from .api_nodes import CLOUDS
from .effective_requests import Amounts, added, amounts, written
from .left_out import NOT_UNDERSTOOD, OBJECTS, OF_KIND
from .manifests import Names, as_kubernetes
from .model import PodDisruptionBudget, Snapshot, Workload
from .portability import Place, placement_obstacle
from .system_workloads import Existing

_NOWHERE: Final = Place()
_NOTHING: Final = Existing()
_NONE: Final = Decimal(0)
#: Behind the name of what is made beside the cluster's own workload of the same name.
_BESIDE: Final = "-snapshot"
#: Where a workload is made as a Deployment although it was none, and what that changes.
_BARE: Final = "Pod"
_OF_OTHERS: Final = "apps/v1"
#: Of `karpenter.sh/do-not-disrupt`: for as long as the pod is there. Other values are for a time, or nothing.
_FOR_EVER: Final = "true"
_SCHEDULERS: Final = (None, "default-scheduler")
_NAMED: Final = 20  # of a sentence that names many


@dataclass(frozen=True)
class Loaded:
    """What a snapshot is in a cluster.

    Attributes:
        objects: The objects, in the order of making.
        workloads: Value of the label `karpstack.io/workload` of pods -> the workload of the snapshot that they are of.
        notes: What is not loaded, or is not made as it was, and why: a sentence each.
    """

    objects: tuple[dict[str, Any], ...]
    workloads: Mapping[str, Workload]
    notes: tuple[str, ...]


def objects(
    snapshot: Snapshot, labels: Mapping[str, str], place: Place = _NOWHERE, existing: Existing = _NOTHING
) -> Loaded:
    """The objects of a snapshot.

    Namespaces, PriorityClasses, volumes and their claims, workloads, PodDisruptionBudgets. Every pod waits and does
    nothing, and asks for what the pod of the snapshot asks for. A workload's own labels that are among `labels`, or by
    which a cluster knows its own parts, move under `snapshot.karpstack.io/`, on pods and in selectors alike.

    Args:
        snapshot: The snapshot.
        labels: Labels of every object and of every pod.
        place: The cloud and the region of the cluster; what is not known is taken to be the snapshot's.
        existing: What the cluster runs by itself. It is not made again; what the snapshot's pods request beyond it is.
    """
    names = Names(labels)
    notes = list(_unread(snapshot))
    wanted = _without_surplus(snapshot, existing, list(_loadable(snapshot, place, existing, notes)), notes)
    if not place.same_region(snapshot.cluster):
        wanted = [_without_zones(workload, notes) for workload in wanted]
    classes, class_of = _priority_classes(snapshot, wanted, labels)
    volumes: dict[tuple[str, str], dict[str, Any]] = {}
    made: list[dict[str, Any]] = []
    for workload in wanted:
        made.append(_made(workload, names, labels, class_of, volumes, notes))
    used = {workload.namespace for workload in wanted}
    budgets = [one for one in snapshot.pod_disruption_budgets if not _of_existing(one, snapshot, existing)]
    there = system_workloads.NAMESPACES | existing.namespaces
    of_namespaces = [_namespace(name, snapshot, names, labels) for name in sorted(used - there)]
    return Loaded(
        objects=(
            *of_namespaces,
            *classes,
            *volumes.values(),
            *made,
            *(_budget(one, names, labels) for one in budgets if one.namespace in used),
        ),
        workloads={manifests.label_value(workload): workload for workload in wanted},
        notes=tuple(notes),
    )


def _unread(snapshot: Snapshot) -> Iterator[str]:
    """A note on each kind that is not there, or not all of it, except node classes of another cloud than the cluster's.

    An API server refuses a list without the right to it before it says that there is no such kind.
    """
    cloud = snapshot.cluster.cloud
    for one in snapshot.left_out:
        kind = one.what.removeprefix(OF_KIND)
        if one.what.startswith(OF_KIND) and cloud in (None, CLOUDS.get(kind, cloud)):
            yield f"{UNREAD} {kind} ({one.why}); this is as if there were none"
        elif one.what.startswith(OBJECTS) and one.what.endswith(NOT_UNDERSTOOD):
            kind = one.what.removeprefix(OBJECTS).removesuffix(NOT_UNDERSTOOD)
            yield f"{LACKING} {kind} ({one.count} not understood: {one.why}); this is as if they were not there"


def _of_existing(budget: PodDisruptionBudget, snapshot: Snapshot, existing: Existing) -> bool:
    """Whether a budget is the cluster's own, or about pods of the cluster's own that a second budget would hold."""
    selector = as_kubernetes(budget.selector) if budget.selector is not None else None
    return (budget.namespace, budget.name) in existing.budgets or any(
        workload.namespace == budget.namespace and selects(selector, workload.pod.labels)
        for workload in snapshot.workloads
        if existing.of(workload) is not None
    )


def _beside(workload: Workload, own: Mapping[str, str], of_pools: Collection[str]) -> Workload | None:
    """What is made beside the cluster's own workload of the same name; None where that one is all there was.

    Pods of a DaemonSet request what the cluster's own request less than those of the snapshot. Of others, those that
    were on nodes of NodePools are made, for the cluster's own are on its system nodes. None has labels by which a
    Service or a budget of the cluster's own would select it.
    """
    change: dict[str, Any] = {"labels": {}, "host_ports": []}
    if workload.controller.kind != "DaemonSet":
        nodes = {node: pods for node, pods in workload.nodes.items() if node in of_pools}
        update = {"replicas": sum(nodes.values()), "nodes": nodes}
    else:
        change["requests"] = _beyond(workload.pod.requests, own)
        update = {}
    if not update.get("replicas", change.get("requests")):
        return None
    pod = workload.pod.model_copy(update=change)
    return workload.model_copy(update={"name": f"{workload.name}{_BESIDE}", "pod": pod, **update})


def _beyond(asked: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
    """Return how much larger requests are than others, for each resource of which they are larger."""
    return {
        resource: written(resource, more)
        for resource, amount in asked.items()
        if (more := exact(amount) - exact(other.get(resource, "0"))) > 0
    }


def _without_surplus(
    snapshot: Snapshot, existing: Existing, wanted: Sequence[Workload], notes: list[str]
) -> list[Workload]:
    """The workloads, whose DaemonSets request so much less as the cluster's own request more than the snapshot's.

    For each of the cluster's own that the snapshot lacks, and for each workload that is made beside one, there is one
    DaemonSet less, as far as others run on the same nodes. So pods have the room on a node that they had, whichever
    network a cluster has.
    """
    asked_of = {
        (one.namespace, one.name): one.pod.requests for one in snapshot.workloads if one.controller.kind == "DaemonSet"
    }
    known = asked_of.keys()
    foreign = existing.on_pools - known
    of_pools = daemon_sets.of_node_pools(snapshot)
    larger: list[str] = []
    surplus: Amounts = {}
    for namespace, name in sorted(existing.on_pools):
        own = existing.requests.get(("DaemonSet", namespace, name), {})
        if beyond := _beyond(own, asked_of.get((namespace, name), {})):
            larger.append(f"{namespace}/{name}")
            surplus = added(surplus, amounts(beyond))
    changed: list[Workload] = []
    found: list[Workload] = []
    for workload in wanted:
        asked = amounts(workload.pod.requests)
        less = {resource: min(amount, surplus.get(resource, _NONE)) for resource, amount in asked.items()}
        if not daemon_sets.everywhere(workload, of_pools) or not any(less.values()):
            found.append(workload)
            continue
        for resource, amount in less.items():
            surplus[resource] = surplus.get(resource, _NONE) - amount
        left = {resource: written(resource, amount - less[resource]) for resource, amount in asked.items()}
        requests = {resource: quantity for resource, quantity in left.items() if exact(quantity)}
        changed.append(workload)
        found.append(workload.model_copy(update={"pod": workload.pod.model_copy(update={"requests": requests})}))
    second = {(namespace, f"{name}{_BESIDE}") for namespace, name in existing.on_pools & known}
    beside = [one for one in found if (one.namespace, one.name) in second and daemon_sets.everywhere(one, of_pools)]
    too_many = len(foreign) + len(beside)
    found, gone = daemon_sets.merged([*beside, *(one for one in found if one not in beside)], too_many, of_pools)
    left_out = {(one.namespace, one.name) for one in gone}
    if smaller := [one for one in changed if (one.namespace, one.name) not in left_out]:
        notes.append(
            f"Created with smaller requests, because the rehearsed cluster's own DaemonSets ({', '.join(larger)}) "
            f"request the rest on each node: {_list(smaller)}"
        )
    if gone:
        notes.append(
            "Not created, so that a rehearsed node runs no more pods of DaemonSets than in the snapshot. Another "
            f"DaemonSet requests what these did: {_list(gone)}"
        )
    if (more := too_many - len(gone)) > 0 and of_pools:
        notes.append(
            f"Each rehearsed node runs {more} pod{'s' if more > 1 else ''} of DaemonSets more than in the snapshot, so "
            "that many pods fewer of yours fit on a node that is full of pods (kubelet.maxPods, network interfaces)"
        )
    return found


#: How the note begins on a kind whose list was refused.
UNREAD: Final = "the snapshot has no list of the kind"
LACKING: Final = "the snapshot lacks objects of the kind"
#: How the note begins on pods of Jobs that hold their nodes in the cluster, and not here.
PINNED_JOBS: Final = "Loaded without karpenter.sh/do-not-disrupt"
#: What a note says of the workloads that are loaded otherwise than they were, by why.
_NOTES: Final = {
    "static": "Not loaded, because these are static pods of a kubelet",
    "own": "Not created, because the rehearsed cluster has its own",
    "beside": "The rehearsed cluster's own pods request less, or run on its system nodes. The difference is requested "
    f"by pods of NAME{_BESIDE}, or of another DaemonSet",
    "bare": "Created as Deployments, because pods without a controller would not return after an eviction",
    "jobs": "Created as Deployments, because the pods of a Job would end at once",
    "pinned": f"{PINNED_JOBS}, because these pods of Jobs never end here and would keep "
    "their nodes forever. In the cluster, such a node waits until they have ended. The answer does not include its "
    "cost until then",
    "patient": "Loaded with karpenter.sh/do-not-disrupt, because the NodePool of their nodes has a "
    "terminationGracePeriod: a node that Karpenter removes waits for pods of Jobs until this time is over, and "
    "Karpenter then deletes those that still run. Here these pods never end",
    "others": "Created as Deployments, because their own controllers do not exist here",
}


def _loadable(snapshot: Snapshot, place: Place, existing: Existing, notes: list[str]) -> Iterator[Workload]:
    of_pools = daemon_sets.of_node_pools(snapshot)
    with_deadline = _nodes_with_deadline(snapshot)
    noted: dict[str, list[Workload]] = {why: [] for why in _NOTES}
    for workload in snapshot.workloads:
        if system_workloads.is_static_pod(workload):
            noted["static"].append(workload)
            continue
        if (requests := existing.of(workload)) is not None:
            noted["own"].append(workload)
            made = _beside(workload, requests, of_pools)
            if made is None:
                continue
            noted["beside"].append(workload)
            workload = made
        if why := placement_obstacle(workload.pod, snapshot.cluster, place):
            notes.append(
                f"{_title(workload)} is not loaded: its pods need {why}; they could never be scheduled. To load it, "
                "remove this requirement from the workload in the snapshot"
            )
        elif workload.controller.kind == "DaemonSet" or workload.replicas:
            yield _as_deployment(workload, with_deadline, noted, notes)
    notes += [f"{_NOTES[why]}: {_list(workloads)}" for why, workloads in noted.items() if workloads]


def _nodes_with_deadline(snapshot: Snapshot) -> set[str]:
    """The nodes whose NodePool has a terminationGracePeriod, so that no pod holds them for ever."""
    specs: dict[str, Any] = {pool.name: pool.spec for pool in snapshot.node_pools}
    pools = {
        name for name, spec in specs.items() if spec.get("template", {}).get("spec", {}).get("terminationGracePeriod")
    }
    return {node.name for node in snapshot.nodes if node.node_pool in pools}


def _as_deployment(
    workload: Workload, with_deadline: Collection[str], noted: Mapping[str, list[Workload]], notes: list[str]
) -> Workload:
    """A workload as it is loaded; what is different then is noted."""
    if workload.controller.kind == _BARE:
        noted["bare"].append(workload)
    elif workload.controller.api_version == manifests.OF_JOBS:
        noted["jobs"].append(workload)
        if workload.pod.do_not_disrupt == _FOR_EVER and any(node in with_deadline for node in workload.nodes):
            noted["patient"].append(workload)
        elif workload.pod.do_not_disrupt == _FOR_EVER:
            noted["pinned"].append(workload)
            pod = workload.pod.model_copy(update={"do_not_disrupt": None})
            workload = workload.model_copy(update={"pod": pod})
    elif workload.controller.api_version != _OF_OTHERS:
        noted["others"].append(workload)
    if workload.pod.scheduler_name not in _SCHEDULERS:
        notes.append(
            f"{_title(workload)}: {workload.pod.scheduler_name} schedules its pods, which is not there; "
            "Kubernetes' own scheduler does it here"
        )
    return workload


def _made(
    workload: Workload,
    names: Names,
    labels: Mapping[str, str],
    class_of: Mapping[str, str],
    volumes: dict[tuple[str, str], dict[str, Any]],
    notes: list[str],
) -> dict[str, Any]:
    """A workload; its volumes and claims are put with the others, each once."""
    shared, own = claims.shared_claim_volumes(workload), claims.own_claim_volumes(workload)
    kind = manifests.created_kind(workload, claims=bool(own))
    if own and kind != "StatefulSet":
        notes.append(f"{_title(workload)}: its pods' volumes are not made, for a {kind} has none of its pods' own")
        own = {}
    for volume in shared.values():
        for one in (
            claims.volume_of_all(volume, workload, labels),
            claims.claim(volume, workload, labels),
        ):
            volumes.setdefault((one["kind"], one["metadata"].get("namespace", "") + "/" + one["metadata"]["name"]), one)
    for name, volume in own.items():
        for one in claims.volumes_of_each(name, volume, workload, labels):
            volumes[one["kind"], one["metadata"]["name"]] = one
    return manifests.manifest(
        workload,
        kind,
        names,
        labels,
        class_of.get(workload.pod.priority_class_name or ""),
        {name: str(volume.claim) for name, volume in shared.items()},
        {name: claims.spec(volume) for name, volume in own.items()},
    )


def _without_zones(workload: Workload, notes: list[str]) -> Workload:
    if not any(map(claims.zonal, workload.volumes)):
        return workload
    notes.append(f"{_title(workload)}: its volumes are not made, for their zones are not of this region")
    return workload.model_copy(update={"volumes": [one.model_copy(update={"places": []}) for one in workload.volumes]})


def _priority_classes(
    snapshot: Snapshot, wanted: Iterable[Workload], labels: Mapping[str, str]
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The PriorityClasses to make, and for each name that workloads have, the name of the one that they get."""
    known = {one.name: one for one in snapshot.priority_classes}
    made: dict[str, dict[str, Any]] = {}
    names: dict[str, str] = {}
    for pod in (workload.pod for workload in wanted):
        name = pod.priority_class_name
        if name is None:
            continue
        names[name] = name
        if name.startswith("system-"):
            continue  # Kubernetes' own are there
        found = known.get(name)
        policy = found.preemption_policy if found else pod.preemption_policy
        made[name] = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name, "labels": dict(labels)},
            "value": found.value if found else pod.priority or 0,
            **({"preemptionPolicy": policy} if policy else {}),
        }
    return [made[name] for name in sorted(made)], names


def _namespace(name: str, snapshot: Snapshot, names: Names, labels: Mapping[str, str]) -> dict[str, Any]:
    own = next((one.labels for one in snapshot.namespaces if one.name == name), {})
    # The API server sets this one itself, and refuses no other value: it would be lost.
    kept = {key: value for key, value in own.items() if key != "kubernetes.io/metadata.name"}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {**names.labels(kept), **labels}},
    }


def _budget(budget: PodDisruptionBudget, names: Names, labels: Mapping[str, str]) -> dict[str, Any]:
    spec = as_kubernetes(budget)
    for key in ("namespace", "name"):
        spec.pop(key)
    if budget.selector is not None:
        spec["selector"] = names.selector(budget.selector)
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": budget.name, "namespace": budget.namespace, "labels": dict(labels)},
        "spec": spec,
    }


def _title(workload: Workload) -> str:
    pods = f"{workload.replicas} pod{'' if workload.replicas == 1 else 's'}"
    return f"{workload.namespace}/{workload.name} ({workload.controller.kind}, {pods})"


def _list(workloads: list[Workload]) -> str:
    more = f" and {len(workloads) - _NAMED} more" if len(workloads) > _NAMED else ""
    return ", ".join(map(_title, workloads[:_NAMED])) + more
