"""Files that users name, and files that others wrote: what may be replaced, how it is written, and what is read.

Every file that a user names for output goes through `check_output` and `write`; every file of a folder of results or
artifacts goes through `open_result`. Standard library only: where the comment on a pull request is written, nothing
else is installed.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final

from .shown import visible

#: In a folder that the project made, and may remove as a whole.
MARKER: Final = ".made-by-karpstack"
_BEGINNING: Final = 4096  # bytes by which a file of ours is recognised
_KINDS: Final = (
    (stat.S_ISLNK, "a link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
)


class OutputError(ValueError):
    """A file that may not be written; the text says where, why, and what to do."""


class ResultError(ValueError):
    """A file of a folder of results that is not read; the text says which, why, and what to do."""


def check_output(path: Path, option: str, what: str = "", ours: Callable[[bytes], object] = lambda _: False) -> None:
    """Refuse a path at which writing would destroy something: only nothing, and a file that we wrote, may be there.

    Args:
        path: The file that the user named.
        option: How the user named it, for the error: `--output`.
        what: What we write there, for the error: `snapshot`. Empty where no file is ever replaced.
        ours: Whether a file that begins with these bytes is such a file.

    Raises:
        OutputError: Something else is there.
    """
    where = f"{option} {visible(path)}"
    try:
        mode = path.lstat().st_mode
        if kind := next((words for check, words in _KINDS if check(mode)), ""):
            raise OutputError(f"{where}: is {kind}, so it is not written over; name another file")
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            beginning = file.read(_BEGINNING)
    except FileNotFoundError:
        return
    except OSError as error:
        raise OutputError(f"{where}: cannot be read ({error.strerror}), so it is not written over") from error
    if beginning and not ours(beginning):
        why = f"is no {what}, so the existing file would be lost" if what else "exists already and would be lost"
        raise OutputError(f"{where}: {why}; name another file, or move it away")


def page_begins(title: bytes) -> re.Pattern[bytes]:
    """Return how every page of ours begins whose title begins as an expression says."""
    return re.compile(rb"<!doctype html>\n(?:(?!<title>).)*<title>" + title, re.DOTALL)


def write(path: Path, content: str | bytes, *, private: bool = False) -> None:
    """Write a file as a whole: readers have the old or the new one, and a link is replaced, not followed.

    Args:
        path: The file.
        content: What it holds then.
        private: Whether its owner alone may read it.

    Raises:
        OSError: The file, which the error names, cannot be written; what was there is as before, and nothing else is
            left.
    """
    # A name of its own: two commands may write at the same time, and the file's own may be as long as names can be.
    partial = path.with_name(f".{secrets.token_hex(8)}.partial")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(partial, flags, 0o600 if private else 0o666)
        try:
            with os.fdopen(descriptor, "wb") as file:
                if not private and path.is_file() and not path.is_symlink():
                    os.fchmod(descriptor, stat.S_IMODE(path.stat().st_mode))
                file.write(content if isinstance(content, bytes) else content.encode())
            partial.replace(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def make_ours(folder: Path, mode: int = 0o777) -> None:
    """Make a folder that the project may remove; one that is there with something in it stays somebody else's."""
    folder.mkdir(mode=mode, parents=True, exist_ok=True)
    if not any(folder.iterdir()):
        (folder / MARKER).touch()


def is_ours(folder: Path) -> bool:
    """Whether `make_ours` made a folder."""
    return (folder / MARKER).is_file() and not (folder / MARKER).is_symlink()


def make_results(folder: Path) -> None:
    """Make a folder for results; of those in a project's `build`, `make clean` removes what this has made."""
    for made, build in pairwise((folder, *folder.parents)):
        if build.name == "build" and (build.parent / "Pulumi.yaml").is_file():
            make_ours(made, 0o755)
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)


def open_file(path: Path) -> BinaryIO:
    """Open a file for reading. A pipe or a device is refused, because reading it may never end.

    Raises:
        OSError: It cannot be read, or is no file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "a folder, a pipe or a device; write to a file what a command prints")
    return os.fdopen(descriptor, "rb")


def open_result(folder: Path, name: str) -> BinaryIO | None:
    """Open a file of a folder of results for reading; return None if there is none.

    The folder may come from another machine, and what wrote it may be a change that nobody has read yet. So neither
    the file nor a folder on the way to it may be a link: it would lead to the files of whoever reads.

    Args:
        folder: The folder, as the user named it.
        name: The file in it, with slashes: `eks/review/review.md`.

    Raises:
        ResultError: A link or something else than a file is there, or it cannot be read.
    """
    where = visible(folder / name)
    if not (parts := PurePosixPath(name).parts) or ".." in parts or parts[0] == "/":
        raise ResultError(f"{where}: leads out of the folder of results, so it is not read; name the folder itself")
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for number, part in enumerate(parts, 1):
            kind = os.O_NONBLOCK if number == len(parts) else os.O_DIRECTORY
            try:
                below = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | kind, dir_fd=descriptor)
            finally:
                os.close(descriptor)
            descriptor = below
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENOTDIR):
            raise ResultError(_not_a_file(where)) from error
        raise ResultError(f"{where}: cannot be read ({error.strerror}); give a folder that can") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ResultError(_not_a_file(where))
    return os.fdopen(descriptor, "rb")


def read_result(folder: Path, name: str, *, most: int) -> bytes | None:
    """Return the content of a file of a folder of results, as `open_result` opens it; None if there is none.

    Args:
        folder: The folder, as the user named it.
        name: The file in it, with slashes.
        most: Bytes that are read at most; a larger file is refused.

    Raises:
        ResultError: As `open_result`, or the file is too large.
    """
    file = open_result(folder, name)
    if file is None:
        return None
    with file:
        content = file.read(most + 1)
    if len(content) > most:
        where = visible(folder / name)
        raise ResultError(f"{where}: has more than {_size(most)}, so it is not read; no file of ours is as large")
    return content


def _not_a_file(where: str) -> str:
    return (
        f"{where}: is a link, or behind one, or no file, so it is not read: it could lead to other files of yours; "
        "give the folder as the command wrote it"
    )


def _size(most: int) -> str:
    return f"{most // 2**20} MiB" if most >= 2**20 else f"{most // 2**10} KiB"
