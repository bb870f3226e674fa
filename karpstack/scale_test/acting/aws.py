"""The clients of AWS with which stories act on a real account."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Gives the client of a service in a region. In `functools.cache`, all who ask have one login.
ClientOf = Callable[[str, str], Any]


def client_of(service: str, region: str) -> Any:
    """Return the client of a service, with the login of the environment."""
    # Imported here because it takes longer to load than all the rest, and a rehearsal does without.
    from karpstack.text.aws_login import client

    return client(service, region)
