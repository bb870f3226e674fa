"""`python -m karpstack.rehearsal.engines`: build the missing engines on a bare Python, before anything is installed.

`karpstack engines` has the same commands.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from karpstack.rehearsal.engines import commands


def main() -> int:
    """Build, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m karpstack.rehearsal.engines",
        description="Build the engines of the rehearsal (Kubernetes, etcd, Helm, kwok, Karpenter, Pulumi) from pinned "
        "Go modules into the cache folder. Nothing happens when they are built already.",
    )
    parser.add_argument(
        "stack_files",
        nargs="*",
        type=Path,
        help="stacks' configurations: leave other clouds' Karpenter out, and build earlier releases that they name",
    )
    parser.add_argument(
        "--cache-key",
        action="store_true",
        help="print instead a name for what would be built, by which a cache can keep the cache folder's `engines`",
    )
    parser.add_argument(
        "--lint", action="store_true", help="run gofmt on our own Go programs instead; go vet has passed what is built"
    )
    options = parser.parse_args()
    if options.lint:
        return commands.lint()
    return (commands.cache_key if options.cache_key else commands.build)(options.stack_files)


if __name__ == "__main__":
    sys.exit(main())
