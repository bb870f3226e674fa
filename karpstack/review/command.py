"""The command: preview, write three documents, say in one line what came of it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from reference import rules

from karpstack.text import files
from karpstack.text.names import stack_name

from . import configuration, markdown, page, sarif, wording
from .assemble import assemble
from .engine import EngineError
from .model import Review
from .preview import made, preview

PROJECT: Final = Path(__file__).resolve().parents[2]
PACK: Final = PROJECT / "policies"
_DOCUMENTS: Final = {"review.html": page.render, "review.md": markdown.render, "review.sarif": sarif.render}
_CODES: Final = {"passed": 0, "refused": 1, "failed": 2}


def main(arguments: Sequence[str] | None = None) -> int:
    """Review one stack.

    Returns:
        0, 1 where a mandatory rule is broken, 2 where the preview itself failed.
    """
    options = _parser().parse_args(arguments)
    project = options.project.resolve()
    source = (options.config_file or project / f"Pulumi.{options.stack}.yaml").resolve()
    configured = _configured(options.policy_pack_config, options.stack)
    known = rules()
    try:
        # As Pulumi names a stack's file: `org/project/eks` has that of `eks`.
        name = stack_name(options.stack.rpartition("/")[2])
        output = (options.output or project / "build" / "review" / name).resolve()
        settings = configuration.read(configured, known) if configured else {}
        if options.only_configuration:
            return 0
        check_output(output)
        said = (
            made(project, options.update, options.stack)
            if options.update is not None
            else preview(project, PACK, configured, options.stack)
        )
    except (EngineError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    review = assemble(
        said,
        known,
        stack=options.stack,
        configuration=source,
        uri=_uri(source, project),
        settings=settings,
        settings_name=_uri(configured, project) if configured else wording.BASELINE,
    )
    write(review, output)
    asked = options.policy_pack_config is None and configured is None
    _tell(review, output, configuration.of_stack(PACK, options.stack) if asked else None)
    return _CODES[review.verdict]


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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="karpstack review --live",
        description="Preview a stack with the policy pack and write what is to be reviewed: review.html, review.md "
        "(for a pull request) and review.sarif (for code scanning). Exit code 0: nothing mandatory was found; 1: a "
        "mandatory rule is broken; 2: the preview itself failed. Nothing is created or changed.",
    )
    parser.add_argument("--stack", required=True, help="name of the stack: eks, for Pulumi.eks.yaml")
    parser.add_argument(
        "--project", type=Path, default=PROJECT, help="folder with Pulumi.yaml (default: the checkout of this file)"
    )
    parser.add_argument(
        "--config-file",
        type=Path,
        help="the stack's configuration, to which findings are pinned; Pulumi is not told of it "
        "(default: Pulumi.<stack>.yaml)",
    )
    parser.add_argument(
        "--policy-pack-config",
        metavar="FILE",
        help=f"configuration of the pack, or `{wording.BASELINE}` for none (default: policies/<stack>.json, and "
        f"{wording.BASELINE} where that is missing)",
    )
    parser.add_argument(
        "--only-configuration", action="store_true", help="only see whether the pack's configuration can be used"
    )
    parser.add_argument(
        "--update",
        type=Path,
        metavar="EVENTS",
        help="review what an update has made, with everything known, instead of previewing: the file that "
        "`PULUMI_DEBUG_COMMANDS=true pulumi up --policy-pack policies --event-log EVENTS` wrote",
    )
    parser.add_argument("--output", type=Path, help="folder for the documents (default: build/review/<stack>)")
    return parser


def _configured(said: str | None, stack: str) -> Path | None:
    """The configuration of the pack that judges; None is the baseline."""
    if said is None:
        own = configuration.of_stack(PACK, stack)
        return own if own.is_file() else None
    return None if said == wording.BASELINE else Path(said).resolve()


def _uri(path: Path, project: Path) -> str:
    """The path in the project, for documents that are read elsewhere; the name alone where it is not in there."""
    return path.relative_to(project).as_posix() if path.is_relative_to(project) else path.name


def _tell(review: Review, folder: Path, missing: Path | None) -> None:
    for failure in review.failures:
        print(failure, file=sys.stderr)
    for finding, *others in wording.alike(review.mandatory):
        about = ", ".join(wording.subject(each.subject) for each in (finding, *others))
        print(f"mandatory: {finding.code}: {about}: {finding.what}")
    print(f"{wording.headline(review)} {wording.summary(review)}")
    print(f"Judged by {wording.judge(review, missing)}.")
    print(f"Review: {folder / 'review.html'}, review.md and review.sarif beside it")
