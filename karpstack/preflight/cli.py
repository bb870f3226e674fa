"""The command line: `karpstack preflight STACK`, and `... destroy`, `rights`, `ids` or `facts` before other words."""

from __future__ import annotations

import argparse
import html
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from karpstack.text import files, findings
from karpstack.text.markdown import escape
from karpstack.text.shown import visible

from . import importing
from .finding import Checked, NotAskedError, UnknowableError, in_the_way
from .granting import rights, told
from .looking import PROJECT, before_destroy, before_up, identifiers
from .refresh.command import main as refresh
from .shown import as_data, each, headline, table
from .stack import configuration

FOUND, UNKNOWABLE = 1, 2
_DESTROY: Final = "destroy"
_RIGHTS: Final = "rights"
_IDS: Final = "ids"
_FACTS: Final = "facts"
#: What `--format` takes: how a title and the checks are shown.
_FORMATS: Final[Mapping[str, Callable[[str, Sequence[Checked]], str]]] = {
    "table": table,
    "json": lambda title, checked: json.dumps(as_data(checked), indent=2),
    "markdown": lambda title, checked: f"## {escape(title)}\n\n{findings.as_markdown(each(checked), 'JSON')}",
    "html": lambda title, checked: f"<h2>{html.escape(visible(title))}</h2>\n{findings.as_html(each(checked))}",
    "sarif": lambda title, checked: findings.as_sarif(each(checked), "karpstack preflight"),
}
_ACCOUNT: Final = re.compile(r"[0-9]{12}")
_STATUSES: Final = (
    "Exit code 0: nothing is in the way; 1: something is; 2: nothing could be asked. Nothing is created or changed."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Look, and show what was found.

    Returns:
        0; 1 where something is in the way; 2 where nothing could be asked.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == [_RIGHTS]:
        return _rights(_rights_parser().parse_args(words[1:]))
    if words[:1] == [_IDS]:
        return _ids(_ids_parser().parse_args(words[1:]))
    if words[:1] == [_FACTS]:
        return refresh(words[1:])
    destroy = words[:1] == [_DESTROY]
    given = _parser(destroy).parse_args(words[1:] if destroy else words)
    try:
        checked = _look(given, destroy)
    except UnknowableError as error:
        print(f"error: {visible(error)}", file=sys.stderr)
        return UNKNOWABLE
    title = f"{'Before pulumi destroy' if destroy else 'Before pulumi up'} of {given.stack}: {headline(checked)}"
    print(_FORMATS["json" if given.json else given.format](title, checked).rstrip())
    return FOUND if in_the_way(checked) else 0


def _look(given: argparse.Namespace, destroy: bool) -> list[Checked]:
    project = given.project.resolve()
    if not destroy:
        return before_up(given.stack, project=project, config_file=given.config_file)
    outputs = None
    if given.outputs:
        try:
            outputs = json.loads(given.outputs.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise UnknowableError(
                f"--outputs {given.outputs} can't be read ({error}); write it with `pulumi stack output --json`"
            ) from error
        if not isinstance(outputs, dict):
            raise UnknowableError(
                f"--outputs {given.outputs} holds no outputs: it is {type(outputs).__name__} in JSON and no object; "
                "write it with `pulumi stack output --json`"
            )
    return before_destroy(
        given.stack, project=project, outputs=outputs, kubeconfig=given.kubeconfig, config_file=given.config_file
    )


def _rights(given: argparse.Namespace) -> int:
    try:
        found = rights(
            configuration(given.config_file or given.project.resolve() / f"Pulumi.{given.stack}.yaml"), given.account
        )
    except UnknowableError as error:
        print(f"error: {visible(error)}", file=sys.stderr)
        return UNKNOWABLE
    print(json.dumps(found, indent=2) if given.json else told(given.stack, found))
    return 0


def _ids(given: argparse.Namespace) -> int:
    try:
        # It is written over, so it must be a file itself; that it is Pulumi's, its reader sees.
        files.check_output(given.file, "FILE", "file of `pulumi preview --import-file`", lambda it: b"{" in it)
        file, preview = importing.read(given.file, "resources"), importing.read(given.preview, "steps")
        identify = identifiers(given.stack, project=given.project.resolve(), config_file=given.config_file)
        filled = importing.fill(file, preview, identify)
    except NotAskedError as error:
        print(f"error: {error.call}: {visible(error)}; {given.file} is as it was", file=sys.stderr)
        return UNKNOWABLE
    except (UnknowableError, files.OutputError) as error:
        print(f"error: {visible(error)}", file=sys.stderr)
        return UNKNOWABLE
    files.write(given.file, json.dumps(filled.content, indent=4) + "\n")
    print(visible(importing.told(given.file, filled)))
    return 0


def _ids_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="karpstack preflight ids",
        description="Fill the IDs of what the account has already into the file that `pulumi preview --import-file` "
        "wrote, for `pulumi import --file`. Nothing else is written, created or changed.",
    )
    _add_stack(parser)
    parser.add_argument("file", type=Path, help="import.json, which is written anew")
    parser.add_argument("preview", type=Path, help="what the same preview printed with --json")
    return parser


def _account(text: str) -> str:
    if not _ACCOUNT.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no account of AWS, so no ARN could be made; give its 12 digits")
    return text


def _rights_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="karpstack preflight rights",
        description="What whoever deploys a stack has to be given, for that stack's own names: policies of AWS, each "
        "of a size that IAM takes, or a role of Azure with its assignments and their conditions.",
    )
    parser.add_argument(
        "--account",
        type=_account,
        metavar="ID",
        help="the AWS account (default: the one of aws:allowedAccountIds, or of the credentials at hand)",
    )
    _add_common(parser)
    return parser


def _parser(destroy: bool) -> argparse.ArgumentParser:
    if destroy:
        parser = argparse.ArgumentParser(
            prog="karpstack preflight destroy",
            description=f"What would block `pulumi destroy` of a stack, or outlive it. {_STATUSES}",
        )
        parser.add_argument("--outputs", type=Path, metavar="FILE", help="the stack's outputs (default: Pulumi's)")
        parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help="the cluster's (default: KUBECONFIG's)")
    else:
        parser = argparse.ArgumentParser(
            prog="karpstack preflight",
            description="What is in the way of `pulumi up` of a stack in the account of these credentials. "
            f"{_STATUSES} `karpstack preflight destroy --help` tells of the look before `pulumi destroy`, "
            "`karpstack facts --help` of newer prices, types and versions.",
        )
    parser.add_argument("--format", choices=_FORMATS, default="table", help="how findings are shown (default: table)")
    _add_common(parser)
    return parser


def _add_common(parser: argparse.ArgumentParser) -> None:
    _add_stack(parser)
    parser.add_argument("--json", action="store_true", help="write JSON")


def _add_stack(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config-file", type=Path, metavar="FILE", help="the configuration (default: Pulumi.<stack>.yaml)"
    )
    parser.add_argument("stack", help="name of the stack: eks, for Pulumi.eks.yaml")
    parser.add_argument(
        "--project", type=Path, default=PROJECT, help="folder with Pulumi.yaml (default: the checkout of this file)"
    )
