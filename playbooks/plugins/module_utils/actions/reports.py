"""The action that judges a run."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from karpstack.karpenter.fact_files import FOLDER
from karpstack.karpenter.instance_types import Facts, FactsError
from karpstack.scale_test.numbers.thresholds import Thresholds, ThresholdsError
from karpstack.scale_test.recording.timeline import Reader, TimelineError
from karpstack.scale_test.reports import report as reports
from karpstack.scale_test.reports import writing
from karpstack.scale_test.reports.folder import TIMELINE
from karpstack.scale_test.reports.table import table
from karpstack.scale_test.scenarios.environments import Stack
from karpstack.scale_test.scenarios.scenario import parse
from karpstack.scale_test.version import version
from karpstack.text.files import OutputError

from . import Result

ERRORS: Final = (FactsError, OutputError, ThresholdsError, TimelineError)


def report(
    folder: Path, scenarios: list[Result], stack: str, stack_outputs: Result, thresholds: Result, facts: Path = FOLDER
) -> Result:
    """Judge a run by its timeline and write report.json, report.html and junit.xml; a failed story is no error."""
    made = reports.make(
        [parse(scenario, "scenario") for scenario in scenarios],
        Reader(folder / TIMELINE).new_lines(),
        Stack(stack, stack_outputs),
        facts=Facts.load(stack_outputs["cloud"], facts),
        thresholds=Thresholds.parse(thresholds, "thresholds", thresholds.keys()),
        version=version(),
    )
    made = writing.with_evidence_in(folder, made)
    writing.write(made, folder / TIMELINE, folder)
    return {"changed": True, "passed": made["passed"], "failures": reports.failures(made), "table": table(made)}
