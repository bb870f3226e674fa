"""The form of the answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from karpstack.whatif import answer
from karpstack.whatif.answer import Answer
from tests.unit.whatif.told import judged, told

SCHEMA = Path(answer.__file__).with_name("schema.json")
STORIES = [("eks.consolidation-policies", 3), ("eks.daemon-sets", 0), ("eks.budget-by-reason", 1)]


def test_the_schema_is_current() -> None:
    assert json.loads(SCHEMA.read_text()) == Answer.model_json_schema(), "make goldens"


@pytest.mark.parametrize(("story", "step"), STORIES)
def test_answers_are_of_the_schema(story: str, step: int) -> None:
    data = judged(told(story, step)).model_dump(mode="json", by_alias=True)
    Draft202012Validator(json.loads(SCHEMA.read_text())).validate(data)
    assert Answer.model_validate_json(json.dumps(data)) == judged(told(story, step))


@pytest.mark.parametrize(
    "model", [one for one in vars(answer).values() if isinstance(one, type) and issubclass(one, answer.Part)]
)
def test_what_each_key_means_is_said(model: type[BaseModel]) -> None:
    if model not in (answer.Planned, answer.Part):
        assert [name for name, field in model.model_fields.items() if not field.description] == []
