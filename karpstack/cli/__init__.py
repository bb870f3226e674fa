"""The command `karpstack`: one file per group of commands, which declares options and calls a public function.

A command's own package is imported when the command runs, so `--help` needs none of them.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from typing import Final

from karpstack.text import output
from karpstack.text.codes import Code

# Commands that are still programs of their own: first words, module, and what comes before the rest.
_OLD: Final[tuple[tuple[str, str, tuple[str, ...]], ...]] = (
    ("facts", "karpstack.preflight", ("facts",)),
    ("preflight", "karpstack.preflight", ()),
    ("pull-request", "karpstack.pull_request", ()),
    ("real-run", "karpstack.real_run", ()),
    ("engines build", "karpstack.rehearsal.engines", ()),
)
_REHEARSAL: Final = ("up", "run", "down", "status", "env", "rights", "network", "review")
_ANSWERS: Final = ("report", "table", "spread", "curve", "schema", "--help", "-h")


def _is_old(words: list[str]) -> bool:
    if words[:1] == ["whatif"]:
        return len(words) > 1 and words[1] not in _ANSWERS
    return words[:1] != [] and (words[0] in _REHEARSAL or any(words[0] == one.split()[0] for one, _, _ in _OLD))


def _run_old(words: list[str]) -> None:
    module, given = "karpstack.rehearsal", words
    if words[:1] == ["review"] and "--live" in words:
        module, given = "karpstack.review", ["--stack", *(word for word in words[1:] if word != "--live")]
    elif words[:1] == ["preflight"] and "--rehearsed" in words:
        given = [word for word in words if word != "--rehearsed"]
    else:
        for name, part, before in _OLD:
            first = name.split()
            if words[: len(first)] == first:
                module, given = part, [*before, *words[len(first) :]]
    sys.argv = ["karpstack", *given]
    runpy.run_module(module, run_name="__main__")
    sys.exit(0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code (`karpstack.text.codes`)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if _is_old(words):
        _run_old(words)
    try:
        from .application import run

        return output.run(lambda: run(words))
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "karpstack":
            raise
        print(
            f"error: {sys.executable} lacks the module {error.name}, which this command needs; in a checkout run "
            "`make environment`, and then .venv/bin/karpstack",
            file=sys.stderr,
        )
        return Code.UNKNOWN
