"""What the measurements have in common: tables, and commands that a rehearsal is measured with."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.table import Table

from karpstack.text.packaged import IMPORT_ROOT
from tests.rehearsal.conftest import RehearsedStack, new_stack


def columns(title: str, left: str, right: str = "") -> Table:
    """A table whose first columns are texts and whose last ones are figures; names are separated by `|`."""
    table = Table(title=title, title_justify="left")
    for names, justify in ((left, "left"), (right, "right")):
        for name in filter(None, names.split("|")):
            table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    return table


def show(*shown: Table | str) -> None:
    for one in shown:
        Console(width=160).print(one, markup=False)


@contextmanager
def up(folder: Path, name: str = "eks", **configuration: Any) -> Iterator[RehearsedStack]:
    """A stack that is brought up, and stopped at the end."""
    stack = new_stack(folder, name)
    stack.configure(**configuration)
    try:
        stack.succeed("up")
        yield stack
    finally:
        stack.command("down", "--force")


@contextmanager
def temporary() -> Iterator[Path]:
    with TemporaryDirectory() as name:
        yield Path(name)


def run_stories(stack: str, report: Path, *options: str) -> dict[str, Any]:
    """Run the stories of a stack from nothing; the report."""
    command = [sys.executable, "-m", "karpstack", "run", stack, "--report", str(report), *options]
    state = ["--state", str(report.parent / "state")]
    subprocess.run([*command, *state], cwd=IMPORT_ROOT, check=False, stdout=subprocess.DEVNULL)
    found: dict[str, Any] = json.loads((report / "report.json").read_text())
    return found
