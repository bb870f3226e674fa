"""A simulated network, as the generators of both clouds return it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any, Final

#: Into how many equal parts a network is divided; the first are for nodes.
PARTS: Final = 16


@dataclass(frozen=True)
class Network:
    """A network.

    Attributes:
        content: Of its file.
        settings: Of the stack's `karpstack:network`, by key: what names the network there.
        instead: Keys of `karpstack:network` that are about a network of the stack's own.
        cluster: The same of `karpstack:cluster`.
        words: What there is, in a sentence.
    """

    content: Any
    settings: Mapping[str, Any]
    instead: tuple[str, ...]
    cluster: Mapping[str, Any]
    words: str


def parts(network: IPv4Network) -> list[IPv4Network]:
    """Its sixteen parts.

    Raises:
        ValueError: It is smaller than a /20, so that a part would be smaller than a /24, or larger than a /16.
    """
    if not 16 <= network.prefixlen <= 20:
        raise ValueError(
            f"--cidr {network} is no network of /16 to /20: its sixteenth parts are the subnets, which would be too "
            "small for nodes, or the whole too large for a VPC; give for example 10.20.0.0/16"
        )
    return list(network.subnets(new_prefix=network.prefixlen + 4))


def digits(*of: str) -> str:
    """Seventeen hexadecimal digits, as AWS's IDs have them; the same for the same."""
    return hashlib.sha256("/".join(of).encode()).hexdigest()[:17]
