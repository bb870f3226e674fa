"""Whether a recording of rights is of the whole soak, and what is said, and not advised, where it is not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from karpstack.rehearsal import recorded_rights
from karpstack.rehearsal.recorded_rights import Principal, Question, Recording, Use
from karpstack.rehearsal.rights import completeness
from karpstack.rehearsal.rights.review import review
from tests.unit.command_line import karpstack
from tests.unit.example_stack import ROOT

main = karpstack()

SCENARIOS = ROOT / "playbooks" / "scenarios"
DOCUMENT = {
    "Statement": [
        {"Sid": "Used", "Effect": "Allow", "Action": "sqs:ReceiveMessage", "Resource": "*"},
        {"Sid": "Unused", "Effect": "Allow", "Action": "sqs:DeleteMessage", "Resource": "*"},
    ]
}
RECORDING = Recording("aws", [Principal("x", {"one": DOCUMENT}, [Use(Question("sqs:ReceiveMessage", "*"), 1)])])


def test_a_whole_recording_advises_what_to_take_out() -> None:
    (problem,) = review(RECORDING, []).problems
    assert problem == (
        "Unused: sqs:DeleteMessage on * was not used, and nobody says why it stays; take it out of the policy, or give "
        "the reason"
    )


def test_an_incomplete_recording_advises_nothing_and_says_what_is_lacking() -> None:
    (problem,) = review(RECORDING, [], ["drift", "what down asks"]).problems
    assert "the recording is incomplete" in problem
    assert problem.endswith("it lacks of the whole soak: drift, what down asks")
    assert "take it out" not in problem


def test_what_is_asked_without_a_right_is_told_whatever_is_lacking() -> None:
    refused = Use(Question("sqs:PurgeQueue", "*"), 1, refused=1)
    told = replace(RECORDING, principals=[replace(RECORDING.principals[0], uses=[refused])])
    assert "x asked for sqs:PurgeQueue on * (1 times), and no right allows it" in review(told, [], ["drift"]).problems


def test_the_soak_is_what_suits_the_environment() -> None:
    none = replace(RECORDING, scenarios=frozenset())
    lacking = completeness.lacking(none, SCENARIOS)
    assert {"drift", "eks-interruption", "eks-cheapest-fit"} < set(lacking)
    assert "self-hosted-inflate" not in lacking
    assert "self-hosted-inflate" in completeness.lacking(replace(none, cloud="azure"), SCENARIOS)
    assert not completeness.lacking(replace(RECORDING, scenarios=frozenset(lacking)), SCENARIOS)
    # A file that does not say may be of none.
    assert completeness.lacking(RECORDING, SCENARIOS) == lacking


def test_a_file_keeps_the_scenarios_and_several_add_theirs(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("one.json", "two.json", "silent.json")]
    for file, scenarios in zip(files, (frozenset({"drift"}), frozenset({"churn"}), None), strict=True):
        file.write_text(recorded_rights.text(replace(RECORDING, scenarios=scenarios)))
    assert recorded_rights.read(files[:2]).scenarios == frozenset({"drift", "churn"})
    assert recorded_rights.read(files).scenarios is None


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"stories": [{}]}', '{"stories": 1}'])
def test_what_is_no_report_has_no_scenarios(tmp_path: Path, content: str) -> None:
    (tmp_path / "report.json").write_text(content)
    assert completeness.ended(tmp_path / "report.json") == []
    assert completeness.ended(tmp_path / "missing.json") == []


def test_a_scenario_that_failed_did_not_run_to_its_end(tmp_path: Path) -> None:
    stories = [{"name": "drift", "passed": True}, {"name": "churn", "passed": False}]
    (tmp_path / "report.json").write_text(json.dumps({"stories": stories}))
    assert completeness.ended(tmp_path / "report.json") == ["drift"]
