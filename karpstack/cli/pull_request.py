"""`karpstack pull-request`: review and what-if of the stacks that a change touches, in one comment.

`python -m karpstack.pull_request` has the same commands, for a Python on which nothing is installed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from karpstack.pull_request.inputs import AUTHOR, NAME, PATIENCE, RESULTS

from .options import option
from .shape import command, group

app = group(
    "pull-request", "Rehearse a pull request: review and what-if of the stacks that it touches, in one comment."
)

_Base = Annotated[str, option("--base", metavar="REF", help="commit before the change, for example origin/main")]
_Head = Annotated[str, option("--head", metavar="REF", help="commit with the change (default: HEAD)")]
_Project = Annotated[
    Path | None,
    option("--project", metavar="FOLDER", help="folder with the stack files (default: the current repository's)"),
]
_Stacks = Annotated[
    str,
    option(
        "--stacks", metavar="NAMES", help="names separated by commas, or `all` (default: those that the change touches)"
    ),
]
_Manifests = Annotated[
    str,
    option(
        "--manifests",
        metavar="FOLDERS",
        help="folders of NodePools and node classes instead of stacks, separated by commas, for example "
        "clusters/prod/nodepools; they need --workloads",
    ),
]
_Printed = Annotated[
    str,
    option(
        "--stacks",
        metavar="JSON",
        help="what `karpstack pull-request stacks` printed: a stack without a result is reported as failed",
    ),
]
_Results = Annotated[
    Path, option("--results", metavar="FOLDER", help="folder of the results (default: build/pull-request)")
]


@command(app, "stacks", "karpstack pull-request stacks --base origin/main")
def _list(
    base: _Base,
    head: _Head = "HEAD",
    project: _Project = None,
    stacks: _Stacks = "",
    manifests: _Manifests = "",
    workloads: Annotated[
        str, option("--workloads", metavar="FILE|FOLDER", help="with --manifests: as for `rehearse`")
    ] = "",
    files: Annotated[bool, option("--files", help="print the names of the stack files instead, on one line")] = False,
) -> int:
    """Print which stacks a change touches, as a JSON list of names."""
    from karpstack.pull_request import commands

    touching = commands.AffectedStacks(base, head, project, stacks, manifests, workloads)
    return commands.touched_stacks(touching, files=files)


@command(app, "rehearse", "karpstack pull-request rehearse --base origin/main --workloads snapshot.json")
def _rehearse(
    base: _Base,
    head: _Head = "HEAD",
    project: _Project = None,
    stacks: _Stacks = "",
    manifests: _Manifests = "",
    whatif: Annotated[
        Literal["true", "false"], option("--whatif", help="rehearse the change too, besides the review (default: true)")
    ] = "true",
    workloads: Annotated[
        str,
        option(
            "--workloads",
            metavar="FILE|FOLDER",
            help="a snapshot, or a folder with STACK.json or STACK.json.gz for each stack, and default.json for the "
            "others",
        ),
    ] = "",
    limits: Annotated[
        str,
        option(
            "--limits",
            metavar="FILE|FOLDER",
            help="limits, or a folder with STACK.yml for each stack, and default.yml for the others",
        ),
    ] = "",
    prices: Annotated[
        str,
        option(
            "--prices",
            metavar="FILE|FOLDER",
            help="your own prices, or a folder with STACK.yml for each stack, and default.yml for the others",
        ),
    ] = "",
    wait_factor: Annotated[str, option("--wait-factor", metavar="N", help="as for `karpstack whatif`")] = "",
    at: Annotated[str, option("--at", metavar="TIME", help="as for `karpstack whatif`")] = "",
    patience: Annotated[str, option("--patience", metavar="SECONDS", help="as for `karpstack whatif`")] = "",
    results: _Results = RESULTS,
) -> int:
    """Review the stacks that a change touches, and rehearse the change of each.

    Exit code 1: a mandatory rule is violated or a limit is exceeded; 3: a stack has no answer.
    """
    from karpstack.pull_request import commands

    return commands.rehearse(
        commands.AffectedStacks(base, head, project, stacks, manifests, workloads),
        results,
        whatif=whatif == "true",
        passed_on={
            "workloads": workloads,
            "limits": limits,
            "prices": prices,
            "wait-factor": wait_factor,
            "at": at,
            "patience": patience,
        },
    )


@command(app, "comment", "karpstack pull-request comment --number 12")
def _comment(
    results: _Results = RESULTS,
    stacks: _Printed = "",
    number: Annotated[
        int | None, option("--number", metavar="N", help="number of the pull request (default: the event's)")
    ] = None,
    author: Annotated[
        str, option("--author", metavar="LOGIN", help="owner of the token (default: github-actions[bot])")
    ] = AUTHOR,
    name: Annotated[
        str,
        option(
            "--name",
            help=f"of the comment: each name has its own, which the next run changes (default: {NAME})",
        ),
    ] = NAME,
    patience: Annotated[
        float, option("--patience", metavar="SECONDS", help="how long to wait for GitHub in all (default: 900)")
    ] = PATIENCE,
) -> int:
    """Write the results into one comment on the pull request, by GitHub's API, with the token in GITHUB_TOKEN.

    If the token may only read, as for a pull request from a fork, the results go into the job's summary.
    """
    from karpstack.pull_request import commands

    return commands.comment(results, stacks, number=number, author=author, name=name, patience=patience)


@command(app, "summary", "karpstack pull-request summary > rehearsed.md")
def _summary(results: _Results = RESULTS, stacks: _Printed = "") -> int:
    """Write the results into the job's summary ($GITHUB_STEP_SUMMARY), or print them."""
    from karpstack.pull_request import commands

    return commands.summary(results, stacks)
