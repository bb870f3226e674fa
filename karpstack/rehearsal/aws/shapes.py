"""Whether a request has the shape that the API's own model says.

moto takes what it gets: it fails in its models at a list where a name belongs, and writes what it was asked into XML as
it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from botocore.model import OperationModel
from botocore.validate import ParamValidator

_LONGEST_REPORT = 300
_NO_OBJECT = "The request's body is no JSON object"
_MISSING = "Missing required parameter in input: {name!r}"

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NO_TEXT = "The request has a character that XML has not: {character!r}"
_BAD_VERSION = "The version {version!r} is no date"


def query_problem(fields: Iterable[tuple[str, str]]) -> str:
    """What is wrong with a form of the query protocols, as a sentence; empty when it is well."""
    for name, value in fields:
        if found := _NOT_XML.search(f"{name}{value}"):
            return _NO_TEXT.format(character=found[0])
        if name == "Version" and not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
            return _BAD_VERSION.format(version=value[:100])
    return ""


def problem(operation: OperationModel, body: bytes | str) -> str:
    """What is wrong with a JSON request, as a sentence; empty when it is well.

    Members that come in the path, the query or a header are not looked at.

    Args:
        operation: The operation, as botocore describes it.
        body: The request's body.
    """
    try:
        given = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        return _NO_OBJECT
    if not isinstance(given, dict):
        return _NO_OBJECT
    shape = operation.input_shape
    members: dict[str, Any] = shape.members if shape else {}
    for name, member in members.items():
        if "location" in member.serialization:
            continue
        sent = member.serialization.get("name", name)
        if given.get(sent) is None:
            if name in shape.required_members:
                return _MISSING.format(name=sent)
            continue
        report = ParamValidator().validate(given[sent], member)
        if report.has_errors():
            return f"{sent}: {report.generate_report()}"[:_LONGEST_REPORT]
    return ""
