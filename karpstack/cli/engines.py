"""`karpstack engines`: the programs that a rehearsal runs, compiled once into the cache folder.

`python -m karpstack.rehearsal.engines` builds them on a Python on which nothing is installed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from .options import Format, argument, option
from .shape import command, group

app = group(
    "engines", "Build, publish and check the programs of a rehearsal: Kubernetes, etcd, Karpenter, Helm, Pulumi."
)

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
    platform: Annotated[
        str,
        option(
            "--platform",
            metavar="OS/ARCH",
            help="compile for other machines: linux/amd64 or linux/arm64 (default: this machine's)",
        ),
    ] = "",
) -> int:
    """Pull the missing engines from $KARPSTACK_ENGINES, or build them from pinned Go modules.

    Engines that exist are kept.
    """
    from karpstack.rehearsal.engines import commands

    if lint:
        return commands.lint()
    if cache_key:
        return commands.cache_key(stack_files or ())
    return commands.build(stack_files or (), platform=platform)


@command(app, "publish", "karpstack engines publish oci://registry.example/karpstack/engines:0.2.0")
def _publish(
    place: Annotated[str, argument("PLACE", "oci://REGISTRY/REPOSITORY:TAG, or oci-archive:FILE.tar")],
    stack_files: _StackFiles = None,
    platforms: Annotated[
        list[str] | None,
        option(
            "--platform",
            metavar="OS/ARCH",
            help="linux/amd64 or linux/arm64; can be repeated (default: this machine's)",
        ),
    ] = None,
) -> int:
    """Publish the engines of the cache, so that others need not compile them.

    Prints the place with its digest, as the value of KARPSTACK_ENGINES. Logins are those of `docker login`.
    """
    from karpstack.rehearsal.engines import commands

    return commands.publish(place, stack_files or (), platforms=platforms or ())


@command(app, "status", "karpstack engines status")
def _status(stack_files: _StackFiles = None, form: Format = "text") -> int:
    """Print which engines are in the cache, and whether each was built here or pulled.

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
