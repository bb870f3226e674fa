"""The stand-in for pulumi-tls: the certificate of a cluster's OIDC issuer, of which programs take the thumbprint.

Nothing is asked on the internet. The issuers of EKS have certificates of Amazon's authorities. This answers the root of
their chain alone, "Amazon Root CA 1", from the bundle that botocore ships. IAM does not compare thumbprints of such
issuers (IAM user guide, "Obtain the thumbprint for an OpenID Connect identity provider").
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from karpstack.rehearsal.attachment.package import Configuration, Provider
from karpstack.rehearsal.attachment.resource import Properties, RefusedError

if TYPE_CHECKING:
    from karpstack.rehearsal.aws.account import Account

PACKAGE: Final = "tls"
VERSION: Final = "5.3.0"
GET_CERTIFICATE: Final = "tls:index/getCertificate:getCertificate"
_LABEL: Final = '# Label: "Amazon Root CA 1"'


def configuration(account: Account) -> Configuration:
    """What `ProviderServer` needs to serve the package."""
    invokes = {GET_CERTIFICATE: lambda arguments: _certificate(account, arguments)}
    return Configuration(frozenset(), lambda settings, cancelled: Provider(invokes=invokes))


def _certificate(account: Account, arguments: Mapping[str, Any]) -> Properties:
    given = {name: value for name, value in arguments.items() if value is not None}
    url = str(given.get("url", ""))
    if given.keys() - {"url", "verifyChain"} or not url.startswith(f"https://oidc.eks.{account.region}.amazonaws.com/"):
        raise RefusedError(
            f"getCertificate of {url or 'no url'}: the rehearsal does not use the internet and knows only the "
            f"certificates of EKS issuers in {account.region}; skip this call in the rehearsed stack"
        )
    return {**given, "id": root()["sha1Fingerprint"], "certificates": [root()]}


@cache
def root() -> Properties:
    """The root of the chain, as the provider describes a certificate."""
    import botocore
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization

    bundle = Path(botocore.__file__).with_name("cacert.pem").read_text(encoding="utf-8")
    found = x509.load_pem_x509_certificate(bundle.partition(_LABEL)[2].partition("# Issuer:")[0].encode())
    form = "%Y-%m-%dT%H:%M:%SZ"
    return {
        "certPem": found.public_bytes(serialization.Encoding.PEM).decode(),
        "isCa": True,
        "issuer": found.issuer.rfc4514_string(),
        "maxPathLength": -1,
        "notAfter": found.not_valid_after_utc.strftime(form),
        "notBefore": found.not_valid_before_utc.strftime(form),
        "publicKeyAlgorithm": "RSA",
        "serialNumber": str(found.serial_number),
        "sha1Fingerprint": found.fingerprint(hashes.SHA1()).hex(),  # noqa: S303 - the name says it
        "signatureAlgorithm": "SHA256-RSA",
        "subject": found.subject.rfc4514_string(),
        "version": 3,
    }
