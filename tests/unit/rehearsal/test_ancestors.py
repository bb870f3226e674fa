"""Paths that nobody else can exchange are accepted, as they are common; the others are in `exposed_folders`."""

from __future__ import annotations

import os
import pwd
import tempfile
from pathlib import Path

import pytest

from karpstack.rehearsal.state import ancestors
from tests.unit.rehearsal.exposed_folders import accounts, passwd


def resolve(path: Path) -> Path:
    return ancestors.resolve(path, "the state", "name another folder")


def test_the_usual_folders_are_accepted(tmp_path: Path) -> None:
    for folder in (Path("/"), Path(tempfile.gettempdir()), Path.home(), tmp_path, Path(__file__).parent):
        assert resolve(folder) == folder.resolve()


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o1777, 0o1775])
def test_a_folder_where_others_rename_nothing_of_ours_is_accepted(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    assert resolve(tmp_path / "not" / "made" / "yet") == tmp_path / "not" / "made" / "yet"


def test_links_of_ours_are_followed_as_the_system_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "private" / "tmp").mkdir(parents=True)
    (tmp_path / "tmp").symlink_to("private/tmp")
    (tmp_path / "again").symlink_to(tmp_path / "tmp")
    (tmp_path / "dangling").symlink_to("nowhere")
    monkeypatch.chdir(tmp_path)
    for name in ("tmp/a", "again/a/b", "again/../c", "./tmp/./d", "dangling/e", "no/../f", "../x", "tmp/a/../../g"):
        assert resolve(Path(name)) == Path(name).resolve(), name
        assert resolve(tmp_path / name) == (tmp_path / name).resolve(), name


def test_links_in_a_circle_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(ancestors.ExposedError, match=r"a leads through more than 40 links.*; name another folder"):
        resolve(tmp_path / "a")


def test_a_name_that_no_folder_can_have_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ancestors.ExposedError, match=r"cannot be read \(File name too long\).*; name another folder"):
        resolve(tmp_path / ("a" * 300) / "b")


def test_a_group_of_the_user_alone_is_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o775)
    gid = tmp_path.stat().st_gid
    stranger = passwd("stranger", os.geteuid() + 1, gid + 1)
    accounts(monkeypatch, gid, stranger)
    assert resolve(tmp_path) == tmp_path
    accounts(monkeypatch, gid, stranger, members="me")
    assert resolve(tmp_path) == tmp_path


@pytest.mark.parametrize(("others", "group", "members"), [("", "staff", ""), ("", "me", "other"), ("other", "me", "")])
def test_any_other_group_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: str, group: str, members: str
) -> None:
    tmp_path.chmod(0o775)
    gid = tmp_path.stat().st_gid
    accounts(
        monkeypatch, gid, *([passwd(others, os.geteuid() + 1, gid)] if others else []), group=group, members=members
    )
    with pytest.raises(ancestors.ExposedError, match=rf"can be written by others \(mode 0775, group {gid}\)"):
        resolve(tmp_path)


def test_a_user_without_an_account_has_no_private_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(uid: int) -> pwd.struct_passwd:
        raise KeyError(uid)

    tmp_path.chmod(0o775)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    with pytest.raises(ancestors.ExposedError, match="can be written by others"):
        resolve(tmp_path)
    assert ancestors.user_name(os.geteuid()) == f"uid {os.geteuid()}"
