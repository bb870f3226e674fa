"""Which IPv4 ranges are nobody's on the internet: private, reserved, or for documentation.

Python's own `is_global` takes some of them for public (192.0.0.0/24, 192.88.99.0/24, 224.0.0.0/4).
"""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Final

#: Free for networks of one's own (RFC 1918), and carriers' shared range (RFC 6598), which clouds take as well.
OWN: Final = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")))
#: For documentation (RFC 5737) and for benchmarks (RFC 2544).
_EXAMPLES: Final = tuple(map(IPv4Network, ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "198.18.0.0/15")))
#: No host has an address of these in any network: this network, loopback, link-local, multicast, reserved.
UNUSABLE: Final = tuple(map(IPv4Network, ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4")))
_PROTOCOLS: Final = tuple(map(IPv4Network, ("192.0.0.0/24", "192.88.99.0/24")))
#: All of them. EKS refuses them in publicAccessCidrs, as far as has been seen; it publishes no list.
NOT_PUBLIC: Final = (*OWN, *_EXAMPLES, *UNUSABLE, *_PROTOCOLS)


def within(network: IPv4Network, ranges: tuple[IPv4Network, ...]) -> IPv4Network | None:
    """The first of some ranges that a network lies in; None where it reaches beyond each."""
    return next((one for one in ranges if network.subnet_of(one)), None)
