"""The command: preview, write three documents, say in one line what came of it."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Final, Literal

from reference import rules

from karpstack.text import files
from karpstack.text.codes import Code, reported
from karpstack.text.names import stack_name
from karpstack.text.packaged import POLICIES
from karpstack.text.projects import find_project
from karpstack.text.shown import visible

from . import configuration, markdown, page, sarif, wording
from .assemble import assemble
from .engine import EngineError
from .model import Review
from .preview import made, preview

_DOCUMENTS: Final = {"review.html": page.render, "review.md": markdown.render, "review.sarif": sarif.render}
#: How each begins.
_BEGINS: Final = {
    "review.html": files.page_begins(b"Review of "),
    "review.md": re.compile(markdown.BEGINS.encode()),
    "review.sarif": re.compile(rb'\{\s*"\$schema":[^{]*"runs": [^"]*"tool": [^"]*"driver": [^"]*"name": "karpstack '),
}
_CODES: Final = {"passed": Code.GOOD, "refused": Code.NO, "failed": Code.UNKNOWN}


@reported({EngineError: Code.UNKNOWN, ValueError: Code.WRONG, OSError: Code.WRONG})
def review(
    stack: str,
    *,
    project: Path | None = None,
    config_file: Path | None = None,
    policy_pack_config: str | None = None,
    only_configuration: bool = False,
    update: Path | None = None,
    output: Path | None = None,
    form: Literal["text", "json"] = "text",
) -> int:
    """Preview one stack and write its review; see `karpstack review --help`.

    Returns:
        `Code.NO` where a mandatory rule is violated, `Code.UNKNOWN` where the preview itself failed.
    """
    project = (project or find_project()).resolve()
    source = (config_file or project / f"Pulumi.{stack}.yaml").resolve()
    configured = _configured(policy_pack_config, project, stack)
    known = rules()
    # As Pulumi names a stack's file: `org/project/eks` has that of `eks`.
    name = stack_name(stack.rpartition("/")[2])
    documents = (output or project / "build" / "review" / name).resolve()
    settings = configuration.read(configured, known) if configured else {}
    if only_configuration:
        return Code.GOOD
    check_output(documents)
    said = made(project, update, stack) if update is not None else preview(project, POLICIES, configured, stack)
    found = assemble(
        said,
        known,
        stack=stack,
        configuration=source,
        uri=_uri(source, project),
        settings=settings,
        settings_name=_uri(configured, project) if configured else wording.BASELINE,
    )
    write(found, documents)
    if form == "json":
        content = found.model_dump(mode="json", exclude={"rules"})
        print(json.dumps({"folder": str(documents), **content}, indent=2))
        return _CODES[found.verdict]
    asked = policy_pack_config is None and configured is None
    _tell(found, documents, configuration.of_stack(project, stack) if asked else None)
    return _CODES[found.verdict]


def write(review: Review, folder: Path) -> None:
    """Write the three documents into a folder, which is made."""
    files.make_results(folder)
    for name, render in _DOCUMENTS.items():
        files.write(folder / name, render(review))


def check_output(folder: Path) -> None:
    """See that the documents can be written, and that no file of somebody else's would be overwritten.

    An earlier review has left all three documents, or none.

    Raises:
        ValueError: Some are there, and others are not; or nothing can be written there.
    """
    existing = next(place for place in (folder, *folder.parents) if os.path.lexists(place))
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        raise ValueError(f"--output {folder} cannot be written, so there would be no review; give another folder")
    there = [name for name in _DOCUMENTS if os.path.lexists(folder / name)]
    missing = [name for name in _DOCUMENTS if name not in there]
    if there and missing:
        raise ValueError(
            f"--output {folder} has {' and '.join(there)} but not {' and '.join(missing)}, as every "
            "review has, so that somebody else's file would be overwritten; give another folder, or move it away"
        )
    for name, begins in _BEGINS.items():
        files.check_output(folder / name, "--output", "review", begins.match)


def _configured(said: str | None, project: Path, stack: str) -> Path | None:
    """The configuration of the pack that judges; None is the baseline."""
    if said is None:
        own = configuration.of_stack(project, stack)
        return own if own.is_file() else None
    return None if said == wording.BASELINE else Path(said).resolve()


def _uri(path: Path, project: Path) -> str:
    """The path in the project, for documents that are read elsewhere; the name alone where it is not in there."""
    return path.relative_to(project).as_posix() if path.is_relative_to(project) else path.name


def _tell(review: Review, folder: Path, missing: Path | None) -> None:
    for failure in review.failures:
        print(visible(failure), file=sys.stderr)
    for finding, *others in wording.group_by_text(review.mandatory):
        about = ", ".join(wording.subject(each.subject) for each in (finding, *others))
        print(visible(f"mandatory: {finding.code}: {about}: {finding.what}"))
    print(visible(f"{wording.headline(review)} {wording.summary(review)}"))
    print(visible(f"Judged by {wording.judge(review, missing)}."))
    print(visible(f"Review: {folder / 'review.html'}, review.md and review.sarif beside it"))
