"""Answers to small what-ifs, from answers.yml: what a cluster went through, and what the answer says of it.

Each case has the steps of `Made` that make its timeline, each a list of the method and its arguments, the last of them
by name; or a recorded story and the step that is the change; or a recorded what-if. `answer` are JMESPath expressions
over whatif.json, `first` is its first line, `says` and `silent` are parts of its sentence, `shown` parts of whatif.md,
and `page` of whatif.html.
A case with `rows` is as many: the values of a row stand for the names of `of`, written `$name`.
"""

from __future__ import annotations

import gzip
import html
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import jmespath
import pytest
import yaml

from karpstack.whatif import markdown, page
from karpstack.whatif.accuracy import RealNode
from karpstack.whatif.conclusion import conclusion
from karpstack.whatif.limits import Limits
from karpstack.whatif.phases import read
from tests.html_page import Page
from tests.unit.whatif.made import Made
from tests.unit.whatif.told import judged, lines


def filled(part: Any, row: dict[str, Any]) -> Any:
    """A part of a case, with the values of a row in place of `$name`."""
    if isinstance(part, str):
        return row.get(part[1:], part) if part.startswith("$") else part
    if isinstance(part, list):
        return [filled(one, row) for one in part]
    return {key: filled(value, row) for key, value in part.items()} if isinstance(part, dict) else part


def cases() -> Iterator[dict[str, Any]]:
    """The cases of the file; one with rows is as many, each with the values of a row for the names of `of`."""
    for case in yaml.safe_load(Path(__file__).with_name("answers.yml").read_text()):
        for row in case.pop("rows", [[]]):
            values = dict(zip(case.get("of", []), row, strict=True))
            name = f"{case['case']}: {', '.join(map(str, row))}" if row else case["case"]
            yield {**filled(case, values), "case": name}


CASES = list(cases())


def timeline(case: dict[str, Any]) -> list[dict[str, Any]]:
    phases = case.get("phases", {})
    if story := case.get("story"):
        return lines(*story, **phases)
    if name := case.get("recorded"):
        recorded = Path(__file__).with_name("recorded") / f"eks.{name}.timeline.jsonl.gz"
        return [json.loads(line) for line in gzip.decompress(recorded.read_bytes()).splitlines()]
    made = Made()
    for method, *arguments in [*([] if case.get("no_pool") else [["pool"]]), *case["made"]]:
        by_name = arguments.pop() if arguments and isinstance(arguments[-1], dict) else {}
        getattr(made, method)(*arguments, **by_name)
    return made.lines(**phases)


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_answers(case: dict[str, Any]) -> None:
    real = [_real(*one) for one in case["real"]] if "real" in case else None
    answer = judged(read(timeline(case)), Limits.parse(case.get("limits"), "answers.yml"), real=real)
    data = answer.model_dump(mode="json", by_alias=True)
    found = {path: jmespath.search(path, data) for path in case.get("answer", {})}
    assert found == {path: _near(value) for path, value in case.get("answer", {}).items()}
    assert case.get("first") in (None, conclusion(answer))
    for words in case.get("says", []):
        assert words in answer.sentence
    for words in case.get("silent", []):
        assert words not in answer.sentence
    for words in case.get("shown", []):
        assert words in html.unescape(markdown.render(answer)).replace("\\", "")

    for words in case.get("page", []):
        assert words in Page(page.render(answer)).text


def _real(
    type_: str,
    usd: float | None,
    capacity: str = "on-demand",
    pool: str | None = "default",
    name: str | None = None,
    created: str | None = None,
) -> RealNode:
    when = datetime.fromisoformat(created) if created else None
    return RealNode(type_, "us-east-1a", capacity, pool, usd, None, name, when)


def _near(value: Any) -> Any:
    return pytest.approx(value, abs=0.001) if isinstance(value, float) else value
