"""`karpstack whatif`: what a change of a stack does, and the answers to that question."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from .options import Format, argument, option
from .shape import command, group

app = group("whatif", "What a change of a stack does to its nodes, its pods and its cost.")

_Folders = Annotated[list[Path], argument("FOLDER", "folders of what-ifs, each with whatif.json in it")]


@command(app, "report", "karpstack whatif report build/whatif/eks/working-tree --snapshot snapshot.json")
def _report(
    folder: Annotated[Path, argument("FOLDER", "folder of a what-if, with timeline.jsonl in it")],
    snapshot: Annotated[
        Path | None,
        option("--snapshot", metavar="FILE", help="snapshot that the workload is from, to compare with its nodes"),
    ] = None,
    limits: Annotated[
        Path | None,
        option("--limits", metavar="FILE", help="limits, with a section `whatif` (default: playbooks/thresholds.yml)"),
    ] = None,
    prices: Annotated[
        Path | None, option("--prices", metavar="FILE", help="your own prices and discounts, see docs/how-to/whatif.md")
    ] = None,
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
