"""State folders: whose they are, and that nothing is removed which the rehearsal has not made."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from rehearsal import ownership
from rehearsal.folder import StackFolder, stack_name
from rehearsal.ownership import OwnershipError


@pytest.fixture
def folder(tmp_path: Path) -> StackFolder:
    return StackFolder("eks", tmp_path / "state" / "eks")


@pytest.mark.parametrize("name", ["eks", "aks-nap", "a.b_c-1", "...", "x" * 100])
def test_names_of_stacks(name: str) -> None:
    assert stack_name(name) == name


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../eks", "/etc", "a/b", "x[/y]", "a b", "eks\n", "\x1b[31m", "{{ 1 }}", "é", "-x", "x" * 101],
)
def test_names_that_no_stack_can_have(name: str) -> None:
    with pytest.raises(ValueError, match=r"stack = .*lead out of the folder.*; name the stack with") as error:
        stack_name(name)
    assert "\x1b" not in str(error.value)
    assert len(str(error.value)) < 500


def test_a_folder_of_ours_is_private_and_says_what_it_is(folder: StackFolder) -> None:
    assert not ownership.check(folder)
    ownership.claim(folder)
    assert ownership.check(folder)
    assert stat.S_IMODE(folder.root.stat().st_mode) == 0o700
    assert stat.S_IMODE(folder.root.parent.stat().st_mode) == 0o700
    assert "python -m rehearsal" in folder.marker.read_text()


def test_a_folder_of_ours_that_others_could_read_is_private_again(folder: StackFolder) -> None:
    ownership.claim(folder)
    folder.root.chmod(0o755)
    ownership.claim(folder)
    assert stat.S_IMODE(folder.root.stat().st_mode) == 0o700


def test_what_is_in_it_goes_and_marker_and_lock_stay(folder: StackFolder, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()
    ownership.claim(folder)
    folder.create()
    folder.lock.touch()
    (folder.pulumi / "state").write_text("state")
    (folder.root / "link").symlink_to(precious)
    (folder.logs / "link").symlink_to(precious)
    ownership.clear(folder)
    assert set(folder.root.iterdir()) == {folder.marker, folder.lock}
    assert (precious / "file").exists()
    ownership.claim(folder)


def test_a_folder_of_somebody_elses_files_is_left_as_it_is(folder: StackFolder) -> None:
    folder.root.mkdir(parents=True)
    folder.root.chmod(0o755)
    (folder.root / "thesis.tex").write_text("years of work")
    for use in (ownership.claim, ownership.check, ownership.clear):
        with pytest.raises(
            OwnershipError, match=r"eks was not made by the rehearsal \(it holds 'thesis.tex'\).*--state"
        ):
            use(folder)
    assert (folder.root / "thesis.tex").read_text() == "years of work"
    assert stat.S_IMODE(folder.root.stat().st_mode) == 0o755
    assert not folder.marker.exists()


def test_an_empty_folder_becomes_ours(folder: StackFolder) -> None:
    folder.root.mkdir(parents=True)
    ownership.claim(folder)
    assert folder.marker.exists()


def test_what_version_0_1_left_is_taken_over_and_said(folder: StackFolder, caplog: pytest.LogCaptureFixture) -> None:
    folder.root.mkdir(parents=True)
    folder.create()
    folder.run_file.write_text("{}")
    ownership.claim(folder)
    assert "was made by version 0.1" in caplog.text
    ownership.clear(folder)
    assert list(folder.root.iterdir()) == [folder.marker]


def test_a_folder_like_that_of_version_0_1_with_other_files_is_not_taken_over(folder: StackFolder) -> None:
    folder.root.mkdir(parents=True)
    folder.create()
    folder.run_file.write_text("{}")
    (folder.root / "notes.txt").touch()
    with pytest.raises(OwnershipError, match="was not made by the rehearsal"):
        ownership.claim(folder)


@pytest.mark.parametrize("text", ["", "karpstack rehearsal 2\n", "something else"])
def test_the_marker_of_another_version_is_not_ours(folder: StackFolder, text: str) -> None:
    ownership.claim(folder)
    folder.marker.write_text(text)
    with pytest.raises(OwnershipError, match="another version of karpstack made"):
        ownership.claim(folder)


def test_a_link_or_a_file_in_its_place_is_refused(folder: StackFolder, tmp_path: Path) -> None:
    elsewhere = StackFolder("eks", tmp_path / "elsewhere")
    ownership.claim(elsewhere)
    folder.root.parent.mkdir()
    folder.root.symlink_to(elsewhere.root)
    with pytest.raises(OwnershipError, match="is a link"):
        ownership.check(folder)
    folder.root.unlink()
    folder.root.touch()
    with pytest.raises(OwnershipError, match="is no folder"):
        ownership.check(folder)


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757])
def test_a_parent_that_others_write_is_refused(folder: StackFolder, mode: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownership, "_is_private_group", lambda number: False)
    folder.root.parent.mkdir()
    folder.root.parent.chmod(mode)
    with pytest.raises(OwnershipError, match=r"can be written by others \(mode 0.*chmod go-w"):
        ownership.claim(folder)
    assert not folder.root.exists()
    folder.root.parent.chmod(mode | stat.S_ISVTX)  # in a folder as /tmp, nobody exchanges another's
    ownership.claim(folder)


def test_a_parent_of_the_users_own_group_is_as_good(folder: StackFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownership, "_is_private_group", lambda number: True)
    folder.root.parent.mkdir()
    folder.root.parent.chmod(0o775)
    ownership.claim(folder)


def test_what_belongs_to_somebody_else_is_refused(folder: StackFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    ownership.claim(folder)
    somebody = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: somebody)
    with pytest.raises(OwnershipError, match=r"belongs to .*uid .*, who could read the keys"):
        ownership.check(folder)
    if folder.root.parent.stat().st_uid:  # root can exchange everything anyway
        with pytest.raises(OwnershipError, match=r"belongs to .*uid .*, who could exchange"):
            ownership.claim(folder)
