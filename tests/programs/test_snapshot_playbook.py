"""snapshot.yml as people run it: a file, and what was left out; in check mode, it writes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from karpstack.snapshot.reading import load
from tests.programs.playbook import play
from tests.unit.snapshot import api


@pytest.fixture
def exports(tmp_path: Path) -> Path:
    path = tmp_path / "all.json"
    path.write_text(json.dumps(api.exported(api.cluster())))
    return path


@pytest.mark.parametrize("option", ["anonymise", "anonymize"])
def test_a_snapshot_of_exports_without_names(exports: Path, tmp_path: Path, option: str) -> None:
    given = ("-e", "out=snapshot.json.gz", "-e", f"exports={exports.name}", "-e", f"{option}=true")
    key = {"KARPSTACK_SNAPSHOT_KEY": "long-and-secret"}
    code, output = play("snapshot.yml", tmp_path, *given, "--check", **key)
    assert code == 0, output
    assert not (tmp_path / "snapshot.json.gz").exists()
    code, output = play("snapshot.yml", tmp_path, *given, **key)
    assert code == 0, output
    made = load(tmp_path / "snapshot.json.gz").snapshot
    assert made.anonymised
    assert made.pods == 15
    assert "environment variables" in output
    assert api.CANARY not in output
    assert "long-and-secret" not in output


def test_a_misspelt_wish_for_hashes_writes_no_names(exports: Path, tmp_path: Path) -> None:
    given = ("-e", "out=snapshot.json", "-e", f"exports={exports.name}", "-e", "anonymised=true")
    code, output = play("snapshot.yml", tmp_path, *given)
    assert code != 0
    assert "did you mean anonymise?" in " ".join(output.split())
    assert not (tmp_path / "snapshot.json").exists()


def test_what_is_no_export_is_refused_in_words(exports: Path, tmp_path: Path) -> None:
    exports.write_text("{")
    code, output = play("snapshot.yml", tmp_path, "-e", "out=snapshot.json", "-e", f"exports={exports}")
    assert code != 0
    assert "not JSON" in output
    assert "Traceback" not in output
    assert not (tmp_path / "snapshot.json").exists()


def test_without_a_file_nothing_is_read(tmp_path: Path) -> None:
    code, output = play("snapshot.yml", tmp_path)
    assert code != 0
    assert "give the file: -e out=snapshot.json" in " ".join(output.split())
