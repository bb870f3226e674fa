"""Folders that another user could exchange, each in its own way."""

from __future__ import annotations

import grp
import os
import pwd
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

SOMEBODY = 65534
_needs_linux = pytest.mark.skipif(not hasattr(os, "setxattr"), reason="only Linux keeps access lists so")
_needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders and links away")


def passwd(name: str, uid: int, gid: int) -> pwd.struct_passwd:
    """An account."""
    return pwd.struct_passwd((name, "x", uid, gid, "", "/", "/bin/sh"))


def accounts(
    monkeypatch: pytest.MonkeyPatch, gid: int, *others: pwd.struct_passwd, group: str = "me", members: str = ""
) -> None:
    """Make this user one called `me` with this primary group, beside other accounts."""
    me = passwd("me", os.geteuid(), gid)
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: {one.pw_uid: one for one in (*others, me)}[uid])
    monkeypatch.setattr(pwd, "getpwall", lambda: [*others, me])
    monkeypatch.setattr(grp, "getgrgid", lambda number: grp.struct_group((group, "x", number, members.split())))


def _folders(base: Path) -> Path:
    """A folder, and one in it, nobody else's yet."""
    low = base / "high" / "low"
    low.mkdir(parents=True)
    for folder in (low.parent, low):
        folder.chmod(0o755)
    return low


def _high_writable(base: Path, _: pytest.MonkeyPatch) -> Path:
    low = _folders(base)
    low.parent.chmod(0o777)
    return low


def _high_foreign(base: Path, _: pytest.MonkeyPatch) -> Path:
    low = _folders(base)
    os.chown(low.parent, SOMEBODY, -1)
    return low


def _low_foreign(base: Path, _: pytest.MonkeyPatch) -> Path:
    low = _folders(base)
    os.chown(low, SOMEBODY, -1)
    return low


def _low_foreign_sticky(base: Path, _: pytest.MonkeyPatch) -> Path:
    low = _low_foreign(base, _)
    low.chmod(0o1777)
    return low


def _low_foreign_group(base: Path, _: pytest.MonkeyPatch) -> Path:
    low = _folders(base)
    os.chown(low, -1, SOMEBODY)
    low.chmod(0o775)
    return low


def _low_group_of_others(base: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    low = _folders(base)
    low.chmod(0o770)
    gid = low.stat().st_gid
    accounts(monkeypatch, gid, passwd("operator", os.geteuid() + 1, gid))
    return low


def _low_by_access_list(base: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The group is the user's own, and somebody else may write all the same."""
    low = _folders(base)
    accounts(monkeypatch, low.stat().st_gid, group="me", members="me")
    entries = ((1, 7, -1), (2, 7, SOMEBODY), (4, 5, -1), (16, 7, -1), (32, 5, -1))  # acl(5), as Linux keeps it
    value = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    try:
        os.setxattr(low, "system.posix_acl_access", value)
    except OSError:
        pytest.skip("this file system keeps no access lists")
    return low


def _link_foreign(base: Path, _: pytest.MonkeyPatch) -> Path:
    low = _folders(base)
    link = base / "link"
    link.symlink_to(low)
    os.lchown(link, SOMEBODY, -1)
    return link


def _link_to_foreign_link(base: Path, _: pytest.MonkeyPatch) -> Path:
    first = base / "first"
    first.symlink_to(_link_foreign(base, _).name)
    return first / ".." / "low"


def _link_in_writable(base: Path, _: pytest.MonkeyPatch) -> Path:
    low = _folders(base)
    (base / "open").mkdir()
    (base / "open").chmod(0o777)
    (base / "open" / "link").symlink_to(low)
    return base / "open" / "link"


def _link_into_writable(base: Path, _: pytest.MonkeyPatch) -> Path:
    link = base / "link"
    link.symlink_to(_high_writable(base, _))
    return link


def _high_writable_by_dots(base: Path, _: pytest.MonkeyPatch) -> Path:
    (base / "elsewhere").mkdir()
    return base / "elsewhere" / ".." / _high_writable(base, _).relative_to(base)


#: What is wrong -> (makes such a folder in an empty one, the words that the error has after the path in that one).
EXPOSED = [
    pytest.param(make, words, id=make.__name__[1:], marks=marks)
    for make, words, marks in (
        (_high_writable, r"/high can be written by others \(mode 0777, .*`chmod go-w .*/high`", ()),
        (_high_foreign, r"/high is a folder that belongs to .*uid 65534", _needs_root),
        (_low_foreign, r"/high/low is a folder that belongs to .*uid 65534", _needs_root),
        (_low_foreign_sticky, r"/high/low is a folder that belongs to .*uid 65534", _needs_root),
        (_low_foreign_group, r"/high/low can be written by others \(mode 0775, group 65534\)", _needs_root),
        (_low_group_of_others, r"/high/low can be written by others \(mode 0770, .*`chmod go-w .*/high/low`", ()),
        (_low_by_access_list, r"/high/low can be written by others \(mode 0775", _needs_linux),
        (_link_foreign, r"/link is a link that belongs to .*uid 65534", _needs_root),
        (_link_to_foreign_link, r"/link is a link that belongs to .*uid 65534", _needs_root),
        (_link_in_writable, r"/open can be written by others \(mode 0777", ()),
        (_link_into_writable, r"/high can be written by others \(mode 0777", ()),
        (_high_writable_by_dots, r"/high can be written by others \(mode 0777", ()),
    )
]
Exposing = Callable[[Path, pytest.MonkeyPatch], Path]
