"""urllib3's pools, with the proxy that the environment names and the login that this proxy wants."""

from __future__ import annotations

import urllib3

from .proxies import login_to, proxy_for


def pool_for(url: str, retries: urllib3.Retry, timeout: urllib3.Timeout) -> urllib3.PoolManager:
    """Return a pool for the server of an address.

    Raises:
        ProxyError: The environment's value is no address of a proxy that speaks HTTP.
    """
    if proxy := proxy_for(url):
        return urllib3.ProxyManager(proxy, proxy_headers=login_to(proxy), retries=retries, timeout=timeout)
    return urllib3.PoolManager(retries=retries, timeout=timeout)
