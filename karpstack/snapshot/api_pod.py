"""One pod of the API as a snapshot has it, without its labels: which of them matter is known when all pods are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from .api_fields import known_or_none
from .effective_requests import requests
from .manifests import DELETION_COST, DO_NOT_DISRUPT
from .pod import (
    Affinity,
    HostPort,
    LabelSelector,
    NodeSelectorTerm,
    Pod,
    PodAffinityTerm,
    Toleration,
    TopologySpreadConstraint,
)

#: Labels that the controllers of pods set by themselves, with another value for each pod or each of their versions.
OF_CONTROLLERS: Final = frozenset(
    {
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-completion-index",
        "batch.kubernetes.io/job-name",
        "controller-revision-hash",
        "controller-uid",
        "job-name",
        "pod-template-generation",
        "pod-template-hash",
        "statefulset.kubernetes.io/pod-name",
    }
)
KEPT_ANNOTATIONS: Final = (DO_NOT_DISRUPT, DELETION_COST)
_TAINT: Final = "node.kubernetes.io/"
_EVERY_PODS: Final = (f"{_TAINT}not-ready", f"{_TAINT}unreachable")
_SECONDS: Final = 300  # for which the API server lets every pod tolerate those
#: What the controller of DaemonSets lets its pods tolerate.
_DAEMONS: Final = frozenset(
    f"{_TAINT}{condition}"
    for condition in (
        "disk-pressure",
        "memory-pressure",
        "network-unavailable",
        "not-ready",
        "pid-pressure",
        "unreachable",
        "unschedulable",
    )
)
_GRACE: Final = 30  # seconds, where a pod does not say
_Part = TypeVar("_Part", bound=BaseModel)


def pod_of(metadata: Mapping[str, Any], spec: Mapping[str, Any], unknown: set[str], *, daemon: bool) -> Pod:
    """A pod, or what a template makes.

    Args:
        metadata: Its `metadata`.
        spec: Its `spec`.
        unknown: Gets the keys of its scheduling that the format does not have.
        daemon: Whether it is of a DaemonSet.

    Raises:
        ValueError: Something of it is not as the format has it.
    """

    def parts(key: str, model: type[_Part]) -> list[_Part]:
        return [known_or_none(model, one, unknown) for one in spec.get(key) or ()]

    annotations = metadata.get("annotations") or {}
    cost = annotations.get(DELETION_COST)
    affinity = known_or_none(Affinity, spec["affinity"], unknown) if spec.get("affinity") else None
    priority_class = spec.get("priorityClassName") or None
    grace = spec.get("terminationGracePeriodSeconds")
    policy = spec.get("preemptionPolicy")
    scheduler = spec.get("schedulerName")
    return Pod(
        requests=requests(spec),
        node_selector=dict(spec.get("nodeSelector") or {}),
        affinity=_affinity(affinity, daemon=daemon) if affinity else None,
        tolerations=[one for one in parts("tolerations", Toleration) if not _everyones(one, daemon=daemon)],
        topology_spread_constraints=[
            _unmerged(one) for one in parts("topologySpreadConstraints", TopologySpreadConstraint)
        ],
        priority_class_name=priority_class,
        priority=spec.get("priority") if priority_class else spec.get("priority") or None,
        preemption_policy=policy if policy != "PreemptLowerPriority" else None,
        host_ports=_host_ports(spec),
        do_not_disrupt=annotations.get(DO_NOT_DISRUPT),
        deletion_cost=int(cost) if cost is not None else None,
        termination_grace_period_seconds=grace if grace != _GRACE else None,
        scheduler_name=scheduler if scheduler != "default-scheduler" else None,
    )


def pod_keys(pod: Pod) -> Iterator[str]:
    """Keys of labels of pods by which a pod selects others."""
    for selector, keys in _selections(pod):
        yield from _keys(selector)
        yield from keys


def namespace_keys(pod: Pod) -> Iterator[str]:
    """Keys of labels of namespaces by which it does."""
    for term in _terms(pod):
        yield from _keys(term.namespace_selector)


def node_keys(pod: Pod) -> Iterator[str]:
    """Keys of labels of nodes that it asks about."""
    yield from pod.node_selector
    for term in node_terms(pod):
        yield from (one.key for one in term.match_expressions)
    yield from (one.topology_key for one in pod.topology_spread_constraints)
    yield from (one.topology_key for one in _terms(pod))


def node_terms(pod: Pod) -> list[NodeSelectorTerm]:
    """What it says of nodes, needed or preferred."""
    affinity = pod.affinity.node_affinity if pod.affinity else None
    if affinity is None:
        return []
    required = affinity.required.node_selector_terms if affinity.required else []
    return [*required, *(one.preference for one in affinity.preferred)]


def _selections(pod: Pod) -> Iterator[tuple[LabelSelector | None, list[str]]]:
    for spread in pod.topology_spread_constraints:
        yield spread.label_selector, spread.match_label_keys
    for term in _terms(pod):
        yield term.label_selector, [*term.match_label_keys, *term.mismatch_label_keys]


def _terms(pod: Pod) -> Iterator[PodAffinityTerm]:
    if pod.affinity is None:
        return
    for one in (pod.affinity.pod_affinity, pod.affinity.pod_anti_affinity):
        if one is not None:
            yield from one.required
            yield from (preferred.pod_affinity_term for preferred in one.preferred)


def selector_keys(selector: LabelSelector | None) -> Iterator[str]:
    """Keys of the labels that a selector speaks of."""
    yield from _keys(selector)


def _keys(selector: LabelSelector | None) -> Iterator[str]:
    if selector is not None:
        yield from selector.match_labels
        yield from (one.key for one in selector.match_expressions)


def _everyones(toleration: Toleration, *, daemon: bool) -> bool:
    """Whether the API server, or the controller of DaemonSets, adds it again."""
    if toleration.operator != "Exists":
        return False
    if daemon and toleration.key in _DAEMONS:
        return True
    return toleration.key in _EVERY_PODS and toleration.toleration_seconds == _SECONDS


def _affinity(affinity: Affinity, *, daemon: bool) -> Affinity | None:
    """An affinity without what was added to it when the pod was made."""
    changed: dict[str, Any] = {}
    node = affinity.node_affinity
    if daemon and node is not None and node.required is not None:
        # Its controller binds each pod of a DaemonSet to its node by that node's name.
        terms = [one.model_copy(update={"match_fields": []}) for one in node.required.node_selector_terms]
        terms = [one for one in terms if one.match_expressions]
        required = node.required.model_copy(update={"node_selector_terms": terms}) if terms else None
        kept = node.model_copy(update={"required": required}) if required or node.preferred else None
        changed["node_affinity"] = kept
    for key, pods in (("pod_affinity", affinity.pod_affinity), ("pod_anti_affinity", affinity.pod_anti_affinity)):
        if pods is not None:
            changed[key] = pods.model_copy(
                update={
                    "required": [_unmerged(one) for one in pods.required],
                    "preferred": [
                        one.model_copy(update={"pod_affinity_term": _unmerged(one.pod_affinity_term)})
                        for one in pods.preferred
                    ],
                }
            )
    affinity = affinity.model_copy(update=changed)
    return affinity if affinity != Affinity() else None


_Selecting = TypeVar("_Selecting", PodAffinityTerm, TopologySpreadConstraint)


def _unmerged(selecting: _Selecting) -> _Selecting:
    """Without the values that the API server puts beside `matchLabelKeys` when a pod is made: they are that pod's."""
    selector = selecting.label_selector
    mismatched: list[str] = selecting.mismatch_label_keys if isinstance(selecting, PodAffinityTerm) else []
    if selector is None or not (selecting.match_label_keys or mismatched):
        return selecting
    merged = {("In", key) for key in selecting.match_label_keys} | {("NotIn", key) for key in mismatched}
    kept = [one for one in selector.match_expressions if (one.operator, one.key) not in merged]
    return selecting.model_copy(update={"label_selector": selector.model_copy(update={"match_expressions": kept})})


def _host_ports(spec: Mapping[str, Any]) -> list[HostPort]:
    """The ports of its node that it takes, each once."""
    sidecars = [one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"]
    found = {
        (one["hostPort"], one.get("protocol") or "TCP", one.get("hostIP") or None)
        for container in [*sidecars, *(spec.get("containers") or ())]
        for one in container.get("ports") or ()
        if one.get("hostPort")
    }
    ordered = sorted(found, key=lambda one: (one[0], one[1], one[2] or ""))
    ports = [{"port": port, "protocol": protocol, "hostIP": address} for port, protocol, address in ordered]
    return [HostPort.model_validate(one, by_alias=True, by_name=False) for one in ports]
