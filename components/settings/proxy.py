"""karpstack:proxy and karpstack:trustedCertificates: the way out of a network where one leads through a proxy.

The same on both clouds, for nodes and for those pods of the stack's that talk to the cloud. Whoever deploys has an
environment of his own, in which Pulumi and Helm find their proxy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from karpstack.karpenter.findings import Finding

from ..problems import finding, key_of, refuse, shown
from .sections import Section

if TYPE_CHECKING:
    from cryptography import x509

#: How a certificate in PEM begins.
_BEGINNING: Final = "-----BEGIN CERTIFICATE-----"
_RANGE: Final = re.compile(r"[0-9a-fA-F.:]+/[0-9]{1,3}")
#: Characters that separate entries, or that no name has.
_NO_ENTRY: Final = re.compile(r"[\s,;'\"|]")


def _proxy(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        refuse("proxy-invalid")
    if "@" in parts.netloc:
        refuse("proxy-with-credentials")
    try:
        port = parts.port
    except ValueError:
        port = None
    if port is None:
        refuse("proxy-without-port")
    if url != f"{parts.scheme}://{parts.netloc}":
        refuse("proxy-with-path", scheme=parts.scheme, netloc=parts.netloc)
    return url


def _no_proxy(entry: str) -> str:
    if "/" in entry and not _RANGE.fullmatch(entry):
        refuse("no-proxy-url")
    if "*" in entry:
        refuse("no-proxy-wildcard", instead=entry[1:] if entry.startswith("*.") else ".corp.example")
    if not entry or _NO_ENTRY.search(entry):
        refuse("no-proxy-joined")
    return entry


ProxyUrl = Annotated[str, AfterValidator(_proxy)]
NoProxyEntry = Annotated[str, AfterValidator(_no_proxy)]


class ProxySettings(Section):
    """karpstack:proxy."""

    REFUSED: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("username", "user", "password", "credentials"),
        "proxy-credentials",
    )

    http: ProxyUrl | None = Field(None, description="proxy for http://, like http://proxy.corp.example:3128")
    https: ProxyUrl | None = Field(None, description="proxy for https://, like http://proxy.corp.example:3128")
    no_proxy: list[NoProxyEntry] = Field(
        [],
        description="names, .domains, addresses and ranges without the proxy, in addition to those of the stack",
    )

    @model_validator(mode="after")
    def _for_something(self) -> ProxySettings:
        if self.http is None and self.https is None:
            refuse("proxy-empty")
        return self


def _certificate(pem: str) -> str:
    if "PRIVATE KEY" in pem:
        refuse("certificate-with-private-key")
    if _BEGINNING not in pem:
        refuse("certificate-not-pem")
    if pem.count(_BEGINNING) > 1:
        refuse("certificates-joined")
    # It takes a quarter of what all settings do, and most stacks have no use for it.
    from cryptography.hazmat.primitives.serialization import Encoding

    return _parsed(pem).public_bytes(Encoding.PEM).decode()


def _parsed(pem: str) -> x509.Certificate:
    from cryptography.x509 import load_pem_x509_certificate

    try:
        return load_pem_x509_certificate(pem.encode())
    except ValueError:
        refuse("certificate-damaged")


#: A certificate in PEM, and nothing beside it.
Certificate = Annotated[str, AfterValidator(_certificate)]


def _each_once(certificates: list[str]) -> list[str]:
    if len(set(certificates)) < len(certificates):
        refuse("certificate-twice")
    return certificates


Certificates = Annotated[list[Certificate], AfterValidator(_each_once)]


def certificate_checks(certificates: Sequence[str], today: date) -> Iterator[Finding]:
    """Problems of certificates that can be read: those by which nobody is trusted.

    Args:
        certificates: As the settings hold them.
        today: The day for which they must be good.
    """
    from cryptography.x509 import BasicConstraints, ExtensionNotFound, Version

    now = datetime.combine(today, time(), UTC)
    for index, pem in enumerate(certificates):
        certificate = _parsed(pem)
        key, value = key_of("trustedCertificates", index), shown(certificate.subject.rfc4514_string())
        try:
            is_authority = certificate.extensions.get_extension_for_class(BasicConstraints).value.ca
        except ExtensionNotFound:
            # Older than extensions are: what Go and OpenSSL take for an authority where it is a root.
            is_authority = certificate.version is Version.v1
        if not is_authority:
            yield finding("certificate-of-server", key, value)
        if certificate.not_valid_after_utc < now:
            yield finding("certificate-expired", key, value, not_valid_after_utc=certificate.not_valid_after_utc)
        elif certificate.not_valid_before_utc > datetime.combine(today, time.max, UTC):
            yield finding(
                "certificate-not-yet-valid", key, value, not_valid_before_utc=certificate.not_valid_before_utc
            )


def proxy_checks(valid: Mapping[str, Any], today: date) -> Iterator[Finding]:
    """What both clouds check of these two settings, beyond each by itself.

    Args:
        valid: Valid sections by the names of the settings' fields.
        today: The day for which certificates must be good.
    """
    yield from certificate_checks(valid.get("trusted_certificates") or [], today)
