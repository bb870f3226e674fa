"""Whether others could exchange what lies at a path: each folder above it, and each link that leads there, is judged.

Who may write a folder may rename what is in it and put something else in its place, whoever owns that. So one
foreign folder anywhere between `/` and a path is enough. Standard library only: the engines are built with this.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from pathlib import Path

_MOST_LINKS = 40  # as Linux has it
_ACCESS_LIST = "system.posix_acl_access"  # Linux's name of acl(5)


class ExposedError(Exception):
    """Others could exchange what lies at a path; the text says how, what would have happened, and the fix."""


def resolve(path: Path, content: str, instead: str, *, below: Path = Path("/")) -> Path:
    """The path without links, once nobody but this user and root could make it lead to something else.

    A folder on the way must be this user's or root's. If others may write it, it must be sticky, as /tmp is, where
    nobody renames what is another's; the private group of this user is none of the others. A link on the way must be
    this user's or root's too. The path itself is judged as the folders above it are. What does not exist yet is
    skipped: it has to be resolved again when it was made, for in /tmp somebody else may have been quicker.

    Args:
        content: What lies there, and what hangs on it, for the error: "the engines, and so what your commands run".
        instead: What can be done otherwise, for the error: "name another folder with --state".
        below: A folder without links above the path that is not judged, nor what is above it; a link that leads out of
            it is judged from `/` on.

    Raises:
        ExposedError: A folder or a link on the way is somebody else's, others may write one, or it cannot be known.
    """
    found, links = below, 0
    # Component by component, since each is looked up in a folder that was judged before: it stays what it is.
    ahead = list(reversed(path.absolute().relative_to(below).parts))
    while ahead:
        name = ahead.pop()
        if name == "..":
            found = found.parent
            continue
        entry = found / name
        try:
            status = entry.lstat()
        except (FileNotFoundError, NotADirectoryError):
            found = entry
            continue
        except OSError as error:
            raise ExposedError(f"{entry} cannot be read ({error.strerror}), so nothing was done; {instead}") from error
        if fault := _fault(entry, status, content, instead):
            raise ExposedError(fault)
        if not stat.S_ISLNK(status.st_mode):
            found = entry
            continue
        links += 1
        if links > _MOST_LINKS:
            raise ExposedError(f"{path} leads through more than {_MOST_LINKS} links, perhaps in a circle; {instead}")
        ahead += reversed(entry.readlink().parts)
    return found


def user_name(number: int) -> str:
    """A user for people: name and uid, or the uid alone where it has no name."""
    try:
        return f"{pwd.getpwuid(number).pw_name} (uid {number})"
    except KeyError:
        return f"uid {number}"


def _fault(path: Path, status: os.stat_result, content: str, instead: str) -> str | None:
    if status.st_uid not in (os.geteuid(), 0):
        kind = "is a link that" if stat.S_ISLNK(status.st_mode) else "is a folder that"
        return f"{path} {kind} belongs to {user_name(status.st_uid)}, who could exchange {content}; {instead}"
    if stat.S_ISLNK(status.st_mode) or status.st_mode & stat.S_ISVTX:  # the mode of a link says nothing
        return None
    by_group = status.st_mode & stat.S_IWGRP and (_has_access_list(path) or not _is_private_group(status.st_gid))
    if by_group or status.st_mode & stat.S_IWOTH:
        return (
            f"{path} can be written by others (mode {stat.S_IMODE(status.st_mode):04o}, group {status.st_gid}), who "
            f"could exchange {content}; run `chmod go-w {path}`, or {instead}"
        )
    return None


def _has_access_list(path: Path) -> bool:
    """Whether a folder says of single users what they may, which its mode shows as the group's rights."""
    return hasattr(os, "listxattr") and _ACCESS_LIST in os.listxattr(path)


def _is_private_group(number: int) -> bool:
    """Whether a group is the one of this user alone, which many systems give to each user: it lets nobody in.

    The members that a group lists are not all: those whose primary group it is are not among them.
    """
    uid = os.geteuid()
    try:
        user, group = pwd.getpwuid(uid), grp.getgrgid(number)
    except KeyError:
        return False
    return (
        user.pw_gid == number
        and group.gr_name == user.pw_name
        and set(group.gr_mem) <= {user.pw_name}
        and all(other.pw_uid == uid for other in pwd.getpwall() if other.pw_gid == number)
    )
