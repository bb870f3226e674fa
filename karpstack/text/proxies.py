"""Which address a proxy is asked for: never this machine's, and every other as the environment says.

Standard library only, as `files` is.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from socket import inet_aton
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
#: The spellings of IPv4 addresses that the system's resolver takes too: 127.1, 0x7f000001.
_SHORT: Final = re.compile(r"[0-9a-fx.]+", re.ASCII)


def is_loopback(url: str) -> bool:
    """Whether a URL's host is this machine: by a loopback or unspecified address, or by a name (RFC 6761, 6.3)."""
    host = (urlsplit(url).hostname or "").lower().rstrip(".")
    address = _address(host)
    if address is None:
        return host in LOOPBACK or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified


def _address(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a host is written as, IPv4 within IPv6 as IPv4; None for a name."""
    try:
        found = ip_address(inet_aton(host)) if _SHORT.fullmatch(host) else ip_address(host)
    except (OSError, ValueError):
        return None
    return getattr(found, "ipv4_mapped", None) or found


def proxy_for(url: str) -> str | None:
    """Return the URL of the proxy that the environment names for an address; None if it is asked directly."""
    address = urlsplit(url)
    if is_loopback(url) or proxy_bypass(address.hostname or ""):
        return None
    proxies = getproxies()
    return proxies.get(address.scheme) or proxies.get("all")
