"""What AKS is told of a proxy and of certificates: `httpProxyConfig`, and `customCATrustCertificates`.

AKS puts both into the bootstrap of its pools' nodes and of those that node auto provisioning makes, and by a webhook
the variables of `proxy.variables` into the containers of all pods, but those annotated with
`kubernetes.azure.com/no-http-proxy-vars: "true"` (learn.microsoft.com/azure/aks/http-proxy). Nodes trust both kinds of
certificates; those of the proxy AKS's add-ons are told of too.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from . import proxy as said


def http_proxy_config(
    *, http: str, https: str, no_proxy: Sequence[str], ranges: Sequence[str], certificates: Sequence[str]
) -> Mapping[str, Any]:
    """The arguments of ManagedClusterHTTPProxyConfig.

    Args:
        http: Proxy for http://, without a path.
        https: The same for https://.
        no_proxy: The user's entries.
        ranges: Those of the nodes' network. Azure's own addresses, the ranges of pods and Services and the API server's
            name AKS adds by itself, and Services' names not (Azure/AKS#3174).
        certificates: In PEM; what the proxy shows is signed by one of them.
    """
    # In PEM one after another; AKS takes up to 20.
    bundle = "".join(certificates)
    return {
        # The API version that is pinned refuses a URL without a path: HTTPProxyWrongUrlError, Azure/AKS#5561.
        "http_proxy": f"{http}/",
        "https_proxy": f"{https}/",
        # Names after RFC 1123. Without the dot at the beginning Go and curl take a name for itself and all below it.
        "no_proxy": list(dict.fromkeys(entry.removeprefix(".") for entry in said.direct(no_proxy, *ranges))),
        "trusted_ca": _encoded(bundle) if bundle else None,
    }


def trusted(certificates: Sequence[str]) -> list[str]:
    """The value of `customCATrustCertificates`.

    Args:
        certificates: In PEM.
    """
    return [_encoded(one) for one in certificates]


def _encoded(pem: str) -> str:
    return base64.b64encode(pem.encode()).decode()
