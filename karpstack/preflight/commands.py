"""What `karpstack preflight` and its `destroy`, `rights` and `ids` do: each function returns the exit code."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from karpstack.text import files, findings, json_file
from karpstack.text.codes import Code, reported
from karpstack.text.markdown import escape
from karpstack.text.projects import find_project
from karpstack.text.shown import visible

from . import importing
from .aws.identifiers import Planned
from .checks import before_destroy, before_up, identifiers
from .finding import Checked, InputError, NotAskedError, UnknowableError, blockers
from .granting import as_text
from .granting import rights as permissions
from .output import all_findings, as_data, headline, table
from .stack import configuration

Form = Literal["text", "json", "markdown", "html", "sarif"]
#: How a title and the checks are shown.
_FORMATS: Final[Mapping[Form, Callable[[str, Sequence[Checked]], str]]] = {
    "text": table,
    "json": lambda title, checked: json.dumps(as_data(checked), indent=2),
    "markdown": lambda title, checked: f"## {escape(title)}\n\n{findings.as_markdown(all_findings(checked), 'JSON')}",
    "html": lambda title, checked: f"<h2>{html.escape(visible(title))}</h2>\n{findings.as_html(all_findings(checked))}",
    "sarif": lambda title, checked: findings.as_sarif(all_findings(checked), "karpstack preflight"),
}
_CODES: Final[Mapping[type[BaseException], Code]] = {
    InputError: Code.WRONG,
    json_file.FileError: Code.WRONG,
    UnknowableError: Code.UNKNOWN,
}


@reported(_CODES)
def up(
    stack: str,
    *,
    project: Path | None = None,
    config_file: Path | None = None,
    form: Form = "text",
    look: Callable[..., list[Checked]] = before_up,
) -> int:
    """Show what blocks `pulumi up` of a stack in the account of these credentials; `look` checks."""
    checked = look(stack, project=_folder(project), config_file=config_file)
    return _shown(f"Before pulumi up of {stack}", checked, form)


@reported(_CODES)
def destroy(
    stack: str,
    *,
    project: Path | None = None,
    config_file: Path | None = None,
    outputs: Path | None = None,
    kubeconfig: Path | None = None,
    form: Form = "text",
    look: Callable[..., list[Checked]] = before_destroy,
) -> int:
    """Show what would block `pulumi destroy` of a stack, or outlive it; `look` checks."""
    checked = look(
        stack,
        project=_folder(project),
        outputs=json_file.outputs(outputs) if outputs else None,
        kubeconfig=kubeconfig,
        config_file=config_file,
    )
    return _shown(f"Before pulumi destroy of {stack}", checked, form)


@reported(_CODES)
def rights(
    stack: str,
    *,
    project: Path | None = None,
    config_file: Path | None = None,
    account: str | None = None,
    form: Literal["text", "json"] = "text",
) -> int:
    """Print the permissions that the deployer of a stack needs."""
    found = permissions(configuration(config_file or _folder(project) / f"Pulumi.{stack}.yaml"), account)
    print(json.dumps(found, indent=2) if form == "json" else as_text(stack, found))
    return Code.GOOD


def ids(
    stack: str,
    file: Path,
    preview: Path,
    *,
    project: Path | None = None,
    config_file: Path | None = None,
    look: Callable[..., Callable[[Planned], importing.Identify]] = identifiers,
) -> int:
    """Fill the IDs of existing resources into the file of `pulumi preview --import-file`; `look` returns them."""
    codes = {NotAskedError: Code.UNKNOWN, files.OutputError: Code.WRONG, OSError: Code.WRONG, **_CODES}
    return reported(codes)(_ids)(stack, file, preview, _folder(project), config_file, look)


def _ids(
    stack: str,
    file: Path,
    preview: Path,
    project: Path,
    config_file: Path | None,
    look: Callable[..., Callable[[Planned], importing.Identify]],
) -> int:
    # It is overwritten, so it must be a file itself; `importing.read` sees whether all of it is Pulumi's.
    files.check_output(file, "FILE", "file of `pulumi preview --import-file`", lambda it: it.lstrip().startswith(b"{"))
    read, seen = importing.read(file, "resources"), importing.read(preview, "steps")
    try:
        filled = importing.fill(read, seen, look(stack, project=project, config_file=config_file))
    except NotAskedError as error:
        raise UnknowableError(f"{error.call}: {error}; {file} is as it was") from error
    files.write(file, json.dumps(filled.content, indent=4) + "\n")
    print(visible(importing.summary(file, filled)))
    return Code.GOOD


def _folder(project: Path | None) -> Path:
    return (project or find_project()).resolve()


def _shown(title: str, checked: list[Checked], form: Form) -> int:
    print(_FORMATS[form](f"{title}: {headline(checked)}", checked).rstrip())
    return Code.NO if blockers(checked) else Code.GOOD
