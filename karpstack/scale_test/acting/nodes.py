"""Does to a story's nodes what people do with kubectl: cordons them, or deletes them.

Only to nodes of the scenario's own NodePools: on another pool's there may be pods of other people's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..judging.live import Live
from ..judging.steps import CORDONED, DELETED, StepRun
from ..recording.timeline import Writer, now, parse_time
from ..scenarios.actions import Nodes
from ..scenarios.scenario import Scenario
from .cluster import Cluster
from .faults import FaultError, choose


def cordon(cluster: Cluster, live: Live, scenario: Scenario, index: int, chosen: Nodes) -> None:
    """Let nodes take no new pods; each is marked in the timeline.

    Raises:
        ClusterError: The API server does not answer, or refuses.
        FaultError: The story has fewer such nodes.
    """
    for node, _ in _nodes(live, scenario, index, chosen, CORDONED):
        cluster.change(node, {"spec": {"unschedulable": True}})


def delete(cluster: Cluster, live: Live, scenario: Scenario, index: int, chosen: Nodes) -> None:
    """Delete nodes; each is marked in the timeline.

    Raises:
        ClusterError: The API server does not answer, or refuses.
        FaultError: The story has fewer such nodes.
    """
    for node, uid in _nodes(live, scenario, index, chosen, DELETED):
        cluster.delete(node, uid)


def _nodes(
    live: Live, scenario: Scenario, index: int, chosen: Nodes, kind: str
) -> Iterator[tuple[dict[str, Any], str]]:
    """The nodes as objects, each with its uid."""
    live.read()
    run = StepRun(live.replay, scenario, index, parse_time(now()), parse_time(now()))
    claims = choose(run, chosen)
    if others := [claim.name for claim in claims if claim.node_pool not in scenario.node_pools]:
        raise FaultError(
            f"{run.step.title}: {', '.join(others)} is of a NodePool that is none of the scenario's own, so that other "
            "people's pods may be on it; name one of the scenario's as nodePool"
        )
    with Writer(live.path) as writer:
        for claim in claims:
            metadata = live.replay.nodes[str(claim.node)]["metadata"]
            detail = {"nodeClaim": claim.name, "node": claim.node}
            writer.write("FAULT", scenario=scenario.name, step=index, kind=kind, detail=detail)
            yield {"apiVersion": "v1", "kind": "Node", "metadata": {"name": metadata["name"]}}, metadata["uid"]
