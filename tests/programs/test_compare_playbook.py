"""compare.yml as people run it: a page and a verdict; again, it changes nothing; in check mode, it writes nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from tests.programs.playbook import ROOT, play
from tests.unit.scale_test.example_report import Example

PLAYBOOK = ROOT / "playbooks" / "compare.yml"


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


def compare(folder: Path, *arguments: str, playbook: Path | str = PLAYBOOK, before: str = "before") -> tuple[int, str]:
    return play(playbook, folder, "-e", f"before={before}", "-e", "after=after", *arguments)


def changed(output: str) -> str:
    found = re.search(r"changed=(\d+)", output)
    assert found, output
    return found[1]


def test_a_second_run_changes_nothing_and_a_pipeline_can_fail_on_worse(folder: Path) -> None:
    """Three runs in one: a start of Ansible takes longer than all that it does here."""
    again = {"import_playbook": str(PLAYBOOK)}
    failing = again | {"vars": {"fail_if": "any-worse", "comparison": "out/page.html"}}
    (folder / "three.yml").write_text(yaml.safe_dump([again, again, failing]))
    code, output = compare(folder, playbook=folder / "three.yml")
    # The first run wrote its page, the second nothing, the third its own before it failed.
    assert (code != 0, changed(output)) == (True, "2"), output
    assert output.count("verdict: worse") == 3
    assert ">Worse</h1>" in (folder / "after" / "comparison.html").read_text(encoding="utf-8")
    assert (folder / "out" / "page.html").is_file()
    assert "pod pending to running, p50" in output.rpartition("It did not get worse")[2]


def test_check_mode_writes_nothing(folder: Path) -> None:
    code, output = compare(folder, "--check")
    assert (code, changed(output)) == (0, "1"), output
    assert not (folder / "after" / "comparison.html").exists()


def test_a_folder_without_a_report_is_refused_with_the_fix(folder: Path) -> None:
    code, output = compare(folder, before="nowhere")
    assert code != 0, output
    text = " ".join(output.split())
    assert f"before = {folder}/nowhere: its report.json cannot be read" in text
    assert "name the folder that a scale test wrote its report to" in text
