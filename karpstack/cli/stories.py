"""`karpstack scenario`, `story`, `report`, `compare` and `why`: scale tests, their recordings and reports."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from .options import Format, argument, option
from .shape import command, group

scenarios = group("scenario", "Write, check and list the scenarios of scale tests.")
stories = group(
    "story", "Run the parts of a scale test one by one: record a cluster, wait for a step, judge a recording."
)

_Folder = Annotated[Path, argument("FOLDER", "folder of a report, with timeline.jsonl in it")]
_Scenarios = Annotated[
    Path | None, option("--scenarios", metavar="FOLDER", help="folder of the scenarios (default: playbooks/scenarios)")
]
_Thresholds = Annotated[
    Path | None, option("--thresholds", metavar="FILE", help="limits (default: playbooks/thresholds.yml)")
]
_StackName = Annotated[
    str | None, option("--stack", metavar="NAME", help="name of the stack, if the timeline does not contain it")
]
_Outputs = Annotated[
    Path | None,
    option(
        "--outputs",
        metavar="FILE",
        help="output of `pulumi stack output --json`, if the timeline does not contain it",
    ),
]


@command(scenarios, "new", "karpstack scenario new my-first\nkarpstack run eks --scenario-dir my-scenarios")
def _new(
    name: Annotated[str, argument("NAME", "name of the scenario, and of its file")],
    folder: Annotated[
        Path, option("--folder", metavar="FOLDER", help="where to write it (default: my-scenarios)")
    ] = Path("my-scenarios"),
) -> int:
    """Write a commented example scenario. Existing files are kept."""
    from karpstack.scale_test import commands

    return commands.new(name, folder)


@command(scenarios, "check", "karpstack scenario check my-scenarios")
def _check(
    folder: Annotated[
        Path | None, argument("FOLDER", "folder with scenario files (default: playbooks/scenarios)")
    ] = None,
    names: Annotated[str, option("--names", metavar="NAMES", help="names to look for, separated by commas")] = "",
    labels: Annotated[str, option("--labels", metavar="LABELS", help="labels to look for, separated by commas")] = "",
) -> int:
    """Check scenario files, and the names and labels by which they are chosen. Needs no stack."""
    from karpstack.scale_test import commands

    return commands.check(folder, scenarios=names, labels=labels)


@command(scenarios, "list", "karpstack scenario list")
def _list(
    folder: Annotated[
        Path | None, argument("FOLDER", "folder with scenario files (default: playbooks/scenarios)")
    ] = None,
    form: Format = "text",
) -> int:
    """List scenarios with their labels and what each shows."""
    from karpstack.scale_test import commands

    return commands.list_scenarios(folder, form=form)


@command(stories, "record", "karpstack story record timeline.jsonl --stack eks --outputs outputs.json")
def _record(
    timeline: Annotated[Path, argument("TIMELINE", "file to which lines are appended")],
    stack: Annotated[str, option("--stack", metavar="NAME", help="name of the stack")],
    outputs: Annotated[Path, option("--outputs", metavar="FILE", help="what `pulumi stack output --json` printed")],
    metrics_url: Annotated[
        str | None,
        option(
            "--metrics-url",
            metavar="URL",
            help="metrics of the controller; KARPSTACK_METRICS_TOKEN has the token",
        ),
    ] = None,
) -> int:
    """Record the cluster that KUBECONFIG names, until SIGTERM."""
    from karpstack.scale_test import commands

    return commands.record(timeline, stack=stack, outputs=outputs, metrics_url=metrics_url)


@command(stories, "wait", "karpstack story wait timeline.jsonl playbooks/scenarios/drift.yml 1")
def _wait(
    timeline: Annotated[Path, argument("TIMELINE", "file that a recorder writes")],
    scenario: Annotated[Path, argument("SCENARIO", "file of the scenario")],
    step: Annotated[int, argument("STEP", "number of the step, from 1")],
) -> int:
    """Wait until a step of a scenario has ended, and judge it."""
    from karpstack.scale_test import commands

    return commands.wait(timeline, scenario, step)


@command(stories, "publish-image", "karpstack story publish-image")
def _publish_image(
    namespace: Annotated[
        str, option("--namespace", metavar="NAME", help="namespace of the controller (default: kube-system)")
    ] = "kube-system",
) -> int:
    """Let the simulated cloud publish a newer node image, and restart Karpenter so that it finds the image at once."""
    from karpstack.scale_test import commands

    return commands.publish_image(namespace)


@command(stories, "judge", "karpstack story judge build/rehearsal/eks")
def _judge(
    folder: _Folder,
    scenarios: _Scenarios = None,
    thresholds: _Thresholds = None,
    stack: _StackName = None,
    outputs: _Outputs = None,
    form: Format = "text",
) -> int:
    """Judge a recorded timeline again, with the current scenario files. Writes nothing.

    Exit code 1: a story failed.
    """
    from karpstack.scale_test import commands

    return commands.judge(folder, commands.Source(scenarios, thresholds, stack, outputs), form=form)


@command(stories, "schema", "karpstack story schema > report.schema.json")
def _schema() -> int:
    """Print the JSON schema of report.json."""
    from karpstack.scale_test import commands

    return commands.schema()


def _report(
    folder: _Folder,
    scenarios: _Scenarios = None,
    thresholds: _Thresholds = None,
    stack: _StackName = None,
    outputs: _Outputs = None,
    output: Annotated[
        Path | None, option("--output", metavar="FOLDER", help="where to write (default: the same folder)")
    ] = None,
    form: Format = "text",
) -> int:
    """Judge a timeline and write report.json, report.html and junit.xml.

    Exit code 1: a story failed.
    """
    from karpstack.rehearsal.state import ancestors, ownership
    from karpstack.scale_test import commands
    from karpstack.text.codes import Code, reported

    source = commands.Source(scenarios, thresholds, stack, outputs)
    place = partial(ownership.place_results, option="--output")
    refused = reported({ancestors.ExposedError: Code.WRONG, ownership.OwnershipError: Code.WRONG})
    return refused(commands.report)(folder, source, place, output=output, form=form)


def _compare(
    before: Annotated[Path, argument("BEFORE", "folder of the report to compare with")],
    after: Annotated[Path, argument("AFTER", "folder of the report that is judged")],
    output: Annotated[
        Path | None, option("--output", metavar="FILE", help="the page (default: comparison.html in AFTER)")
    ] = None,
    rules: Annotated[
        Path | None,
        option(
            "--rules",
            metavar="FILE",
            help="file with the margins for differences (default: playbooks/vars/comparison.yml)",
        ),
    ] = None,
    fail_if: Annotated[
        Literal["worse", "any-worse"] | None,
        option(
            "--fail-if",
            help="exit with 1 if the verdict is worse; or if any value got worse, any story fails now or was not run",
        ),
    ] = None,
    form: Format = "text",
) -> int:
    """Compare two reports and write a page."""
    from karpstack.scale_test import commands

    return commands.compare(before, after, output=output, rules_file=rules, fail_if=fail_if, form=form)


def _why(
    folder: Annotated[Path, argument("FOLDER", "folder of a report, with report.json in it")], form: Format = "text"
) -> int:
    """Print, as Markdown or JSON, why Karpenter chose each node of a report."""
    from karpstack.scale_test import commands

    return commands.why(folder, form=form)


def add(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.add_typer(scenarios)
    app.add_typer(stories)
    command(app, "report", "karpstack report build/rehearsal/eks")(_report)
    command(app, "compare", "karpstack compare old-report build/rehearsal/eks --fail-if worse")(_compare)
    command(app, "why", "karpstack why build/rehearsal/eks")(_why)
