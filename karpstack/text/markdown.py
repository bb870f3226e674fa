"""GitHub's Markdown: text that others wrote, shown as it is, and documents that a comment can hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from .shown import visible

#: GitHub takes 65,536 chars; the end says where the rest is.
LONGEST: Final = 60_000
_LONGEST_CELL: Final = 600
_ROWS: Final = 60

# What starts something in Markdown or HTML, wherever it stands.
_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>()#+!|~$])")
# What GitHub turns into a link or a notification: names of people and teams, addresses, numbers of issues. For GitHub,
# letters are ASCII. Code is skipped, because GitHub links nothing in it. Code begins with a backtick; a backtick after
# a backslash is text. Hashes of commits are not changed: such a link stays in the repository and notifies nobody.
_LINKED: Final = re.compile(
    r"(?:(?<!`)|(?<=\\`))@(?=\w)|(?:(?<![\w`])|(?<=\\`))GH-(?=\w)|(?<!&)#(?=\d)"
    r"|(?i:https?|ftp|www)(?=://|\.)|(?i:mailto|xmpp)(?=:)",
    re.ASCII,
)


def escape(text: str, longest: int = _LONGEST_CELL) -> str:
    """Text that is shown as it is, in a cell of a table too: on one line, no markup, no mention, no link."""
    flat = visible(" ".join(text.split()))
    if len(flat) > longest:
        flat = f"{flat[:longest]} …"
    flat = flat.replace("&", "&amp;")
    flat = _SPECIAL.sub(lambda match: f"&#{ord(match[1])};", flat)
    return unlinked(re.sub(r"&#35;(?=\d)", "&#35;<!-- -->", flat))


def unlinked(text: str) -> str:
    """Markdown in which nothing becomes a link or a mention by itself, as a name such as `www.example.org` would."""
    return _LINKED.sub(r"\g<0><!-- -->", text)


def escape_url(url: str) -> str:
    """An address for an attribute: what could end it, or a cell, is encoded."""
    return "".join(f"%{ord(c):02X}" if c in " \"'<>|`\\" else c for c in url).replace("&", "&amp;")


def code(text: str) -> str:
    """The same, as code."""
    return f"<code>{escape(text)}</code>" if text else ""


def fitting(text: str, whole: str) -> str:
    """A document that GitHub takes: cut between two lines where it is too long, with what is open closed.

    Args:
        text: The document.
        whole: The file that has the rest.
    """
    if len(text) <= LONGEST:
        return text
    # Between two lines, so that no row and no tag is cut in half.
    kept = text[:LONGEST].rpartition("\n")[0]
    open_details = kept.count("<details>") - kept.count("</details>")
    return f"{kept}\n{'</details>' * open_details}\n\n**Cut here: {whole} has the rest.**\n"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], whole: str) -> Iterator[str]:
    """A table, of which the first rows are shown. Its cells are Markdown already.

    Args:
        head: Headings; one that ends in a colon is of numbers, and has none when it is shown.
        rows: Rows.
        whole: The file that has all of them.
    """
    yield f"| {' | '.join(one.removesuffix(':') for one in head)} |"
    yield f"|{'|'.join(' ---: ' if one.endswith(':') else ' --- ' for one in head)}|"
    for row in rows[:_ROWS]:
        yield f"| {' | '.join(row)} |"
    yield ""
    if len(rows) > _ROWS:
        yield f"And {len(rows) - _ROWS} more, in {whole}.\n"


def collapsed(title: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield lines of Markdown that are hidden until a reader opens their title."""
    yield f"<details><summary>{escape(title)}</summary>\n"
    yield from lines
    yield "</details>\n"
