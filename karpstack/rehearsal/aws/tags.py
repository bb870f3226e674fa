"""Tags of AWS resources: as Pulumi has them, as the APIs take them, and what AWS refuses of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from karpstack.rehearsal.attachment.resource import Failure
from karpstack.rehearsal.aws.calls import AwsRefusalError, members

_TAGS_LIMIT = 50
_TAG_KEY_LIMIT = 128
_TAG_VALUE_LIMIT = 256
_BAD_VALUE = (
    "1 validation error detected: Value '{value}' at 'tags.{index}.member.value' failed to satisfy constraint: Member "
    "must satisfy regular expression pattern: [\\p{{L}}\\p{{Z}}\\p{{N}}_.:/=+\\-@]*"
)


def pairs(tags: Mapping[str, str], key: str = "Key", value: str = "Value") -> list[dict[str, str]]:
    """Tags as most APIs take them."""
    return [{key: name, value: text} for name, text in tags.items()]


def unpaired(tags: Mapping[str, str] | Iterable[Mapping[str, str]] | None) -> dict[str, str]:
    """Tags as Pulumi takes them, whichever form an API gives them."""
    if isinstance(tags, Mapping):
        return dict(tags)
    return {tag.get("Key") or tag["TagKey"]: tag.get("Value", tag.get("TagValue", "")) for tag in tags or ()}


def parameter(client: Any, operation: str, kind: str, tags: Mapping[str, str]) -> dict[str, Any] | None:
    """The parameter by which an operation takes tags; None when it takes none.

    Args:
        client: The boto3 client of the service.
        operation: Of the client.
        kind: What EC2 calls the type of the resource.
        tags: Without any, no parameter is needed.
    """
    there = members(client, operation)
    name = next((name for name in ("TagSpecifications", "Tags", "tags") if name in there), None)
    if name is None:
        return None
    if not tags:
        return {}
    if name == "TagSpecifications":
        return {name: [{"ResourceType": kind, "Tags": pairs(tags)}]}
    shape = there[name]
    return {name: dict(tags) if shape.type_name == "map" else pairs(tags, *shape.member.members)}


def check_iam(tags: Mapping[str, str]) -> None:
    """Refuse tags that IAM refuses; moto judges their keys and not their values."""
    for index, value in enumerate(tags.values(), 1):
        if not re.fullmatch(r"[\w\s.:/=+\-@]*", value):
            raise AwsRefusalError("ValidationError", _BAD_VALUE.format(value=value, index=index))


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
