"""A snapshot for a terminal: what is in it, what is not, and what will not go."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from karpstack.karpenter.instance_types import zone_words
from karpstack.text.shown import cut, visible

from .model import Snapshot
from .unevictable import unevictable
from .unschedulable import unschedulable

_ROWS = 40  # of a table


def as_text(snapshot: Snapshot, passed_over: Sequence[str] = (), width: int = 150) -> str:
    """All of it, without colours."""
    output = io.StringIO()
    # What is in brackets is text too.
    console = Console(file=output, width=width, no_color=True, markup=False, emoji=False, highlight=False)
    console.print(headline(snapshot), soft_wrap=True)
    console.print(_workloads(snapshot))
    if snapshot.nodes:
        console.print(_nodes(snapshot))
    if snapshot.left_out:
        console.print(_left_out(snapshot))
    for sentence in (*passed_over, *unschedulable(snapshot), *unevictable(snapshot)):
        console.print(f"note: {visible(sentence)}", soft_wrap=True)
    return "\n".join(line.rstrip() for line in output.getvalue().splitlines())


def summary(snapshot: Snapshot) -> dict[str, Any]:
    """Return the figures of the headline, as data."""
    cluster = snapshot.cluster
    return {
        "taken": snapshot.taken.isoformat(),
        "cloud": cluster.cloud,
        "region": cluster.region,
        "kubernetes": cluster.kubernetes,
        "anonymized": bool(snapshot.anonymised),
        "pods": snapshot.pods,
        "podsWithoutNode": sum(workload.pending for workload in snapshot.workloads),
        "workloads": len(snapshot.workloads),
        "nodes": len(snapshot.nodes),
        "nodePools": len(snapshot.node_pools),
        "podDisruptionBudgets": len(snapshot.pod_disruption_budgets),
    }


def data(snapshot: Snapshot, passed_over: Sequence[str] = ()) -> dict[str, Any]:
    """Return what `told` shows, as data."""
    return {
        "snapshot": summary(snapshot),
        "workloads": [
            {
                "namespace": one.namespace,
                "name": one.name,
                "controller": one.controller.kind,
                "pods": one.replicas,
                "podsWithoutNode": one.pending,
                "requests": {resource: str(amount) for resource, amount in one.pod.requests.items()},
            }
            for one in snapshot.workloads
        ],
        "nodes": [
            {
                "instanceType": one.instance_type,
                "capacityType": one.capacity_type,
                "zone": one.zone,
                "nodePool": one.node_pool,
                "usdPerHour": None if one.price_per_hour is None else float(one.price_per_hour),
            }
            for one in snapshot.nodes
        ],
        "leftOut": [{"what": one.what, "count": one.count, "why": one.why} for one in snapshot.left_out],
        "notes": [*passed_over, *unschedulable(snapshot), *unevictable(snapshot)],
    }


def headline(snapshot: Snapshot) -> str:
    """One sentence on all of it."""
    cluster = snapshot.cluster
    place = " ".join(filter(None, (cluster.cloud, cluster.region, cluster.kubernetes))) or "an unknown cloud"
    names = ", without names" if snapshot.anonymised else ""
    waiting = sum(workload.pending for workload in snapshot.workloads)
    numbers = [
        f"{_number(snapshot.pods, 'pod')} in {_number(len(snapshot.workloads), 'workload')} ({waiting} without a node)",
        _number(len(snapshot.nodes), "node"),
        _number(len(snapshot.node_pools), "NodePool"),
        _number(len(snapshot.pod_disruption_budgets), "PodDisruptionBudget"),
    ]
    return f"{snapshot.taken.isoformat()}, {place}: {', '.join(numbers)}{names}"


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _workloads(snapshot: Snapshot) -> Table:
    table = _table("workload", "controller", "pods", "without a node", "requests")
    ordered = sorted(snapshot.workloads, key=lambda one: (-one.replicas, one.namespace, one.name))
    for one in ordered[:_ROWS]:
        requests = ", ".join(f"{amount} {resource}" for resource, amount in one.pod.requests.items())
        _row(
            table,
            f"{one.namespace}/{one.name}",
            one.controller.kind,
            one.replicas,
            one.pending or "",
            requests,
        )
    _more(table, len(ordered))
    return table


def _nodes(snapshot: Snapshot) -> Table:
    table = _table("nodes", "instance type", "capacity type", "zone", "NodePool", "USD per hour")
    kinds = Counter(
        (one.instance_type, one.capacity_type, zone_words(one.zone or ""), one.node_pool, one.price_per_hour)
        for one in snapshot.nodes
    )
    rows = sorted(kinds.items(), key=lambda one: (-one[1], str(one[0])))
    for (*what, price), count in rows[:_ROWS]:
        _row(table, count, *(part or "" for part in what), "unknown" if price is None else f"{price * count:.4f}")
    _more(table, len(rows))
    return table


def _left_out(snapshot: Snapshot) -> Table:
    table = _table("left out", "how much", "why")
    for one in snapshot.left_out:
        _row(table, one.what, one.count, one.why)
    return table


def _table(*headings: str) -> Table:
    table = Table()
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _row(table: Table, *cells: object) -> None:
    table.add_row(*(cut(visible(cell), 200) for cell in cells))


def _more(table: Table, rows: int) -> None:
    if rows > _ROWS:
        table.add_row(f"and {rows - _ROWS} more")
