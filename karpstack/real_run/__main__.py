"""The command line: `karpstack real-run cost|left|remove|compare`. docs/how-to/first-real-run.md explains their use."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from boto3.session import Session

from karpstack.components.naming import EksNames
from karpstack.components.settings import AksSettings, EksSettings
from karpstack.preflight.aws.asking import Aws, direct_client
from karpstack.preflight.azure.asking import Azure
from karpstack.preflight.azure.credentials import login
from karpstack.preflight.finding import NotAskedError, UnknowableError, in_the_way
from karpstack.preflight.shown import as_data, table
from karpstack.preflight.stack import Configuration, configuration, deployer
from karpstack.text import files, output
from karpstack.text.shown import visible

from . import removal_aws, removal_azure
from .cost import bill
from .left import TAG, left
from .likeness import page

_FAILED, _WRONG = 1, 2
_RUN: Final = "run.json"
_REPORT: Final = "report.json"
#: A run that ends earlier has not come to the stories.
_LEAST: Final = 30.0


def main(words: Sequence[str] | None = None) -> int:
    """Run a command.

    Returns:
        0; 1 if the ceiling is too low, or something is left; 2 if nothing could be asked, or an input is wrong.
    """
    given = _parser().parse_args(words)
    try:
        command: Callable[[argparse.Namespace], int] = given.command
        return command(given)
    except BrokenPipeError:
        raise  # nobody reads the rest: see `output.run`
    except NotAskedError as error:
        print(f"error: {error.call}: {visible(error)}", file=sys.stderr)
    except (UnknowableError, OSError) as error:
        print(f"error: {visible(error)}", file=sys.stderr)
    return _WRONG


def _cost(given: argparse.Namespace) -> int:
    configured = _configured(given)
    _run_of(configured, given.stack)
    if getattr(configured.settings.cluster, "deletion_protection", False):
        raise UnknowableError(
            f"Pulumi.{given.stack}.yaml: karpstack:cluster.deletionProtection = true, so the run could not destroy "
            "what it made; set it to false"
        )
    found = bill(configured.settings, _read(_report(given.report)))
    minutes = found.minutes_until(given.ceiling)
    enough = found.usd <= given.ceiling and minutes >= _LEAST
    if given.json:
        print(json.dumps({"usd": found.usd, "minutes": minutes, "enough": enough}))
    else:
        for what, usd in found.rows:
            print(f"{usd:8.3f} USD an hour: {what}")
        print(f"{found.hourly:8.3f} USD an hour: all of these, with half as much for disks, traffic and dearer regions")
        print(f"{found.stories:8.3f} USD: nodes of the stories, by the rehearsal, living three times as long")
        print(f"{found.usd:8.2f} USD: expected in about {found.minutes:.0f} minutes")
        print(
            f"At the latest after {max(minutes, 0):.0f} minutes everything is destroyed: {given.ceiling:g} USD at most."
        )
    if not enough:
        print(
            f"error: a ceiling of {given.ceiling:g} USD is too low: the run is expected to cost {found.usd:.2f} USD, "
            f"and needs {_LEAST:.0f} minutes before it is destroyed; raise the ceiling, or choose smaller system nodes",
            file=sys.stderr,
        )
    return 0 if enough else _FAILED


def _left(given: argparse.Namespace) -> int:
    checked = left(_configured(given))
    unknown = [one for check in checked for one in check.findings if one.what.startswith("could not be judged")]
    found = in_the_way(checked)
    notes = any(check.findings for check in checked)
    title = f"After pulumi destroy of {given.stack}: " + (
        f"{len(found)} things are left"
        if found
        else "not everything could be asked"
        if unknown
        else f"nothing is left{' but what the notes name' if notes else ''}"
    )
    print(json.dumps(as_data(checked), indent=2) if given.json else table(title, checked))
    return _FAILED if found or unknown else 0


def _remove(given: argparse.Namespace) -> int:
    configured = _configured(given)
    settings, run = configured.settings, _run_of(configured, given.stack)
    if not given.yes:
        print(f"Everything with the tag {TAG}={run} would be deleted. Add --yes to delete it.")
        return _FAILED
    if isinstance(settings, EksSettings):
        profile, roles = deployer(configured.raw)
        if roles:
            raise UnknowableError(
                "aws:assumeRoles is set, and the kill switch uses the credentials at hand; take the role yourself, or "
                "give a profile that does"
            )
        aws = Aws.connect(settings.region, profile)
        session = Session(profile_name=profile or None, region_name=settings.region)
        lines = removal_aws.remove(aws, partial(direct_client, session), EksNames(settings.name), run)
    elif isinstance(settings, AksSettings):
        found = login(configured.raw)
        lines = removal_azure.remove(Azure(settings.subscription_id, found), found, run)
    else:
        raise UnknowableError("the stack is on an existing cluster, of which nothing is removed by a tag")
    for line in lines:
        print(visible(line), flush=True)
    return 0


def _compare(given: argparse.Namespace) -> int:
    folders = {"rehearsed": given.rehearsed, "real": given.real}
    runs = {which: _read(folder / _RUN) for which, folder in folders.items() if (folder / _RUN).is_file()}
    reports = {which: _read(_report(folder)) for which, folder in folders.items()}
    text = page(reports["rehearsed"], reports["real"], runs)
    files.write(given.output, text)
    print(f"{given.output}: it names no cluster, node, account or person")
    return 0


def _configured(given: argparse.Namespace) -> Configuration:
    return configuration(given.config_file or Path(f"Pulumi.{given.stack}.yaml"))


def _run_of(configured: Configuration, stack: str) -> str:
    """The value of the run's tag.

    Raises:
        UnknowableError: The stack has none.
    """
    run = configured.settings.tags.get(TAG)
    if not run:
        raise UnknowableError(
            f"Pulumi.{stack}.yaml: karpstack:tags has no {TAG}, so what the run makes could not be told from the rest; "
            f'write one that is new: pulumi config set --path "karpstack:tags.{TAG}" first-run'
        )
    return run


def _report(folder: Path) -> Path:
    """The report of a run, or of a rehearsal."""
    of_run = folder / "report" / _REPORT
    return of_run if of_run.is_file() else folder / _REPORT


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UnknowableError(f"{path}: is not there; rehearse the stack first: make rehearsal STACK=NAME") from error
    except ValueError as error:
        raise UnknowableError(f"{path}: is not JSON ({error}); write it again with the run") from error
    if not isinstance(found, dict):
        raise UnknowableError(f"{path}: is no object; write it again with the run")
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="karpstack real-run", description="Parts of playbooks/real_run.yml.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, command: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(command=command)
        if command is not _compare:
            added.add_argument("stack", help="name of the stack, for example real-eks")
            added.add_argument(
                "--config-file", type=Path, metavar="FILE", help="its configuration (default: Pulumi.<stack>.yaml)"
            )
        return added

    costing = add("cost", _cost, "Print what a run of the stack costs, and when it must end.")
    costing.add_argument("--report", type=Path, required=True, help="folder of the rehearsal's report")
    costing.add_argument("--ceiling", type=float, default=3.0, metavar="USD", help="most that it may cost (default: 3)")
    leaving = add("left", _left, "List what is left of the stack in its account after `pulumi destroy`.")
    for one in (costing, leaving):
        one.add_argument("--json", action="store_true", help="write JSON")
    removing = add("remove", _remove, f"Delete everything that has the stack's tag {TAG}: when destroy cannot.")
    removing.add_argument("--yes", action="store_true", help="delete it")
    comparing = add("compare", _compare, "Write a page that compares a real run with its rehearsal.")
    comparing.add_argument("rehearsed", type=Path, help="folder of the rehearsal's report")
    comparing.add_argument("real", type=Path, help="folder of the real run's report")
    comparing.add_argument("--output", type=Path, required=True, metavar="FILE", help="the page, in Markdown")
    return parser


if __name__ == "__main__":
    sys.exit(output.run(main))
