"""The action that moves the pods of nodes to other nodes."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Final, Literal

from kubernetes.config import ConfigException
from pydantic import Field

from karpstack.components.workloads.running import AUTOSCALER, running
from karpstack.scale_test.acting import draining, moving
from karpstack.scale_test.acting.cluster import Cluster, ClusterError
from karpstack.text.shown import visible

from . import Result

ERRORS: Final = (ClusterError, ConfigException, draining.MoveError)


def move(
    state: Literal["cordoned", "drained", "listed", "undone"],
    groups: list[str],
    node_pools: list[str],
    patience: Annotated[float, Field(gt=0, allow_inf_nan=False)],
    accept_waiting: bool,
    accepted: list[str],
    node: str = "",
    owner: int | None = None,
    *,
    check: bool,
) -> Result:
    """Let nodes take no new pods, drain one, list them, or let them take pods again; check mode only reads."""
    cluster = Cluster()
    if state == "drained":
        return _shown(_drained(cluster, node, patience, accepted, owner, check=check))
    if state == "listed":
        return _shown(_listed(cluster, groups, node_pools))
    if state == "undone":
        return _shown(_undone(cluster, groups, node_pools, check=check))
    return _shown(_cordoned(cluster, groups, node_pools, accept_waiting=accept_waiting, check=check))


def _shown(result: Result) -> Result:
    """A result whose names are written without what a terminal obeys: they are the cluster's."""
    return {
        key: _shown(value)
        if isinstance(value, dict)
        else [visible(one) for one in value]
        if isinstance(value, list)
        else value
        for key, value in result.items()
    }


def _cordoned(
    cluster: Cluster, groups: list[str], node_pools: list[str], *, accept_waiting: bool, check: bool
) -> Result:
    nodes = moving.chosen(cluster, groups, node_pools)
    moving.refuse(
        cluster,
        nodes,
        node_pools,
        accept_waiting=accept_waiting,
        groups=groups,
        autoscalers=running(cluster.labelled("apps/v1", "Deployment", ""), AUTOSCALER) if groups else (),
    )
    before = moving.marked(nodes)
    changed = bool(moving.taking(nodes) if check else moving.cordon(cluster, nodes))
    return {
        "changed": changed,
        "nodes": _names(nodes),
        "cordoned_before": _names(before),
        "groups": moving.group_names(cluster),
        # The pods that an interrupted move left waiting are not accepted; the move waits for them.
        "waiting": moving.waiting(cluster) if accept_waiting or not before else [],
        "lets_none_go": moving.blocking_budgets(cluster),
        "to_nothing": moving.scale_down_commands(nodes),
    }


def _drained(
    cluster: Cluster, node: str, patience: float, accepted: list[str], owner: int | None, *, check: bool
) -> Result:
    if check:
        return {"changed": True, "drained": _as_data(draining.Drained())}
    done = draining.drain(cluster, node, patience, accepted, owner)
    return {"changed": done.pods > 0, "drained": _as_data(done)}


def _as_data(done: draining.Drained) -> Result:
    return asdict(done) | {"broken": sorted(done.broken)}


def _listed(cluster: Cluster, groups: list[str], node_pools: list[str]) -> Result:
    nodes = moving.chosen(cluster, groups, node_pools)
    return {
        "changed": False,
        "nodes": _names(nodes),
        "taking": _names(moving.taking(nodes)),
        "pods": moving.still_there(cluster, nodes),
    }


def _undone(cluster: Cluster, groups: list[str], node_pools: list[str], *, check: bool) -> Result:
    nodes = moving.chosen(cluster, groups, node_pools)
    mine = _names(moving.marked(nodes)) if check else moving.uncordon(cluster, nodes)
    return {"changed": bool(mine), "nodes": _names(nodes), "uncordoned": mine}


def _names(nodes: list[moving.Object]) -> list[str]:
    return [node["metadata"]["name"] for node in nodes]
