"""`karpstack whatif`: what a change of a stack does, and the answers to that question."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Final, Literal

from karpstack.text.names import stack_name

from .options import Format, Quiet, Speed, Verbose, argument, option, parsed, stacks
from .shape import DEFAULT, StackGroup, command, group

app = group("whatif", "Rehearse a change of a stack: which nodes and pods it moves, and what it costs.", StackGroup)
_COMMAND: Final = "karpstack.rehearsal.whatif.command"

SnapshotsStack = Annotated[
    str | None,
    argument(
        "STACK",
        "name of the stack: eks, for Pulumi.eks.yaml (default: the one for clusters like the snapshot's)",
        autocompletion=stacks,
        parser=stack_name,
    ),
]
StackFiles = Annotated[
    Path | None,
    option(
        "--project",
        metavar="FOLDER",
        help="folder with the stack files; git refs are those of its repository (default: the nearest one upward "
        "from the current folder)",
    ),
]
WaitFactor = Annotated[
    float | None,
    option(
        "--wait-factor",
        metavar="N",
        parser=parsed(f"{_COMMAND}:parse_factor"),
        help="divide each NodePool's consolidateAfter by N, for both sides; the answer says so (default: 1)",
    ),
]
Curve = Annotated[
    Path | None,
    option(
        "--curve",
        metavar="FILE",
        help="with --for: a daily curve of replicas, see docs/how-to/whatif.md (default: replicas stay)",
    ),
]
AtOnce = Annotated[
    int | None,
    option(
        "--at-once",
        metavar="N",
        parser=parsed(f"{_COMMAND}:parse_count"),
        help="how many candidates run at the same time (default: one for each CPU, as far as the memory allows)",
    ),
]
Prices = Annotated[
    Path | None, option("--prices", metavar="FILE", help="your own prices and discounts, see docs/how-to/whatif.md")
]
_Folders = Annotated[list[Path], argument("FOLDER", "folders of what-ifs, each with whatif.json in it")]


@command(
    app,
    DEFAULT,
    "karpstack whatif --workloads snapshot.json.gz --change nodepools/\n"
    "karpstack whatif eks --base origin/main --change Pulumi.candidate.yaml --workloads snapshot.json.gz",
)
def _stack(
    stack: SnapshotsStack = None,
    base: Annotated[
        str | None,
        option(
            "--base",
            metavar="SIDE",
            help="the cluster as it is now, in one of the ways of --change (default: the snapshot's NodePools)",
        ),
    ] = None,
    change: Annotated[
        list[str] | None,
        option(
            "--change",
            metavar="SIDE",
            help="the changed cluster: a stack file, a git ref of the project, or manifests of NodePools, "
            "NodeOverlays, node classes or Karpenter's Deployment: a file, a folder, REF:FOLDER, or a command that "
            "prints them, such as 'helm template CHART', which are applied to the base; "
            "repeat the option for several candidates (default: the project as it is)",
        ),
    ] = None,
    new_image: Annotated[
        bool, option("--new-image", help="the change is a newer image of nodes that the cloud publishes")
    ] = False,
    workloads: Annotated[
        Path | None,
        option(
            "--workloads",
            metavar="FILE",
            help="snapshot of the cluster; required without --base and with manifests (default: "
            "examples/snapshots/200-pods.json, a fictional one)",
        ),
    ] = None,
    project: StackFiles = None,
    nodes: Annotated[
        Literal["as-is", "fresh"] | None,
        option(
            "--nodes",
            help="as-is: the base starts with the nodes of the snapshot, as far as its NodePools allow, and each pod "
            "starts on its node; fresh: Karpenter chooses nodes for the pods (default: as-is, if the base has "
            "Kubernetes 1.36)",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        option("--output", metavar="FOLDER", help="folder for the answers (default: build/whatif/<stack>)"),
    ] = None,
    wait_factor: WaitFactor = None,
    at: Annotated[
        datetime | None,
        option(
            "--at",
            metavar="TIME",
            parser=parsed(f"{_COMMAND}:parse_moment"),
            help="evaluate disruption budgets with a schedule at this time, for example "
            "2026-11-23T03:00+01:00 (default: now)",
        ),
    ] = None,
    patience: Annotated[
        int | None,
        option(
            "--patience",
            metavar="SECONDS",
            parser=parsed(f"{_COMMAND}:parse_count"),
            help="how long a side may take to settle before it is judged as it is (default: 1800)",
        ),
    ] = None,
    lived: Annotated[
        timedelta | None,
        option(
            "--for",
            metavar="TIME",
            parser=parsed(f"{_COMMAND}:parse_span"),
            help="keep the changed cluster running for this simulated time after the change, and report cost and "
            "disruption of each day: 7d, 36h (default: the rehearsal ends when the cluster has settled)",
        ),
    ] = None,
    curve: Curve = None,
    image_every: Annotated[
        timedelta | None,
        option(
            "--image-every",
            metavar="TIME",
            parser=parsed(f"{_COMMAND}:parse_span"),
            help="with --for: how often the cloud publishes a newer image of nodes (default: 7d with --new-image, else "
            "never)",
        ),
    ] = None,
    speed: Speed = None,
    limits: Annotated[
        Path | None, option("--limits", metavar="FILE", help="limits (default: playbooks/thresholds.yml)")
    ] = None,
    prices: Prices = None,
    at_once: AtOnce = None,
    keep: Annotated[bool, option("--keep", help="leave the stack up; with one candidate only")] = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> int:
    """Rehearse a change of a stack: what it costs, and which nodes and pods it moves.

    The base starts with the pods of a snapshot, and `pulumi up` applies the change.

    Exit code 1: a limit is exceeded, or the change was refused; 2: wrong input, nothing was started; 3: there is no
    answer.
    """
    from karpstack.rehearsal.whatif import command as rehearsed

    return rehearsed.run(
        rehearsed.WhatifOptions(
            stack,
            base,
            project,
            tuple(change or ()),
            new_image=new_image,
            workloads=workloads,
            nodes=nodes,
            output=output,
            wait_factor=wait_factor or 1.0,
            at=at,
            patience=patience or rehearsed.PATIENCE,
            lived=lived,
            curve=curve,
            image_every=image_every,
            speed=speed,
            limits=limits,
            prices=prices,
            at_once=at_once,
            keep=keep,
        )
    )


@command(app, "report", "karpstack whatif report build/whatif/eks/working-tree --snapshot snapshot.json")
def _report(
    folder: Annotated[Path, argument("FOLDER", "folder of a what-if, with timeline.jsonl in it")],
    snapshot: Annotated[
        Path | None,
        option(
            "--snapshot", metavar="FILE", help="snapshot of the workload, to compare its nodes with those of the base"
        ),
    ] = None,
    limits: Annotated[
        Path | None,
        option("--limits", metavar="FILE", help="limits, with a section `whatif` (default: playbooks/thresholds.yml)"),
    ] = None,
    prices: Prices = None,
    form: Format = "text",
) -> int:
    """Judge a what-if by its timeline, and write whatif.json, whatif.md and whatif.html."""
    from karpstack.whatif import commands

    return commands.report(folder, snapshot=snapshot, limits=limits, prices=prices, form=form)


@command(app, "table", "karpstack whatif table build/whatif/eks/*")
def _table(folders: _Folders) -> int:
    """Print a table of several candidates, as Markdown."""
    from karpstack.whatif import commands

    return commands.table(folders)


@command(app, "spread", "karpstack whatif spread first second third")
def _spread(folders: _Folders) -> int:
    """Print how much several answers to the same question differ, as Markdown."""
    from karpstack.whatif import commands

    return commands.spread(folders)


@command(app, "curve", "karpstack whatif curve examples/curves/office-hours.yml")
def _curve(file: Annotated[Path, argument("FILE", "a curve, in YAML or CSV")]) -> int:
    """Check a daily curve of replicas, as `karpstack whatif --curve` takes it."""
    from karpstack.whatif import commands

    return commands.curve(file)


@command(app, "schema", "karpstack whatif schema > whatif.schema.json")
def _schema() -> int:
    """Print the JSON schema of whatif.json."""
    from karpstack.whatif import commands

    return commands.schema()
