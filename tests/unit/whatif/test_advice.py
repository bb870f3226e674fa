"""`karpstack advise`: what answers recommend, and how the command asks for them. No engine starts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from karpstack.rehearsal.whatif.candidates import Outcome
from karpstack.snapshot.examples import FOLDER
from karpstack.text.codes import Code
from karpstack.text.files import make_ours
from karpstack.whatif.advice import Advice, Advised, advise
from karpstack.whatif.advice_chart import _labels, _Point
from karpstack.whatif.advice_documents import markdown, page, text
from karpstack.whatif.advising import Asked, Tools, run
from karpstack.whatif.answer import Answer, Group, Limit, NotSchedulableAgain, SimulatedPeriod
from karpstack.whatif.proposals import Candidate
from tests.html_page import Page
from tests.unit.command_line import parsed
from tests.unit.whatif.test_candidates import asked, rows

SNAPSHOT = FOLDER / "20-pods.json"
COMMANDS = list[tuple[str, Sequence[str], Path]]


def candidate(name: str) -> Candidate:
    return Candidate(name, f"Why {name}.", {"general": {"weight": len(name)}}, ["general"], [])


def advice(**answers: Answer | list[Answer]) -> Advice:
    given = {name: one if isinstance(one, list) else [one] for name, one in answers.items()}
    return advise("cluster.json", [candidate(name) for name in given], given)


def of(found: Advice, name: str) -> Advised:
    return next(one for one in found.candidates if one.name == name)


def verdicts(found: Advice) -> dict[str, str]:
    return {one.name: one.verdict for one in found.candidates}


def lived(answer: Answer, usd_per_day: float, moved: int) -> Answer:
    life = SimulatedPeriod(
        begins="2026-11-23T00:00:00+00:00",
        ends="2026-11-25T00:00:00+00:00",
        real_seconds=1,
        skipped_seconds=0,
        curve=None,
        images=[],
        usd=2 * usd_per_day,
        usd_per_day=usd_per_day,
        disruptions={},
        disruptions_by_hour={},
        pods_moved=moved,
        workloads_without_node=[],
        pods_without_node=0,
        pods_without_node_at_once=0,
        longest_without_node=0,
        drifted_nodes=[],
        hours=[],
        days=[],
    )
    return answer.model_copy(update={"simulated_period": life})


def test_cheaper_is_more_than_the_spread_of_the_bases() -> None:
    found = advice(a=asked("a", 0.05, 0.10), b=asked("b", 0.09, 0.11), c=asked("c", 0.15, 0.10))
    assert found.usd_spread == pytest.approx(0.01)
    # 0.02 less for b, 0.05 less for a
    assert verdicts(found) == {"a": "better", "b": "better", "c": "not better"}
    found = advice(a=asked("a", 0.05, 0.10), b=asked("b", 0.11, 0.12))
    assert verdicts(found) == {"a": "better", "b": "not better"}  # 0.01 less, where 0.02 is the spread


def test_the_spread_of_repeated_answers_counts() -> None:
    found = advice(a=[asked("a", 0.05), asked("a", 0.09)], b=asked("b", 0.07))
    assert found.usd_spread == pytest.approx(0.04)
    assert (of(found, "a").asked, of(found, "a").usd_per_hour) == (2, 0.07)
    assert verdicts(found) == {"a": "not better", "b": "not better"}


def test_one_answer_decides_nothing() -> None:
    found = advice(a=asked("a", 0.01))
    assert verdicts(found) == {"a": "not decided"}
    assert of(found, "a").reasons == [
        "nothing has two answers, so the spread is unknown: use --repeat 2 or a longer --limit-minutes"
    ]


def test_the_what_ifs_own_limits_decide() -> None:
    broken = Limit(name="maxPodsKilled", limit="at most 0 pods", measured="2 pods", within_limit=False)
    red = asked("a", 0.01).model_copy(update={"limits": [broken], "verdict": "limits exceeded"})
    refused = asked("b", 0.01).model_copy(update={"refused": "no such zone\nmore", "verdict": "refused"})
    found = advice(a=red, b=refused, c=asked("c", 0.05))
    assert verdicts(found) == {"a": "not recommended", "b": "not recommended", "c": "better"}
    assert of(found, "a").reasons == ["maxPodsKilled: at most 0 pods, measured: 2 pods"]
    assert of(found, "b").reasons == ["refused: no such zone"]


@pytest.mark.parametrize(
    ("before", "after", "verdict"), [(3, 1, "not recommended"), (3, 2, "better"), (1, 1, "better")]
)
def test_half_of_the_zones_is_not_recommended(before: int, after: int, verdict: str) -> None:
    one = asked("a", 0.01)
    assert one.after
    zones = [Group(name=f"us-east-1{letter}", nodes=1, usd_per_hour=0.1) for letter in "abc"]
    sides = {"before": one.before.model_copy(update={"by_zone": zones[:before]})}
    one = one.model_copy(update={**sides, "after": one.after.model_copy(update={"by_zone": zones[:after]})})
    assert of(advice(a=one, b=asked("b", 0.2)), "a").verdict == verdict


def test_calmer_and_cheaper_in_some_days() -> None:
    candidates = [candidate(name) for name in ("calm", "cheap")]
    answers = {
        "calm": [lived(asked("calm", 0.096), 2.4, 10)],
        "cheap": [lived(asked("cheap", 0.096), 1.2, 38)],
    }
    unchanged = [lived(asked("unchanged", 0.096), 2.4, 40), lived(asked("unchanged", 0.096), 2.64, 44)]
    found = advise("cluster.json", candidates, answers, unchanged=unchanged)
    assert found.usd_spread == pytest.approx(0.01)
    assert found.moved_spread == 2
    assert {one.name: (one.cheaper, one.calmer) for one in found.candidates} == {
        "calm": (False, True),
        "cheap": (True, False),  # 19 a day instead of 21, which is the spread
    }
    assert of(found, "cheap").usd_per_hour_before == pytest.approx(0.105)


NASTY = "my `c`.json"
CANDIDATES = [candidate(name) for name in ("dear", "cheap", "late", "failed")]


def mixed() -> Advice:
    """Two answers, a failed what-if and one that was not asked."""
    answers = {"dear": [asked("dear", 0.2)], "cheap": [asked("cheap", 0.05)]}
    return advise(NASTY, CANDIDATES, answers, dropped={"arm64": "needs --arm64"}, failed={"failed": "no room"})


def test_markdown_has_the_table_and_the_changes() -> None:
    written = markdown(mixed(), CANDIDATES, {"general": {}})
    assert "1 of 2 changes better than now; cheapest: cheap, " in written
    cells = rows(written)
    assert list(cells) == ["cheap", "dear", "late", "failed"]
    assert [cells[name][0] for name in cells] == ["**cheaper**", "not better", "not rehearsed", "no answer"]
    assert cells["cheap"][1:4] == ["\\$0.0960", "\\$0.0500", "\N{MINUS SIGN}\\$0.0460 (\N{MINUS SIGN}48 %)"]
    assert "- failed: no room." in written
    assert "- arm64 was not rehearsed: needs --arm64." in written
    assert "+  weight: 5" in written
    assert "my `" not in written


def test_the_terminal_gets_plain_text() -> None:
    written = text(mixed())
    for markup in ("&#", "&amp;", "\\$", "**", "|", "<", "##"):
        assert markup not in written
    assert written.splitlines()[0].startswith(f"Advice for {NASTY}: 1 of 2 changes better than now; cheapest: cheap, ")
    table = [line.split() for line in written.splitlines()[2:7]]
    assert [row[0] for row in table] == ["candidate", "cheap", "dear", "late", "failed"]
    assert table[1][1:4] == ["cheaper", "$0.0500", "\N{MINUS SIGN}$0.0460"]
    assert "Answers to the same question differ by up to $0.00 an hour; smaller differences count as none." in written


def test_a_pod_that_gets_its_node_is_said_because_it_costs_dollars() -> None:
    asked_of = {"more": asked("more", 0.2), "same": asked("same", 0.05)}
    answers = {
        name: one.model_copy(
            update={
                "before": one.before.model_copy(update={"waiting": 1}),
                "after": one.after.model_copy(update={"waiting": 0 if name == "more" else 1}) if one.after else None,
            }
        )
        for name, one in asked_of.items()
    }
    found = advice(**answers)
    written = text(found)
    assert "Without a node now: 1 pod." in written
    assert "more: 1 pod more with a node, which is part of its dollars." in written
    assert "same: " not in written.split("Without a node now")[1].split("Answers to")[0]
    assert [line.split()[-1] for line in written.splitlines() if line.startswith(("more ", "same "))] == ["1", "0"]


def test_without_an_answer_the_table_has_no_empty_columns() -> None:
    found = advise("c.json", CANDIDATES, {}, failed={"failed": "no room"})
    assert text(found).splitlines()[2] == "candidate  advice"
    assert rows(markdown(found, CANDIDATES, {}))["failed"] == ["no answer"]


def test_the_page_has_charts_of_dollars_against_pods() -> None:
    written = Page(page(mixed(), CANDIDATES, {"general": {}}))
    assert set(written.values("data-series")) == {"now", "cheap", "dear"}
    assert "Dollars an hour against pods moved by the change" in written.text
    assert "Dollars an hour against pods that had no node for a time" in written.text
    assert "my `c`.json" in written.text
    assert {"cheap-1/cheap/whatif.html", "manifests/cheap.yaml"} < set(written.values("href"))
    assert not Page(page(advice(), [], {})).values("data-series")


def test_labels_of_a_chart_cover_no_other() -> None:
    points = [_Point("now", 0, 0.96), _Point("one", 0, 0.96), _Point("newer", 16, 1.1), _Point("cheap", 16, 1.09)]
    offsets = {one.name: one.offset for one in _labels(points, 16, 1.1)}
    assert offsets["now"] == offsets["cheap"] == 0
    assert offsets["one"] == 14
    assert 0 < offsets["newer"] < 14


@pytest.mark.parametrize(("number", "said"), [(1, "0 of 1 change better"), (2, "1 of 2 changes better")])
def test_one_change_is_in_the_singular(number: int, said: str) -> None:
    answers = {f"c{index}": asked(f"c{index}", 0.05 + index) for index in range(number)}
    assert said in text(advice(**answers))


def test_no_limits_allow_what_is_never_recommended() -> None:
    one = asked("a", 0.01)
    assert one.blast_radius
    killed = one.blast_radius.model_copy(update={"pods_killed": 1})
    lost = NotSchedulableAgain(namespace="shop", workload="web", pods=1, nodes=1, why="no type fits")
    found = advice(
        a=one.model_copy(update={"blast_radius": killed, "limits": []}),
        b=one.model_copy(
            update={"blast_radius": one.blast_radius.model_copy(update={"not_schedulable_again": [lost]}), "limits": []}
        ),
    )
    assert of(found, "a").reasons == ["1 pod deleted in spite of a PodDisruptionBudget or do-not-disrupt"]
    assert of(found, "b").reasons == ["no NodePool for 1 workload"]
    assert verdicts(found) == {"a": "not recommended", "b": "not recommended"}


def test_days_without_an_unchanged_cluster_decide_nothing() -> None:
    answers = {name: [lived(asked(name, 0.096), 2.4, 10)] * 2 for name in ("a", "b")}
    found = advise("c.json", [candidate("a"), candidate("b")], answers, failed={"unchanged": "no room"})
    assert of(found, "a").reasons == ["the unchanged cluster has no answer to compare with"]
    assert "The unchanged cluster has no answer: no room." in text(found)


def test_a_repeated_what_if_without_all_answers_says_so() -> None:
    found = advise("c.json", [candidate("a")], {"a": [asked("a", 0.05)] * 2}, failed={"a": "no room"})
    assert (of(found, "a").verdict, of(found, "a").reasons) == ("better", ["fewer answers than asked for: no room"])


class Rehearsed:
    """Stands for the rehearsals: writes these answers."""

    def __init__(self, answers: Mapping[str, Callable[[], Answer] | int], *, interrupted: bool = False) -> None:
        self.commands: COMMANDS = []
        self._answers = answers
        self._interrupted = interrupted

    def ask(self, output: Path, **options: Any) -> int:
        return run(Asked(SNAPSHOT, output, **options), Tools(self._place, self._rehearse))

    def _place(self, folder: Path) -> Path:
        folder.mkdir(exist_ok=True)
        return folder

    def _rehearse(self, commands: Sequence[tuple[str, Sequence[str], Path]]) -> Outcome:
        self.commands = list(commands)
        outcome = Outcome(interrupted=self._interrupted)
        for name, _, folder in commands:
            what = name.partition("/")[0]
            if (one := self._answers.get(what)) is None:
                outcome.missing[name] = "the time limit was reached before it started"
                continue
            (folder / what).mkdir(parents=True)
            if isinstance(one, int):
                (folder / "rehearsal.log").write_text("note: a\nerror: no engine\nbye\n" if one > 0 else "")
                outcome.codes[name] = one
                continue
            outcome.codes[name] = 0
            (folder / what / "whatif.json").write_text(one().model_dump_json(by_alias=True))
        return outcome


BOTH: Mapping[str, Callable[[], Answer] | int] = {
    "spot": lambda: asked("spot", 0.05),
    "more-types": lambda: asked("more-types", 0.2),
}


def test_a_folder_with_other_files_stays_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = tmp_path / "manifests" / "arm64.yaml"
    mine.parent.mkdir()
    mine.write_text("mine")
    assert Rehearsed(BOTH).ask(tmp_path, only_list=True) == Code.WRONG
    assert "has files that no advice has written and that could be lost" in capsys.readouterr().err
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [mine]
    assert mine.read_text() == "mine"
    for _ in range(2):  # what an advice has written is replaced
        assert Rehearsed(BOTH).ask(tmp_path / "new", only_list=True) == Code.GOOD


def test_the_command_asks_a_what_if_of_each_candidate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rehearsed = Rehearsed(BOTH)
    make_ours(tmp_path)  # by an earlier advice
    stale = tmp_path / "manifests" / "arm64.yaml"
    stale.parent.mkdir()
    stale.write_text("of another cluster")
    only = list(BOTH)
    assert rehearsed.ask(tmp_path, options=["--prices", "p.yml"], form="json", only=only) == 0
    name, arguments, folder = rehearsed.commands[0]
    assert (name, folder) == ("spot/1", tmp_path / "spot-1")
    given = parsed(arguments)[1]
    assert (given["output"], given["workloads"], given["prices"]) == (folder, SNAPSHOT, Path("p.yml"))
    manifests = tmp_path / "manifests"
    assert (given["base"], given["change"]) == (str(manifests / "unchanged.yaml"), [str(manifests / "spot.yaml")])
    answer = json.loads(capsys.readouterr().out)
    assert answer == json.loads((tmp_path / "advice.json").read_text())
    assert [one["verdict"] for one in answer["candidates"]] == ["better", "not better"]
    assert {path.stem for path in manifests.iterdir()} == {*only, "unchanged"}
    assert (tmp_path / "advice.md").read_text().startswith("## Advice for 20-pods.json: 1 of 2 changes better")
    assert "1 of 2 changes better" in (tmp_path / "advice.html").read_text()


@pytest.mark.parametrize(("ended", "why"), [(3, "no engine"), (-9, "exit code -9")])
def test_a_candidate_without_an_answer_is_named(tmp_path: Path, ended: int, why: str) -> None:
    assert Rehearsed({"spot": ended}).ask(tmp_path, only=["spot"]) == 3
    advised = json.loads((tmp_path / "advice.json").read_text())["candidates"][0]
    assert (advised["verdict"], advised["reasons"]) == (
        "no answer",
        [f"{why} (log: {tmp_path / 'spot-1' / 'rehearsal.log'})"],
    )


@pytest.mark.parametrize(("interrupted", "code"), [(False, 3), (True, 130)])
def test_what_is_finished_is_written_and_what_is_missing_has_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], interrupted: bool, code: int
) -> None:
    assert Rehearsed(BOTH, interrupted=interrupted).ask(tmp_path) == code
    printed = capsys.readouterr().out
    assert printed.startswith("Advice for 20-pods.json: 1 of 2 changes better")
    assert "&#" not in printed
    found = {one["name"]: one for one in json.loads((tmp_path / "advice.json").read_text())["candidates"]}
    assert [one["verdict"] for one in found.values()] == ["better", "not better", *["no answer"] * 3]
    assert found["newer-types"]["reasons"] == ["the time limit was reached before it started"]
    assert "newer-types: the time limit was reached before it started." in printed


def test_dropped_candidates_are_no_missing_answers(tmp_path: Path) -> None:
    assert Rehearsed(BOTH).ask(tmp_path, only=[*BOTH, "arm64", "consolidate"]) == 0
    assert Rehearsed({}).ask(tmp_path, only=["consolidate"]) == 0


def test_days_are_compared_with_those_of_the_unchanged_cluster_asked_twice(tmp_path: Path) -> None:
    rehearsed = Rehearsed({"spot": lambda: lived(asked("spot", 0.05), 1.2, 3)})
    assert rehearsed.ask(tmp_path, only=["spot", "quiet-hours"], days=True) == 3
    assert [name for name, _, _ in rehearsed.commands] == ["unchanged/1", "spot/1", "quiet-hours/1", "unchanged/2"]
    assert json.loads((tmp_path / "advice.json").read_text())["noBase"]


def test_a_list_rehearses_nothing(tmp_path: Path) -> None:
    rehearsed = Rehearsed({})
    assert rehearsed.ask(tmp_path, only_list=True) == 0
    assert not rehearsed.commands
    assert (tmp_path / "manifests" / "spot.yaml").is_file()


def test_the_command_line() -> None:
    words = ["advise", "eks", "--workloads", "a.json", "--for", "1d", "--limit-minutes", "15", "--only", "spot"]
    command, given = parsed(words)
    assert (command, given["stack"], given["only"], given["limit_minutes"]) == ("karpstack advise", "eks", ["spot"], 15)
