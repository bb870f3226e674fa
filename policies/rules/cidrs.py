"""Address ranges: reading them, and finding those that overlap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from itertools import combinations

Network = IPv4Network | IPv6Network


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
