"""`karpstack whatif`: what it refuses before anything starts, and how it hands out several candidates."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from karpstack.rehearsal.state.folder import StackFolder
from karpstack.rehearsal.whatif import candidate, command
from karpstack.rehearsal.whatif.candidates import Outcome
from karpstack.rehearsal.whatif.sources import Source
from karpstack.text import answer_files
from karpstack.text.files import OutputError
from karpstack.text.packaged import PROGRAM
from tests.unit.command_line import karpstack, parsed
from tests.unit.example_stack import configuration

main = karpstack()

EKS = PROGRAM / "Pulumi.eks.yaml"
WEEK = timedelta(days=7)


class Rehearsals:
    """What would have been rehearsed: nothing starts, and no other command refuses anything."""

    def __init__(self, folder: Path, *codes: int) -> None:
        self.questions: list[candidate.Question] = []
        self.changes: list[str] = []
        self.checked: list[tuple[str, ...]] = []
        self.commands: list[tuple[str, Sequence[str]]] = []
        self._output = folder / "answers"
        self._codes = codes
        self.interrupted = False

    def ask(self, base: str, *changes: str, **options: Any) -> int:
        asked = command.WhatifOptions("eks", base, output=self._output, changes=changes, **options)
        return command.run(asked, command.Tools(self._check, lambda _: "", self._rehearse, self._rehearse_all))

    def _check(self, *given: str) -> str:
        self.checked.append(given)
        return ""

    def _rehearse(self, question: candidate.Question, change: Source, *_: object, **__: object) -> int:
        self.questions.append(question)
        self.changes.append(change.name)
        return 0

    def _rehearse_all(self, commands: Sequence[tuple[str, Sequence[str], Path]], _: int) -> Outcome:
        self.commands += [(name, arguments) for name, arguments, _ in commands]
        codes = dict(zip([name for name, _, _ in commands], self._codes, strict=True))
        return Outcome(codes, interrupted=self.interrupted)


def stack_file(folder: Path, name: str, **config: object) -> str:
    content = {"config": configuration("eks") | {key.replace("__", ":"): value for key, value in config.items()}}
    path = folder / name
    path.write_text(yaml.dump(content, Dumper=yaml.CSafeDumper))
    return str(path)


def test_one_change_is_rehearsed_against_the_base(tmp_path: Path) -> None:
    base, change = stack_file(tmp_path, "a.yaml"), stack_file(tmp_path, "b.yaml")
    rehearsals = Rehearsals(tmp_path)
    assert rehearsals.ask(base, change) == 0
    assert rehearsals.ask(base) == 0
    assert rehearsals.ask(base, new_image=True) == 0
    assert {question.base.name for question in rehearsals.questions} == {"a"}
    assert rehearsals.changes == ["b", "working-tree", "new-image"]


def test_an_interrupted_question_leaves_no_folder_of_its_sides(tmp_path: Path) -> None:
    def interrupted(*_: object, **__: object) -> int:
        raise KeyboardInterrupt

    asked = command.WhatifOptions("eks", stack_file(tmp_path, "a.yaml"), output=tmp_path / "answers", new_image=True)
    with pytest.raises(KeyboardInterrupt):
        command.run(asked, command.Tools(lambda *_: "", lambda _: "", interrupted))
    assert [path.name for path in (tmp_path / "answers").iterdir()] == ["new-image"]


def test_a_file_of_prices_is_checked_before_anything_starts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, prices = stack_file(tmp_path, "a.yaml"), tmp_path / "prices.yaml"
    rehearsals = Rehearsals(tmp_path)
    assert rehearsals.ask(base, prices=prices) == 0
    assert ("prices", "check", str(prices), "--cloud", "aws") in rehearsals.checked
    assert rehearsals.questions[0].judge == ("--prices", str(prices))
    assert rehearsals.questions[0].prices == prices
    asked = command.WhatifOptions("eks", base, output=tmp_path / "answers", prices=prices)
    assert command.run(asked, command.Tools(lambda *given: "no price" if given[0] == "prices" else "")) == 2
    assert "no price" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--change", "nodepools:x"], "without --workloads there is no cluster"),
        (["--new-image"], "without --workloads there is no cluster"),
        (["--workloads", "x.json"], "neither --base nor --change is given"),
        (["--workloads", "x.json", "--base", str(EKS), "--change", "HEAD:x"], "is a stack file and --change is mani"),
    ],
)
def test_sides_that_do_not_fit_are_refused(
    tmp_path: Path, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = parsed(["whatif", "eks", *options])[1]
    sides = command.WhatifOptions(
        "eks",
        asked["base"],
        changes=asked["change"] or (),
        new_image=asked["new_image"],
        workloads=asked["workloads"],
        output=tmp_path / "answers",
    )
    assert command.run(sides, command.Tools(lambda *_: "")) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--for", "7"], "'7' is no time such as 7d, 36h or 90m; units are d, h and m"),
        (["--for", "2w"], "'2w' is no time such as 7d"),
        (["--for", "0d"], "0d is not between 1m and 21d"),
        (["--for", "22d"], "22d is not between 1m and 21d"),
        (["--curve", "curve.yml"], "--curve without --for would have no effect"),
        (["--image-every", "1d"], "--image-every without --for would have no effect"),
        (["--for", "1d", "--at", "2026-11-23"], "leave out --at"),
        (["--for", "1d", "--speed", "1"], "leave out --speed 1"),
        (["--wait-factor", "0"], "0 is no factor between 1 and 10000"),
        (["--wait-factor", "nan"], "nan is no factor between 1 and 10000"),
        (["--at", "next week"], "'next week' is no time such as"),
        (["--patience", "0"], "0 is less than 1"),
        (["--new-image", "--change", str(EKS)], "--new-image and --change are two changes"),
    ],
)
def test_wrong_options_are_refused(
    tmp_path: Path, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["whatif", "eks", "--output", str(tmp_path / "answers"), "--base", str(EKS), *options]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "image_every"),
    [({}, timedelta()), ({"image_every": timedelta(hours=36)}, timedelta(hours=36)), ({"new_image": True}, WEEK)],
)
def test_days_are_handed_to_the_playbook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], image_every: timedelta
) -> None:
    monkeypatch.delenv("REHEARSAL_SPEED", raising=False)
    rehearsals, curve = Rehearsals(tmp_path), tmp_path / "curve.yml"
    assert rehearsals.ask(str(EKS), lived=WEEK, curve=curve, **options) == 0
    assert ("whatif", "curve", str(curve)) in rehearsals.checked
    assert rehearsals.questions[0].life == candidate.Life(WEEK, curve, image_every)


def test_nodes_as_they_are_need_a_policy_that_older_clusters_do_not_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = configuration("eks")["karpstack:cluster"]
    older = stack_file(tmp_path, "a.yaml", karpstack__cluster=cluster | {"version": "1.35"})
    rehearsals = Rehearsals(tmp_path)
    assert rehearsals.ask(older, str(EKS), nodes="as-is") == 2
    assert "--nodes as-is with Kubernetes 1.35" in capsys.readouterr().err
    assert rehearsals.ask(older, str(EKS)) == rehearsals.ask(str(EKS), older) == 0
    assert [question.nodes for question in rehearsals.questions] == ["fresh", "as-is"]


def test_what_cannot_be_compared_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, other = stack_file(tmp_path, "a.yaml"), stack_file(tmp_path, "b.yaml", aws__region="eu-west-1")
    rehearsals = Rehearsals(tmp_path)
    assert rehearsals.ask(base, other) == 2
    assert "region is 'us-east-1' in a and 'eu-west-1' in b" in capsys.readouterr().err
    (tmp_path / "other").mkdir()
    assert rehearsals.ask(base, other, stack_file(tmp_path / "other", "b.yaml")) == 2
    assert "both be called b" in capsys.readouterr().err


@pytest.mark.parametrize(("codes", "code"), [((0, -9), 3), ((-9, 1), 3), ((0, 1), 1), ((0, 0), 0)])
def test_each_of_several_candidates_gets_a_command_of_its_own(
    codes: tuple[int, int], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was killed has no answer."""
    monkeypatch.setattr("subprocess.run", lambda *_, **__: None)
    base, *changes = (stack_file(tmp_path, f"{name}.yaml") for name in "abc")
    rehearsals = Rehearsals(tmp_path, *codes)
    at = datetime(2026, 11, 23, 3, tzinfo=UTC)
    assert rehearsals.ask(base, *changes, wait_factor=4.0, at=at) == code
    assert [name for name, _ in rehearsals.commands] == ["b", "c"]
    for (_, arguments), change in zip(rehearsals.commands, changes, strict=True):
        again = SimpleNamespace(**parsed(arguments)[1])
        assert (again.base, again.change, again.wait_factor, again.at) == (base, [change], 4.0, at)


def test_an_interrupt_of_several_candidates_prints_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed: list[list[str]] = []
    monkeypatch.setattr("subprocess.run", lambda words, **_: printed.append(words))
    rehearsals = Rehearsals(tmp_path, 0, 0)
    rehearsals.interrupted = True
    assert rehearsals.ask(*(stack_file(tmp_path, f"{name}.yaml") for name in "abc")) == 130
    assert "table" in printed[-1]


def test_an_older_answer_is_not_taken_for_this_ones(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / "whatif.json").write_text('{"schemaVersion": 1, "stack": "eks"}')
    (tmp_path / "whatif.md").write_text("## Safe\n\nWhat if a changes")
    (tmp_path / "whatif.html").write_text("<!doctype html>\n<html><title>What if a changes")
    answer_files.forget(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("name", ["whatif.json", "whatif.md", "whatif.html"])
def test_a_file_of_somebody_elses_with_the_name_of_an_answers_stays(name: str, tmp_path: Path) -> None:
    (tmp_path / "timeline.jsonl").write_text("my own")
    (tmp_path / "whatif.json").write_text('{"schemaVersion": 1, "stack": "eks"}')
    (tmp_path / name).write_text("my own")
    with pytest.raises(OutputError, match=f"{name}: is no answer of a what-if, so the existing file would be lost"):
        answer_files.forget(tmp_path)
    assert (tmp_path / name).read_text() == "my own"
    assert (tmp_path / "whatif.json").exists()


def test_what_lies_beside_the_state_of_a_rehearsal_stays(tmp_path: Path) -> None:
    folder, other = StackFolder("eks", tmp_path / "state" / "eks"), tmp_path / "state" / "terraform.tfstate"
    folder.root.mkdir(parents=True)
    other.write_text("{}")
    candidate._remove(folder)
    assert [*other.parent.iterdir()] == [other]
    other.unlink()
    folder.root.mkdir()
    candidate._remove(folder)
    assert not (tmp_path / "state").exists()
