"""Outcomes: written by the job that rehearses, read by the job that writes the comment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from karpstack.pull_request import outcome
from karpstack.pull_request.outcome import Outcome, OutcomeError


def test_what_is_written_is_read(tmp_path: Path) -> None:
    (tmp_path / "eks" / "review").mkdir(parents=True)
    (tmp_path / "eks" / "review" / "review.md").write_text("the review")
    for candidate in ("b", "a"):
        (tmp_path / "eks" / "whatif" / candidate).mkdir(parents=True)
        (tmp_path / "eks" / "whatif" / candidate / "whatif.md").write_text(f"what-if {candidate}")
    eks, aks = Outcome("eks", "passed", "beyond limits"), Outcome("aks-nap", "failed", "failed")
    for one in (eks, aks):
        outcome.write(one, tmp_path / one.stack)
    first, second = outcome.read(tmp_path)
    assert (first.outcome, first.review, first.whatifs) == (aks, "", {})
    assert (second.outcome, second.review) == (eks, "the review")
    assert list(second.whatifs.items()) == [("a", "what-if a"), ("b", "what-if b")]


@pytest.mark.parametrize("linked", ["eks/review", "eks/whatif", "eks/whatif/a"])
def test_what_a_link_leads_to_is_not_forgotten(linked: str, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    for path in (mine / "review.md", mine / "whatif.md", mine / "a" / "whatif.md"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    outcome.write(Outcome("eks", "passed", "off"), tmp_path / "results" / "eks")
    (tmp_path / "results" / linked).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "results" / linked).symlink_to(mine)
    outcome.remove_earlier(tmp_path / "results")
    assert sorted(path.name for path in mine.rglob("*.md")) == ["review.md", "whatif.md", "whatif.md"]
    assert not (tmp_path / "results" / "eks" / "outcome.json").exists()


def test_results_of_an_earlier_rehearsal_go_and_nothing_else(tmp_path: Path) -> None:
    outcome.remove_earlier(tmp_path / "nowhere")
    for stack in ("eks", "of-yesterday"):
        outcome.write(Outcome(stack, "passed", "within limits"), tmp_path / stack)
        (tmp_path / stack / "whatif" / "a").mkdir(parents=True)
        (tmp_path / stack / "review").mkdir()
        for name in ("review/review.md", "review/review.notes", "whatif/a/whatif.html", "whatif/a/timeline.jsonl"):
            (tmp_path / stack / name).touch()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "outcome.json").write_text("{}")
    with pytest.raises(OutcomeError, match=r"mine/outcome\.json is in the way: it is no outcome"):
        outcome.remove_earlier(tmp_path)
    (tmp_path / "mine" / "outcome.json").rename(tmp_path / "mine" / "other.json")
    outcome.remove_earlier(tmp_path)
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    kept = ("review/review.notes", "whatif/a/timeline.jsonl")
    assert left == sorted(
        ["mine/other.json", *(f"{stack}/{name}" for stack in ("eks", "of-yesterday") for name in kept)]
    )


def test_no_results_are_no_stacks(tmp_path: Path) -> None:
    assert outcome.read(tmp_path / "nowhere") == []


@pytest.mark.parametrize(
    ("made", "code"),
    [
        ([], 0),
        ([("passed", "within limits"), ("passed", "new")], 0),
        ([("passed", "within limits"), ("refused", "within limits")], 1),
        ([("passed", "beyond limits")], 1),
        ([("refused", "failed")], 3),
        ([("failed", "off"), ("refused", "off")], 3),
    ],
)
def test_the_worst_is_the_exit_code(made: list[Any], code: int) -> None:
    assert outcome.code([Outcome("eks", *one) for one in made]) == code


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "null",
        "{}",
        "[" * 5000,
        json.dumps({"stack": "aks-nap", "review": "passed", "whatif": "off"}),
        json.dumps({"stack": "eks", "review": "@everyone look", "whatif": "off"}),
        json.dumps({"stack": "eks", "review": ["passed"], "whatif": "off"}),
        json.dumps({"stack": "eks", "review": "passed", "whatif": "off"}) + " " * 5000 + "x",
    ],
)
def test_what_no_rehearsal_has_written_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "eks").mkdir()
    (tmp_path / "eks" / "outcome.json").write_text(content)
    with pytest.raises(OutcomeError, match=r"outcome\.json(: has more than 4 KiB| is no outcome of )"):
        outcome.read(tmp_path)


def test_more_results_than_a_pull_request_has_are_refused(tmp_path: Path) -> None:
    outcome.write(Outcome("eks", "passed", "within limits"), tmp_path / "eks")
    for number in range(150):
        (tmp_path / "eks" / "whatif" / str(number)).mkdir(parents=True)
        (tmp_path / "eks" / "whatif" / str(number) / "whatif.md").touch()
    with pytest.raises(OutcomeError, match="has 151 results, more than 150"):
        outcome.read(tmp_path)


def test_larger_results_than_a_pull_request_has_are_refused(tmp_path: Path) -> None:
    outcome.write(Outcome("eks", "passed", "within limits"), tmp_path / "eks")
    for name in ("review/review.md", *(f"whatif/{number}/whatif.md" for number in range(8))):
        (tmp_path / "eks" / name).parent.mkdir(parents=True)
        with (tmp_path / "eks" / name).open("wb") as file:
            file.truncate(4 * 2**20)
    with pytest.raises(OutcomeError, match=r"has 37,748,\d\d\d bytes of results, more than 33,554,432"):
        outcome.read(tmp_path)
