"""From the engine's strings to values, for none of which anything that comes after is too large or too deep."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from karpstack.karpenter.findings import Finding

from ..problems import finding

#: Characters of all values together. The example environments have about 2,000.
LONGEST: Final = 1_000_000
#: Objects and lists in each other. Karpenter's own specs have eight.
DEEPEST: Final = 32


def structured(raw: Mapping[str, str]) -> tuple[dict[str, Any], list[Finding]]:
    """The values behind the engine's strings, by the same keys, and what is wrong with those that are missing.

    Args:
        raw: Objects and lists as JSON, everything else as it is.
    """
    length = sum(map(len, raw.values()))
    if length > LONGEST:
        largest = max(raw, key=lambda key: len(raw[key]))
        return {}, [finding("configuration-too-long", largest, raw[largest], length=length, longest=LONGEST)]
    values: dict[str, Any] = {}
    problems = []
    for key, text in raw.items():
        try:
            _encodable(key)
            values[key] = _value(text)
        except (ValueError, RecursionError) as error:
            problems.append(
                finding(
                    "configuration-unreadable",
                    key,
                    text,
                    why="is nested too deeply" if isinstance(error, RecursionError) else str(error),
                    deepest=DEEPEST,
                )
            )
    return values, problems


def _value(text: str) -> Any:
    _encodable(text)
    if text[:1] not in ("{", "["):
        return text
    try:
        value = json.loads(text, parse_constant=_no_number)
    except json.JSONDecodeError:
        return text  # a text that begins like JSON
    if _deeper(value, DEEPEST):
        raise RecursionError
    _encodable(json.dumps(value, ensure_ascii=False))
    return value


def _encodable(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("holds half of a character, which can be written nowhere") from error


def _no_number(constant: str) -> NoReturn:
    raise ValueError(f"holds {constant}, which is no number that JSON or Kubernetes has")


def _deeper(value: Any, levels: int) -> bool:
    entries = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(levels == 0 or _deeper(entry, levels - 1) for entry in entries)
