"""`karpstack advise`: changes of NodePools that make a cluster cheaper or calmer."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from karpstack.text.codes import Code
from karpstack.text.projects import find_stack_files

from .options import Format, Quiet, Verbose, option, parsed
from .shape import command
from .whatif import AtOnce, Curve, Prices, SnapshotsStack, StackFiles, WaitFactor

_MINUTES: Final = 60
_COMMAND: Final = "karpstack.rehearsal.whatif.command"

_Only = Annotated[
    list[str] | None,
    option("--only", metavar="NAME", help="try only this candidate; repeat the option for several (default: all)"),
]
_Repeat = Annotated[
    int | None,
    option(
        "--repeat",
        metavar="N",
        parser=parsed(f"{_COMMAND}:parse_count"),
        help="rehearse each candidate N times, to know the spread (default: 1)",
    ),
]
_LimitMinutes = Annotated[
    int | None,
    option(
        "--limit-minutes",
        metavar="N",
        parser=parsed(f"{_COMMAND}:parse_count"),
        help="stop after N minutes; the advice has the answers until then and names what is missing (default: 60)",
    ),
]
_Lived = Annotated[
    timedelta | None,
    option(
        "--for",
        metavar="TIME",
        parser=parsed(f"{_COMMAND}:parse_span"),
        help="compare what the clusters cost and how many pods they move in this simulated time after the change: "
        "1d, 36h; it also tries consolidateAfter and budgets (default: compare the settled clusters)",
    ),
]
_Limits = Annotated[
    Path | None,
    option(
        "--limits",
        metavar="FILE",
        help="limits; a candidate that exceeds one is not recommended (default: playbooks/thresholds.yml)",
    ),
]
_Output = Annotated[
    Path | None, option("--output", metavar="FOLDER", help="folder for the advice (default: build/advise)")
]
_List = Annotated[bool, option("--list", help="write the manifests of the candidates, and rehearse nothing")]


def _advise(
    workloads: Annotated[Path, option("--workloads", metavar="FILE", help="snapshot of the cluster")],
    stack: SnapshotsStack = None,
    arm64: Annotated[
        bool, option("--arm64", help="also try arm64 instances; only if all your images exist for arm64")
    ] = False,
    only: _Only = None,
    list_: _List = False,
    repeat: _Repeat = None,
    limit_minutes: _LimitMinutes = None,
    at_once: AtOnce = None,
    lived: _Lived = None,
    curve: Curve = None,
    wait_factor: WaitFactor = None,
    limits: _Limits = None,
    prices: Prices = None,
    project: StackFiles = None,
    output: _Output = None,
    form: Format = "text",
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> int:
    """Try changes of a cluster's NodePools, and say which are cheaper and which are calmer.

    Each candidate is a what-if of the snapshot. The folder has the manifests of each candidate, advice.html (with
    charts), advice.md (for a pull request) and advice.json.

    Exit code 0: each candidate has an answer; 2: wrong input, nothing was started; 3: a candidate has no answer
    because its what-if failed or the time was over; 130: interrupted, the advice has the answers until then.
    """
    from karpstack.rehearsal.session.reporting import rehearsing
    from karpstack.rehearsal.state.ownership import place_results
    from karpstack.rehearsal.whatif.candidates import rehearse_all
    from karpstack.whatif import advising

    folder = (project or find_stack_files()).resolve()
    spans = {"--for": f"{lived.total_seconds() / 60:.0f}m" if lived else "", "--wait-factor": str(wait_factor or "")}
    files = {"--curve": curve, "--limits": limits, "--prices": prices, "--project": folder}
    given = spans | {name: str(path.resolve()) for name, path in files.items() if path}
    asked = advising.Asked(
        workloads.resolve(),
        output or folder / "build" / "advise",
        [part for name, value in given.items() if value for part in (name, value)],
        stack,
        arm64=arm64,
        days=lived is not None,
        only=only or (),
        repeat=repeat or 1,
        only_list=list_,
        form=form,
    )
    return rehearsing(Code.UNKNOWN)(advising.run)(
        asked,
        advising.Tools(
            partial(place_results, option="--output"),
            partial(rehearse_all, at_once=at_once, minutes=limit_minutes or _MINUTES),
        ),
    )


def add(app: typer.Typer) -> None:
    """Add the command to the application."""
    example = (
        "karpstack advise --workloads cluster.json.gz\nkarpstack advise --workloads cluster.json.gz --arm64 --for 1d"
    )
    command(app, "advise", example)(_advise)
