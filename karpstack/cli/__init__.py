"""The command `karpstack`: one file per group of commands, which declares options and calls a public function.

A command's own package is imported when the command runs, so `--help` needs none of them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from karpstack.text import output
from karpstack.text.codes import Code


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code (`karpstack.text.codes`)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        from .application import run

        return output.run(lambda: run(words))
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "karpstack":
            raise
        print(
            f"error: {sys.executable} lacks the module {error.name}, which this command needs; run: {sys.executable} "
            "-m pip install 'karpstack[aws,azure,rehearsal]'. In a checkout run make environment, and then "
            ".venv/bin/karpstack",
            file=sys.stderr,
        )
        return Code.UNKNOWN
