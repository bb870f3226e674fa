"""`karpstack whatif`: what it refuses before anything starts, and how it hands out several candidates."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from karpstack.rehearsal.session.deployment import PROJECT
from karpstack.rehearsal.whatif import candidate, candidates, command, sources
from karpstack.rehearsal.whatif.sources import Source
from tests.unit.command_line import karpstack, parsed
from tests.unit.example_stack import configuration

main = karpstack()

EKS = PROJECT / "Pulumi.eks.yaml"


@pytest.fixture(autouse=True)
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Rehearse nothing; what would have been rehearsed."""
    asked: list[tuple[str, str]] = []

    def rehearse(question: candidate.Question, change: Source, results: Path, *, keep: bool) -> int:
        asked.append((question.base.name, change.name))
        return 0

    monkeypatch.setattr(candidate, "rehearse", rehearse)
    monkeypatch.setattr(command, "_check_settings", lambda side: None)
    monkeypatch.setattr(command, "_accept", lambda package, name, file: None)
    return asked


def stack_file(folder: Path, name: str, **config: object) -> str:
    content = {"config": configuration("eks") | {key.replace("__", ":"): value for key, value in config.items()}}
    path = folder / name
    path.write_text(yaml.dump(content, Dumper=yaml.CSafeDumper))
    return str(path)


def asked(folder: Path, *more: str) -> int:
    return main(["whatif", "eks", "--output", str(folder / "answers"), *more])


def test_one_change_is_rehearsed_against_the_base(tmp_path: Path, nothing_starts: list[tuple[str, str]]) -> None:
    base, change = stack_file(tmp_path, "a.yaml"), stack_file(tmp_path, "b.yaml")
    assert asked(tmp_path, "--base", base, "--change", change) == 0
    assert asked(tmp_path, "--base", base) == 0
    assert nothing_starts == [("a", "b"), ("a", "working-tree")]


def test_a_new_image_is_a_change_by_itself(tmp_path: Path, nothing_starts: list[tuple[str, str]]) -> None:
    base = stack_file(tmp_path, "a.yaml")
    assert asked(tmp_path, "--base", base, "--new-image") == 0
    assert nothing_starts == [("a", "new-image")]


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
    with pytest.raises(SystemExit) as ended:
        sys.exit(asked(tmp_path, "--base", str(EKS), *options))
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "image_every"),
    [([], timedelta()), (["--image-every", "36h"], timedelta(hours=36)), (["--new-image"], timedelta(days=7))],
)
def test_days_are_handed_to_the_playbook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], image_every: timedelta
) -> None:
    questions: list[candidate.Question] = []

    def rehearse(question: candidate.Question, *_: object, **__: object) -> int:
        questions.append(question)
        return 0

    monkeypatch.setattr(candidate, "rehearse", rehearse)
    accepted: list[tuple[str, str, str]] = []
    monkeypatch.setattr(command, "_accept", lambda *given: accepted.append(given))
    monkeypatch.delenv("REHEARSAL_SPEED", raising=False)
    asked(tmp_path, "--base", str(EKS), "--for", "7d", "--curve", str(tmp_path / "curve.yml"), *options)
    assert ("whatif", "curve", str(tmp_path / "curve.yml")) in accepted
    assert questions[0].life == candidate.Life(timedelta(days=7), tmp_path / "curve.yml", image_every)


def test_nodes_as_they_are_need_a_policy_that_older_clusters_do_not_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = configuration("eks")["karpstack:cluster"]
    older = stack_file(tmp_path, "a.yaml", karpstack__cluster=cluster | {"version": "1.35"})
    assert asked(tmp_path, "--base", older, "--change", str(EKS), "--nodes", "as-is") == 2
    assert "--nodes as-is with Kubernetes 1.35" in capsys.readouterr().err
    question = sources.source(older, "eks", tmp_path)
    assert command._nodes(None, question) == "fresh"
    assert command._nodes(None, sources.source(str(EKS), "eks", tmp_path)) == "as-is"


def test_what_cannot_be_compared_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, other = stack_file(tmp_path, "a.yaml"), stack_file(tmp_path, "b.yaml", aws__region="eu-west-1")
    assert asked(tmp_path, "--base", base, "--change", other) == 2
    assert "region is 'us-east-1' in a and 'eu-west-1' in b" in capsys.readouterr().err
    (tmp_path / "other").mkdir()
    same = stack_file(tmp_path / "other", "b.yaml")
    assert asked(tmp_path, "--base", base, "--change", other, "--change", same) == 2
    assert "both be called b" in capsys.readouterr().err


def test_each_of_several_candidates_gets_a_command_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[str, list[str]]] = []

    def rehearse_all(commands: list[tuple[str, list[str], Path]], at_once: int) -> dict[str, int]:
        given.extend((name, arguments) for name, arguments, _ in commands)
        return {name: code for code, (name, _, _) in enumerate(commands)}

    monkeypatch.setattr(candidates, "rehearse_all", rehearse_all)
    monkeypatch.setattr("subprocess.run", lambda *_, **__: None)
    base = stack_file(tmp_path, "a.yaml")
    changes = [stack_file(tmp_path, name) for name in ("b.yaml", "c.yaml")]
    more = ("--wait-factor", "4", "--at", "2026-11-23T03:00")
    assert asked(tmp_path, "--base", base, "--change", changes[0], "--change", changes[1], *more) == 1
    assert [name for name, _ in given] == ["b", "c"]
    for (_, arguments), change in zip(given, changes, strict=True):
        again = SimpleNamespace(**parsed(arguments)[1])
        assert (again.base, again.change, again.wait_factor) == (base, [change], 4.0)
        assert again.at.isoformat() == "2026-11-23T03:00:00+00:00"


@pytest.mark.parametrize(("codes", "code"), [((0, -9), 3), ((-9, 1), 3), ((0, 1), 1), ((0, 0), 0)])
def test_a_candidate_that_was_killed_has_no_answer(
    codes: tuple[int, int], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidates, "rehearse_all", lambda *_: dict(zip("bc", codes, strict=True)))
    monkeypatch.setattr("subprocess.run", lambda *_, **__: None)
    files = [stack_file(tmp_path, f"{name}.yaml") for name in "abc"]
    assert asked(tmp_path, "--base", files[0], "--change", files[1], "--change", files[2]) == code


def test_an_older_answer_is_not_taken_for_this_ones(tmp_path: Path) -> None:
    results = tmp_path / "b"
    results.mkdir()
    for name in ("timeline.jsonl", "whatif.json", "notes.txt"):
        (results / name).write_text("{}")
    candidate._forget(results)
    assert sorted(path.name for path in results.iterdir()) == ["notes.txt", "timeline.jsonl"]
    (tmp_path / "whatif.json").write_text("somebody else's")
    candidate._forget(tmp_path)
    assert (tmp_path / "whatif.json").exists()
