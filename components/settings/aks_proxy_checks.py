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

from ..problems import Problem, key_of, shown
from .proxy import proxy_checks

if TYPE_CHECKING:
    from .aks import NetworkSettings
    from .proxy import ProxySettings

#: Of `securityProfile.customCATrustCertificates`; a proxy's `trustedCa` may hold twice as many.
MOST_CERTIFICATES: Final = 10
_LABEL: Final = r"[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?"
#: The dot at the beginning is ours: AKS gets the name without it.
_NAME: Final = re.compile(rf"\.?{_LABEL}(\.{_LABEL})*")


def ways_through_a_proxy(valid: Mapping[str, Any], today: date) -> Iterator[Problem]:
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


def _not_for_nodes(proxy: ProxySettings | None, certificates: Sequence[str]) -> Iterator[Problem]:
    """What only AKS's own Karpenter hands on to nodes."""
    if proxy is not None:
        yield Problem(
            key_of("proxy"),
            "(set)",
            "would reach the system nodes and all pods, and not the machines of self-hosted Karpenter, whose bootstrap "
            "has proxies switched off: they would fetch what they need directly or not at all, and then never join",
            "set karpstack:mode to nap, in which AKS tells each node; or remove it, and let nodes leave as "
            "karpstack:network.outboundType says",
        )
    if certificates:
        yield Problem(
            key_of("trustedCertificates"),
            shown(f"{len(certificates)} of them"),
            "would be trusted by the system nodes, and not by the machines of self-hosted Karpenter, whose bootstrap "
            "has custom certificate authorities switched off: what works on the ones fails on the others",
            "set karpstack:mode to nap, in which AKS tells each node; or remove them, and install them by a DaemonSet",
        )


def _too_many(certificates: Sequence[str]) -> Iterator[Problem]:
    """More certificates than AKS takes."""
    if len(certificates) > MOST_CERTIFICATES:
        yield Problem(
            key_of("trustedCertificates"),
            shown(f"{len(certificates)} of them"),
            f"are more than {MOST_CERTIFICATES}, which is all that AKS takes: it refuses the cluster",
            "name the roots alone; a proxy sends the certificates between root and its own",
        )


def _as_aks_takes_it(proxy: ProxySettings) -> Iterator[Problem]:
    """What AKS takes otherwise than it is written, or not at all."""
    if proxy.https is None:
        yield Problem(
            key_of("proxy", "https"),
            "(not set)",
            "would be the same as karpstack:proxy.http: AKS sends https through it as well where no other is named",
            f"set it, for example to {proxy.http}",
        )
    if proxy.http is None:
        yield Problem(
            key_of("proxy", "http"),
            "(not set)",
            "is what AKS begins with: it documents no cluster with a proxy for https alone",
            f"set it, for example to {proxy.https.replace('https://', 'http://') if proxy.https else ''}",
        )
    elif urlsplit(proxy.http).scheme != "http":
        yield Problem(
            key_of("proxy", "http"),
            shown(proxy.http),
            "is a proxy that itself speaks TLS, which AKS takes for https alone: it refuses the cluster "
            "(HTTPProxyWrongUrlError)",
            "name a port of the proxy's without TLS, like http://proxy.corp.example:3128",
        )
    for index, entry in enumerate(proxy.no_proxy):
        if not _is_range(entry) and not (_NAME.fullmatch(entry) and len(entry) <= 253):
            yield Problem(
                key_of("proxy", "noProxy", index),
                shown(entry),
                "is neither an address, nor a range, nor a name after RFC 1123, which AKS asks of each: it refuses the "
                "cluster",
                "write a name alone, without a port and of letters, digits, dots and hyphens, or an address or a range",
            )


def _among_pods(proxy: ProxySettings, network: NetworkSettings) -> Iterator[Problem]:
    """A proxy whose address the cluster gives to pods or Services."""
    for name, url in (("http", proxy.http), ("https", proxy.https)):
        host = urlsplit(url or "").hostname or ""
        for key, cidr in (("podCidr", network.pod_cidr), ("serviceCidr", network.service_cidr)):
            if _is_range(host) and "/" not in host and ip_address(host) in cidr:
                yield Problem(
                    key_of("proxy", name),
                    shown(url),
                    f"lies in network.{key} {cidr}, of whose addresses the cluster makes its own use: nodes would "
                    "never reach the proxy, and fetch nothing",
                    f"choose another {key}, or name the proxy by an address outside of it",
                )


def _is_range(entry: str) -> bool:
    """Whether it is an address or a range."""
    try:
        ip_network(entry, strict=False)
    except ValueError:
        return False
    return True
