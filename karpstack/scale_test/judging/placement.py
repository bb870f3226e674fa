"""Judges where the nodes and the pods of a story are: in which NodePools, zones and capacity types, and how many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ..scenarios.actions import CAPACITY_TYPE, NODE_POOL, ZONE
from ..scenarios.expectation import Places, WorkloadExpectation
from ..scenarios.formats import Range
from .assertion import Assertion
from .checks import check, check_pods
from .replay import NodeClaim
from .steps import StepRun, state_of


def nodes(run: StepRun) -> Iterator[Assertion]:
    """Whether the story's nodes are where they should be."""
    claims = run.live()
    for name, expected, seen, passed in _places(run.step.expect, claims):
        yield check(run, name, expected, seen, passed)


def workloads(run: StepRun) -> Iterator[Assertion]:
    """Whether the pods of each workload are as many, and where they should be."""
    claims = {claim.node: claim for claim in run.live() if claim.node}
    for name, expect in run.step.expect.workloads.items():
        pods = [pod for pod in run.pods_of(name) if pod.ready or pod.succeeded]
        yield from _counts(run, name, expect)
        at = [claims[pod.node] for pod in pods if pod.node in claims]
        for what, expected, seen, passed in _places(expect, at):
            yield check_pods(run, f"pods of {name} by {what}", expected, seen, passed)
        if expect.nodes is not None:
            seen_nodes = len({pod.node for pod in pods})
            yield check_pods(run, f"nodes of {name}", str(expect.nodes), str(seen_nodes), seen_nodes in expect.nodes)


def _counts(run: StepRun, name: str, expect: WorkloadExpectation) -> Iterator[Assertion]:
    state = state_of(run, name, run.wanted[name])
    for what, wanted, seen in (("ready", expect.ready, state.settled), ("waiting", expect.waiting, state.waiting)):
        if wanted is not None:
            yield check_pods(run, f"{what} pods of {name}", str(wanted), str(seen), seen in wanted)


def _places(expect: Places, claims: Sequence[NodeClaim]) -> Iterator[tuple[str, str, str, bool]]:
    """Name, what is expected, what is seen, and whether that is the same, for each kind of place that is asked for.

    A place that is not named may have any number.
    """
    asked: list[tuple[str, str, Mapping[str, Range]]] = [
        ("NodePool", NODE_POOL, expect.node_pools),
        ("zone", ZONE, expect.zones),
        ("capacity type", CAPACITY_TYPE, {str(kind): count for kind, count in expect.capacity_types.items()}),
    ]
    for name, label, wanted in asked:
        if wanted:
            counts = Counter(claim.labels.get(label, "none") for claim in claims)
            expected = ", ".join(f"{place}: {count}" for place, count in wanted.items())
            seen = ", ".join(f"{place}: {count}" for place, count in sorted(counts.items())) or "none"
            yield name, expected, seen, all(counts[place] in count for place, count in wanted.items())
    if expect.zone_count is not None:
        there = sorted({claim.labels.get(ZONE, "none") for claim in claims})
        expected = f"in {expect.zone_count} different ones"
        yield "zones", expected, ", ".join(there) or "none", len(there) in expect.zone_count
