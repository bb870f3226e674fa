"""What a rehearsal needs of the machine: room, memory and open files. Looked at before anything is started."""

from __future__ import annotations

import errno
import os
import resource
import shutil
from pathlib import Path

import psutil

from karpstack.text.codes import NO_ROOM

# Measured on EKS: `up` and the walk-throughs took 136 MB, most of it etcd's log, which comes in files of 64 MB;
# with the first minutes of a burst of 1,000 pods it was 166 MB. Three times that, for long runs; see README.md.
_LEAST_ROOM = 512 * 2**20
# A file system with less than that is full: etcd takes its log's room by 64 MB.
_FULL = 64 * 10**6
# Measured: the worst is the API server, which holds 150 in the walk-throughs and 194 in the first minutes of a
# burst. Five times that.
_LEAST_FILES = 1024
_ENOUGH_FILES = 10_240
# Measured: the whole of a rehearsal has 1.1 GiB resident. With less than this, the kernel would kill an engine.
_LEAST_MEMORY = 768 * 2**20
_ELSEWHERE = "put what the command writes elsewhere, with --state, --output, --report or --review if it has them"
_FIXES = {
    **dict.fromkeys(NO_ROOM, f"make room, or {_ELSEWHERE}"),
    **dict.fromkeys(
        (errno.EROFS, errno.EACCES),
        f"run it as a user who may write there, or {_ELSEWHERE}",
    ),
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), f"end other programs, or raise the limit: ulimit -n {_ENOUGH_FILES}"),
    **dict.fromkeys(
        (errno.ENOMEM, errno.EAGAIN), "end other programs, or other rehearsals: memory or processes ran out"
    ),
}


class LimitError(RuntimeError):
    """The machine has too little of something; the text has the figures and the fix."""


def disable_core_dumps() -> None:
    """Disable core dumps of this process and its children: their memory holds keys and tokens."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def check(folder: Path) -> None:
    """Raise the limit of open files as far as we may, and see that there is enough of everything.

    Args:
        folder: Where the rehearsal will write; it need not exist.

    Raises:
        LimitError: There is not.
    """
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH_FILES if most == resource.RLIM_INFINITY else min(most, _ENOUGH_FILES)
    if wanted < _LEAST_FILES:
        raise LimitError(
            f"the limit of open files (RLIMIT_NOFILE) is {most}, so the API server would run out of them; "
            f"raise it to {_LEAST_FILES} or more, as root: ulimit -Hn {_LEAST_FILES}, or LimitNOFILE of a service"
        )
    if now != resource.RLIM_INFINITY and now < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
    memory = psutil.virtual_memory().available + psutil.swap_memory().free
    if memory < _LEAST_MEMORY:
        raise LimitError(
            f"{memory / 2**20:.0f} MiB of memory are free, so the kernel would kill an engine during a story; "
            f"end other programs, or other rehearsals, until {_LEAST_MEMORY / 2**20:.0f} MiB are"
        )
    existing, free = _room(folder)
    if free < _LEAST_ROOM:
        raise LimitError(
            f"{existing} has {free / 2**20:.0f} MiB free, so etcd would stop in the middle of a story; make room for "
            f"{_LEAST_ROOM / 2**20:.0f} MiB, or put the state elsewhere with --state DIR"
        )


def exhausted(error: OSError | MemoryError) -> str:
    """What the machine has run out of, and the fix, where that is the error; empty if it is another one."""
    if isinstance(error, MemoryError):
        return f"there is no memory left, so nothing more was done; {_FIXES[errno.ENOMEM]}"
    fix = _FIXES.get(error.errno or 0)
    where = f" ({error.filename})" if error.filename else ""
    return f"{os.strerror(error.errno or 0)}{where}, so nothing more was done; {fix}" if fix else ""


def shortage(folder: Path) -> str:
    """What a rehearsal may have died of: that the disk is full, as a sentence; empty if it is not."""
    existing, free = _room(folder)
    if free >= _FULL:
        return ""
    return (
        f"{existing} has no space left ({free / 2**20:.0f} MiB): make room, or put the state elsewhere with --state DIR"
    )


def _room(folder: Path) -> tuple[Path, int]:
    """The folder, or what there is above it, and the bytes that are free there."""
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    return existing, shutil.disk_usage(existing).free
