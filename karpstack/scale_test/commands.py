"""What the commands of scenarios, stories and reports do: each function is one command, and returns its exit code.

The playbooks use modules. What only some commands need is imported by them: charts and the lower bound take seconds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from karpstack.karpenter.instance_types import FOLDER, Facts, FactsError
from karpstack.text import json_file
from karpstack.text.codes import Code, reported
from karpstack.text.files import OutputError
from karpstack.text.packaged import PLAYBOOKS, SCENARIOS, THRESHOLDS
from karpstack.text.shown import visible
from karpstack.text.yaml_file import YamlError, read

from .numbers.thresholds import WHATIF, Thresholds, ThresholdsError
from .recording.process import RecorderError, wait_until_recorded
from .recording.timeline import Reader, TimelineError, now, parse_time
from .reports.folder import TIMELINE
from .scenarios import start
from .scenarios.choosing import check_names
from .scenarios.environments import Stack, StackError, environment_of_outputs
from .scenarios.scenario import ScenarioError, load, names, parse
from .version import version

_TOKEN = "KARPSTACK_METRICS_TOKEN"  # noqa: S105 - the name of a variable
_REHEARSAL = "KARPSTACK_REHEARSAL_URL"
_RECORDER_SECONDS = 30.0

Form = Literal["text", "json"]


class InputError(ValueError):
    """Something that was given cannot be used; the message names it, and has the fix."""


_CODES: Final[Mapping[type[BaseException], Code]] = {
    RecorderError: Code.UNKNOWN,
    **dict.fromkeys(
        (
            InputError,
            FactsError,
            json_file.FileError,
            OSError,
            OutputError,
            ScenarioError,
            StackError,
            ThresholdsError,
            TimelineError,
            YamlError,
        ),
        Code.WRONG,
    ),
}


@dataclass(frozen=True)
class Source:
    """What a timeline is judged by.

    Attributes:
        scenarios: Folder of the scenarios; the project's own if None.
        thresholds: File of limits; the project's own if None.
        stack: Name of the stack, where the timeline does not say.
        outputs: File with the stack's outputs, where the timeline does not say.
    """

    scenarios: Path | None = None
    thresholds: Path | None = None
    stack: str | None = None
    outputs: Path | None = None


@reported(_CODES)
def check(folder: Path | None = None, *, scenarios: str = "", labels: str = "") -> int:
    """Check scenarios, and the names and labels by which they are chosen."""
    folder = folder or SCENARIOS
    found = load(folder)
    check_names(found, _words(scenarios), _words(labels))
    print(f"{len(found)} scenarios in {visible(folder)}: nothing is wrong with them")
    return Code.GOOD


@reported(_CODES)
def list_scenarios(folder: Path | None = None, *, form: Form = "text") -> int:
    """Print the scenarios of a folder with their labels and what each is about."""
    found = load(folder or SCENARIOS)
    if form == "json":
        rows = [{"name": one.name, "labels": list(one.tags), "description": one.description} for one in found]
        print(json.dumps(rows, indent=2))
        return Code.GOOD
    for one in found:
        print(visible(f"{one.name} ({', '.join(one.tags)}): {one.description}"))
    return Code.GOOD


@reported(_CODES)
def new(name: str, folder: Path) -> int:
    """Write a scenario to begin with."""
    path = start.write(folder, name)
    print(visible(f"{path}: change it, and run it with: karpstack run eks --scenario-dir {folder}"))
    return Code.GOOD


def _words(text: str) -> list[str]:
    """Of a list with commas."""
    return [word for each in text.split(",") if (word := each.strip())]


@reported(_CODES)
def record(timeline: Path, *, stack: str, outputs: Path, metrics_url: str | None = None) -> int:
    """Record the cluster that KUBECONFIG names, until SIGTERM."""
    from kubernetes.config import ConfigException

    from .recording import record as recording
    from .recording.following import BrokenError

    sources = recording.Sources(None, metrics_url, os.environ.get(_TOKEN, ""), FOLDER)
    try:
        print(recording.record(timeline, Stack(stack, json_file.outputs(outputs)), sources))
    except recording.RecordedError as error:
        raise InputError(str(error)) from error
    except (BrokenError, ConfigException) as error:
        raise RecorderError(
            f"the cluster cannot be recorded ({visible(error)}); see that `kubectl get nodes` works here"
        ) from error
    return Code.GOOD


@reported(_CODES)
def wait(timeline: Path, scenario_file: Path, step: int) -> int:
    """Wait until a step of a scenario has come to its end, and judge it."""
    from .judging.gate import wait_for_end
    from .judging.live import Live

    scenario = parse(read(scenario_file), scenario_file.name)
    if not 1 <= step <= len(scenario.steps):
        raise InputError(f"step {step}: {scenario.name} has {len(scenario.steps)}, so there is nothing to wait for")
    wait_until_recorded(timeline, _RECORDER_SECONDS)
    assertions = wait_for_end(Live(timeline), scenario, step - 1, parse_time(now()))
    for assertion in assertions:
        print(f"{'passed' if assertion.passed else 'FAILED'}: {visible(assertion.message)}")
    return Code.GOOD if all(assertion.passed for assertion in assertions) else Code.NO


@reported(_CODES)
def publish_image(namespace: str) -> int:
    """Let the simulated cloud publish a newer image of nodes, and restart Karpenter so that it notices now."""
    from .acting.faults import FaultError, kill_controller
    from .acting.rehearsal_control import RehearsalControl, RehearsalError

    url = os.environ.get(_REHEARSAL)
    if not url:
        raise InputError(
            f"{_REHEARSAL} is not set, so there is no cloud that publishes what it is told; bring a stack up and run "
            '`eval "$(karpstack env STACK)"`, then this command again'
        )
    try:
        print(f"published: {', '.join(RehearsalControl(url).publish_image())}")
        print(f"started again: {', '.join(kill_controller(namespace))}")
    except (FaultError, RehearsalError) as error:
        raise InputError(str(error)) from error
    return Code.GOOD


@reported(_CODES)
def judge(folder: Path, source: Source, *, form: Form = "text") -> int:
    """Judge a timeline by today's scenarios; write nothing."""
    return _shown(_made(folder, source), form)


@reported(_CODES)
def report(
    folder: Path, source: Source, place: Callable[[Path], Path], *, output: Path | None = None, form: Form = "text"
) -> int:
    """Judge a timeline and write report.json, report.html and junit.xml.

    Args:
        folder: Folder with the timeline.
        source: What the timeline is judged by.
        place: Makes the folder for the report, or refuses it if others may write to it.
        output: Folder for the report; `folder` if None.
        form: What is printed.
    """
    from .reports.writing import write

    made = _made(folder, source)
    write(made, folder / TIMELINE, place(output or folder))
    return _shown(made, form)


@reported(_CODES)
def compare(
    before: Path,
    after: Path,
    *,
    output: Path | None = None,
    rules_file: Path | None = None,
    fail_if: Literal["worse", "any-worse"] | None = None,
    form: Form = "text",
) -> int:
    """Compare two reports and write a page."""
    from .reports import comparison
    from .reports.comparing import compare_reports

    rules_file = rules_file or PLAYBOOKS / "vars" / "comparison.yml"
    try:
        rules = read(rules_file)
    except YamlError as error:
        raise YamlError(f"--rules {rules_file}: {error}") from error
    try:
        result, _ = compare_reports(
            before,
            after,
            output or after / "comparison.html",
            rules.get("comparison_rules", {}) if isinstance(rules, dict) else {},
        )
    except ValueError as error:
        raise InputError(str(error)) from error
    if form == "json":
        print(json.dumps(comparison.data(result), indent=2))
    else:
        print(
            visible(f"{result.verdict.capitalize()}. {result.sentence}"),
            *map(visible, comparison.what_got_worse(result)),
            *(visible(f"Not compared: {one}.") for one in result.not_compared),
            sep="\n",
        )
    if result.verdict == "not comparable":
        return Code.UNKNOWN
    return Code.NO if fail_if and comparison.refused(result, fail_if) else Code.GOOD


@reported(_CODES)
def why(folder: Path, *, form: Form = "text") -> int:
    """Print why Karpenter chose each node of a report."""
    from .reports import reasons
    from .reports.reading import ReportError
    from .reports.reading import read as read_report
    from .reports.writing import read_timeline_info

    timeline = folder / TIMELINE
    if not (folder / "report.json").exists() and timeline.is_file():
        _refuse_whatif(folder, read_timeline_info(timeline).scenarios)
    try:
        found = read_report(folder / "report.json")
        print(json.dumps(reasons.data(found), indent=2) if form == "json" else reasons.markdown(found))
    except ReportError as error:
        raise InputError(f"{folder}: {error}") from error
    return Code.GOOD


def schema() -> int:
    """Print the JSON schema of report.json."""
    from .reports.schema import Report

    print(json.dumps(Report.model_json_schema(), indent=2))
    return Code.GOOD


def _made(folder: Path, source: Source) -> dict[str, Any]:
    """The report of a folder's timeline, of the scenarios that it tells of."""
    from .reports import report as reports
    from .reports.writing import read_timeline_info, with_evidence_in

    timeline, folder_of_scenarios = folder / TIMELINE, source.scenarios or SCENARIOS
    if not os.path.lexists(timeline):
        raise InputError(f"{timeline}: is not there, so there is nothing to judge; name the folder of a report")
    about = read_timeline_info(timeline)
    _refuse_whatif(folder, about.scenarios)
    if not about.scenarios:
        raise InputError(f"{timeline}: has no story, so there is nothing to judge: the run ended before its first one")
    stack = Stack(source.stack, json_file.outputs(source.outputs)) if source.stack and source.outputs else about.stack
    if stack is None:
        raise InputError(
            f"{timeline}: its START line names no stack, so it is not known what its stories ran on; give it with "
            "--stack NAME --outputs FILE"
        )
    environment = environment_of_outputs(stack.outputs)
    if environment is None:
        raise InputError(f"{timeline}: stack {stack.name} is of no kind that has scenarios, so it cannot be judged")
    scenarios = {scenario.name: scenario for scenario in load(folder_of_scenarios)}
    if missing := [name for name in about.scenarios if name not in scenarios]:
        raise InputError(
            f"{timeline}: tells of {', '.join(missing)}, of which {folder_of_scenarios} has no file, so that they "
            "could not be judged; name the folder that has them with --scenarios"
        )
    made = reports.make(
        [scenarios[name].in_environment(environment.kind) for name in about.scenarios],
        Reader(timeline).new_lines(),
        stack,
        facts=Facts.load(environment.cloud, FOLDER),
        # Those that ship have limits of their own beside one's own scenarios.
        thresholds=Thresholds.load(source.thresholds or THRESHOLDS, names(folder_of_scenarios, SCENARIOS)),
        version=version(),
    )
    return with_evidence_in(folder, made)


def _refuse_whatif(folder: Path, scenarios: Sequence[str]) -> None:
    """A what-if is no story: nothing is expected of it, and its nodes are told of in its own answer.

    Raises:
        InputError: The scenarios are a what-if's.
    """
    if WHATIF in scenarios:
        raise InputError(
            f"{folder}: is the folder of a what-if, which has no report. Its answer, whatif.html there, says of each "
            "node why it went, came or stayed; without one, make it with "
            f"`karpstack whatif report {folder} --snapshot FILE`"
        )


def _shown(made: dict[str, Any], form: Form) -> int:
    from .reports import report as reports
    from .reports.table import table

    if form == "json":
        print(json.dumps(made, indent=2))
    else:
        print(table(made), *reports.failures(made), sep="\n")
    return Code.GOOD if made["passed"] else Code.NO
