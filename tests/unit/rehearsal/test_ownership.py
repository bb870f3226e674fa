"""State folders: whose they are, and that nothing is removed which the rehearsal has not made."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from karpstack.rehearsal.state import ownership
from karpstack.rehearsal.state.ancestors import ExposedError
from karpstack.rehearsal.state.folder import StackFolder
from karpstack.rehearsal.state.ownership import OwnershipError
from tests.unit.rehearsal.exposed_folders import EXPOSED, Exposing


@pytest.fixture
def folder(tmp_path: Path) -> StackFolder:
    return StackFolder("eks", tmp_path / "state" / "eks")


def test_a_folder_of_ours_is_private_and_says_what_it_is(folder: StackFolder) -> None:
    assert not ownership.check(folder)
    ownership.claim(folder)
    assert ownership.check(folder)
    assert stat.S_IMODE(folder.root.stat().st_mode) == 0o700
    assert stat.S_IMODE(folder.root.parent.stat().st_mode) == 0o700
    assert "karpstack" in folder.marker.read_text()


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


@pytest.mark.parametrize("text", ["\n", "karpstack rehearsal 2\n", "something else"])
def test_the_marker_of_another_version_is_not_ours(folder: StackFolder, text: str) -> None:
    ownership.claim(folder)
    folder.marker.write_text(text)
    with pytest.raises(OwnershipError, match="another version of karpstack made"):
        ownership.claim(folder)


def test_a_marker_that_is_a_folder_is_refused(folder: StackFolder) -> None:
    folder.marker.mkdir(parents=True)
    with pytest.raises(OwnershipError, match=r"is a folder, so that .* nothing in it is touched"):
        ownership.claim(folder)
    assert folder.marker.is_dir()


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


@pytest.mark.parametrize(("make", "words"), EXPOSED)
def test_a_state_that_others_could_exchange_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Exposing, words: str
) -> None:
    parent = make(tmp_path, monkeypatch)
    before = sorted(tmp_path.rglob("*"))
    for use in (ownership.place, lambda state: ownership.claim(StackFolder("eks", state / "not" / "made" / "eks"))):
        with pytest.raises(ExposedError, match=f"^{tmp_path}{words}.*name another folder with --state$"):
            use(parent)
    assert sorted(tmp_path.rglob("*")) == before


def test_what_somebody_else_makes_first_is_refused(folder: StackFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    parent, mkdir = folder.root.parent, Path.mkdir

    def second(path: Path, **options: Any) -> None:
        if path == parent:
            mkdir(path)
            path.chmod(0o777)
        mkdir(path, **options)

    monkeypatch.setattr(Path, "mkdir", second)
    with pytest.raises(ExposedError, match=f"^{parent} can be written by others"):
        ownership.claim(folder)
    assert not folder.root.exists()


def test_what_belongs_to_somebody_else_is_refused(folder: StackFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    ownership.claim(folder)
    somebody = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: somebody)
    with pytest.raises(OwnershipError, match=r"belongs to .*uid .*, who could read the keys"):
        ownership.check(folder)
    if folder.root.parent.stat().st_uid:  # root can exchange everything anyway
        with pytest.raises(ExposedError, match=r"belongs to .*uid .*, who could exchange"):
            ownership.claim(folder)


def test_a_checkout_is_not_judged_since_its_program_is_run_anyway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    checkout.chmod(0o777)
    with pytest.raises(ExposedError, match="can be written by others"):
        ownership.place(checkout / ".rehearsal")
    monkeypatch.setattr(ownership, "_CHECKOUT", checkout)
    assert ownership.place(checkout / ".rehearsal") == checkout / ".rehearsal"
    (checkout / ".rehearsal").mkdir()
    (checkout / ".rehearsal").chmod(0o777)
    with pytest.raises(ExposedError, match="can be written by others"):
        ownership.place(checkout / ".rehearsal")


def test_a_folder_whose_marker_was_never_written_is_taken_again(folder: StackFolder) -> None:
    folder.root.mkdir(parents=True)
    folder.marker.touch()  # and then it was killed, or the disk was full
    ownership.claim(folder)
    assert "karpstack" in folder.marker.read_text()
    (folder.root / "thesis.tex").touch()
    folder.marker.write_text("")
    with pytest.raises(OwnershipError, match=r"holds 'thesis\.tex'"):
        ownership.claim(folder)


@pytest.mark.parametrize(("make", "words"), EXPOSED)
def test_nothing_is_written_where_others_could_lay_links(
    make: Exposing, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exposed = make(tmp_path, monkeypatch)
    with pytest.raises(ExposedError, match=f"{tmp_path}{words}") as refused:
        ownership.place_results(exposed / "report", "--report")
    assert "for links to your own files" in str(refused.value)
    assert "name another folder with --report" in str(refused.value)
    assert not (exposed / "report").exists()


def test_a_folder_for_results_is_made(tmp_path: Path) -> None:
    assert ownership.place_results(tmp_path / "a" / "b", "--report").is_dir()


def test_where_nothing_can_be_written_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OwnershipError, match=r"cannot be made \(.*another folder with --report"):
        ownership.place_results(tmp_path / "file" / "report", "--report")
    monkeypatch.setattr(os, "access", lambda *_: False)  # a file system that is mounted read-only, for root too
    with pytest.raises(OwnershipError, match="cannot be written, so that all would be done for nothing"):
        ownership.place_results(tmp_path, "--report")
