"""How full a story's nodes were: what its pods asked for against what pods may have of the nodes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from ..market.quantities import RESOURCES, amount
from .figures import accumulate, merge_steps
from .story import Story


def packing(story: Story) -> dict[str, float | None]:
    """`packing` of the report: means over the time in which there was a node, 0 to 1; None without one.

    A pod counts from the moment it has its node until it has finished or begins to go; a node from its
    initialization until it is gone.
    """
    return {resource: _mean(story, resource) for resource in RESOURCES}


def _mean(story: Story, resource: str) -> float | None:
    asked = accumulate(_asked(story, resource))
    room = accumulate(_room(story, resource))
    rows = merge_steps(story.begin, story.end, asked, room)
    weighted = seconds = 0.0
    for index, (time, (used, there)) in enumerate(rows):
        until = rows[index + 1][0] if index + 1 < len(rows) else story.end
        if there > 0:
            length = (until - time).total_seconds()
            weighted += length * min(1.0, max(0.0, used) / there)
            seconds += length
    return round(weighted / seconds, 4) if seconds else None


def _asked(story: Story, resource: str) -> Iterator[tuple[datetime, float]]:
    # Those of a managed node group have no NodeClaim.
    nodes = {claim.node for claim in story.claims if claim.node}
    for pod in story.pods:
        size = pod.cpu if resource == "cpu" else pod.memory
        if size and pod.node in nodes and pod.scheduled:
            yield pod.scheduled, size
            if pod.left:
                yield max(pod.left, pod.scheduled), -size


def _room(story: Story, resource: str) -> Iterator[tuple[datetime, float]]:
    for claim in story.claims:
        since = claim.reached.get("Initialized")
        size = amount(story.replay.allocatable(claim).get(resource, 0))
        if since and size:
            yield since, size
            if claim.gone:
                yield max(claim.gone, since), -size
