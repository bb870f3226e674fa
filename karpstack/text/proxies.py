"""Which address a proxy is asked for: never this machine's, and every other as the environment says.

Standard library only, as `files` is.
"""

from __future__ import annotations

import os
import re
from base64 import b64encode
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from socket import inet_aton
from typing import Final
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_PORTS: Final = {"http": 80, "https": 443}
#: The spellings of IPv4 addresses that the system's resolver takes too: 127.1, 0x7f000001.
_SHORT: Final = re.compile(r"[0-9a-fx.]+", re.ASCII)
#: A proxy's address, as urllib3 can parse it: who asks, host, port.
_PROXY: Final = re.compile(
    r"https?://(?:[^\s/?#\[\]\\]*@)?(?:[\w.-]+|\[[0-9a-f:.]+(?:%25[\w.-]+)?\])(?::[0-9]{1,5})?(?:/[!-~]*)?",
    re.ASCII | re.IGNORECASE,
)


class ProxyError(ValueError):
    """The environment names a proxy that cannot be used; the text names the variable, and never has its value."""


def is_loopback(url: str) -> bool:
    """Whether a URL's host is this machine: by a loopback or unspecified address, or by a name (RFC 6761, 6.3)."""
    if "\\" in url:  # for other clients it ends the host
        return False
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
    """Return the URL of the proxy that the environment names for an address; None if it is asked directly.

    Raises:
        ProxyError: The environment's value is no address of a proxy that speaks HTTP.
    """
    address = urlsplit(url)
    proxies = getproxies()
    host = address.hostname or ""
    if is_loopback(url) or proxy_bypass(host) or _is_excepted(host, _port(url), proxies.get("no", "")):
        return None
    kind = address.scheme if proxies.get(address.scheme) else "all"
    if not (found := proxies.get(kind)):
        return None
    proxy = found if "://" in found else f"http://{found}"  # as curl does
    if not _is_proxy(proxy):
        # Which of the two counts if both are set: urllib prefers lower case.
        name = max((name for name in os.environ if name.lower() == f"{kind}_proxy"), default=f"{kind}_proxy")
        raise _error(name, address.hostname)
    return proxy


def proxies_for(url: str) -> dict[str, str]:
    """Return the same as boto3 and requests want it, by the scheme of the address; empty without a proxy.

    Raises:
        ProxyError: As of `proxy_for`.
    """
    proxy = proxy_for(url)
    return {urlsplit(url).scheme: proxy} if proxy else {}


def login_to(proxy: str) -> dict[str, str]:
    """Return the header that a proxy with a user in its URL wants, for urllib3, which leaves it out; else empty."""
    user, at, _ = urlsplit(proxy).netloc.rpartition("@")
    return {"Proxy-Authorization": f"Basic {b64encode(unquote(user).encode()).decode()}"} if at else {}


def proxy_of_cluster(server: str, named: str | None) -> str | None:
    """Return the URL of the proxy for a Kubernetes client, as kubectl chooses it: NO_PROXY excepts no `proxy-url`.

    Args:
        server: The API server's URL.
        named: The kubeconfig's `proxy-url`, if it has one.

    Raises:
        ProxyError: The proxy is no address of one that speaks HTTP.
    """
    if not named:
        return proxy_for(server)
    if not _is_proxy(named):
        raise _error("the kubeconfig's proxy-url", "the cluster")
    return named


def _port(url: str) -> int:
    address = urlsplit(url)
    try:
        return address.port or _PORTS.get(address.scheme, 0)
    except ValueError:  # out of range; the client that asks there has an error for it
        return 0


def _is_excepted(host: str, port: int, excepted: str) -> bool:
    """Whether NO_PROXY has what urllib does not know in it: a range of addresses, a port, or `*.` before a name."""
    address = _address(host)
    for one in map(str.strip, excepted.lower().split(",")):
        if one == "*":
            return True
        name, _, only = one.removeprefix("*").partition(":")
        if only == str(port) and (host == name or host.endswith(f".{name.lstrip('.')}")):
            return True
        if one.startswith("*.") and not only and host.endswith(name):
            return True
        with suppress(ValueError):  # a name
            if address and address in ip_network(one.strip("[]"), strict=False):
                return True
    return False


def _error(name: str, unreached: str | None) -> ProxyError:
    return ProxyError(
        f"{name} is not the address of an HTTP proxy (its value is not shown, because it may hold a password), so "
        f"{unreached} cannot be reached; write it like http://proxy.example.com:3128, in ASCII"
    )


def _is_proxy(url: str) -> bool:
    try:
        # botocore and requests cannot send a user or password in other characters.
        return bool(_PROXY.fullmatch(url)) and unquote(url).isascii() and urlsplit(url).port != 0
    except ValueError:
        return False
