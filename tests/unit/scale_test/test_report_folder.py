"""Room for a report: an older run's results go, and nothing else."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from karpstack.scale_test.recording.timeline import Writer
from karpstack.scale_test.reports.folder import RESULTS, OverwriteError, judge, make_room


def written(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        if name == "evidence":
            (path / "story").mkdir(parents=True)
        elif name == "timeline.jsonl":
            with Writer(path) as writer:
                writer.write("START", pid=1)
        else:
            path.write_text(name)


def test_the_folder_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    assert judge(folder) == []
    assert not folder.exists()
    assert make_room(folder) == []
    assert folder.is_dir()


def test_an_older_runs_results_go_and_nothing_else(tmp_path: Path) -> None:
    written(tmp_path, *RESULTS, "notes.txt")
    assert make_room(tmp_path) == list(RESULTS)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_the_folder_of_a_run_that_is_being_recorded_stays(tmp_path: Path) -> None:
    """Two runs without a name, of two clusters: the second stopped the recorder of the first."""
    written(tmp_path, "timeline.jsonl", "report.json")
    with (tmp_path / "timeline.jsonl").open() as recorder:
        fcntl.flock(recorder, fcntl.LOCK_EX)
        with pytest.raises(OverwriteError, match="another run records there now"):
            make_room(tmp_path)
    assert make_room(tmp_path) == ["report.json", "timeline.jsonl"]


def test_the_timeline_is_the_last_to_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed midway, the next run still knows whose the rest is."""
    written(tmp_path, *RESULTS)
    gone: list[str] = []
    monkeypatch.setattr(Path, "unlink", lambda path: gone.append(path.name))
    make_room(tmp_path)
    assert gone[-1] == "timeline.jsonl"


def test_what_no_scale_test_has_written_stays(tmp_path: Path) -> None:
    written(tmp_path, "report.html", "evidence")
    for tried in (judge, make_room):
        with pytest.raises(OverwriteError, match=r"has evidence, report.html, but no timeline.jsonl .* another folder"):
            tried(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "evidence"}


def test_a_folder_that_others_write_to_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(OverwriteError, match="is not yours alone, so that others could have the report written over"):
        make_room(tmp_path)


def test_a_link_goes_and_what_it_names_stays(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    written(tmp_path, "timeline.jsonl")
    theirs.mkdir()
    (theirs / "kept").touch()
    (tmp_path / "evidence").symlink_to(theirs)
    (tmp_path / "report.html").symlink_to(tmp_path / "nowhere")
    assert make_room(tmp_path) == ["evidence", "report.html", "timeline.jsonl"]
    assert [path.name for path in tmp_path.iterdir()] == ["theirs"]
    assert (theirs / "kept").exists()


def test_a_link_to_a_timeline_is_no_leave(tmp_path: Path) -> None:
    """No run writes one, so the rest is not known to be a run's; to ask who records there failed."""
    theirs, folder = tmp_path / "theirs", tmp_path / "mine"
    for made in (theirs, folder):
        made.mkdir()
    written(theirs, "timeline.jsonl")
    (folder / "timeline.jsonl").symlink_to(theirs / "timeline.jsonl")
    for tried in (judge, make_room):
        with pytest.raises(OverwriteError, match=r"has a timeline.jsonl that no scale test has written"):
            tried(folder)
    assert (folder / "timeline.jsonl").is_symlink()


@pytest.mark.parametrize("timeline", ['{"at": "10:00", "what": "a disk was copied"}\n', "", None])
def test_a_timeline_that_no_scale_test_has_written_is_no_leave(tmp_path: Path, timeline: str | None) -> None:
    found = tmp_path / "timeline.jsonl"
    found.mkdir() if timeline is None else found.write_text(timeline)
    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence" / "disk.img").touch()
    for tried in (judge, make_room):
        with pytest.raises(
            OverwriteError, match=r"no scale test has written.*evidence, timeline.jsonl would be removed"
        ):
            tried(tmp_path)
    assert (tmp_path / "evidence" / "disk.img").exists()


def test_what_a_run_left_that_was_killed_before_its_first_line_goes(tmp_path: Path) -> None:
    (tmp_path / "timeline.jsonl").touch()
    assert make_room(tmp_path) == ["timeline.jsonl"]
