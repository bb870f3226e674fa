"""How far a what-if is, as it is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from karpstack.rehearsal.whatif.progress import Progress


def test_whole_lines_are_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "progress.txt"
    progress = Progress(path)
    progress.print_progress()  # there is none yet
    path.write_text("The base settles, 0 s: 1 nodes\nThe base set")
    progress.print_progress()
    progress.print_progress()
    assert capsys.readouterr().err == "The base settles, 0 s: 1 nodes\n"
    with path.open("a") as file:
        file.write("tles, 20 s: 2 nodes\nThe base settles, 40 s: \x1b[31m3 nodes\n")
    progress.print_progress()
    assert capsys.readouterr().err == "The base settles, 20 s: 2 nodes\nThe base settles, 40 s: 3 nodes\n"
    path.write_text("anew\n")
    progress.print_progress()
    assert capsys.readouterr().err == "anew\n"
