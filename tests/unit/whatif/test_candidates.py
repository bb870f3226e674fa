"""Several answers: candidates side by side, and the spread of one question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from karpstack.whatif.answer import Accuracy, Answer, InitialNodes, Settings
from karpstack.whatif.candidates import AnswersError, candidates, load, spread
from karpstack.whatif.limits import Limits
from karpstack.whatif.phases import read
from karpstack.whatif.prices import PriceFile
from tests.unit.whatif.made import Made
from tests.unit.whatif.told import judged

AS_IS = InitialNodes(real_nodes=1, nodes=1, pods=1, pods_placed=1, removed=0, created=0)


def asked(candidate: str, after: float, before: float = 0.096, **settings: Any) -> Answer:
    """One node that is replaced by another, at these prices."""
    made = Made()
    made.pool()
    made.node("one", price=before, disrupted=150, deleting=151, gone=200)
    made.node("two", 140, type_="m5.xlarge", price=after)
    phases = {"settings": settings} if settings else {}
    return judged(read(made.lines(change_begins={"candidate": candidate}, **phases)))


def rows(text: str) -> dict[str, list[str]]:
    """First cell -> the others, of each row of a table."""
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return {first: rest for first, *rest in found[2:]}


def test_candidates_side_by_side() -> None:
    text = candidates([asked("spot", 0.05), asked("arm", 0.2)])
    found = rows(text)
    assert found["spot"][:5] == [
        "within its limits",
        "\\$0.0960",
        "\\$0.0500",
        "\N{MINUS SIGN}\\$0.0460 (\N{MINUS SIGN}48 %)",
        "1",
    ]
    assert found["arm"][3] == "+\\$0.104 (+108 %)"
    assert "how far two rehearsals of the same are apart is not known" in text
    assert "Not compared with any real cluster" in text


def test_no_difference_is_stated_while_the_end_state_is_not_known() -> None:
    made = Made()
    made.pool()
    made.node("one", disrupted=150, deleting=151)  # it uses the budget up
    made.node("two", 140, type_="m5.xlarge", price=0.2)
    held = judged(read(made.lines(change_begins={"candidate": "held"})))
    text = candidates([held, asked("arm", 0.2)])
    assert (rows(text)["held"][3], rows(text)["arm"][3]) == ("not decided yet", "+\\$0.104 (+108 %)")
    assert "held: The end state is not known yet: the budget of NodePool default" in text


def test_a_difference_within_the_spread_is_none() -> None:
    text = candidates([asked("a", 0.100), asked("a", 0.110), asked("a", 0.090), asked("b", 0.105), asked("c", 0.150)])
    found = rows(text)
    assert found["a (asked 3 times)"][2:4] == ["\\$0.0900 to \\$0.110", "none"]
    assert found["b"][3] == "none"  # 0.009 more, where 0.020 is noise
    assert found["c"][3] == "+\\$0.0540 (+56 %)"
    assert "Differences of \\$0.0200 an hour and less are called none" in text


def test_the_spread_of_one_question() -> None:
    text = spread([asked("a", after) for after in (0.2, 0.21, 0.2, 0.22, 0.2)])
    found = rows(text)
    assert found["dollars an hour after"] == ["\\$0.200", "\\$0.200", "\\$0.220", "\\$0.0200"]
    assert found["nodes replaced"] == ["1", "1", "1", "0"]
    assert "Asked 5 times. The change makes a difference of +\\$0.104 an hour, which is more than the spread." in text


def test_no_difference_within_the_spread_of_one_question() -> None:
    assert "The change makes no difference in dollars" in spread([asked("a", 0.09), asked("a", 0.11)])


def test_what_is_not_known_has_no_spread() -> None:
    made = Made()
    made.pool()
    made.node("one", price=None)
    unknown = judged(read(made.lines(change_begins={"candidate": "a"})))
    text = spread([unknown, asked("a", 0.2)])
    assert "What the change costs is not known" in text
    assert rows(text)["dollars an hour after"][1] == "not known"


def test_a_refused_candidate_has_its_row() -> None:
    made = Made()
    refused = judged(
        read(
            made.lines(
                change_begins={"candidate": "bad"},
                change_applied={"refused": "the pack"},
                change_settled={"missing": True},
            )
        )
    )
    assert rows(candidates([refused, asked("good", 0.2)]))["bad"][:4] == [
        "refused",
        "\\$0.00",
        "not known",
        "not known",
    ]


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([asked("a", 0.2)], "one answer has no spread"),
        ([asked("a", 0.2), asked("b", 0.2)], "a, b are different questions"),
        ([asked("a", 0.2), asked("a", 0.2, waitFactor=10)], "the answers differ in factors of waits"),
    ],
)
def test_what_cannot_be_set_side_by_side_is_refused(answers: list[Answer], message: str) -> None:
    with pytest.raises(AnswersError, match=message):
        spread(answers)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"region": "eu-west-3"}, "differ in regions"),
        ({"settings": Settings(at="2026-11-23T03:00:00+00:00")}, "differ in moments that are asked about"),
        ({"snapshot": "0123456789ab"}, "differ in snapshots of the workload"),
        (
            {"accuracy": Accuracy(compared=False, sentence="", initial_nodes=AS_IS)},
            "differ in whose nodes the base has",
        ),
    ],
)
def test_answers_to_other_questions_are_refused(other: dict[str, Any], message: str) -> None:
    one = asked("a", 0.2)
    for together in (candidates, spread):
        with pytest.raises(AnswersError, match=message):
            together([one, one.model_copy(update=other)])


def test_a_candidate_without_an_answer_has_its_row() -> None:
    found = rows(candidates([asked("good", 0.2)], ["killed"]))
    assert found["killed"][0] == "no answer"
    assert found["good"][0] == "within its limits"
    assert rows(candidates([], ["killed"]))["killed"][0] == "no answer"


def test_answers_at_other_prices_are_refused() -> None:
    made = Made()
    given = judged(read(made.lines()), given=PriceFile(discounts={"m5": 0.1}))
    with pytest.raises(AnswersError, match="the answers differ in given prices"):
        candidates([judged(read(made.lines())), given])


def test_folders_without_an_answer_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AnswersError, match="karpstack whatif report"):
        load([tmp_path])
    path = tmp_path / "whatif.json"
    path.write_text('{"schemaVersion": 4}')
    with pytest.raises(AnswersError, match="schemaVersion: 4: "):
        load([tmp_path])
    path.write_text("{")
    with pytest.raises(AnswersError, match="no answer of schema 3"):
        load([tmp_path])


def drifting(*going: str) -> Answer:
    """Two drifted nodes, of which some go."""
    made = Made()
    made.pool(disruption={"budgets": [{"nodes": "1"}]})
    for name in ("one", "two"):
        times = {"disrupted": 150.0, "deleting": 160.0} if name in going else {"disrupted": None, "deleting": None}
        made.node(name, conditions={"Drifted": "NodePoolDrifted"}, **times)
    return judged(read(made.lines(change_begins={"candidate": "a"})), Limits(max_nodes_replaced=1))


@pytest.mark.parametrize(
    ("again", "said", "unsaid"),
    [
        (("one",), ["The verdict is the same", "for the same causes"], ["Which nodes go differs"]),
        (("two",), ["The verdict is the same", "for the same causes", "Which nodes go differs"], []),
        (
            ("one", "two"),
            [
                "Verdicts differ: within its limits; 1 limit of 6 exceeded.",
                "for other causes",
                "Which nodes go differs",
            ],
            [],
        ),
    ],
)
def test_the_spread_says_whether_verdicts_causes_and_nodes_agree(
    again: tuple[str, ...], said: list[str], unsaid: list[str]
) -> None:
    text = spread([drifting("one"), drifting(*again)])
    assert [words for words in (*said, *unsaid) if words in text] == said
