"""Records between commands: whole or absent, private, and never believed without a look."""

from __future__ import annotations

import errno
import json
import logging
import stat
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from karpstack.rehearsal.host.processes import ProcessRecord
from karpstack.rehearsal.session.daemon import DaemonInfo
from karpstack.rehearsal.state import records


@dataclass(frozen=True)
class Example:
    pid: int
    started: float
    ports: dict[str, int] = field(default_factory=dict)
    crashes: list[str] = field(default_factory=list)


GOOD = Example(7, 1.5, {"aws": 4000}, ["etcd"])


def test_what_was_written_is_read_and_only_ours_to_read(tmp_path: Path) -> None:
    path = tmp_path / "example.json"
    records.write(path, GOOD)
    assert records.read(path, Example) == GOOD
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [found.name for found in tmp_path.iterdir()] == ["example.json"]


def test_a_write_that_fails_leaves_the_old_one_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "example.json"
    records.write(path, GOOD)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="no space"):
        records.write(path, Example(8, 2.0))
    assert records.read(path, Example) == GOOD
    assert [found.name for found in tmp_path.iterdir()] == ["example.json"]


def test_no_record_is_nothing_to_tell(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert records.read(tmp_path / "example.json", Example) is None
    assert caplog.text == ""


def test_keys_of_another_version_are_passed_over_and_those_with_a_default_can_be_missing(tmp_path: Path) -> None:
    path = tmp_path / "example.json"
    path.write_text(json.dumps({"pid": 7, "started": 1, "colour": "red"}))
    assert records.read(path, Example) == Example(7, 1)


BROKEN = [
    b"",
    b'{"pid": 7, "star',
    b"\xff\xfe",
    b"null",
    b"[]",
    b'"text"',
    b"7",
    b"{}",
    b'{"pid": 7}',
    b'{"pid": "7", "started": 1.5}',
    b'{"pid": true, "started": 1.5}',
    b'{"pid": null, "started": 1.5}',
    b'{"pid": 7.5, "started": 1.5}',
    b'{"pid": 7, "started": "now"}',
    b'{"pid": 7, "started": 1.5, "ports": []}',
    b'{"pid": 7, "started": 1.5, "ports": {"aws": "4000"}}',
    b'{"pid": 7, "started": 1.5, "crashes": "etcd"}',
    b'{"pid": 7, "started": 1.5, "crashes": [1]}',
    b"[" * 100_000,
]


@pytest.mark.parametrize("content", BROKEN, ids=range(len(BROKEN)))
def test_what_is_no_record_is_absent_and_told(content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "example.json"
    path.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        assert records.read(path, Example) is None
    assert f"{path} is damaged, so it is treated as absent" in caplog.text


def test_a_folder_in_its_place_is_no_record(tmp_path: Path) -> None:
    (tmp_path / "example.json").mkdir()
    assert records.read(tmp_path / "example.json", Example) is None


@pytest.mark.parametrize("pid", [-1, 0, 2**31, 2**64, 10**30])
def test_what_no_process_can_be_called_is_no_process(pid: int) -> None:
    assert ProcessRecord("etcd", pid, 1.0).process() is None
    assert not DaemonInfo(pid, 1.0, "aws", "us-east-1").alive
