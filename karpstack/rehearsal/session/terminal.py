"""Text for a terminal: what comes from elsewhere (errors, logs, names, paths) is shown as it is and steers nothing."""

from __future__ import annotations

import os
import re

from rich.console import Console
from rich.text import Text

from karpstack.text.shown import visible

#: How much commands say: `quiet`, `verbose`, or as usual.
VERBOSITY = "KARPSTACK_VERBOSITY"
QUIET, VERBOSE = "quiet", "verbose"

console = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)

_COLOURS = re.compile(r"\x1b\[[0-9;:?]*[A-Za-z]")


def plain(text: str) -> str:
    """The text without colours, and with what else would steer a terminal or hide what is written as its escape."""
    return visible(_COLOURS.sub("", text))


def verbosity() -> str:
    """Return how much this command says."""
    return os.environ.get(VERBOSITY, "")


def print_message(text: str, *, heading: str = "", style: str = "") -> None:
    """Print a text to stderr: nothing in it is markup. A quiet command prints errors alone.

    Args:
        text: What is said; may come from anywhere.
        heading: Words before it, bold and red.
        style: A style of rich for the whole.
    """
    if heading or verbosity() != QUIET:
        console.print(Text.assemble((f"{heading} ", "bold red") if heading else "", (plain(text), style)))
