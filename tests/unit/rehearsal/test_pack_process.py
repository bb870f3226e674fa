"""What a policy pack's process changes in pulumi_policy; how it lives is seen in tests/programs."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest
from google.protobuf import json_format, struct_pb2
from pulumi_policy import policy

from karpstack.rehearsal.attachment.pack_process import read_once


def message(**properties: Any) -> struct_pb2.Struct:
    made = struct_pb2.Struct()
    made.update(properties)
    return made


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The messages that were read, in order."""
    found: list[Any] = []

    def counted(given: Any) -> Any:
        found.append(given)
        return original(given)

    original = json_format.MessageToDict
    monkeypatch.setattr(policy, "json_format", json_format)  # to be put back
    monkeypatch.setattr(json_format, "MessageToDict", counted)
    read_once()
    return found


def test_a_message_is_read_once_and_each_rule_has_a_copy_of_its_own(read: list[Any]) -> None:
    given = {"tags": {"a": "b"}, "list": [1, 2.5, None, True, {"c": ["d"]}], "text": "ü"}
    for _ in range(3):
        seen = vars(policy)["json_format"].MessageToDict(message(**given))
        assert seen == given
        seen["tags"]["a"] = seen["list"][4]["c"][0] = "changed by a rule"
    assert len(read) == 1
    assert vars(policy)["json_format"].MessageToDict(message(**{**given, "text": "u"}))["text"] == "u"
    assert len(read) == 2


def test_pulumi_policy_needs_no_more_than_that() -> None:
    assert set(re.findall(r"\bjson_format\.(\w+)", inspect.getsource(policy))) == {"MessageToDict"}
