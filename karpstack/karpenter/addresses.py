"""Address ranges: reading them, finding those that overlap, and how many nodes and pods one has room for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network
from itertools import combinations
from typing import Final

Network = IPv4Network | IPv6Network
#: Cilium keeps the first and the last address of a share, the router's and the health endpoint's.
_KEPT: Final = 4
_BITS: Final = 32
#: RFC 1918, and the addresses that providers share.
PRIVATE: Final = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")))
# IPv6's for one site or one link.
_PRIVATE_6: Final = tuple(map(IPv6Network, ("fc00::/7", "fe80::/10")))


@dataclass(frozen=True)
class Range:
    """A range, and what it is for: `what` in words for people, `urn` of the resource that has it."""

    network: Network
    what: str
    urn: str


def parse(cidr: str) -> Network:
    """The network that a CIDR names; ValueError where it names none. A host's bits are allowed in it."""
    return ip_network(cidr, strict=False)


def is_private(network: Network) -> bool:
    """Return whether a network lies in one that the internet does not route."""
    if isinstance(network, IPv4Network):
        return any(network.subnet_of(private) for private in PRIVATE)
    return any(network.subnet_of(private) for private in _PRIVATE_6)


def contains(outer: Network, inner: Network) -> bool:
    """Return whether one network has all addresses of another."""
    if isinstance(outer, IPv4Network):
        return isinstance(inner, IPv4Network) and inner.subnet_of(outer)
    return isinstance(inner, IPv6Network) and inner.subnet_of(outer)


def are_nearly_the_world(networks: Iterable[Network]) -> bool:
    """Return whether networks together have more than an eighth of all public addresses that are in use.

    Of IPv6, the registries have about eight blocks of /12 (IANA, IPv6 Global Unicast Address Assignments).
    """
    public = [network for network in networks if not is_private(network)]
    fourth = collapse_addresses(network for network in public if isinstance(network, IPv4Network))
    sixth = collapse_addresses(network for network in public if isinstance(network, IPv6Network))
    return sum(network.num_addresses for network in fourth) > 2**29 or (
        sum(network.num_addresses for network in sixth) > 2**116
    )


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
