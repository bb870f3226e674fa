"""The command line: an old timeline is judged again, any number of times."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from karpstack.scale_test.recording.record import Sources, record
from karpstack.scale_test.recording.timeline import Line
from karpstack.scale_test.reports import comparing, comparison
from karpstack.scale_test.reports.writing import read_timeline_info
from karpstack.scale_test.scenarios.environments import Stack, StackError
from karpstack.text.files import is_ours
from karpstack.text.packaged import SCENARIOS
from tests.unit.command_line import karpstack
from tests.unit.preflight.fake_server import FakeServer
from tests.unit.scale_test.test_recorder import kubeconfig_of

main = karpstack()

RECORDED = Path(__file__).with_name("eks.timeline.jsonl")


def written(folder: Path, lines: list[Line]) -> Path:
    """The folder, with these lines as its timeline."""
    (folder / "timeline.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture
def folder(tmp_path: Path, timeline: list[Line], outputs: dict[str, Any]) -> Path:
    """A report's folder with a timeline alone, whose START line names its stack."""
    for line in timeline:
        if line["type"] == "START":
            line["stack"] = {"name": "eks", "outputs": {"cloud": "aws", "karpenterVersion": "1.14.1"}}
    return written(tmp_path, timeline)


@pytest.fixture
def older(tmp_path: Path, outputs: dict[str, Any]) -> list[str]:
    """A folder with a timeline that names no stack, and the outputs that are to be given with it."""
    shutil.copy(RECORDED, tmp_path / "timeline.jsonl")
    (tmp_path / "outputs.json").write_text(json.dumps(outputs))
    return [str(tmp_path), "--stack", "eks", "--outputs", str(tmp_path / "outputs.json")]


@pytest.mark.parametrize("command", ["why", "story judge", "report"])
def test_who_asks_about_a_what_if_is_told_where_its_answer_is(
    command: str, folder: Path, timeline: list[Line], capsys: pytest.CaptureFixture[str]
) -> None:
    for line in timeline:
        if line["type"] == "STORY":
            line["scenario"] = "whatif"
    written(folder, timeline)
    assert main([*command.split(), str(folder)]) == 2
    said = capsys.readouterr().err
    assert f"{folder}: is the folder of a what-if, which has no report. Its answer, whatif.html there, says" in said
    assert f"`karpstack whatif report {folder} --snapshot FILE`" in said


def test_a_timeline_is_judged_and_nothing_is_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["story", "judge", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert "Scale test of eks: passed" in shown
    assert [name for name in ("eks-cheapest-fit", "eks-spot-consolidation") if name in shown] == [
        "eks-cheapest-fit",
        "eks-spot-consolidation",
    ]
    assert [path.name for path in folder.iterdir()] == ["timeline.jsonl"]


def test_a_timeline_whose_stack_no_stack_can_be_called_is_refused(
    folder: Path, timeline: list[Line], capsys: pytest.CaptureFixture[str]
) -> None:
    for line in timeline:
        if line["type"] == "START":
            line["stack"]["name"] = f"{'x' * 90}::error::pwned"
    written(folder, timeline)
    assert main(["report", str(folder)]) == 2
    assert "stack.name: " in capsys.readouterr().err


def test_reasons_notify_nobody_and_link_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "@org/team a/b#12 GH-3 &#64;org https://a.example _y_ ~~z~~ <b> [c](d)"
    assert main(["report", str(folder)]) == 0
    report = json.loads((folder / "report.json").read_text())
    report["stories"][0]["name"] = name
    report["stories"][0]["nodeclaims"][0]["nodepool"] = name
    (folder / "report.json").write_text(json.dumps(report))
    capsys.readouterr()
    assert main(["why", str(folder)]) == 0
    said = capsys.readouterr().out
    shown = (
        r"@<!-- -->org/team a/b#<!-- -->12 GH-<!-- -->3 &amp;#<!-- -->64;org https<!-- -->://a.example \_y\_ \~\~z\~\~ "
        r"\<b\> \[c\](d)"
    )
    assert said.count(shown) >= 2
    assert "@org" not in said


def test_scenarios_are_checked_without_a_stack(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenario", "check", "--names", "eks-cheapest-fit, nap-default"]) == 0
    assert "nothing is wrong with them" in capsys.readouterr().out


def test_an_older_timeline_needs_its_stack(older: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["story", "judge", older[0]]) == 2
    assert "its START line names no stack" in capsys.readouterr().err
    assert main(["story", "judge", *older]) == 0


def test_the_report_is_the_same_each_time(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other") / "report"
    assert main(["report", str(folder)]) == main(["report", str(folder), "--output", str(other)]) == 0
    for name in ("report.json", "report.html", "junit.xml"):
        assert (folder / name).read_bytes() == (other / name).read_bytes()
    assert main(["compare", str(folder), str(other), "--fail-if", "any-worse"]) == 0
    assert (other / "comparison.html").is_file()


@pytest.mark.parametrize("names", [["junit.xml"], ["report.json", "report.html", "junit.xml"]])
@pytest.mark.parametrize("beside", ["the timeline", "nothing"])
def test_a_report_replaces_no_file_of_others(
    names: list[str],
    beside: str,
    folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = folder if beside == "the timeline" else tmp_path_factory.mktemp("other")
    for name in names:
        (other / name).write_text("of others")
    assert main(["report", str(folder), "--output", str(other)]) == 2
    assert f"the report {other / names[0]}: is no " in capsys.readouterr().err
    assert {path.name: path.read_text() for path in other.iterdir() if path.name != "timeline.jsonl"} == dict.fromkeys(
        names, "of others"
    )


def test_a_report_in_a_folder_that_others_write_to_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shared = folder / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert main(["report", str(folder), "--output", str(shared / "new")]) == 2
    assert f"{shared} can be written by others (mode 0777" in capsys.readouterr().err
    assert not [*shared.iterdir()]


def test_a_link_that_comes_while_a_report_is_written_is_not_followed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = folder / "victim"
    victim.write_text("of others")
    opened, unlinked = os.open, Path.unlink

    def lay_link() -> None:
        unlinked(folder / "junit.xml", missing_ok=True)
        (folder / "junit.xml").symlink_to(victim)

    def open_late(path: Any, *rest: Any, **options: Any) -> int:
        if str(path).endswith(".partial"):
            lay_link()
        return opened(path, *rest, **options)

    monkeypatch.setattr(os, "open", open_late)
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: lay_link())
    assert main(["report", str(folder)]) == 0
    assert victim.read_text() == "of others"
    assert not (folder / "junit.xml").is_symlink()


def test_a_folder_of_a_report_below_build_goes_with_make_clean(folder: Path) -> None:
    (folder / "Pulumi.yaml").touch()
    assert main(["report", str(folder), "--output", str(folder / "build" / "mine" / "report")]) == 0
    assert is_ours(folder / "build" / "mine")


def test_reasons_and_a_comparison_as_data(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path_factory.mktemp("page") / "comparison.html"
    assert main(["report", str(folder)]) == 0
    capsys.readouterr()
    assert main(["why", str(folder), "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (group,) = told["stories"][0]["groups"][:1]
    assert (told["stack"], list(group)) == ("eks", ["nodes", "what", "short", "sentences"])
    assert main(["compare", str(folder), str(folder), "--output", str(page), "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told) == [
        "verdict",
        "sentence",
        "stories",
        "controller",
        "settings",
        "not_compared",
        "failed",
        "missing",
        "worse",
    ]
    assert list(told["stories"][0]) == ["name", "verdict", "passed", "differences", "instance_types", "settings"]
    assert page.is_file()


@pytest.mark.parametrize(
    ("verdict", "fail_if", "code"),
    [
        ("worse", [], 0),
        ("worse", ["--fail-if", "worse"], 1),
        ("better and worse", ["--fail-if", "worse"], 0),
        ("better and worse", ["--fail-if", "any-worse"], 1),
        ("not comparable", [], 3),
    ],
)
def test_the_exit_code_of_a_comparison(
    verdict: str,
    fail_if: list[str],
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found: Any = comparison.Comparison(verdict, "Why.", (), (), (), ())  # type: ignore[arg-type]
    monkeypatch.setattr(comparing, "compare_reports", lambda *_: (found, True))
    monkeypatch.setattr(comparison, "what_got_worse", lambda _: [] if verdict == "not comparable" else ["cost"])
    assert main(["compare", str(tmp_path), str(tmp_path), *fail_if]) == code
    assert capsys.readouterr().out.startswith(f"{verdict.capitalize()}. Why.")


def test_what_is_no_comparison_is_not_overwritten(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(folder)]) == 0
    notes = folder / "comparison.html"
    notes.write_bytes(b"years of work, in Latin-1: \xe9")
    assert main(["compare", str(folder), str(folder)]) == 2
    assert "is no page of a comparison, so the existing file would be lost" in capsys.readouterr().err
    assert notes.read_bytes() == b"years of work, in Latin-1: \xe9"


@pytest.mark.parametrize("lines", [0, 1])
def test_a_run_that_ended_before_its_first_story_does_not_pass(
    folder: Path, lines: int, capsys: pytest.CaptureFixture[str]
) -> None:
    timeline = folder / "timeline.jsonl"
    timeline.write_bytes(b"".join(timeline.read_bytes().splitlines(keepends=True)[:lines]))
    assert main(["report", str(folder)]) == 2
    assert "has no story, so there is nothing to judge" in capsys.readouterr().err


@pytest.mark.parametrize(("planned", "code"), [(["eks-cheapest-fit", "eks-spot-consolidation"], 1), ([], 0)])
def test_a_story_that_was_planned_and_never_began_does_not_pass(
    folder: Path, timeline: list[Line], planned: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    timeline[0] |= {"scenarios": planned} if planned else {}
    written(folder, timeline[: [line["type"] for line in timeline].index("END") + 1])
    assert main(["report", str(folder)]) == code
    said = capsys.readouterr().out
    assert ("eks-spot-consolidation" in said) is bool(planned)
    assert ("not run" in said) is bool(planned)


def judged(folder: Path, lines: list[Line]) -> int:
    return main(["story", "judge", str(written(folder, lines))])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda report: report["stories"].append(report["stories"][0]), "two stories have one name"),
        (lambda report: report["stories"][0].update(passed=False), "it passed, and one of its stories did not"),
    ],
)
def test_a_report_that_contradicts_itself_is_none(
    change: Callable[[dict[str, Any]], None], why: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(folder)]) == 0
    report = json.loads((folder / "report.json").read_text())
    change(report)
    (folder / "report.json").write_text(json.dumps(report))
    assert main(["compare", str(folder), str(folder), "--output", str(folder / "page.html")]) == 2
    assert why in capsys.readouterr().err


def test_steps_of_an_earlier_run_do_not_stand_for_those_of_a_later_one(
    folder: Path, timeline: list[Line], capsys: pytest.CaptureFixture[str]
) -> None:
    again = [line for line in timeline if line["type"] in ("START", "STORY", "END")]
    assert judged(folder, timeline) == 0
    assert judged(folder, [*timeline, *again]) == 1
    assert "not run" in capsys.readouterr().out


def test_a_story_without_its_beginning_is_not_judged(
    folder: Path, timeline: list[Line], capsys: pytest.CaptureFixture[str]
) -> None:
    timeline[0]["scenarios"] = ["eks-cheapest-fit", "eks-spot-consolidation"]
    story = next(line for line in timeline if line["type"] == "STORY")
    timeline.remove(story)
    assert judged(folder, timeline) == 2
    assert f"a step of {story['scenario']}, of which the file has no beginning" in capsys.readouterr().err


def test_todays_scenarios_judge(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What passed when it was recorded fails by a stricter expectation."""
    scenarios = tmp_path_factory.mktemp("scenarios")
    for path in (SCENARIOS).glob("*.yml"):
        (scenarios / path.name).write_text(path.read_text().replace("instanceTypes: [m5.large]", "instanceTypes: [x]"))
    assert main(["story", "judge", str(folder), "--scenarios", str(scenarios)]) == 1
    (scenarios / "eks-cheapest-fit.yml").unlink()
    assert main(["story", "judge", str(folder), "--scenarios", str(scenarios)]) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["story", "judge", "{}/nowhere"], "nowhere/timeline.jsonl: is not there, so there is nothing to judge"),
        (["report", "{}/linked"], "linked/timeline.jsonl: is a link, or behind one, or no file, so it is not read"),
        (["report", "{}/piped"], "piped/timeline.jsonl: is a link, or behind one, or no file, so it is not read"),
        (["story", "judge", "{}", "--stack", "s", "--outputs", "{}/timeline.jsonl"], "not JSON"),
        (["story", "record", "{}/new", "--stack", "s", "--outputs", "{}/list.json"], "is no object of outputs"),
        (["story", "record", "{}/new", "--stack", "s", "--outputs", "{}/deep.json"], "more than 100 levels deep"),
        (["report", "{}", "--stack", "s", "--outputs", "{}/deep.json"], "more than 100 levels deep"),
        (["report", "{}", "--stack", "s", "--outputs", "{}/piped/timeline.jsonl"], "a pipe or a device"),
        (["story", "record", "{}/new", "--stack", "s", "--outputs", "{}/piped/timeline.jsonl"], "a pipe or a device"),
        (["report", "{}", "--stack", "s", "--outputs", "/dev/zero"], "a pipe or a device"),
        (
            ["story", "record", "{}/new", "--stack", "s", "--outputs", "{}/none.json"],
            "stack outputs: cloud, karpenterVersion",
        ),
        (["story", "wait", "{}/timeline.jsonl", "{}/fit.yml", "9"], "step 9: eks-cheapest-fit has"),
        (["compare", "{}", "{}"], "its report.json cannot be read"),
        (
            ["scenario", "check", "--names", "nap-defalt"],
            "'nap-defalt' is not one, so it cannot be run; did you mean nap-default?",
        ),
        (
            ["scenario", "check", "--labels", "walk-through, falt"],
            "'falt': no scenario has it, so it would pick none; did you mean",
        ),
        (["scenario", "check", "{}"], "fit.yml: name: 'eks-cheapest-fit' differs from the file's"),
    ],
)
def test_what_cannot_be_used_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    (folder / "list.json").write_text("[]")
    (folder / "none.json").write_text("{}")
    (folder / "deep.json").write_text("[" * 100_000)
    shutil.copy(SCENARIOS / "eks-cheapest-fit.yml", folder / "fit.yml")
    for name in ("linked", "piped"):
        (folder / name).mkdir()
    (folder / "linked" / "timeline.jsonl").symlink_to(folder / "timeline.jsonl")
    os.mkfifo(folder / "piped" / "timeline.jsonl")
    assert main([argument.format(folder) for argument in arguments]) == 2
    assert said in capsys.readouterr().err
    assert not (folder / "new").exists()


def test_a_recorder_that_cannot_start_says_so_in_its_timeline(tmp_path: Path, outputs: dict[str, Any]) -> None:
    timeline = tmp_path / "timeline.jsonl"
    with pytest.raises(StackError):
        record(timeline, Stack("eks", {}), Sources())
    with pytest.raises(StackError, match="region is missing"):
        record(timeline, Stack("eks", {**outputs, "region": None}), Sources(facts=tmp_path))
    assert not timeline.exists()
    with pytest.raises(Exception, match="there is no kubeconfig"):
        record(timeline, Stack("eks", outputs), Sources(kubeconfig=tmp_path / "no such kubeconfig"))
    (stop,) = [json.loads(line) for line in timeline.read_text().splitlines()]
    assert stop["type"] == "STOP"
    assert "there is no kubeconfig" in stop["reason"]


@pytest.mark.parametrize("answer", [(401, "{}"), (500, "no"), (200, "<html>"), (200, "{}"), (302, ""), None])
def test_a_cluster_that_cannot_be_recorded_is_said_in_a_sentence(
    answer: tuple[int, str] | None,
    outputs: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "outputs.json").write_text(json.dumps(outputs))
    path = tmp_path / "kubeconfig"
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setenv("KUBECONFIG", str(path))
    with FakeServer() as server:
        if answer:
            server.otherwise = answer
            kubeconfig_of(tmp_path, f"http://127.0.0.1:{server.port}")
        arguments = ["--stack", "eks", "--outputs", str(tmp_path / "outputs.json")]
        assert main(["story", "record", str(tmp_path / "timeline.jsonl"), *arguments]) == 3
    assert capsys.readouterr().err.startswith("error: the cluster cannot be recorded (")


def test_the_stack_comes_out_of_the_timeline(folder: Path) -> None:
    assert read_timeline_info(folder / "timeline.jsonl").stack == Stack(
        "eks", {"cloud": "aws", "karpenterVersion": "1.14.1"}
    )


def test_scenarios_of_ones_own_are_judged_beside_the_limits_that_ship(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    own = tmp_path_factory.mktemp("own")
    for name in ("eks-cheapest-fit", "eks-spot-consolidation"):
        shutil.copy(SCENARIOS / f"{name}.yml", own)
    assert main(["story", "judge", str(folder), "--scenarios", str(own)]) == 0
