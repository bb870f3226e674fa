"""Too little room and too few open files are said before anything starts."""

from __future__ import annotations

import errno
import resource
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace

import pytest

from karpstack.rehearsal.host import limits
from karpstack.rehearsal.host.limits import LimitError

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The limits of open files, soft and hard; the last one counts."""
    found = [(256, 20_000)]
    monkeypatch.setattr("resource.getrlimit", lambda _: found[-1])
    monkeypatch.setattr("resource.setrlimit", lambda _, limit: found.append(limit))
    return found


@pytest.mark.parametrize(
    ("limit", "raised"),
    [
        ((256, 20_000), [(10_240, 20_000)]),
        ((256, 2048), [(2048, 2048)]),
        ((256, resource.RLIM_INFINITY), [(10_240, resource.RLIM_INFINITY)]),
        ((15_000, 20_000), []),
    ],
)
def test_the_limit_of_open_files_is_raised(
    files: list[tuple[int, int]], tmp_path: Path, limit: tuple[int, int], raised: list[tuple[int, int]]
) -> None:
    files[:] = [limit]
    limits.check(tmp_path / "not" / "yet")
    assert files[1:] == raised


@pytest.mark.parametrize(
    ("open_files", "room", "memory", "said"),
    [
        ((64, 512), 2**30, 2**40, r"RLIMIT_NOFILE\) is 512.*ulimit -Hn 1024"),
        ((256, 20_000), 50 * 2**20, 2**40, "has 50 MiB free.*make room for 512 MiB.*--state DIR"),
        ((256, 20_000), 2**30, 500 * 2**20, r"600 MiB of memory are free, .* until 768 MiB are"),
    ],
)
def test_too_little_of_anything_is_said(
    files: list[tuple[int, int]],
    open_files: tuple[int, int],
    room: int,
    memory: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files[:] = [open_files]
    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage(2**30, 2**30, room))
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=memory))
    monkeypatch.setattr("psutil.swap_memory", lambda: SimpleNamespace(free=100 * 2**20))
    with pytest.raises(LimitError, match=said):
        limits.check(tmp_path / "eks")


@pytest.mark.parametrize(("free", "said"), [(10 * 2**20, "has no space left (10 MiB)"), (2**30, "")])
def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, said: str) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage(2**30, 2**30 - free, free))
    found = limits.shortage(tmp_path / "eks")
    assert said in found
    assert bool(found) == bool(said)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "x", "/state/daemon.json"), "No space left on device (/state/daemon.json), so"),
        (OSError(errno.EMFILE, "x"), "ulimit -n"),
        (OSError(errno.ENOMEM, "x"), "memory or processes ran out"),
        (MemoryError(), "there is no memory left"),
        (FileNotFoundError(errno.ENOENT, "x"), ""),
    ],
)
def test_what_the_machine_has_run_out_of_is_named(error: OSError | MemoryError, said: str) -> None:
    found = limits.exhausted(error)
    assert said in found
    assert bool(found) == bool(said)
