"""Makes the nodes of a snapshot in a cluster: each as the NodeClaim that it was, launched by Karpenter.

Nothing disrupts them until `allow_disruption`: they have Karpenter's annotation for that, and lose it when all pods
exist.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Final

from karpstack.karpenter import clock
from karpstack.scale_test.acting.cluster import Cluster, ClusterError
from karpstack.snapshot.manifests import DO_NOT_DISRUPT
from karpstack.snapshot.model import Snapshot
from karpstack.snapshot.node_claims import HASHES, KEPT_THERE, NODE_POOL, STANDS_FOR, node_claims, sentence
from karpstack.snapshot.portability import Place
from karpstack.text.shown import cut, visible

_API: Final = "karpenter.sh/v1"
_CONDITIONS: Final = ("Launched", "Registered", "Initialized")
#: Reasons of the events that tell why a launch failed (sigs.k8s.io/karpenter, pkg/events/reason.go).
_OF_A_LAUNCH: Final = frozenset({"InsufficientCapacityError", "NodeClassNotReady"})
#: NodeClaims that Karpenter launches at once. Of hundreds, some are not written down as launched within thirty seconds,
#: and then it takes the machine for nobody's and ends it (karpenter-provider-aws, pkg/controllers/nodeclaim/
#: garbagecollection): on two cores with much other work, of 275 that were made at once 126 were lost so.
LAUNCHED_AT_ONCE: Final = 40
_PLAYED: Final = "kwok.x-k8s.io/node"  # an annotation of nodes that a fake kubelet plays
_PAUSE: Final = 1.0  # seconds between two looks
_WORDS: Final = 300  # characters of why a node did not come


@dataclass(frozen=True)
class CreatedNodes:
    """The result of creating the nodes.

    Attributes:
        of: How many nodes of NodePools the snapshot has.
        nodes: How many of them were made.
        left_out: Which were not, and why: a sentence each.
    """

    of: int
    nodes: int
    left_out: list[str]


@clock.waiting()
def make(
    cluster: Cluster,
    snapshot: Snapshot,
    place: Place,
    patience: float,
    clock: Callable[[], float] = clock.monotonic,
    sleep: Callable[[float], None] = clock.sleep,
) -> CreatedNodes:
    """Make the nodes of a snapshot, and wait until they are initialized.

    Args:
        cluster: The cluster.
        snapshot: The snapshot.
        place: The cloud and the region of the cluster.
        patience: Seconds without another node after which it is not waited for the others.
        clock: Tells seconds.
        sleep: Waits so many seconds.

    Raises:
        ClusterError: The API server does not answer or refuses, or a NodePool has no hash.
    """
    pools = _pools(cluster, snapshot, clock() + patience, clock, sleep)
    wanted = node_claims(snapshot, place, pools, _zones(cluster, pools))
    taken, lost = _made_and_lost(cluster, wanted.claims, patience, clock, sleep)
    left_out = [
        *wanted.left_out,
        *([sentence("another NodeClaim has their name", taken)] if taken else []),
        *(
            sentence(why + _said(cluster, claims), [str(_annotation(one)) for one in claims])
            for why, claims in lost.items()
        ),
    ]
    return CreatedNodes(wanted.of, len(wanted.claims) - len(taken) - sum(map(len, lost.values())), left_out)


def _made_and_lost(
    cluster: Cluster,
    claims: Sequence[dict[str, Any]],
    patience: float,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> tuple[list[str], dict[str, list[dict[str, Any]]]]:
    """Create NodeClaims, a few at once, and wait until they are initialized or gone.

    Returns:
        The nodes whose names other NodeClaims have; why NodeClaims did not become nodes -> these, as last seen.
    """
    waiting, end = deque(claims), clock() + patience
    coming, taken, lost = dict[str, dict[str, Any]](), list[str](), dict[str, list[dict[str, Any]]]()
    while waiting or coming:
        launching = sum(not _is(claim, "Launched") for claim in coming.values())
        while waiting and launching < LAUNCHED_AT_ONCE:
            claim = waiting.popleft()
            if uid := cluster.create(claim):
                coming[claim["metadata"]["name"]] = {**claim, "metadata": {**claim["metadata"], "uid": uid}}
                launching += 1
            else:
                taken.append(str(_annotation(claim)))
        found = {one["metadata"]["name"]: one for one in cluster.labelled(_API, "NodeClaim", NODE_POOL)}
        there = {name: {**coming[name], **found[name]} for name in coming.keys() & found.keys()}
        ready = {name for name, claim in there.items() if _is(claim, "Initialized")}
        gone = {name for name in coming if name not in there or "deletionTimestamp" in there[name]["metadata"]}
        late = coming.keys() - ready - gone if clock() > end else set[str]()
        coming |= there
        for name in sorted(gone):
            lost.setdefault(_went(coming[name]), []).append(coming[name])
        for name in sorted(late):
            cluster.delete(coming[name], coming[name]["metadata"]["uid"])
            lost.setdefault(_missing(coming[name]), []).append(coming[name])
        ended = ready | gone | late
        if ended:
            end = clock() + patience
        coming = {name: claim for name, claim in coming.items() if name not in ended}
        if coming:
            sleep(_PAUSE)
    return taken, lost


def standing(cluster: Cluster) -> dict[str, str]:
    """Node of a snapshot -> the node that was made for it.

    Raises:
        ClusterError: The API server does not answer, or refuses.
    """
    return {
        of: claim["status"]["nodeName"]
        for claim in _made(cluster)
        if (of := _annotation(claim)) and _is(claim, "Initialized")
    }


def managed(cluster: Cluster, snapshot: Snapshot) -> dict[str, str]:
    """Node of a snapshot that is of no NodePool -> a rehearsed node of no NodePool that stands for it.

    A what-if makes no managed nodes. Pods that were on some are put on those of the stack, whatever these are tainted
    with, or they would take room on Karpenter's nodes. On a real cluster that is left to the scheduler.

    Raises:
        ClusterError: The API server does not answer, or refuses.
    """
    of_pools = {one.node for one in snapshot.node_claims if one.node}
    theirs = [node.name for node in snapshot.nodes if not node.node_pool and node.name not in of_pools]
    ours = [
        node["metadata"]["name"]
        for node in cluster.labelled("v1", "Node", "")
        if _PLAYED in (node["metadata"].get("annotations") or {})
        and NODE_POOL not in (node["metadata"].get("labels") or {})
    ]
    return dict(zip(theirs, cycle(sorted(ours)), strict=False)) if ours else {}


def allow_disruption(cluster: Cluster) -> None:
    """Let Karpenter disrupt the nodes that were made, unless their NodePool or the snapshot's node forbids it.

    Raises:
        ClusterError: The API server does not answer, or refuses.
    """
    pools = {pool["metadata"]["name"]: pool for pool in cluster.labelled(_API, "NodePool", "")}
    for claim in _made(cluster):
        template = pools.get(claim["metadata"]["labels"][NODE_POOL], {}).get("spec", {}).get("template", {})
        of_pool = (template.get("metadata") or {}).get("annotations") or {}
        own = claim["metadata"]["annotations"].get(KEPT_THERE) or of_pool.get(DO_NOT_DISRUPT)
        patch = {"metadata": {"annotations": {DO_NOT_DISRUPT: own}}}
        cluster.change(claim, patch)
        if node := claim["status"].get("nodeName"):
            cluster.change({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}}, patch)


@clock.waiting()
def remove(
    cluster: Cluster,
    patience: float,
    clock: Callable[[], float] = clock.monotonic,
    sleep: Callable[[float], None] = clock.sleep,
) -> int:
    """Remove the nodes that were made and are still there, and wait until they are gone; how many it were.

    Raises:
        ClusterError: The API server does not answer or refuses, or some are there still after that time.
    """
    end, asked = clock() + patience, set[str]()
    while left := _made(cluster):
        for claim in left:
            if claim["metadata"]["name"] not in asked:
                cluster.delete(claim, claim["metadata"]["uid"])
                asked.add(claim["metadata"]["name"])
        if clock() > end:
            names = ", ".join(sorted(claim["metadata"]["name"] for claim in left))
            raise ClusterError(f"NodeClaims are there after {patience:g} seconds still, and may cost money: {names}")
        sleep(_PAUSE)
    return len(asked)


def _pools(
    cluster: Cluster, snapshot: Snapshot, end: float, clock: Callable[[], float], sleep: Callable[[float], None]
) -> dict[str, dict[str, Any]]:
    """The NodePools that nodes of the snapshot are of, once Karpenter has written their hashes."""
    named = {one.node_pool for one in (*snapshot.nodes, *snapshot.node_claims) if one.node_pool}
    while True:
        found = {pool["metadata"]["name"]: pool for pool in cluster.labelled(_API, "NodePool", "")}
        pools = {name: pool for name, pool in found.items() if name in named}
        without = [name for name, pool in pools.items() if HASHES[0] not in (pool["metadata"].get("annotations") or {})]
        if not without:
            return pools
        if clock() > end:
            raise ClusterError(
                f"NodePool {', '.join(without)} has no annotation {HASHES[0]}, so its nodes would drift at once; is "
                "Karpenter running? Or let it choose the nodes: nodes=fresh"
            )
        sleep(_PAUSE)


def _zones(cluster: Cluster, pools: Mapping[str, Mapping[str, Any]]) -> dict[str, set[str]]:
    """NodePool -> zones of its node class's subnets, where its status has them."""
    found = {}
    for name, pool in pools.items():
        reference = pool["spec"]["template"]["spec"]["nodeClassRef"]
        # The reference has no version. AWS's is v1; Azure's has none of that name, and no subnets in its status.
        live = cluster.read(
            {
                "apiVersion": f"{reference['group']}/v1",
                "kind": reference["kind"],
                "metadata": {"name": reference["name"]},
            }
        )
        if subnets := (live or {}).get("status", {}).get("subnets"):
            found[name] = {subnet["zone"] for subnet in subnets}
    return found


def _made(cluster: Cluster) -> list[dict[str, Any]]:
    claims = cluster.labelled(_API, "NodeClaim", NODE_POOL)
    return [{"apiVersion": _API, "kind": "NodeClaim", **claim} for claim in claims if _annotation(claim)]


def _annotation(claim: Mapping[str, Any]) -> str | None:
    found: str | None = (claim["metadata"].get("annotations") or {}).get(STANDS_FOR)
    return found


def _conditions(claim: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {one["type"]: one for one in claim.get("status", {}).get("conditions") or ()}


def _is(claim: Mapping[str, Any], condition: str) -> bool:
    return _conditions(claim).get(condition, {}).get("status") == "True"


def _missing(claim: Mapping[str, Any]) -> str:
    """Why a NodeClaim is not initialized, in Karpenter's words."""
    first = _first_missing(claim)
    return f"they were not {first} in time{_in_brackets(claim, first)}"


def _went(claim: Mapping[str, Any]) -> str:
    """Why a NodeClaim that nobody here deleted is gone, by what was last seen of it."""
    first = _first_missing(claim)
    doing = "could not launch them" if first == "Launched" else f"removed them before they were {first}"
    return f"Karpenter {doing}{_in_brackets(claim, first)}"


def _first_missing(claim: Mapping[str, Any]) -> str:
    return next((one for one in _CONDITIONS if not _is(claim, one)), "Initialized")


def _in_brackets(claim: Mapping[str, Any], condition: str) -> str:
    found = _conditions(claim).get(condition, {})
    # What a condition says before anybody has looked at it is no reason.
    message = "" if found.get("reason") == "AwaitingReconciliation" else visible(str(found.get("message", "")))
    return f" ({cut(message, _WORDS)})" if message else ""


def _said(cluster: Cluster, claims: Collection[Mapping[str, Any]]) -> str:
    """What Karpenter said last of the launch of one of them, if it did."""
    uids = {claim["metadata"]["uid"] for claim in claims}
    events = [
        event
        for event in cluster.labelled("v1", "Event", "")
        if event.get("involvedObject", {}).get("uid") in uids and event.get("reason") in _OF_A_LAUNCH
    ]
    if not events:
        return ""
    return f": {cut(visible(str(max(events, key=_when).get('message', ''))), _WORDS)}"


def _when(event: Mapping[str, Any]) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp") or "")
