"""The comment's text: what it says, and how it is shortened."""

from __future__ import annotations

from pathlib import Path

import pytest

from karpstack.pull_request import commands, text
from karpstack.pull_request.outcome import Outcome, OutcomeTexts
from karpstack.pull_request.text import LONGEST_COMMENT, LONGEST_SUMMARY, Section, marker

PAGE = "https://github.com/ours/karpstack/actions/runs/7"
COMMIT = "0123456789abcdef"


def told(stack: str = "eks", review: str = "## Review\n", **whatifs: str) -> OutcomeTexts:
    return OutcomeTexts(Outcome(stack, "passed", "within limits"), review, whatifs)


def rows(count: int) -> str:
    return "".join(f"## Part {number}\n\n| a | b |\n| --- | --- |\n| {number} | x |\n\n" for number in range(count))


def test_all_of_what_is_short_is_there() -> None:
    said = text.comment([told(working="## What-if\n\nNothing moves.\n")], commit=COMMIT, page=PAGE)
    assert said.startswith(f"{marker()}\n## Rehearsed: nothing is in the way\n")
    assert "| eks | within the limits | passed |" in said
    assert "Of commit 0123456789ab." in said
    assert f"[the run]({PAGE})" in said
    assert "\n\n## What-if\n\nNothing moves.\n\n" in said
    assert said.endswith("<details><summary>Review of eks</summary>\n\n## Review\n\n</details>\n")
    assert "Shortened" not in said


@pytest.mark.parametrize(
    ("outcome", "headline", "row"),
    [
        (
            Outcome("eks", "refused", "within limits"),
            "something is refused",
            "**refused**: a mandatory rule is violated",
        ),
        (Outcome("eks", "passed", "beyond limits"), "something is refused", "**not within the limits**"),
        (Outcome("eks", "failed", "off"), "something has no answer", "**failed**: the job's log says why"),
        (Outcome("eks", "refused", "failed"), "something has no answer", "**no answer**: the job's log says why"),
        (Outcome("eks", "passed", "new"), "nothing is in the way", "none: the stack is new"),
        (Outcome("eks", "passed", "policies"), "nothing is in the way", "none: what judges the stack differs"),
    ],
)
def test_the_worst_is_in_the_headline_and_each_in_its_row(outcome: Outcome, headline: str, row: str) -> None:
    said = text.comment([told("aks-nap"), OutcomeTexts(outcome, "", {})], commit=COMMIT, page=PAGE)
    assert f"## Rehearsed: {headline}\n" in said
    assert row in next(line for line in said.splitlines() if line.startswith("| eks |"))


def test_names_are_shown_as_they_are() -> None:
    """A stack can be called like a page, and a candidate's folder, from an artifact, like anything."""
    long = "a row\n\n" * 20_000
    candidates = {"<!-- @mona -->": long, "b": long}
    said = text.comment(
        [OutcomeTexts(Outcome("www.example.org", "passed", "off"), "", candidates)], commit=COMMIT, page=PAGE
    )
    assert "| www<!-- -->.example.org |" in said
    assert "of What-if of www<!-- -->.example.org &#40;&lt;" in said.replace("&#60;", "&lt;")
    assert "<!-- @mona" not in said


def test_without_a_stack_it_says_so() -> None:
    assert "touches no stack" in text.comment([], commit=COMMIT, page=PAGE)


@pytest.mark.parametrize(
    ("printed", "status", "said"),
    [
        ("", "failed", "there is no answer"),
        ("", "canceled", "there is no answer"),
        ("", "", "there is no answer"),
        ("", "success", "touches no stack"),
        ("[]", "", "touches no stack"),
        ('["eks"]', "failed", "something has no answer"),
    ],
)
def test_without_results_the_summary_says_that_there_is_no_answer(
    printed: str,
    status: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A rehearsal that was refused before it wrote results leaves an empty folder, as one with nothing to rehearse."""
    for name in ("GITHUB_REPOSITORY", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CI_JOB_STATUS", status)
    assert commands.summary(tmp_path, printed) == 0
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("stacks", "length"), [(1, 500), (200, 500), (3, 5_000), (40, 5_000), (200, 5_000), (1, 100_000), (3, 100_000)]
)
def test_the_comment_is_never_too_long(stacks: int, length: int) -> None:
    document = rows(length // 40)
    many = [told(f"stack-{number:03}", document, a=document) for number in range(stacks)]
    said = text.comment(many, commit=COMMIT, page=PAGE)
    assert len(said) <= LONGEST_COMMENT
    assert said.count("<details>") == said.count("</details>")
    assert len(said) > 0.5 * min(LONGEST_COMMENT, stacks * length)
    assert ("150 more stacks are in the artifacts alone" in said) is (stacks == 200)


@pytest.mark.parametrize("others", [0, 1, 20])
def test_what_just_fits_is_whole_and_one_character_more_does_not(others: int) -> None:
    def comment(length: int) -> str:
        many = [told(f"stack-{number:02}", "short", a="short") for number in range(others)]
        return text.comment([*many, told(review="x" * length)], commit=COMMIT, page=PAGE)

    most = 1 + LONGEST_COMMENT - len(comment(1))
    assert len(comment(most)) == LONGEST_COMMENT
    assert "Shortened" not in comment(most)
    assert "Shortened" in comment(most + 1)


@pytest.mark.parametrize("line", ["one line", "\N{HERB}" * 20, "| a |", "```", "<details>", "</details>", ""])
def test_nor_is_it_for_text_without_a_good_place_to_end(line: str) -> None:
    said = text.comment([told(review=f"{line}\n" * 50_000, a=f"{line}\n" * 50_000)], commit=COMMIT, page=PAGE)
    assert len(said) <= LONGEST_COMMENT


def test_a_summary_is_counted_in_bytes() -> None:
    said = text.summary([told(review="\N{HERB}\n\n" * 100_000)], commit=COMMIT, page=PAGE)
    assert LONGEST_COMMENT < len(said.encode()) <= LONGEST_SUMMARY
    assert marker() not in said


def test_the_short_stay_whole_and_the_long_share_the_rest() -> None:
    short, long = Section("short", "x" * 100, folded=False), Section("long", rows(1000), folded=False)
    first, *others = text.shorten_documents([short, long, long], 10_000, "the artifacts")
    assert first == short.text
    assert all(4_500 < len(other) <= 4_950 for other in others)


def test_what_is_missing_is_counted() -> None:
    document = "\n".join(f"line {number}\n" for number in range(100)).strip()
    (shown,) = text.shorten_documents([Section("the review", document, folded=False)], 500, "the artifacts")
    kept, note = shown.split("\n\n**Shortened: ")
    missing = len(document.splitlines()) - len(kept.splitlines())
    assert note == f"of the review, {missing} of 199 lines are missing here; the artifacts have all.**"
    assert document.startswith(kept)


@pytest.mark.parametrize(
    ("opened", "closed"), [("```text", "```"), ("<details><summary>more</summary>", "</details>"), ("| a |", "| b |")]
)
def test_nothing_is_cut_in_half(opened: str, closed: str) -> None:
    inside = "\n".join(["row"] * 200) if opened.startswith("|") else "row\n\n" * 200
    document = f"before\n\n{opened}\n{inside}\n{closed}\n\nafter"
    (shown,) = text.shorten_documents([Section("it", document, folded=False)], 400, "the artifacts")
    assert shown.startswith("before\n\n**Shortened")
    assert opened not in shown
