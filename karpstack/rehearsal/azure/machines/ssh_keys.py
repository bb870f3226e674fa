"""Which SSH keys Azure takes for a machine."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from karpstack.rehearsal.azure.arm.errors import refused

_KEY_TYPES = ("ssh-rsa", "ssh-ed25519")
_RSA_LEAST = 2048


def check_keys(keys: Iterable[Mapping[str, Any]]) -> None:
    """Refuse the `publicKeys` of a profile if Azure refuses one: no RSA of 2048 bits or Ed25519, or a broken one."""
    for key in keys:
        _check(str(key.get("keyData", "")))


def _check(text: str) -> None:
    kind, _, rest = text.strip().partition(" ")
    try:
        blob = base64.b64decode(rest.split(" ")[0], validate=True)
    except ValueError:
        blob = b""
    stated = blob[4 : 4 + int.from_bytes(blob[:4], "big")] if len(blob) > 4 else b""
    if (
        kind not in _KEY_TYPES
        or stated.decode("ascii", "replace") != kind
        or (kind == "ssh-rsa" and len(blob) * 8 < _RSA_LEAST)
    ):
        raise refused("InvalidParameter/key")
