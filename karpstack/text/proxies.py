"""Which address a proxy is asked for: never this machine's, and every other as the environment says.

Standard library only, as `files` is.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


def is_loopback(url: str) -> bool:
    """Whether a URL's host is this machine."""
    host = (urlsplit(url).hostname or "").lower().rstrip(".")
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host in LOOPBACK


def proxy_for(url: str) -> str | None:
    """Return the URL of the proxy that the environment names for an address; None if it is asked directly."""
    address = urlsplit(url)
    if is_loopback(url) or proxy_bypass(address.hostname or ""):
        return None
    proxies = getproxies()
    return proxies.get(address.scheme) or proxies.get("all")
