"""The key of the hashes that stand for names."""

from __future__ import annotations

import hashlib
import secrets
from typing import Final

#: The environment variable that may have a text from which the key is made.
VARIABLE: Final = "KARPSTACK_SNAPSHOT_KEY"


def hash_key(secret: str | None) -> bytes:
    """A key made of a text, the same one each time; of none, another one each time, which nobody knows afterwards."""
    return hashlib.sha256(secret.encode()).digest() if secret else secrets.token_bytes(32)
