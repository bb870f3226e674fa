"""Moves pods from nodes to others, node after node, as `kubectl cordon` and `kubectl drain` do it, and looks meanwhile.

The state of a move is the cluster's own: nodes that it has cordoned are marked, so it can be broken off, gone on with
and taken back. Whoever makes new nodes, Karpenter or a node group, is of no matter here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from karpstack.karpenter import clock
from karpstack.karpenter.quantities import exact
from karpstack.karpenter.selectors import is_about
from karpstack.text.shown import listed

from ..recording.timeline import now
from .cluster import Cluster
from .draining import BUDGETS, MoveError, is_cordoned, leaving, name_of, number, without_node
from .successors import controller

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
#: Seconds in which it judges a NodePool that is new or was changed.
_JUDGED_WITHIN: Final = 60.0
_PAUSE: Final = 1.0
_NAMED: Final = 5

Object = Mapping[str, Any]


def chosen(cluster: Cluster, groups: Collection[str], node_pools: Collection[str]) -> list[Object]:
    """The nodes of some groups, or of some NodePools, in the order in which these are named.

    Raises:
        ClusterError: The API server does not answer, or refuses.
    """
    labels = [(label, name) for name in groups for label in GROUPS] + [(NODE_POOL, name) for name in node_pools]
    return [
        node
        for label, name in labels
        for node in _sorted(cluster.labelled("v1", "Node", f"{label}={name}"))
        # What came through something that ignores the selector is not to be emptied.
        if _labels(node).get(label) == name
    ]


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
    autoscalers: Iterable[str] = (),
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


def _scaled_by_another(autoscalers: Iterable[str]) -> Iterator[str]:
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
    budgets = cluster.labelled(*BUDGETS, "")
    return sorted(
        name_of(one) for one in budgets if number(one, "expectedPods") and not number(one, "disruptionsAllowed")
    )


def waiting(cluster: Cluster) -> list[str]:
    """Pods for which there is no node, with their namespaces.

    Raises:
        ClusterError: The API server does not answer, or refuses.
    """
    return [name_of(pod) for pod in without_node(cluster)]


def taking(nodes: Iterable[Object]) -> list[Object]:
    """Those of the nodes that take new pods."""
    return [node for node in nodes if not is_cordoned(node)]


def still_there(cluster: Cluster, nodes: Iterable[Object]) -> list[str]:
    """Pods that are on nodes and do not end, with their namespaces; those of DaemonSets are no matter.

    Raises:
        ClusterError: The API server does not answer, or refuses.
    """
    pods = (pod for node in nodes for pod in leaving(cluster, node["metadata"]["name"]))
    return [name_of(pod) for pod in pods if not pod["metadata"].get("deletionTimestamp")]


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
        bare = [name_of(pod) for pod in leaving(cluster, name) if not controller(pod)]
        if bare:
            yield (
                f"{listed(bare, _NAMED)} on {name} would not come again, for no controller has made it: move or delete "
                "it yourself"
            )


def _would_stay(cluster: Cluster, nodes: Iterable[Object]) -> Iterator[str]:
    """That pods would never go: an API server evicts none that more than one budget selects, whatever these let go."""
    budgets = cluster.labelled(*BUDGETS, "")
    for node in nodes:
        name = node["metadata"]["name"]
        kept: dict[str, list[str]] = {}
        for pod in leaving(cluster, name):
            of_it = sorted(name_of(one) for one in budgets if is_about(one, pod))
            if len(of_it) > 1:
                kept.setdefault(" and ".join(of_it), []).append(name_of(pod))
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
    return exact((pool["spec"].get("limits") or {}).get("cpu", "1")) == 0


def _reference(node: Object) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node["metadata"]["name"]}}


def _labels(item: Object) -> Mapping[str, str]:
    return item["metadata"].get("labels") or {}


def _sorted(nodes: Iterable[Object]) -> list[Object]:
    return sorted(nodes, key=lambda node: str(node["metadata"]["name"]))
