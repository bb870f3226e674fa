"""The action that moves the pods of nodes to other nodes."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final, Literal

from kubernetes import client
from kubernetes.config import ConfigException

from karpstack.components.workloads.running import AUTOSCALER, running
from karpstack.scale_test.acting import draining, moving
from karpstack.scale_test.acting.cluster import Cluster, ClusterError
from karpstack.scale_test.connecting import TIMEOUTS, connect

from . import Result

ERRORS: Final = (ClusterError, ConfigException, draining.MoveError)


def move(
    state: Literal["cordoned", "drained", "undone"],
    groups: list[str],
    node_pools: list[str],
    patience: float,
    accept_waiting: bool,
    accepted: list[str],
    node: str = "",
    owner: int | None = None,
    *,
    check: bool,
) -> Result:
    """Let nodes take no new pods, drain one node, or let nodes take pods again; check mode only reads."""
    cluster = Cluster()
    if state == "drained":
        return _drained(cluster, node, patience, accepted, owner, check=check)
    if state == "undone":
        return _undone(cluster, groups, node_pools, check=check)
    return _cordoned(cluster, groups, node_pools, accept_waiting=accept_waiting, check=check)


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
        autoscalers=_autoscalers() if groups else [],
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
    return asdict(done) | {"broken": sorted(done.broken), "came_back": sorted(done.came_back)}


def _undone(cluster: Cluster, groups: list[str], node_pools: list[str], *, check: bool) -> Result:
    nodes = moving.chosen(cluster, groups, node_pools)
    mine = _names(moving.marked(nodes)) if check else moving.uncordon(cluster, nodes)
    return {"changed": bool(mine), "nodes": _names(nodes), "uncordoned": mine}


def _names(nodes: list[moving.Object]) -> list[str]:
    return [node["metadata"]["name"] for node in nodes]


def _autoscalers() -> list[str]:
    """Return the Deployments of Cluster Autoscaler that have replicas, with their namespaces."""
    apps: Any = client.AppsV1Api(connect())
    return list(running(apps.list_deployment_for_all_namespaces(_request_timeout=TIMEOUTS).items, AUTOSCALER))
