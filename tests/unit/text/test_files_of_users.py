"""Files that users name are replaced only where they are ours; files of results are read only where they are files."""

from __future__ import annotations

import gzip
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from karpstack.scale_test.reports.comparing import compare_reports
from karpstack.text.files import OutputError, ResultError, check_output, read_result, write
from karpstack.text.yaml_file import read
from tests.unit.command_line import karpstack
from tests.unit.scale_test.example_report import Example

snapshot = karpstack("snapshot")
preflight = karpstack("preflight")
rehearsal = karpstack()
pull_request = karpstack("pull-request")
ROOT = Path(__file__).resolve().parents[3]
SMALL = ROOT / "examples" / "snapshots" / "20-pods.json"
RECORDED = ROOT / "tests" / "unit" / "rehearsal" / "rights"
RULES = read(ROOT / "playbooks" / "vars" / "comparison.yml")["comparison_rules"]
MINE = "a letter to my mother\n"


def make_link(path: Path) -> None:
    path.with_name("target").write_text(MINE)
    path.symlink_to(path.with_name("target"))


def make_cluster_link(path: Path) -> None:
    path.with_name("target").write_bytes(SMALL.read_bytes())
    path.symlink_to(path.with_name("target"))


#: What stands at the place -> how it comes there, and a word of the refusal.
IN_THE_WAY: dict[str, tuple[Callable[[Path], object], str]] = {
    "a file of somebody's": (lambda path: path.write_text(MINE), "would be lost"),
    "a compressed file of somebody's": (lambda path: path.write_bytes(gzip.compress(MINE.encode())), "would be lost"),
    "a link": (make_link, "is a link"),
    "a link to a snapshot": (make_cluster_link, "is a link"),
    "a link to nowhere": (lambda path: path.symlink_to(path.with_name("nowhere")), "is a link"),
    "a folder": (lambda path: path.mkdir(), "is a folder"),
    "a named pipe": (lambda path: os.mkfifo(path), "is a named pipe"),
}


def anonymise(path: Path) -> None:
    assert snapshot(["anonymize", str(SMALL), "--output", str(path)]) == 2


def convert(path: Path) -> None:
    assert snapshot(["convert", str(SMALL), "--output", str(path)]) == 2


def stack_file(path: Path) -> None:
    like = str(ROOT / "Pulumi.eks.yaml")
    assert snapshot(["stack-file", str(SMALL), "--unchecked", "--like", like, "--output", str(path)]) == 2


def distil(path: Path) -> None:
    given = ["rights", "eks", "--recording", str(RECORDED / "eks.json"), "--distil", str(path)]
    assert rehearsal(given) == 2


def ids(path: Path) -> None:
    assert preflight(["ids", "eks", str(path), str(path)]) == 2


def compare(path: Path) -> None:
    for name in ("before", "after"):
        (path.parent / name).mkdir(exist_ok=True)
        write(path.parent / name / "report.json", json.dumps(Example().report()))
    with pytest.raises(ValueError, match="comparison = ") as refused:
        compare_reports(path.parent / "before", path.parent / "after", path, RULES)
    raise SystemExit(str(refused.value))


WRITERS = [anonymise, convert, stack_file, distil, ids, compare]


@pytest.mark.parametrize("writer", WRITERS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("there", IN_THE_WAY)
def test_what_is_not_ours_is_not_written_over(
    there: str, writer: Callable[[Path], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "out"
    put, words = IN_THE_WAY[there]
    put(path)
    before = sorted((one.name, one.lstat().st_mode) for one in tmp_path.iterdir())
    said = ""
    try:
        writer(path)
    except SystemExit as refused:
        said = str(refused)
    said += capsys.readouterr().err
    assert " ".join(said.split()).count(words) == 1
    after = sorted((one.name, one.lstat().st_mode) for one in tmp_path.iterdir() if one.name not in ("before", "after"))
    assert after == before
    for name in ("out", "target"):
        if (tmp_path / name).is_file() and "snapshot" not in there and "compressed" not in there:
            assert (tmp_path / name).read_text() == MINE


@pytest.mark.parametrize("writer", [anonymise, convert, stack_file, distil], ids=lambda one: one.__name__)
def test_a_folder_that_is_not_there_is_named(
    writer: Callable[[Path], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    writer(tmp_path / "nowhere" / "out")
    words = " ".join(capsys.readouterr().err.split())
    assert "nowhere/out" in words
    assert "No such file or directory" in words
    assert "Errno" not in words


def test_a_page_that_only_tells_of_a_comparison_is_not_written_over(tmp_path: Path) -> None:
    page = tmp_path / "out"
    for mine in (
        "<p>scale tests compared</title>",
        "<!doctype html>\n<title>Mine</title> scale tests compared</title>",
    ):
        page.write_text(mine)
        with pytest.raises(SystemExit, match="is no page of a comparison"):
            compare(page)
        assert page.read_text() == mine


def test_a_pack_is_made_through_no_link(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    assert karpstack()(["pack", str(tmp_path / "link")]) == 2
    assert "link: is a link; nothing was written" in capsys.readouterr().err
    assert not (tmp_path / "elsewhere").exists()


def test_a_device_stays_a_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert snapshot(["anonymize", str(SMALL), "--output", "/dev/full"]) == 2
    assert "/dev/full: is a device" in capsys.readouterr().err
    assert stat.S_ISCHR(Path("/dev/full").lstat().st_mode)


@pytest.mark.parametrize("name", ["out.json", "out.json.gz"])
def test_a_snapshot_replaces_a_snapshot(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    for _ in range(2):
        assert snapshot(["anonymize", str(SMALL), "--output", str(path)]) == 0
    path.write_bytes(b"")  # of a disk that was full
    assert snapshot(["anonymize", str(SMALL), "--output", str(path)]) == 0
    assert [one.name for one in tmp_path.iterdir()] == [name]


def test_a_write_that_fails_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write(tmp_path / "folder", "content")
    assert [one.name for one in tmp_path.iterdir()] == ["folder"]


def test_a_file_keeps_its_mode_and_a_name_may_be_as_long_as_names_can_be(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    path.write_text("before")
    path.chmod(0o640)
    write(path, "after")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("after", 0o640)
    write(path, "after", private=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_without_a_mark_of_ours_nothing_is_replaced(tmp_path: Path) -> None:
    check_output(tmp_path / "new", "--output")
    (tmp_path / "old").write_text("x")
    with pytest.raises(OutputError, match=r"--output .*old: exists already and would be lost; name another file"):
        check_output(tmp_path / "old", "--output")


SECRET = "GITHUB_TOKEN=ghs_canary"


def linked_document(results: Path, secret: Path) -> None:
    (results / "eks" / "review").mkdir()
    (results / "eks" / "review" / "review.md").symlink_to(secret)


def linked_candidate(results: Path, secret: Path) -> None:
    secret.with_name("whatif.md").write_text(SECRET)
    (results / "eks" / "whatif").mkdir()
    (results / "eks" / "whatif" / "change").symlink_to(secret.parent)


def linked_outcome(results: Path, secret: Path) -> None:
    (results / "eks" / "outcome.json").rename(secret.with_name("outcome.json"))
    (results / "eks" / "outcome.json").symlink_to(secret.with_name("outcome.json"))


def linked_stack(results: Path, secret: Path) -> None:
    (results / "eks").rename(secret.with_name("eks"))
    (results / "eks").symlink_to(secret.with_name("eks"))


def pipe(results: Path, _: Path) -> None:
    (results / "eks" / "review").mkdir()
    os.mkfifo(results / "eks" / "review" / "review.md")


def endless(results: Path, _: Path) -> None:
    (results / "eks" / "review").mkdir()
    (results / "eks" / "review" / "review.md").symlink_to("/dev/zero")


def huge(results: Path, _: Path) -> None:
    (results / "eks" / "review").mkdir()
    with (results / "eks" / "review" / "review.md").open("wb") as file:
        file.truncate(2**33)


@pytest.mark.parametrize(
    "attack",
    [linked_document, linked_candidate, linked_outcome, linked_stack, pipe, endless, huge],
    ids=lambda one: one.__name__,
)
def test_a_comment_has_nothing_that_results_only_point_to(
    attack: Callable[[Path, Path], None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    results, secret = tmp_path / "results", tmp_path / "private" / "credentials"
    (results / "eks").mkdir(parents=True)
    secret.parent.mkdir()
    secret.write_text(SECRET)
    (results / "eks" / "outcome.json").write_text('{"stack": "eks", "review": "passed", "whatif": "within limits"}')
    attack(results, secret)
    assert pull_request(["summary", "--results", str(results)]) == 2
    said = capsys.readouterr()
    assert SECRET not in said.out + said.err
    assert "so it is not read" in said.err


def test_a_summary_that_cannot_be_written_names_what_says_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "no" / "summary.md"))
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    (tmp_path / "eks").mkdir()
    (tmp_path / "eks" / "outcome.json").write_text('{"stack": "eks", "review": "passed", "whatif": "within limits"}')
    assert pull_request(["summary", "--results", str(tmp_path)]) == 2
    assert "set GITHUB_STEP_SUMMARY to a file that can be" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a/../../secret", ""])
def test_no_name_leads_out_of_the_results(name: str, tmp_path: Path) -> None:
    with pytest.raises(ResultError, match="leads out of the folder of results"):
        read_result(tmp_path, name, most=10)


def test_what_is_there_is_read_and_what_is_not_is_none(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"x" * 10)
    assert read_result(tmp_path, "a/b", most=10) == b"x" * 10
    assert read_result(tmp_path, "a/c", most=10) is None
    assert read_result(tmp_path / "nowhere", "a", most=10) is None
