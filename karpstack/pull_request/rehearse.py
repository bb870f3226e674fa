"""Review and what-if of stacks, one after another, and what came of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from karpstack.text import shown
from karpstack.text.codes import Code

from . import outcome
from .inputs import ENDINGS, file_for_stack
from .outcome import REVIEW, WHATIF, Outcome
from .stacks import AffectedStack

_ITS_OWN: Final = {
    "workloads": "the example's workload, which is made up",
    "limits": "playbooks/thresholds.yml",
    "prices": "those of the timeline",
}


@dataclass(frozen=True)
class Question:
    """What is asked of each stack.

    Attributes:
        project: Folder in which the commands run: that of the stack files, or karpstack's own for manifests.
        base: The commit before.
        results: Folder of the outcomes, made.
        files: Option of the what-if -> a file for all stacks, or a folder with one for each.
        options: More arguments for the what-if, as `--patience 600`.
    """

    project: Path
    base: str
    results: Path
    files: Mapping[str, Path] = field(default_factory=dict)
    options: Sequence[str] = ()


def rehearse(question: Question, touched: Sequence[AffectedStack]) -> list[Outcome]:
    """Review each stack, and rehearse the change of it where that is asked.

    An outcome is written as soon as it is known; before that, the outcome is that there is none. Call
    `outcome.remove_earlier` before.
    """
    found = []
    for one in touched:
        folder = question.results / one.stack
        review: outcome.Review = "none" if one.sides else "failed"
        outcome.write(Outcome(one.stack, review, "failed" if one.whatif == "asked" else one.whatif), folder)
        found.append(_rehearsed(question, one, folder))
        outcome.write(found[-1], folder)
    return found


def _rehearsed(question: Question, one: AffectedStack, folder: Path) -> Outcome:
    """Where a command said that something is refused, its document says what; without one it has failed."""
    review: outcome.Review = "none" if one.sides else _reviewed(question, one.stack, folder)
    if one.whatif != "asked":
        return Outcome(one.stack, review, one.whatif)
    files = [part for option in question.files for part in _file_option(question, option, one.stack)]
    sides = one.sides or (one.stack, "--base", question.base)
    options = [*sides, *files, *question.options, "--output", str(folder / WHATIF)]
    code = _rehearsal(question, "whatif", *options)
    broken = code == Code.NO and any((folder / WHATIF).glob("*/whatif.md"))
    return Outcome(one.stack, review, "within limits" if code == 0 else "beyond limits" if broken else "failed")


def _reviewed(question: Question, stack: str, folder: Path) -> outcome.Review:
    code = _rehearsal(question, "review", stack, "--output", str(folder / REVIEW))
    refused = code == Code.NO and (folder / REVIEW / "review.md").is_file()
    return "passed" if code == 0 else "refused" if refused else "failed"


def _file_option(question: Question, option: str, stack: str) -> Iterator[str]:
    """The option with the stack's file; nothing, and the what-if takes its own, where the folder has none."""
    folder = question.files[option]
    if file := file_for_stack(option, folder, stack):
        yield from (f"--{option}", str(file))
    else:
        said = f"{stack}: {shown.visible(folder)} has no {stack}{ENDINGS[option][0]} and no default{ENDINGS[option][0]}"
        print(f"{said}, so the what-if takes {_ITS_OWN[option]}.", file=sys.stderr)


def _rehearsal(question: Question, *arguments: str) -> int:
    """Run a command of the rehearsal, which tells people how it goes; its exit code."""
    command = [sys.executable, "-m", "karpstack", *arguments]
    return subprocess.run(command, cwd=question.project, stdin=subprocess.DEVNULL, check=False).returncode
