"""How pages, terminals and messages show what others wrote: nothing that steers a terminal, and never at length."""

from __future__ import annotations

import re
import reprlib
import unicodedata
from collections.abc import Iterable, Sequence

# Controls (ESC among them), formats (marks that turn the direction of text around, characters of no width), surrogates,
# line and paragraph separators: what acts instead of being seen, and what UTF-8 cannot hold.
_CATEGORIES = ("Cc", "Cf", "Cs", "Zl", "Zp")
# What XML cannot hold either.
_NO_CHARACTERS = "\ufffe\uffff"
# Invisible letters, marks and symbols: fillers, blank Braille, joiners, variation selectors.
_UNSEEN = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]")
# What GitHub obeys in the log of a job: `::name ...::` at the beginning of a line, and `##[name ...]` anywhere in it.
# Tables break lines at blanks.
# https://github.com/actions/runner/blob/main/src/Runner.Common/ActionCommand.cs
_COMMANDS = re.compile(r"(?<!\S):(?=:[A-Za-z-]+(?: [^\n]*?)?::)|##\[")
# Who asks, before the host of a URL: `user:password@`, also where the password has `/`, `#` or `?` in it.
_USER = re.compile(
    r"(\b(?:https?|socks\w{0,2})://)(?:[^\s/?#:@]{0,200}:(?!\d+(?:[/?#]|$))\S{0,200}@|[^\s/?#@]{1,200}@)", re.IGNORECASE
)
# A header's value in the error of a client that cannot send it, and a login that a server repeats.
_HEADER = re.compile(r"(header value[^\n'\"]{0,20}?)b?(?:'[^\n]*'|\"[^\n]*\")", re.IGNORECASE)
_LOGIN = re.compile(r"\b(Bearer |Basic )(?=\S{0,4000}[0-9=])[\w.~+/=-]{8,}", re.IGNORECASE)
# A token by itself: a JWT, as Azure and Kubernetes have them, or one of EKS.
_TOKEN = re.compile(r"(?<![\w-])(?:eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*|k8s-aws-v1\.[\w-]{8,})")
_VALUE, _KEY, _LINE = 160, 60, 500  # characters at most
LINES = 20  # of a message, at most

_SHORT = reprlib.Repr()
_SHORT.maxlevel = 3
_SHORT.maxstring = 100


def masked(text: str) -> str:
    """Return text with `***` for a URL's user and password, a token, and a login in what others say of a request."""
    if "://" in text and "@" in text:
        text = _USER.sub(r"\1***@", text)
    return _HEADER.sub(r"\1***", _LOGIN.sub(r"\1***", _TOKEN.sub("***", text)))


def visible(text: object) -> str:
    r"""Return text with each character that would act instead of being seen as its escape, `\x1b` for example.

    The same holds for the colon or bracket that begins a command to GitHub in the log of a job. Secrets are
    `masked`.

    Everything that others wrote goes through this before it reaches a terminal, Markdown, HTML, XML or SARIF. Line
    breaks and tabs stay.
    """
    words = masked(str(text))
    if "::" in words or "##[" in words:
        words = _COMMANDS.sub(lambda found: f"{found[0][:-1]}\\x{ord(found[0][-1]):x}", words)
    if words.replace("\n", "").replace("\t", "").isprintable() and (words.isascii() or not _UNSEEN.search(words)):
        return words
    return words.translate(_ESCAPES)


def _acts(character: str) -> bool:
    if character in "\n\t":
        return False
    if character in _NO_CHARACTERS or _UNSEEN.match(character):
        return True
    return unicodedata.category(character) in _CATEGORIES


class _Escapes(dict[int, str]):
    """Character -> how it is shown. Each is judged once, because a long text would take seconds otherwise."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        self[code] = shown = ascii(character)[1:-1] if _acts(character) else character
        return shown


_ESCAPES = _Escapes()


def cut(text: str, most: int) -> str:
    """Text of so many characters at most, with dots where its end is left out."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def value(content: object) -> str:
    """A value in a message: as Python writes it, on one line, cut."""
    return cut(_SHORT.repr(content), _VALUE)


def key(location: Iterable[object]) -> str:
    """A place within a document in a message: its keys and indexes, with dots between them."""
    return cut(".".join(cut(repr(str(part))[1:-1], _KEY) for part in location), _VALUE)


def listed(names: Sequence[str], most: int) -> str:
    """Names in a sentence; of many the first ones, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def message(problems: Sequence[str]) -> str:
    """What is wrong, a line each, whatever values a problem has; of many the first ones."""
    lines = [cut(visible(" ".join(problem.split("\n"))), _LINE) for problem in problems[:LINES]]
    return "\n".join([*lines, *(["and more like these"] if len(problems) > LINES else [])])
