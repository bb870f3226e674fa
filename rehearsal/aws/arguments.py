"""What a data source is given: arguments that the rehearsal knows, and no others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rehearsal.attachment.resource import Properties, RefusedError


def given(arguments: Mapping[str, Any]) -> Properties:
    """Those that are set: Pulumi's SDK sends the others as null."""
    return {key: value for key, value in arguments.items() if value is not None}


def takes(name: str, arguments: Mapping[str, Any], known: set[str]) -> None:
    """Refuse an argument that would change nothing.

    Raises:
        RefusedError: The rehearsal does not know it.
    """
    unknown = sorted(given(arguments).keys() - known)
    if unknown:
        raise RefusedError(f"{name}: the rehearsal does not know the argument {', '.join(unknown)}; leave it out")


def filters(arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
    """EC2's filters, as boto3 wants them."""
    return [{"Name": item["name"], "Values": list(item["values"])} for item in arguments.get("filters") or []]
