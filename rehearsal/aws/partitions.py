"""AWS's partitions and regions, as the SDK knows them. Reading them takes a fifth of a second, so that is done once."""

from __future__ import annotations

import functools
from typing import Any


@functools.cache
def session() -> Any:
    """A boto3 session for questions that need no credentials."""
    import boto3

    return boto3.session.Session()
