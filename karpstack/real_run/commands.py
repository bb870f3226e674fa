"""What `karpstack real-run cost|left|remove|compare` do: each function is one command, and returns its exit code.

The page docs/how-to/first-real-run.md says when each is used.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

from azure.core.exceptions import AzureError
from botocore.exceptions import BotoCoreError
from pydantic import ValidationError

from karpstack.components.naming import EksNames
from karpstack.components.settings import AksSettings, EksSettings
from karpstack.preflight.answers import OTHER_SHAPE
from karpstack.preflight.aws.account import connect
from karpstack.preflight.aws.asking import LOGIN_FAILED, login_failure
from karpstack.preflight.aws.sessions import session
from karpstack.preflight.azure.asking import Azure
from karpstack.preflight.azure.credentials import login
from karpstack.preflight.finding import InputError, NotAskedError, UnknowableError, blockers, not_checked
from karpstack.preflight.output import as_data, table
from karpstack.preflight.stack import Configuration, configuration, deployer
from karpstack.scale_test.reports import reading
from karpstack.text import files, json_file
from karpstack.text.aws_login import FAILURES
from karpstack.text.codes import Code, reported, say_error
from karpstack.text.projects import find_project
from karpstack.text.shown import visible

from . import removal_aws, removal_azure
from .comparison import TITLE, Run, page
from .cost import bill, chosen
from .leftovers import TAG, Stays, where
from .leftovers import find_leftovers as find_left

_RUN: Final = "run.json"
_REPORT: Final = "report.json"
_DEPTH, _VALUES = 100, 2_000_000  # of JSON that is read
#: What the clients of both clouds raise for a refusal, a server that is none of the cloud's, and a failed login.
_REFUSALS: Final = (AzureError, ArithmeticError, NotAskedError, *FAILURES)
Form = Literal["text", "json"]
#: A run that ends earlier has not come to the stories.
_LEAST: Final = 30.0
_CODES: Final[Mapping[type[BaseException], Code]] = {
    InputError: Code.WRONG,
    files.OutputError: Code.WRONG,
    UnknowableError: Code.UNKNOWN,
    NotAskedError: Code.UNKNOWN,
    OSError: Code.WRONG,
}


def _print_error(error: BaseException) -> None:
    say_error(UnknowableError(f"{error.call}: {error}") if isinstance(error, NotAskedError) else error)


@reported(_CODES, _print_error)
def cost(
    stack: str,
    report: Path,
    *,
    scenarios: str = "",
    labels: str = "",
    config_file: Path | None = None,
    ceiling: float = 3.0,
    form: Form = "text",
) -> int:
    """Print what a run of the stack costs, and when it must end."""
    configured = _configured(stack, config_file)
    _run_of(configured, stack)
    if getattr(configured.settings.cluster, "deletion_protection", False):
        raise InputError(
            f"Pulumi.{stack}.yaml: karpstack:cluster.deletionProtection = true, so the run could not destroy "
            "what it made; set it to false"
        )
    stories = chosen(_checked(report, _report(report)), stack, _names(scenarios), _names(labels))
    found = bill(configured.settings, stories)
    minutes = found.minutes_until(ceiling)
    enough = found.usd <= ceiling and minutes >= _LEAST
    if form == "json":
        names = ",".join(str(story["name"]) for story in stories)
        print(json.dumps({"usd": found.usd, "minutes": minutes, "enough": enough, "scenarios": names}))
    else:
        for what, usd in found.rows:
            print(f"{usd:8.3f} USD an hour: {what}")
        print(f"{found.hourly:8.3f} USD an hour: all of these, with half as much for disks, traffic and dearer regions")
        print(f"{found.stories:8.3f} USD: nodes of the stories, by the rehearsal, living three times as long")
        if unknown := sorted({name for story in stories for name in story["cost"]["unknown"]}):
            print(f"{0:8.3f} USD: nodes of {visible(', '.join(unknown))}, whose prices the rehearsal does not know")
        print(f"{found.usd:8.2f} USD: expected in about {found.minutes:.0f} minutes")
        print(f"At the latest after {max(minutes, 0):.0f} minutes everything is destroyed: {ceiling:g} USD at most.")
    if not enough:
        print(
            f"error: a ceiling of {ceiling:g} USD is too low: the run is expected to cost {found.usd:.2f} USD, "
            f"and needs {_LEAST:.0f} minutes before it is destroyed; raise the ceiling, or choose smaller system nodes",
            file=sys.stderr,
        )
    return Code.GOOD if enough else Code.NO


@reported(_CODES, _print_error)
def list_leftovers(stack: str, *, config_file: Path | None = None, form: Form = "text") -> int:
    """List what is left of the stack in its account after `pulumi destroy`."""
    place, checked = find_left(_configured(stack, config_file))
    unknown = not_checked(checked)
    found = blockers(checked)
    notes = any(check.findings for check in checked)
    title = f"After pulumi destroy of {stack}, in {place}: " + (
        f"{len(found)} things are left"
        if found
        else "not everything could be asked"
        if unknown
        else f"nothing is left{' but what the notes name' if notes else ''}"
    )
    if form == "json":
        print(visible(title), file=sys.stderr)
    print(json.dumps(as_data(checked), indent=2) if form == "json" else table(title, checked))
    return Code.NO if found else Code.UNKNOWN if unknown else Code.GOOD


@reported(_CODES, _print_error)
def remove(stack: str, *, config_file: Path | None = None, yes: bool = False) -> int:
    """Delete everything that has the stack's tag of the run."""
    configured = _configured(stack, config_file)
    settings, run = configured.settings, _run_of(configured, stack)
    if not yes:
        print(f"Everything with the tag {TAG}={visible(run)} would be deleted. Add --yes to delete it.")
        return Code.NO
    if isinstance(settings, EksSettings):
        profile, roles = deployer(configured.raw)
        if roles:
            raise InputError(
                "aws:assumeRoles is set, and the kill switch uses the credentials at hand; take the role yourself, or "
                "give a profile that does"
            )
        aws = connect(settings.region, configured.raw)
        print(visible(f"In {where(aws)}:"), flush=True)
        client = session(profile, settings.region, is_short=False).client
        lines = removal_aws.remove(aws, client, EksNames(settings.name), run)
    elif isinstance(settings, AksSettings):
        found = login(configured.raw)
        print(visible(f"In the subscription {settings.subscription_id}, as {found.words}:"), flush=True)
        lines = removal_azure.remove(Azure(settings.subscription_id, found), found, run)
    else:
        raise InputError("the stack is on an existing cluster, of which nothing is removed by a tag")
    is_all_gone = is_empty = True
    try:
        for line in lines:
            print(visible(line), flush=True)
            is_empty = False
            is_all_gone &= not isinstance(line, Stays)
    except _REFUSALS as error:
        is_login = isinstance(error, LOGIN_FAILED) and not isinstance(error, (BotoCoreError, *OTHER_SHAPE))
        what = error.call if isinstance(error, NotAskedError) else type(error).__name__
        why = login_failure(error) if is_login else f"{what}: {error}"
        raise UnknowableError(
            f"the removal ends early, because the cloud did not do as asked ({why}), so the rest stays and costs; mend "
            "that, and run the command again, which goes on where it ended"
        ) from error
    if is_empty:
        print(visible(f"Nothing there has the tag {TAG}={run}."))
    print(f"See what is left: karpstack real-run left {visible(stack)}")
    return Code.GOOD if is_all_gone else Code.NO


@reported(_CODES, _print_error)
def compare(rehearsed: Path, real: Path, output: Path) -> int:
    """Write a page that compares a real run with its rehearsal."""
    files.check_output(output, "--output", "page of a real run", lambda it: it.startswith(TITLE.encode()))
    folders = {"rehearsed": rehearsed, "real": real}
    runs = {which: _run(folder / _RUN) for which, folder in folders.items() if os.path.lexists(folder / _RUN)}
    reports = {which: _checked(folder, _report(folder)) for which, folder in folders.items()}
    if not set.intersection(*({story["name"] for story in one["stories"]} for one in reports.values())):
        raise InputError(f"{rehearsed} and {real} have no story in common, so there is nothing to compare")
    text = page(reports["rehearsed"], reports["real"], runs)
    files.write(output, text)
    print(f"{visible(output)}: it names no cluster, node, account or person")
    return Code.GOOD


def _configured(stack: str, config_file: Path | None) -> Configuration:
    return configuration(config_file or find_project() / f"Pulumi.{stack}.yaml")


def _run_of(configured: Configuration, stack: str) -> str:
    """The value of the run's tag.

    Raises:
        InputError: The stack has none.
    """
    run = configured.settings.tags.get(TAG)
    if not run:
        raise InputError(
            f"Pulumi.{stack}.yaml: karpstack:tags has no {TAG}, so what the run makes could not be told from the rest; "
            f'write one that is new: pulumi config set --path "karpstack:tags.{TAG}" first-run'
        )
    return run


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _report(folder: Path) -> str:
    """The report of a run, or of a rehearsal."""
    of_run = f"report/{_REPORT}"
    return of_run if (folder / of_run).is_file() else _REPORT


def _checked(folder: Path, name: str) -> dict[str, Any]:
    """A report, every value of which is what its schema says."""
    try:
        return reading.parse(_content(folder, name))
    except reading.ReportError as error:
        raise InputError(f"{folder / name}: {error}") from error


def _content(folder: Path, name: str) -> bytes:
    try:
        content = files.read_result(folder, name, most=reading.BYTES)
    except files.ResultError as error:
        raise InputError(str(error)) from error
    if content is None:
        raise InputError(f"{folder / name}: is not there; rehearse the stack first: make rehearsal STACK=NAME")
    return content


def _run(path: Path) -> Run:
    try:
        return Run.model_validate(json_file.parse(_content(path.parent, path.name), path, depth=_DEPTH, values=_VALUES))
    except json_file.FileError as error:
        why = error.why
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        why = f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg']}"
    raise InputError(f"{path}: {why}; write it again with the run")
