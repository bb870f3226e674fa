"""How far the rehearsed base is from the cluster that the snapshot was taken of: nodes, types, dollars and requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from karpstack.scale_test.judging.replay import NodeClaim
from karpstack.scale_test.market.prices import Offering
from karpstack.scale_test.reports.units import plural
from karpstack.text.shown import listed

from .answer import Accuracy, Compared, InitialNodes
from .nodes import described
from .phases import WhatifTimeline, is_present
from .prices import Priced, prices_of

_NAMED = 4  # NodePools
_SPOT = "spot"
_DOLLARS = "dollars an hour"
_WITHOUT_SPOT = "dollars an hour without spot"
NOT_COMPARED = (
    "Not compared with any real cluster: no snapshot with nodes was given, so how near the rehearsed base is to a real "
    "one is not known."
)


_GIB = 2**30
#: What of a load is compared: the figure's name, and the attribute, in all or per node.
_REQUESTED = (("CPUs that pods request", "cpu", 1.0), ("GiB that pods request", "memory", _GIB))
_OF_DAEMON_SETS = (
    ("CPUs that DaemonSets request per node", "daemon_cpu", 1.0),
    ("GiB that DaemonSets request per node", "daemon_memory", _GIB),
)
#: Names of the figures about what pods request.
REQUESTS = tuple(name for name, _, _ in (*_REQUESTED, *_OF_DAEMON_SETS))


class Load(NamedTuple):
    """The pods on a node.

    Attributes:
        pods: How many, without those of DaemonSets.
        cpu: CPUs that they request.
        memory: Bytes that they request.
        daemon_cpu: CPUs of these that pods of DaemonSets request.
        daemon_memory: Bytes of these that pods of DaemonSets request.
    """

    pods: float = 0
    cpu: float = 0
    memory: float = 0
    daemon_cpu: float = 0
    daemon_memory: float = 0

    def with_pods(self, pods: float, cpu: float, memory: float, *, of_daemon_set: bool) -> Load:
        """Return the load with more pods; `cpu` and `memory` are of all of them."""
        daemon_cpu, daemon_memory = (cpu, memory) if of_daemon_set else (0.0, 0.0)
        added = (0 if of_daemon_set else pods, cpu, memory, daemon_cpu, daemon_memory)
        return Load(*(mine + more for mine, more in zip(self, added, strict=True)))


@dataclass(frozen=True)
class RealNode:
    """A node of the real cluster.

    Attributes:
        instance_type: Its instance type.
        zone: Its zone; None where the snapshot does not say.
        capacity_type: on-demand, spot or reserved; None where the snapshot does not say.
        pool: Its NodePool; None for one that is not Karpenter's.
        usd_per_hour: Its price; None where that is not known.
        load: The pods on it; None where the snapshot does not say.
        name: Its name; None where that is not known.
        created: When its NodeClaim was created; None where the snapshot does not say.
    """

    instance_type: str
    zone: str | None = None
    capacity_type: str | None = None
    pool: str | None = None
    usd_per_hour: float | None = None
    load: Load | None = None
    name: str | None = None
    created: datetime | None = None


def compare(
    told: WhatifTimeline, market: Priced, real: Sequence[RealNode] | None, *, made_up: bool = False
) -> Accuracy:
    """Hold the base against the real cluster.

    Args:
        told: The timeline.
        market: Prices.
        real: Its nodes; None where they are not known.
        made_up: Whether the snapshot is made up, so that there is no such cluster.
    """
    ours = [_priced(node, market) for node in real or () if node.pool is not None]
    as_is = _as_is(told, market, ours)
    if not ours:
        left = f" (of {plural(len(real), 'node')} none is of a NodePool)" if real else ""
        return Accuracy(compared=False, sentence=NOT_COMPARED.removesuffix(".") + left + ".", initial_nodes=as_is)
    rehearsed = _at(told, market, told.before)
    real_types, base_types = (Counter(node.instance_type for node in nodes) for nodes in (ours, rehearsed))
    figures = _figures(ours, rehearsed)
    types = {
        name: (real_types[name], base_types[name])
        for name in sorted(real_types | base_types)
        if real_types[name] != base_types[name]
    }
    pools = Counter(node.pool for node in ours)
    empty = {name: pools[name] for name in sorted(filter(None, pools.keys() - {node.pool for node in rehearsed}))}
    sentence = f"{_sentence(figures, len(real or ()) - len(ours), _elsewhere(market, rehearsed))} {_began(as_is)}"
    if empty:
        named = listed([f"{name} ({number} in the real cluster)" for name, number in empty.items()], _NAMED)
        sentence += (
            f" NodePools without a node when the change begins: {named}. So the answer does not show what the change "
            "does to their nodes."
        )
    if made_up:
        sentence += " The snapshot is made up, so that this says nothing of a cluster that exists."
    return Accuracy(
        compared=True,
        made_up=made_up,
        sentence=sentence,
        figures=figures,
        types=types,
        empty_pools=empty,
        initial_nodes=as_is,
    )


def _elsewhere(market: Priced, nodes: Sequence[RealNode]) -> dict[str, str | None]:
    """For each figure of dollars the region whose prices it is at; None where those are the stack's, or given ones."""
    bought = {_offering(node) for node in nodes}
    firm = {one for one in bought if one.capacity_type != _SPOT}
    return {_DOLLARS: prices_of(market, bought), _WITHOUT_SPOT: prices_of(market, firm)}


def _at(told: WhatifTimeline, market: Priced, time: datetime) -> list[RealNode]:
    """The nodes of the base at a moment."""
    found = [(described(claim, market), _load(told, claim, time)) for claim in told.claims if is_present(claim, time)]
    return [
        RealNode(
            str(node["instance_type"]), node["zone"], node["capacity_type"], node["pool"], node["usd_per_hour"], load
        )
        for node, load in found
    ]


def _load(told: WhatifTimeline, claim: NodeClaim, time: datetime) -> Load:
    """The workload's pods on a node, and the share of what the cluster runs there by itself."""
    load = Load()
    for pod in told.on(claim, time):
        load = load.with_pods(1, pod.cpu, pod.memory, of_daemon_set=pod.of_daemon_set)
    return load.with_pods(**told.own_daemon_sets(), of_daemon_set=True)


def _figures(ours: Sequence[RealNode], rehearsed: Sequence[RealNode]) -> list[Compared]:
    real_types, base_types = (Counter(node.instance_type for node in nodes) for nodes in (ours, rehearsed))
    alike = (real_types & base_types).total()
    return [
        _compared("nodes", float(len(ours)), float(len(rehearsed))),
        Compared(
            what="nodes of the same instance type",
            real=float(len(ours)),
            rehearsed=float(alike),
            difference=round(1 - alike / max(len(ours), len(rehearsed), 1), 4),
        ),
        *(
            _compared(
                f"nodes on {kind}",
                float(sum(node.capacity_type == kind for node in ours)),
                float(sum(node.capacity_type == kind for node in rehearsed)),
            )
            for kind in sorted({node.capacity_type for node in (*ours, *rehearsed) if node.capacity_type})
        ),
        _dollars(_DOLLARS, ours, rehearsed),
        *_by_capacity(ours, rehearsed),
        *_requests(ours, rehearsed),
    ]


def _requests(ours: Sequence[RealNode], rehearsed: Sequence[RealNode]) -> list[Compared]:
    """What pods request of the nodes; nothing where the snapshot does not say which pods were on them."""
    loads = [[node.load for node in nodes if node.load] for nodes in (ours, rehearsed)]
    if len(loads[0]) < len(ours) or not any(any(load) for load in loads[0]):
        return []

    def compared(name: str, key: str, unit: float, *, per_node: bool = False) -> Compared:
        real, base = (
            round(sum(getattr(load, key) for load in found) / unit / (max(len(found), 1) if per_node else 1), 3)
            for found in loads
        )
        return _compared(name, real, base)

    return [
        compared("pods on them, without DaemonSets'", "pods", 1),
        *(compared(*figure) for figure in _REQUESTED),
        *(compared(*figure, per_node=True) for figure in _OF_DAEMON_SETS),
    ]


def _as_is(told: WhatifTimeline, market: Priced, ours: Sequence[RealNode]) -> InitialNodes | None:
    if not told.as_is:
        return None
    loaded, then = told.phases["loaded"], told.at("loaded")
    nodes = loaded["nodes"]
    began, now = ({claim.name for claim in told.claims if is_present(claim, time)} for time in (then, told.before))
    return InitialNodes(
        real_nodes=nodes["of"],
        nodes=nodes["made"],
        pods=loaded["pods"],
        pods_placed=nodes["podsPlaced"],
        figures=_figures(ours, _at(told, market, then)) if ours else [],
        removed=len(began - now),
        created=len(now - began),
    )


def _began(as_is: InitialNodes | None) -> str:
    """How the base came to its nodes."""
    if as_is is None:
        return "Karpenter chose the nodes of the base, all at once, for the pods that there are."
    nodes = f"{as_is.nodes} of the real cluster's {plural(as_is.real_nodes, 'node')}"
    others = " (the others had none, or it was not created or has no room)" if as_is.pods_placed < as_is.pods else ""
    pods = f"{as_is.pods_placed} of {plural(as_is.pods, 'pod')} on the node that they had{others}"
    told = f"It began with {nodes} as they were, and {pods}"
    known = [figure for figure in as_is.figures if figure.difference is not None]
    dollars = next((figure for figure in known if figure.what.startswith("dollars")), None)
    requests = [figure for figure in known if figure.what in REQUESTS]
    worst = max(requests, key=lambda figure: figure.difference or 0.0, default=None)
    away = [f"{figure.difference:.1%} in {figure.what}" for figure in (*known[:1], dollars, worst) if figure]
    told += f", then {' and '.join(away)} away" if away else ""
    if not as_is.removed and not as_is.created:
        return f"{told}; while it settled, no node went and none came."
    return f"{told}; while it settled, {plural(as_is.removed, 'node')} went and {as_is.created} came."


def _priced(node: RealNode, market: Priced) -> RealNode:
    """A real node at the prices at which the rehearsed ones are reckoned."""
    return replace(node, usd_per_hour=market.overlaid(_offering(node), node.usd_per_hour))


def _offering(node: RealNode) -> Offering:
    return Offering(node.instance_type, node.capacity_type or "", node.zone or "")


def _by_capacity(ours: Sequence[RealNode], rehearsed: Sequence[RealNode]) -> list[Compared]:
    """Dollars of those that are not on spot: those on spot have the rehearsal's prices, or none."""
    if not any(node.capacity_type == _SPOT for node in (*ours, *rehearsed)):
        return []
    firm = [[node for node in nodes if node.capacity_type != _SPOT] for nodes in (ours, rehearsed)]
    return [_dollars(_WITHOUT_SPOT, *firm)]


def _dollars(what: str, ours: Sequence[RealNode], rehearsed: Sequence[RealNode]) -> Compared:
    unpriced = sum(node.usd_per_hour is None for node in ours)
    real, base = _total(ours), _total(rehearsed)
    note = f"without a price: {plural(unpriced, 'real node')}" if unpriced else ""
    return _compared(what, real, base, note)


def _total(nodes: Sequence[RealNode]) -> float | None:
    prices = [node.usd_per_hour for node in nodes]
    known = [price for price in prices if price is not None]
    return round(sum(known), 6) if len(known) == len(prices) else None


def _compared(what: str, real: float | None, rehearsed: float | None, note: str = "") -> Compared:
    distance = None
    if real is not None and rehearsed is not None:
        distance = 0.0 if real == rehearsed else round(abs(rehearsed - real) / real, 4) if real else None
    return Compared(what=what, real=real, rehearsed=rehearsed, difference=distance, note=note)


def _sentence(figures: Sequence[Compared], outside: int, elsewhere: Mapping[str, str | None]) -> str:
    nodes, types = figures[:2]
    dollars = [figure for figure in figures if figure.what.startswith("dollars")]
    same = types.rehearsed or 0.0
    alike = "all of them have" if same == nodes.rehearsed else f"{same:g} of them {'has' if same == 1 else 'have'}"
    told = (
        f"The rehearsed base has {plural(round(nodes.rehearsed or 0), 'node')} where the real cluster has "
        f"{nodes.real:g}; {alike} the same instance type"
    )
    known = next((figure for figure in dollars if figure.real is not None and figure.rehearsed is not None), None)
    if known is None:
        told += "; dollars are not compared, for prices are not known"
    else:
        where = elsewhere.get(known.what)
        at = f" (at prices of {where})" if where else ""
        told += f"; {known.what}{at}: {known.rehearsed:.4g} where the real cluster costs {known.real:.4g}"
    if requests := [figure for figure in figures if figure.what in REQUESTS[: len(_REQUESTED)]]:
        cpus, gib = requests
        told += (
            f"; its pods request {cpus.rehearsed:.4g} CPUs and {gib.rehearsed:.4g} GiB where the real ones request "
            f"{cpus.real:.4g} and {gib.real:.4g}"
        )
    if outside:
        told += f". Not compared, because of no NodePool: {plural(outside, 'real node')}"
    return told + "."
