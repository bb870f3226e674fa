"""`karpstack engines`: the programs that a rehearsal runs, compiled once into the cache folder.

`python -m karpstack.rehearsal.engines` builds them on a Python on which nothing is installed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from .options import Format, argument, option
from .shape import command, group

app = group("engines", "Build and check the programs of a rehearsal: Kubernetes, etcd, Karpenter, Helm, Pulumi.")

_StackFiles = Annotated[
    list[Path] | None,
    argument("STACK_FILE", "stack files, for the engines of their clouds and releases (default: all clouds)"),
]


@command(app, "build", "karpstack engines build Pulumi.eks.yaml")
def _build(
    stack_files: _StackFiles = None,
    cache_key: Annotated[
        bool, option("--cache-key", help="print a name for what would be built, for a cache of CI; build nothing")
    ] = False,
    lint: Annotated[bool, option("--lint", help="run gofmt on the project's own Go programs; build nothing")] = False,
) -> int:
    """Build the missing engines from pinned Go modules. Engines that exist are kept."""
    from karpstack.rehearsal.engines import commands

    if lint:
        return commands.lint()
    return (commands.cache_key if cache_key else commands.build)(stack_files or ())


@command(app, "status", "karpstack engines status")
def _status(stack_files: _StackFiles = None, form: Format = "text") -> int:
    """Print which engines are built.

    Exit code 1: one is missing.
    """
    from karpstack.rehearsal.engines import commands

    return commands.status(stack_files or (), form=form)


@command(app, "verify", "karpstack engines verify")
def _verify(stack_files: _StackFiles = None, form: Format = "text") -> int:
    """Compare the files of the engines with their manifests.

    Exit code 1: one is missing or differs.
    """
    from karpstack.rehearsal.engines import commands

    return commands.verify(stack_files or (), form=form)
