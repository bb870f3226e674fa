"""A story over time: pods wanted, running and pending, nodes present and ready, and how long pods had to wait."""

from __future__ import annotations

from datetime import datetime

from .figures import Steps, accumulate, integral, merge_steps
from .story import Story

Row = list[float]


def pods(story: Story, requests: list[tuple[datetime, int]]) -> list[Row]:
    """`series.pods`: t, wanted, running, pending. Pending is a pod that is there, neither finished nor going, and not
    yet serving.

    Args:
        story: The story.
        requests: When how many replicas were asked for.
    """
    first = float(story.scenario.replicas_after(-1))
    wanted: Steps = [(story.begin, first), *((time, float(count)) for time, count in requests), (story.end, 0.0)]
    return [
        [story.after(time), int(asked), int(running), max(0, int(present - running))]
        for time, (asked, running, present) in merge_steps(
            story.begin, story.end, wanted, story.running_pods, story.present_pods
        )
    ]


def pending_pod_seconds(story: Story) -> float:
    """The time that the story's pods waited until they served, summed up over all of them."""
    waiting = accumulate(
        change
        for pod in story.pods
        for change in ((pod.seen, 1.0), (_served_or_left(pod.running, pod.left, story.end), -1.0))
    )
    return round(integral(waiting, story.begin, story.end), 3)


def _served_or_left(running: datetime | None, left: datetime | None, end: datetime) -> datetime:
    return min(time for time in (running, left, end) if time is not None)


def nodes(story: Story) -> list[Row]:
    """`series.nodes`: t, present, ready. A node is present with its NodeClaim; ready is one that is to stay."""
    present = accumulate(change for claim in story.claims for change in ((claim.first_seen, 1.0), (claim.gone, -1.0)))
    ready = accumulate(
        change
        for claim in story.claims
        if (since := claim.reached.get("Initialized")) is not None
        for change in ((since, 1.0), (_no_longer(since, claim.disrupted, claim.gone), -1.0))
    )
    return [
        [story.after(time), int(there), int(serving)]
        for time, (there, serving) in merge_steps(story.begin, story.end, present, ready)
    ]


def _no_longer(since: datetime, disrupted: datetime | None, gone: datetime | None) -> datetime | None:
    ends = [time for time in (disrupted, gone) if time is not None]
    return max(since, min(ends)) if ends else None
