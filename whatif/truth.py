"""How far the rehearsed base is from the cluster that the snapshot was taken of: nodes, types and dollars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from scale_test.market.prices import Offering

from .answer import AsIs, Compared, Truth
from .nodes import described
from .phases import Told, there
from .prices import Priced

_SPOT = "spot"
NOT_COMPARED = (
    "Not compared with any real cluster: no snapshot with nodes was given, so how near the rehearsed base is to a real "
    "one is not known."
)


@dataclass(frozen=True)
class RealNode:
    """A node of the real cluster.

    Attributes:
        instance_type: Its instance type.
        zone: Its zone; None where the snapshot does not say.
        capacity_type: on-demand, spot or reserved; None where the snapshot does not say.
        pool: Its NodePool; None for one that is not Karpenter's.
        usd_per_hour: Its price; None where that is not known.
    """

    instance_type: str
    zone: str | None = None
    capacity_type: str | None = None
    pool: str | None = None
    usd_per_hour: float | None = None


def compare(told: Told, market: Priced, real: Sequence[RealNode] | None, *, made_up: bool = False) -> Truth:
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
        left = f" (of {len(real)} nodes none is of a NodePool)" if real else ""
        return Truth(compared=False, sentence=NOT_COMPARED.removesuffix(".") + left + ".", as_is=as_is)
    rehearsed = _at(told, market, told.before)
    real_types, base_types = (Counter(node.instance_type for node in nodes) for nodes in (ours, rehearsed))
    figures = _figures(ours, rehearsed)
    types = {
        name: (real_types[name], base_types[name])
        for name in sorted(real_types | base_types)
        if real_types[name] != base_types[name]
    }
    sentence = f"{_sentence(figures, len(real or ()) - len(ours))} {_began(as_is)}"
    if made_up:
        sentence += " The snapshot is made up, so that this says nothing of a cluster that exists."
    return Truth(compared=True, sentence=sentence, figures=figures, types=types, as_is=as_is)


def _at(told: Told, market: Priced, time: datetime) -> list[RealNode]:
    """The nodes of the base at a moment."""
    found = [described(claim, market) for claim in told.claims if there(claim, time)]
    return [
        RealNode(str(node["instance_type"]), node["zone"], node["capacity_type"], node["pool"], node["usd_per_hour"])
        for node in found
    ]


def _figures(ours: Sequence[RealNode], rehearsed: Sequence[RealNode]) -> list[Compared]:
    real_types, base_types = (Counter(node.instance_type for node in nodes) for nodes in (ours, rehearsed))
    alike = (real_types & base_types).total()
    return [
        _compared("nodes", float(len(ours)), float(len(rehearsed))),
        Compared(
            what="nodes of the same instance type",
            real=float(len(ours)),
            rehearsed=float(alike),
            distance=round(1 - alike / max(len(ours), len(rehearsed), 1), 4),
        ),
        *(
            _compared(
                f"nodes on {kind}",
                float(sum(node.capacity_type == kind for node in ours)),
                float(sum(node.capacity_type == kind for node in rehearsed)),
            )
            for kind in sorted({node.capacity_type for node in (*ours, *rehearsed) if node.capacity_type})
        ),
        _dollars("dollars an hour", ours, rehearsed),
        *_by_capacity(ours, rehearsed),
    ]


def _as_is(told: Told, market: Priced, ours: Sequence[RealNode]) -> AsIs | None:
    if not told.as_is:
        return None
    loaded, then = told.phases["loaded"], told.at("loaded")
    nodes = loaded["nodes"]
    began, now = ({claim.name for claim in told.claims if there(claim, time)} for time in (then, told.before))
    return AsIs(
        of=nodes["of"],
        made=nodes["made"],
        pods=loaded["pods"],
        pods_placed=nodes["podsPlaced"],
        figures=_figures(ours, _at(told, market, then)) if ours else [],
        gone=len(began - now),
        came=len(now - began),
    )


def _began(as_is: AsIs | None) -> str:
    """How the base came to its nodes."""
    if as_is is None:
        return "Karpenter chose the nodes of the base, all at once, for the pods that there are."
    nodes = f"{as_is.made} of the real cluster's {as_is.of} nodes"
    pods = f"{as_is.pods_placed} of {as_is.pods} pods on the node that they had"
    told = f"It began with {nodes} as they were, and {pods}"
    known = [figure for figure in as_is.figures if figure.distance is not None]
    dollars = next((figure for figure in known if figure.what.startswith("dollars")), None)
    away = [f"{figure.distance:.1%} in {figure.what}" for figure in (*known[:1], dollars) if figure]
    told += f", then {' and '.join(away)} away" if away else ""
    if not as_is.gone and not as_is.came:
        return f"{told}; while it settled, no node went and none came."
    return f"{told}; while it settled, {as_is.gone} nodes went and {as_is.came} came."


def _priced(node: RealNode, market: Priced) -> RealNode:
    """A real node at the prices at which the rehearsed ones are reckoned."""
    bought = Offering(node.instance_type, node.capacity_type or "", node.zone or "")
    return replace(node, usd_per_hour=market.overlaid(bought, node.usd_per_hour))


def _by_capacity(ours: Sequence[RealNode], rehearsed: Sequence[RealNode]) -> list[Compared]:
    """Dollars of those that are not on spot: those on spot have the rehearsal's prices, or none."""
    if not any(node.capacity_type == _SPOT for node in (*ours, *rehearsed)):
        return []
    firm = [[node for node in nodes if node.capacity_type != _SPOT] for nodes in (ours, rehearsed)]
    return [_dollars("dollars an hour without spot", *firm)]


def _dollars(what: str, ours: Sequence[RealNode], rehearsed: Sequence[RealNode]) -> Compared:
    unpriced = sum(node.usd_per_hour is None for node in ours)
    real, base = _total(ours), _total(rehearsed)
    note = f"{unpriced} real nodes have no price" if unpriced else ""
    return _compared(what, real, base, note)


def _total(nodes: Sequence[RealNode]) -> float | None:
    prices = [node.usd_per_hour for node in nodes]
    known = [price for price in prices if price is not None]
    return round(sum(known), 6) if len(known) == len(prices) else None


def _compared(what: str, real: float | None, rehearsed: float | None, note: str = "") -> Compared:
    distance = None
    if real is not None and rehearsed is not None:
        distance = 0.0 if real == rehearsed else round(abs(rehearsed - real) / real, 4) if real else None
    return Compared(what=what, real=real, rehearsed=rehearsed, distance=distance, note=note)


def _sentence(figures: Sequence[Compared], outside: int) -> str:
    nodes, types = figures[:2]
    dollars = [figure for figure in figures if figure.what.startswith("dollars")]
    told = (
        f"The rehearsed base has {nodes.rehearsed:g} nodes where the real cluster has {nodes.real:g}; "
        f"{types.rehearsed:g} are of the same instance type"
    )
    known = next((figure for figure in dollars if figure.real is not None and figure.rehearsed is not None), None)
    if known is None:
        told += "; dollars are not compared, for prices are not known"
    else:
        told += f"; {known.what}: {known.rehearsed:.4g} where the real cluster costs {known.real:.4g}"
    if outside:
        told += f". {outside} real nodes are of no NodePool and are not compared"
    return told + "."
