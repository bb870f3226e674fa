"""A snapshot as objects to make in a rehearsed cluster, in the order of making."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from . import claims, manifests, stack_own
from .elsewhere import Place, why_never
from .manifests import Names, as_kubernetes
from .model import PodDisruptionBudget, Snapshot, Workload

_NOWHERE: Final = Place()
#: Where a workload is made as a Deployment although it was none, and what that changes.
_BARE: Final = "Pod"
_OF_JOBS: Final = "batch/v1"
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


def objects(snapshot: Snapshot, labels: Mapping[str, str], place: Place = _NOWHERE) -> Loaded:
    """The objects of a snapshot.

    Namespaces, PriorityClasses, volumes and their claims, workloads, PodDisruptionBudgets. Every pod waits and does
    nothing, and asks for what the pod of the snapshot asks for. A workload's own labels that are among `labels` move
    under `snapshot.karpstack.io/`, on pods and in selectors alike.

    Args:
        snapshot: The snapshot.
        labels: Labels of every object and of every pod.
        place: The cloud and the region of the cluster; what is not known is taken to be the snapshot's.
    """
    names = Names(labels)
    notes: list[str] = []
    wanted = list(_loadable(snapshot, place, notes))
    if not place.same_region(snapshot.cluster):
        wanted = [_without_zones(workload, notes) for workload in wanted]
    classes, class_of = _priority_classes(snapshot, wanted, labels)
    volumes: dict[tuple[str, str], dict[str, Any]] = {}
    made: list[dict[str, Any]] = []
    for workload in wanted:
        made.append(_made(workload, names, labels, class_of, volumes, notes))
    used = {workload.namespace for workload in wanted}
    budgets = [one for one in snapshot.pod_disruption_budgets if not stack_own.named(one.namespace, one.name)]
    of_namespaces = [_namespace(name, snapshot, names, labels) for name in sorted(used - stack_own.NAMESPACES)]
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


def _loadable(snapshot: Snapshot, place: Place, notes: list[str]) -> Iterator[Workload]:
    own: list[Workload] = []
    bare: list[Workload] = []
    jobs: list[Workload] = []
    pinned: list[Workload] = []
    others: list[Workload] = []
    for workload in snapshot.workloads:
        if stack_own.brought(workload):
            own.append(workload)
            continue
        if why := why_never(workload.pod, snapshot.cluster, place):
            notes.append(
                f"{_title(workload)} is not loaded: its pods need {why}; they could never be scheduled. Take that out "
                "of the workload in the snapshot to have it loaded"
            )
            continue
        if workload.controller.kind != "DaemonSet" and not workload.replicas:
            continue  # nothing to schedule
        if workload.controller.kind == _BARE:
            bare.append(workload)
        elif workload.controller.api_version == _OF_JOBS:
            jobs.append(workload)
            if workload.pod.do_not_disrupt == _FOR_EVER:
                pinned.append(workload)
                pod = workload.pod.model_copy(update={"do_not_disrupt": None})
                workload = workload.model_copy(update={"pod": pod})
        elif workload.controller.api_version != _OF_OTHERS:
            others.append(workload)
        if workload.pod.scheduler_name not in _SCHEDULERS:
            notes.append(
                f"{_title(workload)}: {workload.pod.scheduler_name} schedules its pods, which is not there; "
                "Kubernetes' own scheduler does it here"
            )
        yield workload
    if own:
        notes.append(f"Not loaded, for the stack or its cloud brings them by itself: {_list(own)}")
    if bare:
        notes.append(f"Made as Deployments, so that pods which are evicted come again, as they did not: {_list(bare)}")
    if jobs:
        notes.append(f"Made as Deployments, for Jobs that have nothing to do would end at once: {_list(jobs)}")
    if pinned:
        notes.append(
            "Loaded without karpenter.sh/do-not-disrupt, for pods of Jobs end, and these would hold their nodes for "
            "ever; in the cluster a node that is to go waits until they have ended, and they do not move: "
            f"{_list(pinned)}"
        )
    if others:
        notes.append(f"Made as Deployments, for their own controllers are not there: {_list(others)}")


def _made(
    workload: Workload,
    names: Names,
    labels: Mapping[str, str],
    class_of: Mapping[str, str],
    volumes: dict[tuple[str, str], dict[str, Any]],
    notes: list[str],
) -> dict[str, Any]:
    """A workload; its volumes and claims are put with the others, each once."""
    shared, own = claims.of_all_pods(workload), claims.of_each_pod(workload)
    kind = manifests.made_as(workload, claims=bool(own))
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
