"""Whether an engine set is what was built: before anything of it runs, each file is compared with the set's manifest.

The manifest (`manifest.json` in the set) holds size, mode and SHA-256 of every file, and where a pulled set came from.
To hash them all at each command would take a second, so the set has stamps beside it (`<set>.stamps.json`), as git's
index has: what a file's metadata were when it was last hashed. Only a file with other metadata is hashed again; the
time of the last change is among them, which not even the owner can set.

This finds damage, and what others did in a folder that they may write. It is no help against somebody who acts as the
user already, and needs none against others while the folders are the user's alone (see `exposure`).
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

#: The manifest's file in a set.
NAME = "manifest.json"
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
# A file may change twice within the resolution of its times; what changed this long before it was hashed has no stamp.
_SETTLED_SECONDS = 1.0


def exposure(cache: Path, engines: Path) -> str | None:
    """Why others could replace what lies in the cache, and the fix; None where they cannot.

    No group may write there, not even one of the user alone.

    Args:
        cache: The cache folder, as `cache_folder` has it: what is above it was judged there.
        engines: A folder in it. Each on the way is looked at; those that do not exist yet are skipped.
    """
    cache, engines = cache.resolve(), engines.resolve()
    between = [engines, *engines.parents]
    for folder in reversed(between[: between.index(cache) + 1]):
        if not folder.is_dir():
            continue
        status = folder.stat()
        if not _trusted(status):
            return (
                f"{folder} belongs to user {status.st_uid}, who could replace the programs in it that you (user "
                f"{os.geteuid()}) run: name a folder of your own in KARPSTACK_CACHE"
            )
        if status.st_mode & _WRITABLE_BY_OTHERS:
            return (
                f"{folder} may be written by other users, who could have replaced the programs in it: empty it and "
                f"run `chmod go-w {folder}`, or name a folder of your own in KARPSTACK_CACHE"
            )
    return None


def write(root: Path) -> None:
    """Describe a set that was just built; nobody else may write its files and folders from then on."""
    seal(root)
    files = {}
    for path in sorted(root.rglob("*")):
        if path.is_file():
            status = path.stat()
            files[path.relative_to(root).as_posix()] = {
                "sha256": _digest(path),
                "size": status.st_size,
                "mode": f"{stat.S_IMODE(status.st_mode):04o}",
            }
    (root / NAME).write_text(_text({"files": files}))


def seal(root: Path) -> None:
    """Remove the write permission of other users from the files and folders of a set."""
    for path in (root, *root.rglob("*")):
        path.chmod(stat.S_IMODE(path.stat().st_mode) & ~_WRITABLE_BY_OTHERS)


def portable(root: Path) -> tuple[str, list[str]]:
    """Return a set's manifest as it is published, the same from every machine, and the names of the set's files.

    A program has mode 0755 there, and every other file 0644; where the set came from is left out.
    """
    files = {
        name: {"sha256": digest, "size": size, "mode": f"{portable_mode(mode):04o}"}
        for name, (digest, size, mode) in _listed(root).items()
    }
    return _text({"files": files}), sorted(files)


def portable_mode(mode: int) -> int:
    """Return the mode that a file of a published set has."""
    return 0o755 if mode & stat.S_IXUSR else 0o644


def origin(root: Path) -> str:
    """Return where a set was pulled from; empty if it was built here."""
    return str(json.loads((root / NAME).read_text()).get("origin", ""))


def set_origin(root: Path, place: str) -> None:
    """Write down where a set was pulled from."""
    (root / NAME).write_text(_text({**json.loads((root / NAME).read_text()), "origin": place}))


def forget(root: Path) -> None:
    """Remove what `faults` wrote down beside a set that is gone."""
    _stamps(root).unlink(missing_ok=True)


def _text(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


def faults(root: Path) -> list[str]:
    """What is wrong with a set, a sentence a file that begins with its path; empty when it is as it was built."""
    try:
        listed = _listed(root)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return [f"{root / NAME} cannot be used: {error!r}"]
    known = _read_stamps(root)
    found, stamps = [], {}
    present = {path.relative_to(root).as_posix() for path in _files(root)} - {NAME}
    for name in sorted(present - set(listed)):
        found.append(f"{root / name} is not part of the set")
    for name, (digest, size, mode) in listed.items():
        path = root / name
        try:
            status = path.lstat()
            stamp = [digest, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
            if fault := _fault(path, status, size, mode):
                found.append(f"{path} {fault}")
            elif known.get(name) == stamp:
                stamps[name] = stamp
            elif _digest(path) != digest:
                found.append(f"{path} has other content than was built")
            elif status.st_ctime < time.time() - _SETTLED_SECONDS:
                stamps[name] = stamp
        except OSError as error:
            found.append(f"{path} cannot be read: {error.strerror}")
    if stamps != known:
        _write_stamps(root, stamps)
    return found


def _fault(path: Path, status: os.stat_result, size: int, mode: int) -> str | None:
    if not stat.S_ISREG(status.st_mode):
        return "is no regular file"
    if not _trusted(status):
        return f"belongs to user {status.st_uid}"
    if stat.S_IMODE(status.st_mode) != mode:
        return f"has mode {stat.S_IMODE(status.st_mode):04o} instead of {mode:04o}"
    if status.st_size != size:
        return f"has {status.st_size} bytes instead of {size}"
    folder = path.parent.stat()
    if not _trusted(folder) or folder.st_mode & _WRITABLE_BY_OTHERS:
        return "is in a folder that others may write"
    return None


def _trusted(status: os.stat_result) -> bool:
    return status.st_uid in (os.geteuid(), 0)


def _files(root: Path) -> Iterator[Path]:
    """All that is no folder; links are not followed."""
    return (path for path in root.rglob("*") if path.is_symlink() or not path.is_dir())


def _listed(root: Path) -> dict[str, tuple[str, int, int]]:
    files = json.loads((root / NAME).read_text())["files"]
    return {name: (str(one["sha256"]), int(one["size"]), int(one["mode"], 8)) for name, one in files.items()}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _stamps(root: Path) -> Path:
    return root.with_name(f"{root.name}.stamps.json")


def _read_stamps(root: Path) -> dict[str, Any]:
    try:
        found = json.loads(_stamps(root).read_text())
    except (OSError, ValueError):
        return {}  # everything is hashed
    return found if isinstance(found, dict) else {}


def _write_stamps(root: Path, stamps: dict[str, Any]) -> None:
    # In a file of our own first: another command may write at the same time.
    new = root.with_name(f"{root.name}.stamps.{os.getpid()}")
    try:
        new.write_text(json.dumps(stamps))
        new.replace(_stamps(root))
    except OSError:  # a set of root's, whose stamps are root's too: the next command hashes what this one did
        with suppress(OSError):
            new.unlink()
