"""The command `karpstack`: which part of the toolkit a command belongs to."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from typing import Final

# The first words of a command, the longest first; the module that takes the rest, and what comes before it.
_COMMANDS: Final[tuple[tuple[str, str, tuple[str, ...]], ...]] = (
    ("facts", "karpstack.preflight", ("facts",)),
    ("preflight", "karpstack.preflight", ()),
    ("snapshot", "karpstack.snapshot", ()),
    ("scenario new", "karpstack.scale_test", ("scenario",)),
    ("scenario check", "karpstack.scale_test", ("check",)),
    ("story", "karpstack.scale_test", ()),
    ("report", "karpstack.scale_test", ("report",)),
    ("compare", "karpstack.scale_test", ("compare",)),
    ("why", "karpstack.scale_test", ("why",)),
    *((f"whatif {name}", "karpstack.whatif", (name,)) for name in ("report", "table", "spread", "curve", "schema")),
    ("pull-request", "karpstack.pull_request", ()),
    ("real-run", "karpstack.real_run", ()),
    ("engines build", "karpstack.rehearsal.engines", ()),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command, which ends the program."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    module, given = "karpstack.rehearsal", words
    if words[:1] == ["review"] and "--live" in words:
        module, given = "karpstack.review", ["--stack", *(word for word in words[1:] if word != "--live")]
    elif words[:1] == ["preflight"] and "--rehearsed" in words:
        given = [word for word in words if word != "--rehearsed"]
    else:
        for name, part, before in _COMMANDS:
            first = name.split()
            if words[: len(first)] == first:
                module, given = part, [*before, *words[len(first) :]]
    sys.argv = ["karpstack", *given]
    runpy.run_module(module, run_name="__main__")
