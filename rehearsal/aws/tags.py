"""Tags of AWS resources: as Pulumi has them, as the APIs take them, and what AWS refuses of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rehearsal.attachment.resource import Failure

_TAGS_LIMIT = 50
_TAG_KEY_LIMIT = 128
_TAG_VALUE_LIMIT = 256


def pairs(tags: Mapping[str, str], key: str = "Key", value: str = "Value") -> list[dict[str, str]]:
    """Tags as most APIs take them."""
    return [{key: name, value: text} for name, text in tags.items()]


def unpaired(tags: Iterable[Mapping[str, str]], key: str = "Key", value: str = "Value") -> dict[str, str]:
    """Tags as Pulumi takes them."""
    return {tag[key]: tag[value] for tag in tags}


def failures(tags: Any) -> Iterator[Failure]:
    """What AWS refuses of tags."""
    if not isinstance(tags, Mapping):
        return
    if len(tags) > _TAGS_LIMIT:
        yield Failure("tags", f"{len(tags)} tags; AWS takes {_TAGS_LIMIT}: remove some")
    for key, value in tags.items():
        if key.lower().startswith("aws:"):
            yield Failure("tags", f"the key {key!r} begins with aws:, which AWS keeps for itself; rename it")
        if not 1 <= len(key) <= _TAG_KEY_LIMIT:
            yield Failure("tags", f"the key {key!r} has {len(key)} characters, AWS takes 1 to {_TAG_KEY_LIMIT}")
        if isinstance(value, str) and len(value) > _TAG_VALUE_LIMIT:
            yield Failure("tags", f"the value of {key!r} has {len(value)} characters, AWS takes {_TAG_VALUE_LIMIT}")
