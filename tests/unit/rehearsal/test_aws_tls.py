"""pulumi-tls as far as programs of EKS need it: the thumbprint of a cluster's OIDC issuer."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from karpstack.rehearsal.attachment.resource import Properties, RefusedError
from karpstack.rehearsal.aws import tls

ISSUER = "https://oidc.eks.us-east-1.amazonaws.com/id/ABCDEF"
#: SHA-1 of Amazon Root CA 1, as Amazon Trust Services publishes it (amazontrust.com/repository).
AMAZON_ROOT_CA_1 = "8da7f965ec5efc37910f1c6e59fdc1cc6a6ede16"
#: Of a certificate, in the API documentation of pulumi-tls 5.
NAMES = {
    *("certPem", "isCa", "issuer", "maxPathLength", "notAfter", "notBefore", "publicKeyAlgorithm"),
    *("serialNumber", "sha1Fingerprint", "signatureAlgorithm", "subject", "version"),
}


def certificate(**arguments: Any) -> Properties:
    account: Any = SimpleNamespace(region="us-east-1")
    provider = tls.configuration(account).configure({}, threading.Event())
    return provider.invokes[tls.GET_CERTIFICATE](arguments)


def test_the_chain_of_an_issuer_has_amazons_root() -> None:
    answer = certificate(url=ISSUER, content=None)
    (root,) = answer["certificates"]
    assert root["sha1Fingerprint"] == AMAZON_ROOT_CA_1
    assert root["subject"] == root["issuer"] == "CN=Amazon Root CA 1,O=Amazon,C=US"
    assert root["notAfter"] == "2038-01-17T00:00:00Z"
    assert root.keys() == NAMES


@pytest.mark.parametrize(
    "arguments",
    [
        {"url": "https://example.com"},
        {"url": "https://oidc.eks.eu-west-1.amazonaws.com/id/ABCDEF"},
        {"url": "https://oidc.eks.us-east-1.amazonaws.com.example.com"},
        {"content": "-----BEGIN CERTIFICATE-----"},
    ],
)
def test_other_certificates_are_refused(arguments: dict[str, str]) -> None:
    with pytest.raises(RefusedError, match="does not use the internet"):
        certificate(**arguments)
