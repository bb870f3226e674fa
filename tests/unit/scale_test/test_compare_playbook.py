"""compare.yml as people run it: a page and a verdict; again, it changes nothing; in check mode, it writes nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.scale_test.example_report import Example

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With the folders `before` and `after`, where it is slower."""
    for name, slower in (("before", 1.0), ("after", 1.6)):
        (tmp_path / name).mkdir()
        report = Example(pods=40, nodes=6, slower=slower).report()
        for story in report["stories"]:
            story["cost"] = dict.fromkeys(("usd", "bound_usd", "ratio", "peak_usd_per_hour"), 1.0) | {
                "unknown": [],
                "no_bound": None,
            }  # what is spent follows from time; here only time counts
        (tmp_path / name / "report.json").write_text(json.dumps(report))
    return tmp_path


def compare(folder: Path, *arguments: str, before: str = "before", after: str = "after") -> tuple[int, str]:
    result = subprocess.run(
        [
            str(Path(sys.executable).with_name("ansible-playbook")),
            str(ROOT / "playbooks" / "compare.yml"),
            *("-e", f"before={before}", "-e", f"after={after}"),
            *arguments,
        ],
        cwd=folder,
        env=os.environ
        | {
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_HOME": str(folder / "ansible"),
            "ANSIBLE_FORCE_COLOR": "0",
            "PWD": str(folder),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return result.returncode, result.stdout


def changed(output: str) -> str:
    found = re.search(r"changed=(\d+)", output)
    assert found, output
    return found[1]


def test_a_second_run_changes_nothing_and_check_mode_writes_nothing(folder: Path) -> None:
    page = folder / "after" / "comparison.html"
    code, output = compare(folder, "--check")
    assert (code, changed(output), page.exists()) == (0, "1", False), output
    code, output = compare(folder)
    assert (code, changed(output)) == (0, "1"), output
    assert "verdict: worse" in output
    assert ">Worse</h1>" in page.read_text(encoding="utf-8")
    code, output = compare(folder)
    assert (code, changed(output)) == (0, "0"), output


def test_a_pipeline_can_fail_on_worse(folder: Path) -> None:
    code, output = compare(folder, "-e", "fail_if_worse=true", "-e", "comparison=out/page.html")
    assert code != 0, output
    assert "pod pending to running, p50" in output
    assert (folder / "out" / "page.html").is_file()


def test_what_is_no_comparison_is_not_overwritten(folder: Path) -> None:
    notes = folder / "notes.html"
    notes.write_bytes(b"years of work, in Latin-1: \xe9")
    code, output = compare(folder, "-e", "comparison=notes.html")
    assert code != 0, output
    assert "is no page of a comparison, so that somebody else's file would be overwritten" in " ".join(output.split())
    assert notes.read_bytes() == b"years of work, in Latin-1: \xe9"


def test_a_folder_without_a_report_is_refused_with_the_fix(folder: Path) -> None:
    code, output = compare(folder, before="nowhere")
    assert code != 0, output
    text = " ".join(output.split())
    assert f"before = {folder}/nowhere: its report.json cannot be read" in text
    assert "name the folder that a scale test wrote its report to" in text
