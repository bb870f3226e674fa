"""Takes one step of a scenario: does what it says, and waits for what must come of it."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from ..judging.assertion import Assertion
from ..judging.gate import wait_for_end
from ..judging.live import Live
from ..recording.timeline import now, parse_time
from ..scenarios.scenario import Scenario
from .churning import churn
from .cluster import Cluster
from .faults import Target, inflict


def take(cluster: Cluster, target: Target, live: Live, scenario: Scenario, index: int) -> list[Assertion]:
    """Take a step and return when it has come to its end, with what was asserted.

    Args:
        cluster: Where the workload is.
        target: Where to break something, if the step does.
        live: The timeline, into which a recorder writes.
        scenario: The scenario.
        index: The step, from 0.

    Raises:
        ClusterError: The API server does not answer, or refuses.
        FaultError: A fault could not be brought about, so that the story would say nothing.
        RecorderError: The recorder has ended meanwhile.
        TimelineError: A line of the timeline cannot be read.
    """
    requested = parse_time(now())
    _act(cluster, target, live, scenario, index, requested)
    return wait_for_end(live, scenario, index, requested)


def _act(cluster: Cluster, target: Target, live: Live, scenario: Scenario, index: int, requested: datetime) -> None:
    step, workload = scenario.steps[index], scenario.workload
    scale = partial(cluster.scale, workload.namespace, workload.deployment.name)
    if step.scale is not None:
        scale(step.scale)
    elif step.patch_node_pool:
        cluster.change_node_pool(step.patch_node_pool.name, step.patch_node_pool.spec)
    elif step.churn:
        churn(step.churn, scale)
    if step.faults or step.clear_faults:
        inflict(target, live, scenario, index, requested)
