"""What AKS refuses of a cluster's proxy and of certificates to trust, and what it adds to `noProxy`.

Its row refuses what its URLs alone show. Codes are AKS's (Azure/AKS#5561), and so is the text on certificates that
cannot be read (learn.microsoft.com/azure/aks/custom-certificate-authority). The other texts are ours. What is refused,
and that a proxy knows no passwords: http-proxy there. That certificates of a proxy are 20 at the most: AKS's release
notes of 2026-04-02.

What it adds is what `az aks show` was seen to answer of clusters that named less: konnectivity, the API server's name
(of a private cluster its private name too, which is assumed), the nodes' network, loopback, 169.254.169.254,
168.63.129.16 and the ranges of pods and Services. In `noProxy` itself; `effectiveNoProxy`, which says the same, is of
preview versions.

Not documented, and so refused: an update without what the cluster has. `enabled`, by which a proxy is switched off,
came with a later version; certificates go with an empty list.

Simplified: nodes are not made again when one of the two changes, and no variables are put into pods.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_network
from typing import Any

from cryptography.x509 import load_pem_x509_certificates

from karpstack.rehearsal.azure.arm.errors import refused
from karpstack.rehearsal.azure.arm.kind import at
from karpstack.rehearsal.azure.context import Context

_KNOWN = {"httpProxy", "httpsProxy", "noProxy", "trustedCa"}
_MOST_OF_A_PROXY = 20
_MOST = 10
_LABEL = r"[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_CERTIFICATES = "securityProfile.customCATrustCertificates"

Properties = Mapping[str, Any]


def check(properties: Properties, before: Properties | None) -> None:
    """Refuse both.

    Args:
        properties: Those of the cluster, as they are asked for.
        before: As they are; None for a new one.
    """
    _check_proxy(properties, (before or {}).get("httpProxyConfig"))
    _check_certificates(properties, at(before or {}, _CERTIFICATES))


def fill(context: Context, properties: dict[str, Any]) -> None:
    """Add to `noProxy` what AKS adds; the cluster has its names by now."""
    if config := properties.get("httpProxyConfig"):
        given = config.get("noProxy") or []
        properties["httpProxyConfig"] = {
            **config,
            "noProxy": list(dict.fromkeys([*given, *_added(context, properties)])),
        }


def request_from_response(answer: Properties) -> dict[str, Any]:
    """The request for what an answer of AKS's shows, which may be one of another API version; empty for none."""
    if answer.get("enabled") is False:
        return {}
    config = {name: value for name, value in answer.items() if name in _KNOWN and value}
    for name in config.keys() & {"httpProxy", "httpsProxy"}:
        config[name] = f"{config[name].rstrip('/')}/"
    return config


def _added(context: Context, properties: Properties) -> Iterator[str]:
    yield "konnectivity"
    yield from (str(properties[name]) for name in ("fqdn", "privateFQDN") if properties.get(name))
    for pool in properties["agentPoolProfiles"]:
        subnet = context.get(str(pool["vnetSubnetID"])) if pool.get("vnetSubnetID") else None
        yield str(subnet.properties["addressPrefix"]) if subnet else "10.224.0.0/12"
    yield from ("localhost", "127.0.0.1", "169.254.169.254")
    profile = properties["networkProfile"]
    yield from (str(profile[name]) for name in ("podCidr", "serviceCidr") if profile.get(name))
    yield "168.63.129.16"


def _check_proxy(properties: Properties, before: Properties | None) -> None:
    config: Properties | None = properties.get("httpProxyConfig")
    if not config:
        if before:
            raise refused("HTTPProxyConfigInputError/none")
        return
    if (config.get("noProxy") or []) != ((before or {}).get("noProxy") or []):
        for entry in config.get("noProxy") or []:
            _check_entry(str(entry))
    if config.get("trustedCa") and _certificates(str(config["trustedCa"])) not in range(1, _MOST_OF_A_PROXY + 1):
        raise refused("HTTPProxyConfigCADecodeError")


def _check_entry(entry: str) -> None:
    try:
        ip_network(entry, strict=False)
    except ValueError:
        if not _NAME.fullmatch(entry):
            raise refused("HTTPProxyConfigInputError/entry", entry=entry) from None


def _check_certificates(properties: Properties, before: list[str] | None) -> None:
    given: list[str] | None = at(properties, _CERTIFICATES)
    if given is None and before:
        raise refused("InvalidParameter/no-certificates")
    if len(set(given or ())) > _MOST:
        raise refused("InvalidParameter/certificates")
    if any(_certificates(one) != 1 for one in given or ()):
        raise refused("InvalidParameter/certificate")


def _certificates(encoded: str) -> int:
    """How many certificates are in it; 0 where it cannot be read."""
    try:
        return len(load_pem_x509_certificates(base64.b64decode(encoded, validate=True)))
    except ValueError:
        return 0
