"""What others wrote is data: reports, timelines and limits are refused in a sentence, and shown as nothing but text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis.strategies import one_of

from karpstack.scale_test.judging.lines import checked
from karpstack.scale_test.judging.replay import Replay
from karpstack.scale_test.numbers.thresholds import Thresholds, ThresholdsError
from karpstack.scale_test.recording.timeline import LONGEST, Line, Reader, TimelineError
from karpstack.scale_test.reports import comparison, reading, report
from karpstack.scale_test.reports.junit import junit
from karpstack.scale_test.reports.table import table
from karpstack.scale_test.scenarios.environments import Stack
from karpstack.scale_test.scenarios.scenario import Scenario
from karpstack.text.shown import message, visible
from tests.mutations import mutations, taken
from tests.unit.scale_test.example_report import Example

ROOT = Path(__file__).resolve().parents[3]
REPORT = Example(pods=4, nodes=2).report()
RULES = comparison.parse_rules(yaml.safe_load((ROOT / "playbooks/vars/comparison.yml").read_text())["comparison_rules"])
LIMITS = yaml.safe_load((ROOT / "playbooks/thresholds.yml").read_text())
TIMELINE = [json.loads(line) for line in Path(__file__).with_name("eks.timeline.jsonl").read_text().splitlines()]
KINDS = list({(line["type"], line.get("kind")): line for line in TIMELINE}.values())
STEERING = "\x1b[31m\u202e\x9b\x00\u2066\u200f\r"
SETTINGS = settings(max_examples=50, deadline=None, derandomize=True)


def a_sentence(text: str) -> bool:
    """Whether an error's text can be shown to people: short, with a key, and nothing in it acts."""
    return len(text) < 12_000 and visible(text) == text and ": " in text


@SETTINGS
@given(mutations(REPORT, most=2))
def test_a_report_is_refused_in_short_or_compared(data: Any) -> None:
    found = taken(lambda: reading.parse(json.dumps(data).encode()), reading.ReportError)
    if found is None:
        return
    comparison.what_got_worse(comparison.compare(found, REPORT, RULES))
    comparison.compare(REPORT, found, RULES)
    assert visible(table(found)) == table(found)
    junit(found)


@SETTINGS
@given(one_of(*(mutations([line]) for line in KINDS)))
def test_a_line_is_refused_with_its_number_or_replayed(data: Any) -> None:
    lines = data if isinstance(data, list) else [data]
    taken(lambda: Replay().apply(checked(lines)), TimelineError, names="timeline.jsonl, line ")


@SETTINGS
@given(mutations(LIMITS))
def test_limits_are_refused_in_short_or_taken(data: Any) -> None:
    taken(lambda: Thresholds.parse(data, "limits.yml", LIMITS.keys()), ThresholdsError, names="limits.yml: ")


def test_what_is_read_is_the_report_itself(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(json.dumps(REPORT))
    assert reading.read(tmp_path / "report.json") == json.loads(json.dumps(REPORT))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "EOF while parsing"),
        ("[" * 100_000, "recursion limit exceeded"),
        ("[]", "report.json: \\[\\]: Input should be an object"),
        (json.dumps(REPORT | {"schema": 1}), "the report has schema 1, only schema 2 can be used: run the scale test"),
        (json.dumps(REPORT | {"seconds": float("nan")}), "seconds: nan: Input should be"),
        (json.dumps(REPORT | {"seconds": 10**30}), "seconds: .*: Input should be less than or equal to"),
        (json.dumps(REPORT | {"started": "yesterday"}), "started: 'yesterday': Value error, Invalid isoformat string"),
        (json.dumps(REPORT | {"\x1b[31m": 1}), r"\\x1b\[31m: 1: Extra inputs are not permitted"),
        (json.dumps(REPORT | {f"key{n}": n for n in range(5000)}), "and more like these"),
    ],
    ids=["empty", "deep", "list", "schema", "nan", "huge", "time", "key", "many"],
)
def test_what_is_no_report_is_refused_with_the_key(content: str, said: str) -> None:
    with pytest.raises(reading.ReportError, match=said) as refused:
        reading.parse(content.encode())
    assert a_sentence(str(refused.value))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"type": "STORY", "rec', r"line 2: not a line of a timeline \("),
        (b"[1]", r"line 2: not a line of a timeline \(no object"),
        (b"[" * 100_000, r"line 2: not a line of a timeline \("),
        (b"x" * (LONGEST + 2), "line 2: not a line of a timeline .*more than 16 MiB in one line"),
        (b'{"a": [' + b"{}," * 600_000 + b"{}]}", "line 2: not a line of a timeline .*more than 1,000,000 values in a"),
    ],
    ids=["cut", "list", "deep", "long", "many"],
)
def test_a_line_that_is_no_json_is_told_with_its_number(tmp_path: Path, line: bytes, said: str) -> None:
    path = tmp_path / "timeline.jsonl"
    path.write_bytes(b'{"type": "SYNCED"}\n' + line + b'\n{"type": "SYNCED"}\n')
    with pytest.raises(TimelineError, match=said):
        list(Reader(path).new_lines())


def test_many_long_lines_do_not_fill_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    path.write_bytes((json.dumps({"a": "," * 900_000}).encode() + b"\n") * 23)
    with pytest.raises(TimelineError, match=r"line \d+: .*in all 20,000,000 values or 1 GiB"):
        for _ in Reader(path).new_lines():
            pass


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"step": 7}, "step 8 of eks-cheapest-fit, which has 1: the file is of another run"),
        ({"outcome": "fine"}, "STEP: outcome: 'fine': Input should be 'rest', 'hopeless' or 'late'"),
        ({"received": "2026-11-21T13:55:37"}, "STEP: received: '2026-11-21T13:55:37': Value error, a time without an"),
        ({"type": "STEPS"}, "type: 'STEPS': no such line"),
    ],
    ids=["step", "outcome", "time", "type"],
)
def test_a_line_that_cannot_be_judged_is_told_with_its_number(
    scenarios: dict[str, Scenario], timeline: list[Line], outputs: dict[str, Any], change: dict[str, Any], said: str
) -> None:
    number = next(number for number, line in enumerate(timeline, 1) if line["type"] == "STEP")
    timeline[number - 1] = timeline[number - 1] | change
    with pytest.raises(TimelineError, match=f"timeline.jsonl, line {number}: {said}"):
        report.make([scenarios["eks-cheapest-fit"]], timeline, Stack("eks", outputs))


def poisoned(value: Any, fixed: Sequence[str], key: str = "") -> Any:
    """The same with characters that steer in all text, but of some keys."""
    if isinstance(value, dict):
        return {name: poisoned(inner, fixed, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [poisoned(inner, fixed, key) for inner in value]
    return f"[/red]{value}{STEERING}" if isinstance(value, str) and key not in fixed else value


def test_nothing_that_is_written_steers_a_terminal_or_turns_text_around() -> None:
    """The pages are `test_page`'s."""
    bad = poisoned(REPORT, ("started", "ended", "phase", "kind", "price_source"))
    bad["stories"][0]["passed"] = bad["stories"][0]["assertions"][0]["passed"] = False
    cases = [case for suite in junit(bad) for case in suite]
    said = [text for case in cases for text in (case.name, *(found.message for found in case.result))]
    for text in (table(bad), *report.failures(bad), *said):
        assert visible(text) == text
        assert r"\x1b[31m\u202e\x9b" in text


def test_a_message_is_short() -> None:
    text = message(["x" * 10_000, "\x1b", *["y"] * 1000])
    assert text.splitlines()[1] == r"\x1b"
    assert text.splitlines()[-1] == "and more like these"
    assert len(text) < 1000


def test_a_shortage_is_of_types_or_of_places() -> None:
    line = {"type": "FAULT", "received": "2026-11-22T20:00:00+00:00", "scenario": "zone-short", "step": 0}
    line |= {"kind": "out-of-capacity"}
    for detail in ({"zones": ["us-east-1a"]}, {"capacityTypes": ["spot"]}, {"instanceTypes": ["m5.large"]}):
        assert list(checked([line | {"detail": detail}]))
    with pytest.raises(TimelineError, match="of which instance types, capacity types or zones is not said"):
        list(checked([line | {"detail": {}}]))
