"""`karpstack snapshot`: a cluster as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from .options import Format, argument, option
from .shape import command, group

app = group(
    "snapshot",
    "Save a cluster as a file, with only the data that scheduling and disruption need; check it, and use it.",
)

_Snapshot = Annotated[Path, argument("FILE", "the snapshot")]
_Output = Annotated[
    Path, option("--output", metavar="FILE", help="the snapshot to write, compressed if its name ends in .gz")
]
_KnownOnly = Annotated[
    bool, option("--known-only", help="skip the parts of the snapshot that this version does not know")
]
_Anonymize = Annotated[
    bool,
    option(
        "--anonymize",
        help="write hashes instead of names, with a key derived from KARPSTACK_SNAPSHOT_KEY (default: a key that is "
        "not kept)",
    ),
]


@command(app, "take", "karpstack snapshot take --output snapshot.json.gz --anonymize")
def _take(
    output: _Output,
    kubeconfig: Annotated[
        Path | None, option("--kubeconfig", metavar="FILE", help="the kubeconfig (default: KUBECONFIG's)")
    ] = None,
    context: Annotated[
        str | None, option("--context", metavar="NAME", help="context of the kubeconfig (default: the current one)")
    ] = None,
    anonymize: _Anonymize = False,
) -> int:
    """Write a snapshot of a cluster. Needs only the verb `list`.

    Exit code 3: the cluster cannot be read.
    """
    from karpstack.snapshot import commands

    return commands.take(output, kubeconfig=kubeconfig, context=context, anonymise=anonymize)


@command(app, "convert", "karpstack snapshot convert export/ --output snapshot.json")
def _convert(
    files: Annotated[list[Path], argument("FILE", "files, or folders of files that kubectl wrote")],
    output: _Output,
    anonymize: _Anonymize = False,
    known_only: _KnownOnly = False,
) -> int:
    """Write a snapshot from files of `kubectl get -o json`, kubereplay or SimKube."""
    from karpstack.snapshot import commands

    return commands.convert(files, output, anonymise=anonymize, known_only=known_only)


@command(app, "check", "karpstack snapshot check snapshot.json --cloud aws --region eu-west-1")
def _check(
    file: _Snapshot,
    cloud: Annotated[
        Literal["", "aws", "azure"],
        option("--cloud", metavar="aws|azure", help="cloud for which the snapshot is checked (default: none)"),
    ] = "",
    region: Annotated[
        str, option("--region", metavar="NAME", help="region for which the snapshot is checked (default: none)")
    ] = "",
    known_only: _KnownOnly = False,
    form: Format = "text",
) -> int:
    """Check whether a file is a snapshot, and list the parts that cannot be loaded."""
    from karpstack.snapshot import commands

    return commands.check(file, cloud=cloud, region=region, known_only=known_only, form=form)


@command(app, "show", "karpstack snapshot show snapshot.json")
def _show(file: _Snapshot, known_only: _KnownOnly = False, form: Format = "text") -> int:
    """Print what a snapshot contains."""
    from karpstack.snapshot import commands

    return commands.show(file, known_only=known_only, form=form)


@command(app, "anonymize", "karpstack snapshot anonymize snapshot.json --output hashed.json")
def _anonymize(file: _Snapshot, output: _Output, known_only: _KnownOnly = False) -> int:
    """Write a snapshot again, with hashes instead of names."""
    from karpstack.snapshot import commands

    return commands.anonymize(file, output, known_only=known_only)


@command(
    app, "stack-file", "karpstack snapshot stack-file snapshot.json --like Pulumi.eks.yaml --output Pulumi.mine.yaml"
)
def _stack_file(
    file: _Snapshot,
    like: Annotated[Path, option("--like", metavar="FILE", help="stack file from which everything else is taken")],
    output: Annotated[Path, option("--output", metavar="FILE", help="the stack file to write")],
    manifests: Annotated[
        Path | None,
        option(
            "--manifests",
            metavar="PATH",
            help="file or folder with NodePools, NodeOverlays, node classes or Karpenter's Deployment, which are "
            "applied to those of the snapshot",
        ),
    ] = None,
    instead_of: Annotated[
        Path | None,
        option(
            "--instead-of",
            metavar="PATH",
            help="with --manifests: the manifests as they were before; what only they contain is removed",
        ),
    ] = None,
    unchecked: Annotated[
        bool, option("--unchecked", help="write the file also if the program would refuse it, to correct it by hand")
    ] = False,
    known_only: _KnownOnly = False,
) -> int:
    """Write a stack file with the NodePools, node classes, NodeOverlays and Karpenter settings of a snapshot.

    `karpstack whatif --base` takes the file.
    """
    from karpstack.rehearsal.engines import CONTROLLERS, built_releases, releases
    from karpstack.snapshot import commands

    return commands.stack_file(
        file,
        like,
        output,
        manifests=manifests,
        instead_of=instead_of,
        unchecked=unchecked,
        known_only=known_only,
        built={cloud: built_releases(f"karpenter-{cloud}") for cloud in CONTROLLERS},
        offered={cloud: list(releases(f"karpenter-{cloud}")) for cloud in CONTROLLERS},
    )


@command(app, "curve", "karpstack snapshot curve trace.json --output curve.csv")
def _curve(
    file: Annotated[Path, argument("FILE", "the trace")],
    output: Annotated[Path, option("--output", metavar="FILE", help="the curve to write, as CSV")],
) -> int:
    """Write a daily curve of replicas from a trace of kubereplay or SimKube, for `karpstack whatif --curve`."""
    from karpstack.snapshot import commands

    return commands.curve(file, output)


@command(app, "schema", "karpstack snapshot schema > snapshot.schema.json")
def _schema() -> int:
    """Print the JSON schema of the format."""
    from karpstack.snapshot import commands

    return commands.schema()
