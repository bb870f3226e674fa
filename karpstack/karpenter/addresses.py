"""Address ranges: reading them, finding those that overlap, and how many nodes and pods one has room for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from itertools import combinations
from typing import Final

Network = IPv4Network | IPv6Network
#: Cilium keeps the first and the last address of a share, the router's and the health endpoint's.
_KEPT: Final = 4
_BITS: Final = 32


@dataclass(frozen=True)
class Range:
    """A range, and what it is for: `what` in words for people, `urn` of the resource that has it."""

    network: Network
    what: str
    urn: str


def parse(cidr: str) -> Network:
    """The network that a CIDR names; ValueError where it names none. A host's bits are allowed in it."""
    return ip_network(cidr, strict=False)


def overlaps(ranges: Sequence[Range]) -> Iterator[tuple[Range, Range]]:
    """Each two ranges that have addresses in common."""
    for first, second in combinations(ranges, 2):
        if first.network.version == second.network.version and first.network.overlaps(second.network):
            yield first, second


def nodes(pod_prefix: int, share_prefix: int) -> int:
    """The nodes that a pod CIDR has room for, of which each takes a share. Both are prefix lengths of IPv4."""
    return int(2 ** (share_prefix - pod_prefix))


def pods(share_prefix: int) -> int:
    """The pods that a node's share of an overlay has addresses for."""
    return int(2 ** (_BITS - share_prefix)) - _KEPT
