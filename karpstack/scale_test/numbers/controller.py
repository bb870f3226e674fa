"""How the controller's process got on while it was recorded: memory, CPU, failed calls, restarts."""

from __future__ import annotations

import itertools
from datetime import datetime
from typing import Any

from ..judging.replay import Replay
from ..recording.timeline import parse_time
from .story import Story


def controller(replay: Replay) -> dict[str, Any] | None:
    """`controller` of the report; None where its metrics were not recorded.

    CPU and failed calls are what came on top while it was recorded, over restarts, after which it counts from 0.
    """
    if not replay.controller or not replay.start:
        return None
    start: datetime = parse_time(replay.start["received"])
    samples: list[list[float]] = []
    cpu = errors = 0.0
    restarts = 0
    earlier = None
    for time, line in replay.controller:
        if earlier is not None:
            anew = line["started"] != earlier["started"]
            restarts += anew
            cpu += line["cpu_seconds"] - (0 if anew else earlier["cpu_seconds"])
            errors += line["api_errors"] - (0 if anew else earlier["api_errors"])
        earlier = line
        samples.append([round((time - start).total_seconds(), 3), line["memory_bytes"], round(cpu, 3), int(errors)])
    return {
        "samples": samples,
        "peak_memory_bytes": max(int(sample[1]) for sample in samples),
        "cpu_seconds": round(cpu, 3),
        "api_errors": int(errors),
        "restarts": restarts,
    }


def restarts(story: Story) -> int | None:
    """How often another process answered than before, or was found to, in a story; None without its metrics."""
    readings = story.replay.controller
    if not any(story.begin <= time <= story.end for time, _ in readings):
        return None
    # It ended between the two looks, of which one may be before or after the story.
    return sum(
        before <= story.end and story.begin <= after and bool(later["started"] != earlier["started"])
        for (before, earlier), (after, later) in itertools.pairwise(readings)
    )
