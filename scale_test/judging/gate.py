"""Waits until a step has come to its end.

The recorder watches the API server; this follows the recorder's file, so that the playbook waits for the same
facts that the report is made of.
"""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from ..recording.recording import LOOK_SECONDS, RecorderError
from ..recording.timeline import Reader, Writer, is_recorded, now, parse_time
from ..scenarios.scenario import Scenario
from .assertions import Assertion, judge
from .replay import Replay
from .steps import Rest, StepRun


def wait_for_end(path: Path, scenario: Scenario, index: int, requested: datetime) -> list[Assertion]:
    """Return when a step has come to its end, with what was asserted; the end is marked in the timeline.

    Raises:
        RecorderError: The recorder has ended meanwhile.
    """
    reader, replay, rest = Reader(path), Replay(), Rest()
    while True:
        recorded = is_recorded(path)
        replay.apply(reader.new_lines())
        run = StepRun(replay, scenario, index, requested, ended=parse_time(now()))
        if ended := rest.outcome(run):
            with Writer(path) as timeline:
                timeline.write(
                    "STEP", scenario=scenario.name, step=index, requested=requested.isoformat(), outcome=ended
                )
            return judge(replace(run, outcome=ended))
        if not recorded:
            raise RecorderError(
                f"the recorder has ended ({replay.stopped or 'it was killed'}), so step {index + 1} "
                "cannot be judged; run the scenario again"
            )
        time.sleep(LOOK_SECONDS)
