"""The command line: `karpstack scenario check|scenario|record|wait|publish-image|judge|report|why|compare|schema`.

The playbooks use modules. What only some commands need is imported by them: charts and the lower bound take seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from karpstack.karpenter.instance_types import FOLDER, Facts, FactsError
from karpstack.text.shown import visible
from karpstack.text.yaml_file import YamlError, read

from .numbers.thresholds import WHATIF, Thresholds, ThresholdsError
from .recording.process import RecorderError, wait_until_recorded
from .recording.timeline import Reader, TimelineError, now, parse_time
from .reports.folder import TIMELINE
from .scenarios import start
from .scenarios.choosing import check_names
from .scenarios.environments import Stack, StackError, known
from .scenarios.scenario import ScenarioError, load, names, parse
from .version import version

_PLAYBOOKS = Path(__file__).resolve().parents[2] / "playbooks"
_SCENARIOS = _PLAYBOOKS / "scenarios"
_TOKEN = "KARPSTACK_METRICS_TOKEN"  # noqa: S105 - the name of a variable
_REHEARSAL = "KARPSTACK_REHEARSAL_URL"
_RECORDER_SECONDS = 30.0

FAILED, WRONG, NOT_COMPARABLE = 1, 2, 3


class InputError(ValueError):
    """Something that was given cannot be used; the message names it, and has the fix."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Returns:
        0; 1 if a story failed, or a comparison found what `--fail-if` says; 2 if something that was given cannot be
        used; 3 if two reports are not comparable.
    """
    given = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = given.command
    try:
        return command(given)
    except BrokenPipeError:
        raise  # nobody reads the rest: see `output.run`
    except (
        InputError,
        FactsError,
        OSError,
        RecorderError,
        ScenarioError,
        StackError,
        ThresholdsError,
        TimelineError,
        YamlError,
    ) as error:
        print(f"error: {visible(error)}", file=sys.stderr)
        return WRONG


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="karpstack", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, command: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(command=command)
        return added

    checking = add(
        "check", _check, "check scenarios, and the names and labels by which they are chosen; needs no stack"
    )
    checking.add_argument("folder", type=Path, nargs="?", default=_SCENARIOS, help="theirs")
    checking.add_argument("--names", default="", help="separated by commas")
    checking.add_argument("--labels", default="", help="separated by commas")
    checking.add_argument("--tags", dest="labels", help=argparse.SUPPRESS)  # until 0.1, but Ansible's are another thing

    beginning = add("scenario", _scenario, "write a scenario to begin with, with comments; nothing is overwritten")
    beginning.add_argument("name", help="its name, and the file's")
    beginning.add_argument("--folder", type=Path, default=Path("my-scenarios"), help="where to; it is made")

    recording = add("record", _record, "record the cluster that KUBECONFIG names, until SIGTERM")
    recording.add_argument("timeline", type=Path, help="the file to append to")
    recording.add_argument("--stack", required=True, help="name of the stack")
    recording.add_argument("--outputs", type=Path, required=True, help="what `pulumi stack output --json` printed")
    recording.add_argument("--metrics-url", help=f"the controller's metrics; their token is that of {_TOKEN}")

    waiting = add("wait", _wait, "wait until a step of a scenario has come to its end, and judge it")
    waiting.add_argument("timeline", type=Path, help="the file that a recorder writes")
    waiting.add_argument("scenario", type=Path, help="the scenario's file")
    waiting.add_argument("step", type=int, help="the step, from 1")

    publishing = add(
        "publish-image",
        _publish_image,
        "let the rehearsed cloud publish a newer image of nodes, and start Karpenter anew, so that it hears of it now",
    )
    publishing.add_argument("--namespace", default="kube-system", help="the controller's")

    for name, command, text in (
        ("judge", _judge, "judge a timeline, however old, by today's scenarios; nothing is written"),
        ("report", _report, "judge a timeline and write report.json, report.html and junit.xml"),
    ):
        judging = add(name, command, text)
        judging.add_argument("folder", type=Path, help=f"a report's folder, with {TIMELINE} in it")
        judging.add_argument("--scenarios", type=Path, default=_SCENARIOS, help="their folder")
        judging.add_argument("--thresholds", type=Path, default=_PLAYBOOKS / "thresholds.yml", help="limits")
        judging.add_argument("--stack", help="name of the stack, where the timeline does not say")
        judging.add_argument("--outputs", type=Path, help="the stack's outputs, where the timeline does not say")
        if name == "report":
            judging.add_argument("--output", type=Path, help="where to write; the same folder if not said")

    asking = add("why", _why, "print, as Markdown, why each node of a report is the one that it is")
    asking.add_argument("folder", type=Path, help="a report's folder, with report.json in it")

    add("schema", _schema, "print the JSON schema of report.json")

    comparing = add("compare", _compare, "compare two reports and write a page; exit code 3 if they are not comparable")
    comparing.add_argument("before", type=Path, help="folder of the report to compare with")
    comparing.add_argument("after", type=Path, help="folder of the report that is judged")
    comparing.add_argument("--output", type=Path, help="the page; comparison.html in AFTER if not said")
    comparing.add_argument("--rules", type=Path, default=_PLAYBOOKS / "vars" / "comparison.yml", help="differences")
    comparing.add_argument(
        "--fail-if",
        choices=("worse", "any-worse"),
        help="exit with 1: if the verdict is worse; or if any value got worse, or any story fails now",
    )
    return parser


def _check(given: argparse.Namespace) -> int:
    scenarios = load(given.folder)
    check_names(scenarios, _words(given.names), _words(given.labels))
    print(f"{len(scenarios)} scenarios in {given.folder}: nothing is wrong with them")
    return 0


def _scenario(given: argparse.Namespace) -> int:
    try:
        path = start.write(given.folder, given.name)
    except FileExistsError as error:
        raise InputError(f"{error.filename} is there already and would be lost; give another name") from error
    print(f"{path}: change it, and run it with: karpstack run eks --scenario-dir {given.folder}")
    return 0


def _words(text: str) -> list[str]:
    """Of a list with commas."""
    return [word for each in text.split(",") if (word := each.strip())]


def _record(given: argparse.Namespace) -> int:
    from .recording.record import RecordedError, Sources, record

    sources = Sources(None, given.metrics_url, os.environ.get(_TOKEN, ""), FOLDER)
    try:
        print(record(given.timeline, Stack(given.stack, _outputs(given.outputs)), sources))
    except RecordedError as error:
        raise InputError(str(error)) from error
    return 0


def _wait(given: argparse.Namespace) -> int:
    from .judging.gate import wait_for_end
    from .judging.live import Live

    scenario = parse(read(given.scenario), given.scenario.name)
    if not 1 <= given.step <= len(scenario.steps):
        raise InputError(
            f"step {given.step}: {scenario.name} has {len(scenario.steps)}, so there is nothing to wait for"
        )
    wait_until_recorded(given.timeline, _RECORDER_SECONDS)
    assertions = wait_for_end(Live(given.timeline), scenario, given.step - 1, parse_time(now()))
    for assertion in assertions:
        print(f"{'passed' if assertion.passed else 'FAILED'}: {visible(assertion.message)}")
    return 0 if all(assertion.passed for assertion in assertions) else FAILED


def _publish_image(given: argparse.Namespace) -> int:
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
        print(f"started anew: {', '.join(kill_controller(given.namespace))}")
    except (FaultError, RehearsalError) as error:
        raise InputError(str(error)) from error
    return 0


def _judge(given: argparse.Namespace) -> int:
    return _shown(_made(given))


def _report(given: argparse.Namespace) -> int:
    from .reports.writing import write

    made = _made(given)
    folder = given.output or given.folder
    folder.mkdir(parents=True, exist_ok=True)
    write(made, given.folder / TIMELINE, folder)
    return _shown(made)


def _compare(given: argparse.Namespace) -> int:
    from .reports import comparison
    from .reports.comparing import compare_reports

    rules = read(given.rules)
    try:
        result, _ = compare_reports(
            given.before,
            given.after,
            given.output or given.after / "comparison.html",
            rules.get("comparison_rules", {}) if isinstance(rules, dict) else {},
        )
    except ValueError as error:
        raise InputError(str(error)) from error
    print(
        visible(f"{result.verdict.capitalize()}. {result.sentence}"),
        *map(visible, comparison.what_got_worse(result)),
        sep="\n",
    )
    if result.verdict == "not comparable":
        return NOT_COMPARABLE
    return FAILED if given.fail_if and comparison.refused(result, given.fail_if) else 0


def _why(given: argparse.Namespace) -> int:
    from .reports.reading import ReportError
    from .reports.reading import read as read_report
    from .reports.reasons import markdown
    from .reports.writing import told

    timeline = given.folder / TIMELINE
    if not (given.folder / "report.json").exists() and timeline.is_file():
        _refuse_whatif(given.folder, told(timeline).scenarios)
    try:
        print(markdown(read_report(given.folder / "report.json")))
    except ReportError as error:
        raise InputError(f"{given.folder}: {error}") from error
    return 0


def _schema(given: argparse.Namespace) -> int:
    from .reports.schema import Report

    print(json.dumps(Report.model_json_schema(), indent=2))
    return 0


def _made(given: argparse.Namespace) -> dict[str, Any]:
    """The report of a folder's timeline, of the scenarios that it tells of."""
    from .reports import report
    from .reports.writing import told, with_evidence_in

    timeline = given.folder / TIMELINE
    if not timeline.is_file():
        raise InputError(f"{timeline}: is not there, so there is nothing to judge; name the folder of a report")
    about = told(timeline)
    _refuse_whatif(given.folder, about.scenarios)
    stack = Stack(given.stack, _outputs(given.outputs)) if given.stack and given.outputs else about.stack
    if stack is None:
        raise InputError(
            f"{timeline}: its START line names no stack, so it is not known what its stories ran on; give it with "
            "--stack NAME --outputs FILE"
        )
    environment = known(stack.outputs)
    if environment is None:
        raise InputError(f"{timeline}: stack {stack.name} is of no kind that has scenarios, so it cannot be judged")
    scenarios = {scenario.name: scenario for scenario in load(given.scenarios)}
    if missing := [name for name in about.scenarios if name not in scenarios]:
        raise InputError(
            f"{timeline}: tells of {', '.join(missing)}, of which {given.scenarios} has no file, so that they could "
            "not be judged; name the folder that has them with --scenarios"
        )
    made = report.make(
        [scenarios[name].in_environment(environment.kind) for name in about.scenarios],
        Reader(timeline).new_lines(),
        stack,
        facts=Facts.load(environment.cloud, FOLDER),
        # Those that ship have limits of their own beside one's own scenarios.
        thresholds=Thresholds.load(given.thresholds, names(given.scenarios, _SCENARIOS)),
        version=version(),
    )
    return with_evidence_in(given.folder, made)


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


def _shown(made: dict[str, Any]) -> int:
    from .reports import report
    from .reports.table import table

    print(table(made), *report.failures(made), sep="\n")
    return 0 if made["passed"] else FAILED


def _outputs(path: Path) -> dict[str, Any]:
    try:
        outputs = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path}: is not JSON ({error}); write it with `pulumi stack output --json`") from error
    if not isinstance(outputs, dict):
        raise InputError(f"{path}: is no object of outputs; write it with `pulumi stack output --json`")
    return outputs
