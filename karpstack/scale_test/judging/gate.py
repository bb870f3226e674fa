"""Waits until a step has come to its end.

The recorder watches the API server; this follows the recorder's file, so that the playbook waits for the same
facts that the report is made of.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from ..recording.process import RecorderError
from ..recording.timeline import Writer, now, parse_time
from ..scenarios.scenario import Scenario
from .assertion import Assertion
from .assertions import judge
from .live import Live
from .steps import Rest, StepRun


def wait_for_end(live: Live, scenario: Scenario, index: int, requested: datetime) -> list[Assertion]:
    """Return when a step has come to its end, with what was asserted; the end is marked in the timeline.

    Args:
        live: The timeline.
        scenario: The scenario.
        index: The step, from 0.
        requested: When it was begun.

    Raises:
        RecorderError: The recorder has ended meanwhile.
        TimelineError: A line of the timeline cannot be read.
    """
    rest = Rest()
    for recorded in live.poll():
        run = StepRun(live.replay, scenario, index, requested, ended=parse_time(now()))
        if ended := rest.outcome(run):
            with Writer(live.path) as timeline:
                timeline.write(
                    "STEP", scenario=scenario.name, step=index, requested=requested.isoformat(), outcome=ended
                )
            return judge(replace(run, outcome=ended))
        if not recorded:
            break
    raise RecorderError(
        f"the recorder has ended ({live.replay.stopped or 'it was killed'}), so step {index + 1} "
        "cannot be judged; run the scenario again"
    )
