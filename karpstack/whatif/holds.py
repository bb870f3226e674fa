"""What keeps pods on their nodes, by the recorded objects: do-not-disrupt and PodDisruptionBudgets, and until when.

As sigs.k8s.io/karpenter 1.15 does it. Consolidation leaves a node alone as long as one of its pods is held. Drift does
so only where the NodeClaim has no terminationGracePeriod (`NewCandidate` in pkg/controllers/disruption/types.go). A
node that is being deleted waits for its pods. With a terminationGracePeriod, Karpenter deletes each pod in spite of
what holds it: its own grace period before the NodeClaim's deletion plus that time (`needsForceDelete` in
pkg/controllers/node/termination/terminator/eviction.go). Pods that tolerate the taint of disruption are left where they
are (pkg/utils/pod/scheduling.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from karpstack.karpenter.quantities import go_duration
from karpstack.karpenter.selectors import selects
from karpstack.scale_test.judging.replay import NodeClaim, Pod, Replay
from karpstack.snapshot.manifests import JOB_LABEL

from .answer import Why

_TAINT: Final = "karpenter.sh/disrupted"
_FOR_EVER: Final = "true"
_ALL_OR_NONE: Final = ((("maxUnavailable", 0), ("maxUnavailable", "0%")), (("minAvailable", "100%"),))


class Hold(NamedTuple):
    """What keeps a pod on its node.

    Attributes:
        why: The kind of cause.
        details: What it is.
        until: When it ends by itself; None where it does not, or that is not known.
        never: Whether it ends only when somebody changes something.
        job: Whether it ends with a Job. When that is, a snapshot does not say.
    """

    why: Why
    details: str
    until: datetime | None = None
    never: bool = False
    job: bool = False


def hold(replay: Replay, pod: Pod, time: datetime) -> Hold | None:
    """Return what keeps a pod that is there from being evicted; None where nothing does."""
    if _tolerates_disruption(pod):
        return None
    annotation, budget = _do_not_disrupt(pod, time), _by_budgets(replay, pod, time)
    if annotation and annotation.until and budget and budget.never:  # when the annotation is over, the budget holds
        return budget
    return annotation or budget


def pods_with_holds(replay: Replay, pods: Iterable[Pod], time: datetime) -> list[tuple[Pod, Hold]]:
    """Return the pods that something keeps on their nodes, each with what does."""
    return [(pod, found) for pod in pods if pod.present_at(time) and (found := hold(replay, pod, time))]


def forbids(replay: Replay, pod: Pod, time: datetime) -> str | None:
    """Return what speaks against the deletion of a pod, whether it would let the pod go by itself or not."""
    names = [f"PodDisruptionBudget {pod.namespace}/{name}" for name, _ in selecting(replay, pod)]
    annotation = _do_not_disrupt(pod, time)
    return ", ".join([*([annotation.details] if annotation else []), *names]) or None


def lasting(replay: Replay, pod: Pod, time: datetime) -> Hold | None:
    """Return what keeps a pod that may have gone, whatever other pods do; None where nothing does."""
    if annotation := _do_not_disrupt(pod, time):
        return annotation
    for name, budget in selecting(replay, pod):
        if _never_allows(budget):
            return Hold("pod disruption budget", f"PodDisruptionBudget {pod.namespace}/{name}", never=True)
    return None


def is_held(replay: Replay, claim: NodeClaim, pods: Sequence[Pod], time: datetime) -> bool:
    """Return whether a node that is being drained waits for nothing but pods that something keeps there."""
    if claim.deleting is None:
        return False
    return bool(pods_with_holds(replay, pods, time)) and not any(pod.leaving for pod in pods)


def has_no_planned_room(replay: Replay, pod: Pod, time: datetime) -> bool:
    """Return whether Karpenter plans no room elsewhere for a held pod, because it does not know when the pod goes.

    These are the pods of `IsCurrentlyReschedulable` in pkg/utils/pdb/pdb.go: do-not-disrupt, and budgets that allow
    nothing by their numbers. Karpenter plans room for pods of other budgets.
    """
    if _tolerates_disruption(pod):
        return False
    if _do_not_disrupt(pod, time):
        return True
    about = [budget for _, budget in selecting(replay, pod)]
    if not pod.ready:
        about = [budget for budget in about if budget.get("unhealthyPodEvictionPolicy") != "AlwaysAllow"]
    return len(about) > 1 or any(_is_all_or_none(budget) for budget in about)


def known_budgets(replay: Replay, names: Iterable[str]) -> bool:
    """Return whether the timeline has all PodDisruptionBudgets of these names, `namespace/name` each."""
    return all((one.partition("/")[0], one.partition("/")[2]) in replay.pod_budgets for one in names)


def _tolerates_disruption(pod: Pod) -> bool:
    return any(
        one.get("key", "") in ("", _TAINT)
        and one.get("effect", "") in ("", "NoSchedule")
        and (one.get("operator") == "Exists" or (one.get("key") == _TAINT and not one.get("value")))
        for one in pod.tolerations or ()
    )


def _do_not_disrupt(pod: Pod, time: datetime) -> Hold | None:
    if not pod.do_not_disrupt:
        return None
    named = f"karpenter.sh/do-not-disrupt on pod {pod.namespace}/{pod.name}"
    if pod.do_not_disrupt == _FOR_EVER:
        job = JOB_LABEL in pod.labels
        return Hold("do-not-disrupt", f"{named} of a Job" if job else named, never=not job, job=job)
    try:
        lasting = go_duration(pod.do_not_disrupt)
    except ValueError:  # Karpenter takes no notice of it
        return None
    until = (pod.scheduled or pod.seen) + lasting
    return Hold("do-not-disrupt", f"{named} ({pod.do_not_disrupt})", until) if time < until else None


def selecting(replay: Replay, pod: Pod) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the PodDisruptionBudgets that select a pod, each with its name."""
    return [
        (name, budget)
        for (namespace, name), budget in sorted(replay.pod_budgets.items())
        if namespace == pod.namespace and selects(budget.get("selector"), pod.labels)
    ]


def _by_budgets(replay: Replay, pod: Pod, time: datetime) -> Hold | None:
    about = selecting(replay, pod)
    if len(about) > 1:
        names = ", ".join(f"{pod.namespace}/{name}" for name, _ in about)
        words = f"more than one PodDisruptionBudget ({names}), which no API server takes"
        return Hold("pod disruption budget", words, never=True)
    for name, budget in about:
        unhealthy = not pod.ready and budget.get("unhealthyPodEvictionPolicy") == "AlwaysAllow"
        if not unhealthy and not budget.get("disruptionsAllowed", 0):
            words = f"PodDisruptionBudget {pod.namespace}/{name}"
            if _never_allows(budget):
                return Hold("pod disruption budget", words, never=True)
            # Karpenter has no node for these pods, so the budget waits for them as long as nobody changes something.
            if homeless := sum(_has_no_node(one, time) for one in _selected(replay, pod.namespace, budget)):
                pods = "1 of its pods has" if homeless == 1 else f"{homeless} of its pods have"
                return Hold("pod disruption budget", f"{words} ({pods} no node)", never=True)
            return Hold("pod disruption budget", words)
    return None


def _selected(replay: Replay, namespace: str, budget: Mapping[str, Any]) -> Iterator[Pod]:
    """The pods that a PodDisruptionBudget selects."""
    for pod in replay.pods.values():
        if pod.namespace == namespace and selects(budget.get("selector"), pod.labels):
            yield pod


def _has_no_node(pod: Pod, time: datetime) -> bool:
    return bool(pod.unschedulable) and pod.node is None and pod.present_at(time)


def _never_allows(budget: Mapping[str, Any]) -> bool:
    """Whether a budget allows nothing even when all of its pods are healthy."""
    if _is_all_or_none(budget):
        return True
    return bool(budget.get("expectedPods")) and budget.get("desiredHealthy", 0) >= budget["expectedPods"]


def _is_all_or_none(budget: Mapping[str, Any]) -> bool:
    return any(budget.get(key) == value for pairs in _ALL_OR_NONE for key, value in pairs)


def unique_holds(found: Iterable[tuple[Pod, Hold]]) -> Iterator[Hold]:
    """Return each kind of hold once, the first of those that are alike in all but the pod."""
    seen: set[tuple[str, str]] = set()
    for pod, one in found:
        key = one.why, one.details.replace(f"{pod.namespace}/{pod.name}", "")
        if key not in seen:
            seen.add(key)
            yield one
