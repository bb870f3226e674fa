"""Empties one node, as `kubectl drain` does it, and looks meanwhile at what becomes of its pods."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from karpstack.karpenter import clock

from ..processes import is_gone
from .cluster import Cluster
from .successors import Successors, controller

BUDGETS: Final = ("policy/v1", "PodDisruptionBudget")
#: The taint of a node that is cordoned.
_CORDONED: Final = "node.kubernetes.io/unschedulable"
#: Seconds in which a pod may come that had its node before this was cordoned.
_LATE: Final = 30.0
#: Who Karpenter's events are of, and the reason of one that says which node a pod gets.
_KARPENTERS: Final = "karpenter"
_NOMINATED: Final = "Nominated"
_PAUSE: Final = 1.0

Object = Mapping[str, Any]


class MoveError(Exception):
    """The move stops here, or does not begin; the text says why, and what to do. Nothing is lost: run it again."""


@dataclass
class Drained:
    """What became of one node.

    Attributes:
        pods: How many pods were evicted.
        seconds: How long it took until it was empty and all pods had a node.
        waited: Seconds that a pod was without a node, at most.
        broken: Names of the PodDisruptionBudgets that had fewer healthy pods meanwhile than they want, and had not
            before.
        fewer: Owners with fewer pods than before, and why they are not waited for.
    """

    pods: int = 0
    seconds: float = 0
    waited: float = 0
    broken: set[str] = field(default_factory=set)
    fewer: list[str] = field(default_factory=list)


@clock.waiting()
def drain(
    cluster: Cluster,
    node: str,
    patience: float,
    accepted: Collection[str] = (),
    owner: int | None = None,
    clock: Callable[[], float] = clock.monotonic,
    sleep: Callable[[float], object] = clock.sleep,
) -> Drained:
    """Evict the pods of a node, as budgets let them go, and wait until there is a node for each pod.

    Args:
        cluster: The cluster.
        node: Its name.
        patience: Seconds for which no pod goes, one does not end, or one is without a node, until the move stops.
        accepted: Pods that were without a node before, with their namespaces.
        owner: The process that the move ends with.
        clock: Tells seconds.
        sleep: Waits.

    Raises:
        MoveError: The owner is gone, the node takes new pods, no budget lets a pod go, one does not end, or one gets
            no node.
        ClusterError: The API server does not answer, or refuses.
    """
    done, begun = Drained(), clock()
    watch = _Watch(cluster, patience, accepted, done, clock)
    successors = Successors(cluster, patience)
    evictions = _Evictions(cluster, node, patience, done, successors, clock)
    while _goes_on(cluster, node, owner) and evictions.go_on():
        watch.waiting()
        evictions.see_progress()
        sleep(_PAUSE)
    while missing := successors.missing(clock()):
        watch.waiting()
        if clock() - missing.since > patience:
            raise MoveError(
                f"{node} is empty, and for {patience:g} s the {missing.owner} has fewer pods than before: it makes no "
                "other one. See why (kubectl describe), and run the move again"
            )
        sleep(_PAUSE)
    # Those that are without one by now: in a cluster with many jobs, others come all the time.
    waiting = watch.waiting()
    while waiting := waiting & watch.waiting():
        sleep(_PAUSE)
    done.fewer = successors.fewer
    done.seconds = clock() - begun
    return done


def leaving(cluster: Cluster, node: str) -> Iterator[Object]:
    """Pods of a node that a drain has to move: not those of DaemonSets, of the node itself, nor those that are done.

    Raises:
        ClusterError: The API server does not answer, or refuses.
    """
    for pod in cluster.labelled("v1", "Pod", "", f"spec.nodeName={node}"):
        if pod["spec"].get("nodeName") != node:
            continue  # what answers has ignored the field
        owners = {owner["kind"] for owner in pod["metadata"].get("ownerReferences") or ()}
        if not owners & {"DaemonSet", "Node"} and pod["status"].get("phase") not in ("Succeeded", "Failed"):
            yield pod


def without_node(cluster: Cluster) -> list[Object]:
    """Pods for which there is no node yet.

    Raises:
        ClusterError: The API server does not answer, or refuses.
    """
    pods = cluster.labelled("v1", "Pod", "", "spec.nodeName=,status.phase=Pending")
    return [pod for pod in pods if not pod["spec"].get("schedulingGates")]


def is_cordoned(node: Object) -> bool:
    """Whether a node takes no new pods."""
    return bool(node["spec"].get("unschedulable"))


def name_of(item: Object) -> str:
    """Namespace and name."""
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"


def number(budget: Object, key: str) -> int:
    """A number of a budget's status."""
    return int((budget.get("status") or {}).get(key) or 0)


def _goes_on(cluster: Cluster, node: str, owner: int | None) -> bool:
    """See that somebody waits for the move, and that its node takes no new pods; always true.

    Raises:
        MoveError: The playbook was killed, or the node takes pods: evictions would have no end.
    """
    if owner and is_gone(owner):
        raise MoveError(f"{node}: the playbook's process {owner} is gone, so no more pods are evicted")
    if not all(is_cordoned(one) for one in cluster.labelled("v1", "Node", "", f"metadata.name={node}")):
        raise MoveError(
            f"{node} takes new pods again, since somebody has uncordoned it, so it would not stay empty; run the move "
            "again"
        )
    return True


class _Evictions:
    """Evicts the pods of a node, each as soon as its budget lets it go."""

    def __init__(
        self,
        cluster: Cluster,
        node: str,
        patience: float,
        done: Drained,
        successors: Successors,
        clock: Callable[[], float],
    ) -> None:
        self._cluster, self._node, self._patience, self._done = cluster, node, patience, done
        self._successors, self._clock = successors, clock
        self._begun = self._moved = clock()
        self._known: set[str] = set()
        self._evicted: dict[str, float] = {}
        self._ending: dict[str, float] = {}
        self._held: dict[str, str] = {}

    def go_on(self) -> bool:
        """Evict what may go now; whether there was something.

        Raises:
            MoveError: A pod does not end.
            ClusterError: The API server does not answer, or refuses.
        """
        is_first = not self._known
        pods = [pod for pod in leaving(self._cluster, self._node) if is_first or not self._has_come_back(pod)]
        self._known |= {pod["metadata"]["uid"] for pod in pods}
        self._held = {}
        for pod in pods:
            self._successors.note(pod)
            if pod["metadata"].get("deletionTimestamp"):
                self._see_it_end(pod)
            elif reason := self._evict(pod):
                self._held[name_of(pod)] = reason
        return bool(pods)

    def see_progress(self) -> None:
        """Stop if pods are held for too long.

        Raises:
            MoveError: No budget lets one go.
        """
        if self._held and self._clock() - self._moved > self._patience:
            name, reason = next(iter(self._held.items()))
            raise MoveError(
                f"{self._node}: the pod {name} was not let go for {self._patience:g} s: {reason}. Its disruption "
                "budget wants more healthy pods than there are, or lets none go at all, or there are two: see to it, "
                "and run the move again"
            )

    def _has_come_back(self, pod: Object) -> bool:
        """Whether a pod came although the node is cordoned: evicted, it would come again and again, or never."""
        is_new = pod["metadata"]["uid"] not in self._known
        is_late = self._clock() - self._begun >= _LATE
        return is_new and (is_late or _tolerates(pod) or not controller(pod))

    def _evict(self, pod: Object) -> str:
        """Why a pod must stay for now."""
        uid, moment = pod["metadata"]["uid"], self._clock()
        if not controller(pod):
            raise MoveError(
                f"{self._node}: the pod {name_of(pod)} came since the move began and would not come again, for no "
                "controller has made it: move or delete it yourself, and run the move again"
            )
        if moment - self._evicted.get(uid, moment) > self._patience:
            raise MoveError(
                f"{self._node}: the pod {name_of(pod)} is there {self._patience:g} s after the API server has evicted "
                "it, and is not even ending: see what answers for the API server (an admission webhook, a gateway), "
                "and run the move again"
            )
        reason = self._cluster.evict(pod)
        if not reason and uid not in self._evicted:
            self._evicted[uid] = self._moved = self._clock()
            self._done.pods += 1
        return reason

    def _see_it_end(self, pod: Object) -> None:
        """Stop if a pod does not end after its grace period: its node does not answer, or a finalizer keeps it."""
        grace, moment = int(pod["metadata"].get("deletionGracePeriodSeconds") or 0), self._clock()
        if moment - self._ending.setdefault(pod["metadata"]["uid"], moment) > grace + self._patience:
            raise MoveError(
                f"{self._node}: the pod {name_of(pod)} does not end, {self._patience:g} s after the {grace} s that it "
                "has for it: its node does not answer (`kubectl get node`), or something holds it back "
                "(metadata.finalizers). See to it, and run the move again"
            )


class _Watch:
    """Looks at pods without a node, and at budgets, while a node is drained."""

    def __init__(
        self,
        cluster: Cluster,
        patience: float,
        accepted: Collection[str],
        done: Drained,
        clock: Callable[[], float],
    ) -> None:
        self._clock = clock
        self._cluster, self._patience, self._accepted, self._done = cluster, patience, accepted, done
        self._since: dict[str, float] = {}
        self._broken_before = set(self._broken())

    def waiting(self) -> set[str]:
        """The uids of pods that are without a node.

        Raises:
            MoveError: One is for too long.
        """
        self._done.broken |= set(self._broken()) - self._broken_before
        moment = self._clock()
        pods = {
            pod["metadata"]["uid"]: pod for pod in without_node(self._cluster) if name_of(pod) not in self._accepted
        }
        self._since = {uid: self._since.get(uid, moment) for uid in pods}
        for uid, since in self._since.items():
            self._done.waited = max(self._done.waited, moment - since)
            if moment - since > self._patience:
                raise MoveError(
                    f"the pod {name_of(pods[uid])} is without a node for {self._patience:g} s: {_said(pods[uid])}. "
                    f"{_decided(self._cluster, pods[uid])}; then run the move again, or take it back, with -e undo=true"
                )
        return set(pods)

    def _broken(self) -> Iterator[str]:
        for budget in self._cluster.labelled(*BUDGETS, ""):
            if number(budget, "currentHealthy") < number(budget, "desiredHealthy"):
                yield name_of(budget)


def _tolerates(pod: Object) -> bool:
    """Whether the scheduler gives a pod a node that is cordoned."""
    return any(
        one.get("key") in (None, "", _CORDONED)
        and one.get("effect") in (None, "", "NoSchedule")
        and (one.get("operator") == "Exists" or (one.get("key") == _CORDONED and not one.get("value")))
        for one in pod["spec"].get("tolerations") or ()
    )


def _said(pod: Object) -> str:
    conditions = (one for one in pod["status"].get("conditions") or () if one["type"] == "PodScheduled")
    return next(
        (str(one.get("message") or one.get("reason") or "") for one in conditions),
        "the scheduler has not looked at it yet",
    )


def _decided(cluster: Cluster, pod: Object) -> str:
    """What Karpenter makes of a pod without a node, by its last event of it, and what to do.

    It tells of each pod for which it makes none (FailedScheduling, again after five minutes), and of some of those for
    which it makes one (Nominated, five a second): karpenter, pkg/controllers/provisioning/scheduling/events.go.
    """
    events = cluster.labelled("v1", "Event", "", f"involvedObject.uid={pod['metadata']['uid']}")
    said = [
        one
        for one in events
        if _KARPENTERS in (one.get("reportingComponent"), (one.get("source") or {}).get("component"))
    ]
    if not said:
        return "Karpenter has said nothing of it yet: see that its controller runs, and what it logs"
    last = max(said, key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""))
    if last.get("reason") == _NOMINATED:
        return (
            f"Karpenter has decided, and its node is not there yet: {last.get('message')}: see `kubectl describe` of "
            "that NodeClaim"
        )
    return (
        f"No NodePool makes one for it, says Karpenter: {last.get('message')}: mend the NodePool, or what the pod asks "
        "for"
    )
