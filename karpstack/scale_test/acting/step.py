"""Takes one step of a scenario: does what it says, and waits for what must come of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

from karpstack.karpenter import clock

from ..judging.assertion import Assertion
from ..judging.gate import wait_for_end
from ..judging.live import Live
from ..recording.timeline import now, parse_time
from ..scenarios.actions import Life
from ..scenarios.environments import environment_of_kind
from ..scenarios.manifests import COUNTED
from ..scenarios.scenario import Scenario
from .churning import churn
from .cluster import Cluster, RefusedError
from .faults import FaultError, Target, inflict
from .living import PlannedEvent, watched_objects
from .living import live as live_until
from .nodes import cordon, delete
from .rehearsal_control import RehearsalControl, RehearsalError


def take(cluster: Cluster, target: Target, live: Live, scenario: Scenario, index: int) -> list[Assertion]:
    """Take a step and return when it has come to its end, with what was asserted.

    Args:
        cluster: Where the workload is.
        target: Where to break something, if the step does.
        live: The timeline, into which a recorder writes.
        scenario: The scenario, as it is in the environment.
        index: The step, from 0.

    Raises:
        RefusedError: The API server takes what the step says for wrong; the text says where in the scenario it is.
        ClusterError: The API server does not answer, or refuses.
        FaultError: A fault could not be injected, so that the story would say nothing.
        RecorderError: The recorder has ended meanwhile.
        TimelineError: A line of the timeline cannot be read.
    """
    requested = parse_time(now())
    try:
        _act(cluster, target, live, scenario, index, requested)
    except RefusedError as error:
        where = f"{scenario.name}.yml: steps.{index}.{scenario.steps[index].action} (this is step {index + 1})"
        raise RefusedError(f"{where}: nothing comes of it until it is mended there", error.why) from error
    return wait_for_end(live, scenario, index, requested)


def _act(cluster: Cluster, target: Target, live: Live, scenario: Scenario, index: int, requested: datetime) -> None:
    step = scenario.steps[index]
    workloads = scenario.workloads_after(index)
    if step.churn:
        (name,) = step.replicas(workloads)
        churn(step.churn, lambda replicas: _scale(cluster, workloads[name], replicas))
    if step.live:
        _live(cluster, target, live, scenario, step.live, workloads)
    for name, replicas in step.replicas(workloads).items() if step.scale is not None else ():
        _scale(cluster, workloads[name], replicas)
    for manifest in scenario.applied(step):
        if cluster.create(manifest) is None:
            cluster.change(manifest, manifest)
    if step.roll_out:
        manifest = workloads[step.roll_out.workload]
        containers = manifest["spec"]["template"]["spec"]["containers"]
        cluster.change(manifest, {"spec": {"template": {"spec": {"containers": containers}}}})
    if step.patch_node_pool:
        pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": step.patch_node_pool.name}}
        cluster.change(pool, {"spec": step.patch_node_pool.spec})
    if step.patch_node_class:
        cluster.change(_node_class(scenario, step.patch_node_class.name), {"spec": step.patch_node_class.spec})
    if step.cordon:
        cordon(cluster, live, scenario, index, step.cordon)
    if step.delete_node:
        delete(cluster, live, scenario, index, step.delete_node)
    if step.faults or step.clear_faults:
        inflict(target, live, scenario, index, requested)


def _scale(cluster: Cluster, workload: Mapping[str, Any], replicas: int) -> None:
    cluster.change(workload, {"spec": {COUNTED[workload["kind"]]: replicas}})


def _live(
    cluster: Cluster,
    target: Target,
    live: Live,
    scenario: Scenario,
    life: Life,
    workloads: Mapping[str, Mapping[str, Any]],
) -> None:
    """Let time go by; replicas follow the curve, and are as before when it is over."""
    scaled = {
        name: (manifest, int(manifest["spec"][COUNTED[manifest["kind"]]]))
        for name, manifest in workloads.items()
        if COUNTED[manifest["kind"]] and any(fnmatchcase(name, one) for one in life.factors.factors)
    }
    now = {name: base for name, (_, base) in scaled.items()}

    def turn(at: datetime | None) -> None:
        for name, (manifest, base) in scaled.items():
            wanted = base if at is None else life.factors.replicas(name, base, at)
            if wanted != now[name]:
                _scale(cluster, manifest, wanted)
                now[name] = wanted

    begin = clock.utcnow()
    end = begin + timedelta(seconds=life.seconds)
    planned = [PlannedEvent(at, turn) for at in (begin, *life.factors.turns(begin, end))]
    skip = RehearsalControl(target.rehearsal_url).skip if target.rehearsal_url else None
    try:
        live_until(live, end, planned, watched_objects(scenario.name), skip)
    except RehearsalError as error:
        raise FaultError(f"{life.seconds / 3600:g} h cannot go by: {error}") from error
    turn(None)


def _node_class(scenario: Scenario, name: str) -> dict[str, Any]:
    environment = environment_of_kind(scenario.stacks[0])
    return {
        "apiVersion": environment.node_class_api,
        "kind": environment.node_class_kind,
        "metadata": {"name": name},
    }
