"""What AKS, and Karpenter on it, make of karpstack:proxy and karpstack:trustedCertificates; `proxy` has the rest.

Sources: Microsoft's "HTTP proxy support in AKS" (learn.microsoft.com/azure/aks/http-proxy) and "Custom certificate
authority in AKS" (custom-certificate-authority); that node auto provisioning hands both on, the release notes of
Azure/AKS of 2026-02-08. A Karpenter of one's own does not: its machines' bootstrap has both off, and neither the chart
nor AKSNodeClass has a key that would turn them on (Azure/karpenter-provider-azure v1.14.2,
pkg/providers/imagefamily/bootstrap/staticvalues.go).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from karpstack.karpenter.findings import Finding

from ..problems import Shown, finding
from .proxy import proxy_checks

if TYPE_CHECKING:
    from .aks import NetworkSettings
    from .proxy import ProxySettings

#: Of `securityProfile.customCATrustCertificates`; a proxy's `trustedCa` may hold twice as many.
MOST_CERTIFICATES: Final = 10
_LABEL: Final = r"[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?"
#: The dot at the beginning is ours: AKS gets the name without it.
_NAME: Final = re.compile(rf"\.?{_LABEL}(\.{_LABEL})*")


def check_proxy(valid: Mapping[str, Any], today: date) -> Iterator[Finding]:
    """Problems of both settings.

    Args:
        valid: Valid sections by the names of `AksSettings`' fields.
        today: The day for which certificates must be good.
    """
    mode: str | None = valid.get("mode")
    network: NetworkSettings | None = valid.get("network")
    proxy: ProxySettings | None = valid.get("proxy")
    certificates: Sequence[str] = valid.get("trusted_certificates") or ()
    yield from proxy_checks(valid, today)
    yield from _too_many(certificates)
    if mode == "self-hosted":
        yield from _not_for_nodes(proxy, certificates)
    elif proxy is not None:
        yield from _as_aks_takes_it(proxy)
        if network is not None:
            yield from _among_pods(proxy, network)


def _not_for_nodes(proxy: ProxySettings | None, certificates: Sequence[str]) -> Iterator[Finding]:
    """What only AKS's own Karpenter hands on to nodes."""
    if proxy is not None:
        yield finding("proxy-when-self-hosted", "proxy", Shown("(set)"))
    if certificates:
        yield finding("certificates-when-self-hosted", "trustedCertificates", f"{len(certificates)} of them")


def _too_many(certificates: Sequence[str]) -> Iterator[Finding]:
    """More certificates than AKS takes."""
    if len(certificates) > MOST_CERTIFICATES:
        yield finding(
            "too-many-certificates",
            "trustedCertificates",
            f"{len(certificates)} of them",
            most_certificates=MOST_CERTIFICATES,
        )


def _as_aks_takes_it(proxy: ProxySettings) -> Iterator[Finding]:
    """What AKS takes otherwise than it is written, or not at all."""
    if proxy.https is None:
        yield finding("proxy-without-https", ("proxy", "https"), None, http=proxy.http)
    if proxy.http is None:
        yield finding(
            "proxy-without-http",
            ("proxy", "http"),
            None,
            proxy=proxy.https.replace("https://", "http://") if proxy.https else "",
        )
    elif urlsplit(proxy.http).scheme != "http":
        yield finding("proxy-speaks-tls", ("proxy", "http"), proxy.http)
    for index, entry in enumerate(proxy.no_proxy):
        if not _is_range(entry) and not (_NAME.fullmatch(entry) and len(entry) <= 253):
            yield finding("no-proxy-entry-refused-by-aks", ("proxy", "noProxy", index), entry)


def _among_pods(proxy: ProxySettings, network: NetworkSettings) -> Iterator[Finding]:
    """A proxy whose address the cluster gives to pods or Services."""
    for name, url in (("http", proxy.http), ("https", proxy.https)):
        host = urlsplit(url or "").hostname or ""
        for key, cidr in (("podCidr", network.pod_cidr), ("serviceCidr", network.service_cidr)):
            if _is_range(host) and "/" not in host and ip_address(host) in cidr:
                yield finding("proxy-in-cluster-range", ("proxy", name), url, key=key, cidr=cidr)


def _is_range(entry: str) -> bool:
    """Whether it is an address or a range."""
    try:
        ip_network(entry, strict=False)
    except ValueError:
        return False
    return True
