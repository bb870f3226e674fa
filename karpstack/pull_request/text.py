"""The comment's text: what came of each stack in a table, then the documents, shortened where they are too long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from karpstack.text.codes import Code
from karpstack.text.markdown import collapsed, escape

from . import outcome
from .inputs import NAME
from .outcome import OutcomeTexts

#: Characters of a comment on GitHub, which says so: "body is too long (maximum is 65536 characters)".
LONGEST_COMMENT: Final = 65_536
#: Bytes of a job's summary: GitHub takes 1 MiB a step, and nothing of a longer one.
LONGEST_SUMMARY: Final = 2**20
# So that there is room for all of them; the job's log and the artifacts know of more.
_MOST_STACKS: Final = 50
_MOST_SECTIONS: Final = 100

_HEADLINES: Final[Mapping[int, str]] = {
    Code.GOOD: "Rehearsed: nothing is in the way",
    Code.NO: "Rehearsed: something is refused",
    Code.UNKNOWN: "Rehearsed: something has no answer",
}
_REVIEWS: Final = {
    "passed": "passed",
    "refused": "**refused**: a mandatory rule is violated",
    "failed": "**failed**: the job's log says why",
    "none": "none: manifests alone, so there is no stack to review",
}
_WHATIFS: Final = {
    "within limits": "within the limits",
    "beyond limits": "**not within the limits**",
    "failed": "**no answer**: the job's log says why",
    "new": "none: the stack is new, there is nothing to compare it with",
    "policies": "none: what judges the stack differs, and the stack does not",
    "off": "none: not asked for",
}
_NOTHING: Final = (
    "## Rehearsed: this pull request touches no stack and no NodePools\n\n"
    "What was said here of an earlier state is gone."
)

_NO_ANSWER: Final = (
    "## Rehearsed: there is no answer\n\n"
    "There are no results, so nothing is known of this pull request: the job's log says why."
)


@dataclass(frozen=True)
class Section:
    """A document in the comment.

    Attributes:
        title: What it is called, in plain text.
        text: The document, in GitHub's Markdown.
        folded: Whether it opens at a click.
    """

    title: str
    text: str
    folded: bool


def marker(name: str = NAME) -> str:
    """What the comment of this name begins with; GitHub does not show it.

    It stays as it is for good: by it, the comment is found again.
    """
    which = "" if name == NAME else f": {quote(name)}"
    return f"<!-- karpstack: the rehearsal of this pull request{which} -->"


def comment(told: Sequence[OutcomeTexts], *, commit: str, page: str, name: str = NAME) -> str:
    """The comment of this name, marker included, of at most `LONGEST_COMMENT` characters."""
    begin = f"{marker(name)}\n"
    if name != NAME:
        begin += f"**{escape(name)}**\n\n"
    return begin + _document(told, commit, page, LONGEST_COMMENT - len(begin))


def summary(told: Sequence[OutcomeTexts], *, commit: str, page: str, is_answered: bool = True) -> str:
    """The same for a job's summary: at most `LONGEST_SUMMARY` bytes. Without an answer, no outcome is no good news."""
    if not told and not is_answered:
        return f"{_NO_ANSWER}\n"
    return _document(told, commit, page, LONGEST_SUMMARY // 4)  # a character has four bytes at most


def shorten_documents(sections: Sequence[Section], longest: int, where: str) -> list[str]:
    """Shorten documents to a number of characters together.

    What is short stays whole; what is long shares the rest evenly, and says at its end how much is missing. It ends
    between two blocks, so that no table, no code and no fold is cut in half.

    Args:
        sections: The documents.
        longest: Characters, with all that is around the documents.
        where: Where the whole is, in Markdown.
    """
    shares = _shares([len(_framed(section, section.text)) for section in sections], longest)
    return [_fitted(section, share, where) for section, share in zip(sections, shares, strict=True)]


def _document(told: Sequence[OutcomeTexts], commit: str, page: str, longest: int) -> str:
    if not told:
        return f"{_NOTHING}\n"
    head = "\n".join(_head(told, commit, page))
    where = f"the artifacts of [the run]({page})" if page else "the run's artifacts"
    sections = [section for one in told[:_MOST_STACKS] for section in _sections(one)][:_MOST_SECTIONS]
    return "\n\n".join([head, *shorten_documents(sections, longest - len(head) - 2 * len(sections) - 1, where)]) + "\n"


def _head(told: Sequence[OutcomeTexts], commit: str, page: str) -> Iterator[str]:
    yield f"## {_HEADLINES[outcome.code([one.outcome for one in told])]}\n"
    yield "| stack or folder | what-if | review |\n| --- | --- | --- |"
    for one in told[:_MOST_STACKS]:
        yield f"| {escape(one.outcome.stack)} | {_WHATIFS[one.outcome.whatif]} | {_REVIEWS[one.outcome.review]} |"
    if len(told) > _MOST_STACKS:
        yield f"\n**{len(told) - _MOST_STACKS} more stacks are in the artifacts alone.**"
    if commit:
        yield f"\nOf commit {commit[:12]}."
    if page:
        yield f"\nThe pages, and all else, are artifacts of [the run]({page})."


def _sections(told: OutcomeTexts) -> Iterator[Section]:
    stack = told.outcome.stack
    for candidate, text in told.whatifs.items():
        also = f" ({candidate})" if len(told.whatifs) > 1 else ""
        yield Section(f"What-if of {stack}{also}", text, folded=False)
    if told.review:
        yield Section(f"Review of {stack}", told.review, folded=True)


def _framed(section: Section, text: str) -> str:
    if not section.folded:
        return text.strip()
    return "\n".join(collapsed(section.title, [f"{text.strip()}\n"])).strip()


def _shares(lengths: Sequence[int], longest: int) -> list[int]:
    """How many characters each may have."""
    shares, left = [0] * len(lengths), max(0, longest)
    by_length = sorted(range(len(lengths)), key=lambda index: lengths[index])
    for done, index in enumerate(by_length):
        shares[index] = min(lengths[index], left // (len(lengths) - done))
        left -= shares[index]
    return shares


def _fitted(section: Section, longest: int, where: str) -> str:
    if len(whole := _framed(section, section.text)) <= longest:
        return whole
    lines = section.text.strip().splitlines()
    left = longest - len(_framed(section, f"x\n\n{_note(section, len(lines), len(lines), where)}"))
    kept = max((end for end, length in _between_blocks(lines) if length <= left), default=0)
    note = _note(section, len(lines) - kept, len(lines), where)
    return _framed(section, "\n".join([*lines[:kept], "", note]))


def _note(section: Section, missing: int, lines: int, where: str) -> str:
    return f"**Shortened: of {escape(section.title)}, {missing} of {lines} lines are missing here; {where} have all.**"


def _between_blocks(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Numbers of the empty lines that are in no code and no fold, and how many characters are before each."""
    fenced, folds, length = False, 0, 0
    for number, line in enumerate(lines):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced:
            folds += line.count("<details") - line.count("</details>")
            if not line.strip() and folds <= 0:
                yield number, length
        length += len(line) + 1
