"""Moves pods from nodes to others, node after node, as `kubectl cordon` and `kubectl drain` do it, and looks meanwhile.

The state of a move is the cluster's own: nodes that it has cordoned are marked, so it can be broken off, gone on with
and taken back. Whoever makes new nodes, Karpenter or a node group, is of no matter here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from karpstack.karpenter import clock
from karpstack.karpenter.selectors import is_about
from karpstack.text.shown import listed

from ..processes import is_gone
from ..recording.timeline import now
from .cluster import Cluster
from .successors import Successors

#: Label that says of which group of the cloud's a node is -> the command that scales a group to nothing. What nodes do
#: not tell is in capitals.
_TO_NOTHING: Final = {
    "eks.amazonaws.com/nodegroup": "aws eks update-nodegroup-config --cluster-name CLUSTER --nodegroup-name {name} "
    "--scaling-config minSize=0,maxSize=MAXIMUM,desiredSize=0",
    "kubernetes.azure.com/agentpool": "az aks nodepool scale --resource-group GROUP --cluster-name CLUSTER --name "
    "{name} --node-count 0",
}
GROUPS: Final = tuple(_TO_NOTHING)
#: And of which NodePool.
NODE_POOL: Final = "karpenter.sh/nodepool"
#: On nodes that a move has cordoned, with the time.
MARK: Final = "karpstack.io/cordoned-by-move"
_KARPENTER: Final = "karpenter.sh/v1"
#: Who Karpenter's events are of, and the reason of one that says which node a pod gets.
_KARPENTERS: Final = "karpenter"
_NOMINATED: Final = "Nominated"
#: Seconds in which it judges a NodePool that is new or was changed.
_JUDGED_WITHIN: Final = 60.0
_BUDGETS: Final = ("policy/v1", "PodDisruptionBudget")
_PAUSE: Final = 1.0
_NAMED: Final = 5

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
        fewer: Owners with fewer pods than before that do not say how many they want.
    """

    pods: int = 0
    seconds: float = 0
    waited: float = 0
    broken: set[str] = field(default_factory=set)
    fewer: list[str] = field(default_factory=list)


def chosen(cluster: Cluster, groups: Collection[str], node_pools: Collection[str]) -> list[Object]:
    """The nodes of some groups, or of some NodePools, in the order in which these are named.

    Raises:
        ClusterError: The API server does not answer, or refuses.
    """
    labels = [(label, name) for name in groups for label in GROUPS] + [(NODE_POOL, name) for name in node_pools]
    return [node for label, name in labels for node in _sorted(cluster.labelled("v1", "Node", f"{label}={name}"))]


def scale_down_commands(nodes: Iterable[Object]) -> list[str]:
    """The commands that scale the groups of nodes to nothing."""
    groups = dict.fromkeys((label, name) for node in nodes for label in GROUPS if (name := _labels(node).get(label)))
    return [_TO_NOTHING[label].format(name=name) for label, name in groups]


def group_names(cluster: Cluster) -> list[str]:
    """Names of all groups that have nodes.

    Raises:
        ClusterError: The API server does not answer, or refuses.
    """
    nodes = cluster.labelled("v1", "Node", "")
    return sorted({value for node in nodes for label in GROUPS if (value := _labels(node).get(label))})


def refuse(
    cluster: Cluster,
    nodes: Collection[Object],
    node_pools: Collection[str],
    *,
    accept_waiting: bool,
    groups: Collection[str] = (),
    autoscalers: Collection[str] = (),
    clock: Callable[[], float] = clock.monotonic,
    sleep: Callable[[float], object] = clock.sleep,
) -> None:
    """Refuse what would go wrong, before anything is changed: all of it at once.

    Args:
        cluster: The cluster.
        nodes: Those that are to be empty.
        node_pools: The NodePools that they are of; empty where they are of groups.
        accept_waiting: Whether pods may be without a node already.
        groups: The groups that were named. One without nodes beside others that have some is refused, for it may be a
            slip of the pen; where none has any, there is nothing to do.
        autoscalers: Deployments of Cluster Autoscaler that run, with their namespaces.
        clock: Tells seconds.
        sleep: Waits; a minute at most, until Karpenter has judged its NodePools.

    Raises:
        MoveError: With all that is wrong.
        ClusterError: The API server does not answer, or refuses.
    """
    found = [
        *(_without_nodes(cluster, nodes, groups) if nodes else ()),
        *(() if node_pools else _scaled_by_another(autoscalers)),
        *(_makes_more(cluster, node_pools) if node_pools else _makes_none(cluster, clock, sleep)),
        *_would_be_lost(cluster, nodes),
        *_would_stay(cluster, nodes),
        # Of a move that was broken off they are its own: the next drain waits for them.
        *(() if accept_waiting or marked(nodes) else _waits_already(cluster)),
    ]
    if found:
        raise MoveError("nothing was changed: " + "; ".join(found))


def _scaled_by_another(autoscalers: Collection[str]) -> Iterator[str]:
    """That somebody else makes nodes in the groups."""
    for autoscaler in autoscalers:
        namespace, name = autoscaler.split("/")
        yield (
            f"the Deployment {autoscaler} is Cluster Autoscaler, which makes nodes in the groups for pods that leave "
            f"them, where Karpenter is to make them: kubectl scale deployment {name} --namespace {namespace} "
            "--replicas 0"
        )


def _without_nodes(cluster: Cluster, nodes: Iterable[Object], groups: Collection[str]) -> Iterator[str]:
    """That groups have no nodes, which others beside them have."""
    there = {_labels(node).get(label) for node in nodes for label in GROUPS}
    if none := [name for name in groups if name not in there]:
        yield (
            f"no node is of {', '.join(none)}, which is misspelt, or empty already: leave it out; groups with nodes "
            f"are {', '.join(group_names(cluster))}"
        )


def blocking_budgets(cluster: Cluster) -> list[str]:
    """PodDisruptionBudgets that let no pod go now, with their namespaces: a move stops at their pods' nodes.

    Raises:
        ClusterError: The API server does not answer, or refuses.
    """
    budgets = cluster.labelled(*_BUDGETS, "")
    return sorted(
        _name(one) for one in budgets if _status(one, "expectedPods") and not _status(one, "disruptionsAllowed")
    )


def waiting(cluster: Cluster) -> list[str]:
    """Pods for which there is no node, with their namespaces.

    Raises:
        ClusterError: The API server does not answer, or refuses.
    """
    return [_name(pod) for pod in _waiting(cluster)]


def taking(nodes: Iterable[Object]) -> list[Object]:
    """Those of the nodes that take new pods."""
    return [node for node in nodes if not node["spec"].get("unschedulable")]


def marked(nodes: Iterable[Object]) -> list[Object]:
    """Those of the nodes that a move has cordoned."""
    return [node for node in nodes if MARK in (node["metadata"].get("annotations") or {})]


def cordon(cluster: Cluster, nodes: Iterable[Object]) -> list[str]:
    """Let nodes take no new pods; names of those that did until now.

    Raises:
        ClusterError: The API server does not answer, or refuses.
    """
    mine = taking(nodes)
    for node in mine:
        change = {"metadata": {"annotations": {MARK: now()}}, "spec": {"unschedulable": True}}
        cluster.change(_reference(node), change)
    return [node["metadata"]["name"] for node in mine]


def uncordon(cluster: Cluster, nodes: Iterable[Object]) -> list[str]:
    """Let nodes that a move has cordoned take pods again; their names.

    Raises:
        ClusterError: The API server does not answer, or refuses.
    """
    mine = marked(nodes)
    for node in mine:
        change = {"metadata": {"annotations": {MARK: None}}, "spec": {"unschedulable": None}}
        cluster.change(_reference(node), change)
    return [node["metadata"]["name"] for node in mine]


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
    evicted: dict[str, float] = {}
    ending: dict[str, float] = {}
    moved = begun
    while _goes_on(cluster, node, owner) and (pods := list(_leaving(cluster, node))):
        held: dict[str, str] = {}
        for pod in pods:
            uid = pod["metadata"]["uid"]
            if pod["metadata"].get("deletionTimestamp"):
                # It has its own time to end, after that nobody ends it: its node is silent, or a finalizer keeps it.
                grace = int(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
                if clock() - ending.setdefault(uid, clock()) > grace + patience:
                    raise MoveError(
                        f"{node}: the pod {_name(pod)} does not end, {patience:g} s after the {grace} s that it has "
                        "for it: its node does not answer (`kubectl get node`), or something holds it back "
                        "(metadata.finalizers). See to it, and run the move again"
                    )
                continue
            if clock() - evicted.get(uid, clock()) > patience:
                raise MoveError(
                    f"{node}: the pod {_name(pod)} is there {patience:g} s after the API server has evicted it, and "
                    "is not even ending: see what answers for the API server (an admission webhook, a gateway), and "
                    "run the move again"
                )
            successors.note(pod)
            if reason := cluster.evict(pod):
                held[_name(pod)] = reason
            elif uid not in evicted:
                evicted[uid] = moved = clock()
        watch.has_waiting_pod()
        if held and clock() - moved > patience:
            name, reason = next(iter(held.items()))
            raise MoveError(
                f"{node}: the pod {name} was not let go for {patience:g} s: {reason}. Its disruption budget wants more "
                "healthy pods than there are, or lets none go at all, or there are two: see to it, and run the move "
                "again"
            )
        sleep(_PAUSE)
    empty = clock()
    # In this order: a pod that was made in between is waited for.
    while (missing := successors.missing(clock() - empty)) or watch.has_waiting_pod():
        if missing and clock() - empty > patience:
            raise MoveError(
                f"{node} is empty, and for {patience:g} s the {missing} has fewer pods than before: it makes no other "
                "one. See why (kubectl describe), and run the move again"
            )
        sleep(_PAUSE)
    done.fewer = successors.fewer
    done.pods, done.seconds = len(evicted), clock() - begun
    return done


def _goes_on(cluster: Cluster, node: str, owner: int | None) -> bool:
    """See that somebody waits for the move, and that its node takes no new pods; always true.

    Raises:
        MoveError: The playbook was killed, or the node takes pods: evictions would have no end.
    """
    if owner and is_gone(owner):
        raise MoveError(f"{node}: the playbook's process {owner} is gone, so no more pods are evicted")
    if taking(cluster.labelled("v1", "Node", "", f"metadata.name={node}")):
        raise MoveError(
            f"{node} takes new pods again, since somebody has uncordoned it, so it would not stay empty; run the move "
            "again"
        )
    return True


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

    def has_waiting_pod(self) -> bool:
        """Whether a pod is without a node.

        Raises:
            MoveError: One is for too long.
        """
        self._done.broken |= set(self._broken()) - self._broken_before
        moment = self._clock()
        pods = {pod["metadata"]["uid"]: pod for pod in _waiting(self._cluster) if _name(pod) not in self._accepted}
        self._since = {uid: self._since.get(uid, moment) for uid in pods}
        for uid, since in self._since.items():
            self._done.waited = max(self._done.waited, moment - since)
            if moment - since > self._patience:
                raise MoveError(
                    f"the pod {_name(pods[uid])} is without a node for {self._patience:g} s: {_said(pods[uid])}. "
                    f"{_decided(self._cluster, pods[uid])}; then run the move again, or take it back, with -e undo=true"
                )
        return bool(pods)

    def _broken(self) -> Iterator[str]:
        for budget in self._cluster.labelled(*_BUDGETS, ""):
            if _status(budget, "currentHealthy") < _status(budget, "desiredHealthy"):
                yield _name(budget)


def _makes_none(cluster: Cluster, clock: Callable[[], float], sleep: Callable[[float], object]) -> Iterator[str]:
    """That nothing makes nodes for pods that leave groups; said when Karpenter has judged, or a minute has passed."""
    begun = clock()
    while True:
        pools = {
            pool["metadata"]["name"]: _readiness(pool)
            for pool in cluster.labelled(_KARPENTER, "NodePool", "")
            if not _makes_nothing(pool)
        }
        if any(status == "True" for status, _ in pools.values()):
            return
        open_ = [name for name, (status, _) in pools.items() if status != "False"]
        if not open_ or clock() - begun > _JUDGED_WITHIN:
            break
        sleep(_PAUSE)
    why = "; ".join(f"{name}: {said or 'nobody says why'}" for name, (_, said) in pools.items())
    yield "no NodePool is ready and may make nodes, so pods that leave would be without one" + (
        f" ({why}), and in {_JUDGED_WITHIN:g} s Karpenter has not judged {', '.join(open_)}: see that it runs"
        if open_
        else f"{f' ({why})' if why else ''}: bring the stack up (`pulumi up`), and see `kubectl get nodepools`"
    )


def _makes_more(cluster: Cluster, node_pools: Collection[str]) -> Iterator[str]:
    """That Karpenter makes new nodes for pods that leave its own."""
    for pool in cluster.labelled(_KARPENTER, "NodePool", ""):
        name = pool["metadata"]["name"]
        if name in node_pools and not _makes_nothing(pool):
            yield (
                f"the NodePool {name} would make new nodes for the pods that leave its own: set its limits to "
                "{cpu: 0} and run `pulumi up`, after the groups have got their sizes back"
            )


def _would_be_lost(cluster: Cluster, nodes: Iterable[Object]) -> Iterator[str]:
    for node in nodes:
        name = node["metadata"]["name"]
        bare = [_name(pod) for pod in _leaving(cluster, name) if not pod["metadata"].get("ownerReferences")]
        if bare:
            yield (
                f"{listed(bare, _NAMED)} on {name} would not come again, for nothing has made it: move or delete it "
                "yourself"
            )


def _would_stay(cluster: Cluster, nodes: Iterable[Object]) -> Iterator[str]:
    """That pods would never go: an API server evicts none that more than one budget selects, whatever these let go."""
    budgets = cluster.labelled(*_BUDGETS, "")
    for node in nodes:
        name = node["metadata"]["name"]
        kept: dict[str, list[str]] = {}
        for pod in _leaving(cluster, name):
            of_it = sorted(_name(one) for one in budgets if is_about(one, pod))
            if len(of_it) > 1:
                kept.setdefault(" and ".join(of_it), []).append(_name(pod))
        for several, pods in kept.items():
            yield (
                f"{listed(pods, _NAMED)} on {name} would not go: the PodDisruptionBudgets {several} select the same "
                "pods, and the eviction API takes no pod with more than one: leave one of them"
            )


def _waits_already(cluster: Cluster) -> Iterator[str]:
    if pods := waiting(cluster):
        yield (
            f"{listed(pods, _NAMED)} is without a node already, so it would not be seen whether the move is to blame: "
            "see to it, or give -e accept_waiting=true"
        )


def _leaving(cluster: Cluster, node: str) -> Iterator[Object]:
    """Pods of a node that a drain has to move: not those of DaemonSets, of the node itself, nor those that are done."""
    for pod in cluster.labelled("v1", "Pod", "", f"spec.nodeName={node}"):
        owners = {owner["kind"] for owner in pod["metadata"].get("ownerReferences") or ()}
        if not owners & {"DaemonSet", "Node"} and pod["status"].get("phase") not in ("Succeeded", "Failed"):
            yield pod


def _waiting(cluster: Cluster) -> list[Object]:
    pods = cluster.labelled("v1", "Pod", "", "spec.nodeName=,status.phase=Pending")
    return [pod for pod in pods if not pod["spec"].get("schedulingGates")]


def _said(pod: Object) -> str:
    conditions = (one for one in pod["status"].get("conditions") or () if one["type"] == "PodScheduled")
    return next((str(one.get("message") or one.get("reason") or "") for one in conditions), "nobody has looked at it")


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


def _readiness(pool: Object) -> tuple[str, str]:
    """What Karpenter says of a NodePool as it is now: `True`, `False`, or else nothing yet; and why."""
    for one in (pool.get("status") or {}).get("conditions") or ():
        if one["type"] == "Ready":
            # A condition of an earlier generation is about another spec.
            of_now = one.get("observedGeneration", 0) >= pool["metadata"].get("generation", 0)
            why = str(one.get("message") or one.get("reason") or "")
            return (one["status"], why) if of_now else ("Unknown", "it has been changed since Karpenter judged it")
    return "Unknown", ""


def _makes_nothing(pool: Object) -> bool:
    return str((pool["spec"].get("limits") or {}).get("cpu", "")) == "0"


def _reference(node: Object) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node["metadata"]["name"]}}


def _status(budget: Object, key: str) -> int:
    return int((budget.get("status") or {}).get(key) or 0)


def _labels(item: Object) -> Mapping[str, str]:
    return item["metadata"].get("labels") or {}


def _name(item: Object) -> str:
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"


def _sorted(nodes: Iterable[Object]) -> list[Object]:
    return sorted(nodes, key=lambda node: str(node["metadata"]["name"]))
