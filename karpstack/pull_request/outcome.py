"""What came of a stack's review and what-if: written where both have written, read where the comment is made.

    <results>/<stack>/outcome.json
    <results>/<stack>/review/review.{html,md,sarif}
    <results>/<stack>/whatif/<candidate>/whatif.{html,md,json}

The reader may be another machine, and what it reads was made by a change that nobody has looked at yet: of
`outcome.json` nothing but words of this module is believed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

from karpstack.text import files, json_file
from karpstack.text.codes import Code
from karpstack.text.names import is_stack_name
from karpstack.text.shown import visible

Review = Literal["passed", "refused", "failed", "none"]
WhatIf = Literal["within limits", "beyond limits", "failed", "new", "policies", "off"]

FILE: Final = "outcome.json"
REVIEW: Final = "review"
WHATIF: Final = "whatif"
_MOST, _DEPTH, _VALUES = 4096, 4, 100  # bytes of an outcome, its levels, its values
_SUFFIXES: Final = (".html", ".json", ".md", ".sarif")
#: Bytes of a document that are read; a comment has 65,536 characters.
_MOST_OF_A_DOCUMENT: Final = 4 * 2**20
#: Documents of all stacks together, and their bytes.
_DOCUMENTS, _IN_ALL = 150, 32 * 2**20


class OutcomeError(ValueError):
    """A file that is no outcome; the text says which and what to do."""


@dataclass(frozen=True)
class Outcome:
    """What came of a stack.

    Attributes:
        stack: Its name.
        review: `passed`; `refused`, as a mandatory rule is violated; `failed`, as there is no answer; `none`, as
            manifests have no stack to review.
        whatif: `within limits`; `beyond limits`; `failed`, as there is no answer; or why none was asked (see
            `stacks.Touched`).
    """

    stack: str
    review: Review
    whatif: WhatIf

    @property
    def code(self) -> int:
        """Good; no where something is refused; unknown where something has no answer."""
        if "failed" in (self.review, self.whatif):
            return Code.UNKNOWN
        return Code.NO if self.review == "refused" or self.whatif == "beyond limits" else Code.GOOD


@dataclass(frozen=True)
class OutcomeTexts:
    """An outcome, and its documents.

    Attributes:
        outcome: What came of the stack.
        review: `review.md`; empty where there is none.
        whatifs: Candidate -> `whatif.md`.
    """

    outcome: Outcome
    review: str
    whatifs: Mapping[str, str]


def write(outcome: Outcome, folder: Path) -> None:
    """Write an outcome into the stack's folder, which is made."""
    files.make_results(folder)
    files.write(folder / FILE, json.dumps(asdict(outcome)) + "\n")


def remove_earlier(results: Path) -> None:
    """Remove the results of an earlier rehearsal, also of other stacks, so that they are not taken for the new ones.

    Raises:
        OutcomeError: A file in the place of an outcome is none; nothing of that stack is removed.
    """
    for file in sorted(results.glob(f"*/{FILE}")):
        folder = file.parent
        try:
            _outcome(results, folder.name)
        except (OutcomeError, files.ResultError) as error:
            raise OutcomeError(
                f"{visible(file)} is in the way: it is no outcome of an earlier rehearsal, so it is not removed, and "
                "would be shown as an answer; remove it, or give another folder with --results"
            ) from error
        for document in (*folder.glob(f"{REVIEW}/review.*"), *folder.glob(f"{WHATIF}/*/whatif.*")):
            # Through a link it would be another folder's.
            is_linked = any(place.is_symlink() for place in (document.parent, document.parent.parent))
            if document.suffix in _SUFFIXES and not is_linked:
                document.unlink()
        file.unlink()


def read(results: Path) -> list[OutcomeTexts]:
    """All that is in a folder of results, by stack; nothing where there is no such folder.

    Raises:
        OutcomeError: A file is no outcome, or there are more or larger documents than a comment can have.
    """
    patterns = (f"*/{FILE}", f"*/{REVIEW}/review.md", f"*/{WHATIF}/*/whatif.md")
    # A larger one is refused by its name.
    sizes = [min(file.lstat().st_size, _MOST_OF_A_DOCUMENT) for pattern in patterns for file in results.glob(pattern)]
    for found, most, what in ((len(sizes), _DOCUMENTS, "results"), (sum(sizes), _IN_ALL, "bytes of results")):
        if found > most:
            raise OutcomeError(
                f"{visible(results)} has {found:,} {what}, more than {most:,}, so nothing is said of them; give a "
                "folder that has the results of one pull request"
            )
    try:
        return [_read_texts(results, file.parent.name) for file in sorted(results.glob(f"*/{FILE}"))]
    except files.ResultError as error:
        raise OutcomeError(str(error)) from error


def code(outcomes: Sequence[Outcome]) -> int:
    """The exit code of all together."""
    return max((outcome.code for outcome in outcomes), default=0)


def _read_texts(results: Path, stack: str) -> OutcomeTexts:
    outcome = _outcome(results, stack)
    candidates = sorted(document.parent.name for document in (results / stack / WHATIF).glob("*/whatif.md"))
    return OutcomeTexts(
        outcome,
        _text(results, f"{stack}/{REVIEW}/review.md"),
        {name: _text(results, f"{stack}/{WHATIF}/{name}/whatif.md") for name in candidates},
    )


def _outcome(results: Path, stack: str) -> Outcome:
    file = results / stack / FILE
    read = files.read_result(results, f"{stack}/{FILE}", most=_MOST) or b""
    try:
        content: Any = json_file.parse(read, file, depth=_DEPTH, values=_VALUES)
        found = Outcome(content["stack"], content["review"], content["whatif"])
    except (ValueError, KeyError, TypeError) as error:
        raise OutcomeError(_NOT_ONE.format(file=visible(file), why=type(error).__name__)) from error
    known = is_stack_name(stack) and found.review in get_args(Review) and found.whatif in get_args(WhatIf)
    if not known or found.stack != stack:
        raise OutcomeError(_NOT_ONE.format(file=visible(file), why="it has words that no outcome has"))
    return found


_NOT_ONE: Final = (
    "{file} is no outcome of `karpstack pull-request rehearse` ({why}), so nothing is said of it; give the folder that "
    "the command wrote, as it is"
)


def _text(results: Path, name: str) -> str:
    """A document's text; empty where there is none."""
    return visible((files.read_result(results, name, most=_MOST_OF_A_DOCUMENT) or b"").decode(errors="replace"))
