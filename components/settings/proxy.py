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

from ..problems import Problem, Reason, key_of, refuse, shown
from .sections import Section

if TYPE_CHECKING:
    from cryptography import x509

#: How a certificate in PEM begins.
_BEGINNING: Final = "-----BEGIN CERTIFICATE-----"
_ENTER: Final = "pulumi config set --path 'karpstack:trustedCertificates[0]' < corporate-root.pem"
_RANGE: Final = re.compile(r"[0-9a-fA-F.:]+/[0-9]{1,3}")
#: Characters that separate entries, or that no name has.
_NO_ENTRY: Final = re.compile(r"[\s,;'\"|]")


def _proxy(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        refuse(
            "is no address of a proxy: some of those who are given it take what has no scheme for a host, others for "
            "nothing at all, and no node joins",
            "write it like http://proxy.corp.example:3128; https:// is for a proxy that itself speaks TLS",
        )
    if "@" in parts.netloc:
        refuse(
            "holds credentials: they would lie in the user data of every machine and in the specs of pods, where all "
            "who may read either find them",
            "leave them out, and have the proxy admit the addresses of the nodes' subnets",
        )
    try:
        port = parts.port
    except ValueError:
        port = None
    if port is None:
        refuse(
            "names no port, for which curl takes 1080 and Go's programs take the scheme's own: some would find the "
            "proxy and others would not",
            "write it like http://proxy.corp.example:3128",
        )
    if url != f"{parts.scheme}://{parts.netloc}":
        refuse(
            "is more than scheme, host and port, of which an address of a proxy consists",
            f"write {parts.scheme}://{parts.netloc}",
        )
    return url


def _no_proxy(entry: str) -> str:
    if "/" in entry and not _RANGE.fullmatch(entry):
        refuse(
            "is a URL or a path, and is compared with names and addresses: nothing is ever like it, so that the proxy "
            "would be asked for it all the same",
            "write a host's name, .corp.example for all below it, an address, or a range like 10.20.0.0/16",
        )
    if "*" in entry:
        refuse(
            "has a wildcard, which Go's programs know and curl does not: what one reaches directly, another asks the "
            "proxy for",
            f"write {entry[1:] if entry.startswith('*.') else '.corp.example'}; a dot at the beginning stands for all "
            "names below it",
        )
    if not entry or _NO_ENTRY.search(entry):
        refuse(
            "is not one entry: entries are joined by commas, and it would be read as others or as none",
            "write each name, address or range as an entry of its own",
        )
    return entry


ProxyUrl = Annotated[str, AfterValidator(_proxy)]
NoProxyEntry = Annotated[str, AfterValidator(_no_proxy)]


class ProxySettings(Section):
    """karpstack:proxy."""

    REFUSED: ClassVar[Mapping[str, Reason]] = dict.fromkeys(
        ("username", "user", "password", "credentials"),
        Reason(
            "asks for credentials of a proxy: they would lie in the user data of every machine and in the specs of "
            "pods, where all who may read either find them",
            "remove it, and have the proxy admit the addresses of the nodes' subnets",
        ),
    )

    http: ProxyUrl | None = Field(None, description="proxy for http://, like http://proxy.corp.example:3128")
    https: ProxyUrl | None = Field(None, description="proxy for https://, like http://proxy.corp.example:3128")
    no_proxy: list[NoProxyEntry] = Field(
        [], description="names, .domains, addresses and ranges that are reached directly, beside those of the stack"
    )

    @model_validator(mode="after")
    def _for_something(self) -> ProxySettings:
        if self.http is None and self.https is None:
            refuse(
                "names no proxy, neither for http nor for https: noProxy alone changes nothing",
                "set karpstack:proxy.https, and karpstack:proxy.http where the same proxy serves both; or remove it",
            )
        return self


def _certificate(pem: str) -> str:
    if "PRIVATE KEY" in pem:
        refuse(
            "holds a private key: it would lie on every node, in the state and in the cluster. It was in a file that "
            "is no secret, so take it for known",
            f"give the certificate alone: {_ENTER}",
        )
    if _BEGINNING not in pem:
        refuse(
            "is no certificate in PEM: nothing is read from files here, so that a stack is the same wherever it is "
            "rehearsed, reviewed and deployed",
            f"give its text, which begins with {_BEGINNING}: {_ENTER}",
        )
    if pem.count(_BEGINNING) > 1:
        refuse(
            "holds several certificates, and most of those who are given a file of them read the first alone",
            "make each an entry of its own",
        )
    # It takes a quarter of what all settings do, and most stacks have no use for it.
    from cryptography.hazmat.primitives.serialization import Encoding

    return _parsed(pem).public_bytes(Encoding.PEM).decode()


def _parsed(pem: str) -> x509.Certificate:
    from cryptography.x509 import load_pem_x509_certificate

    try:
        return load_pem_x509_certificate(pem.encode())
    except ValueError:
        refuse(
            "is not the whole of a certificate, or something has been changed in it: no node could read it",
            f"give its text as it is, between and with the lines BEGIN and END: {_ENTER}",
        )


#: A certificate in PEM, and nothing beside it.
Certificate = Annotated[str, AfterValidator(_certificate)]


def _each_once(certificates: list[str]) -> list[str]:
    if len(set(certificates)) < len(certificates):
        refuse("holds a certificate twice, and nodes keep each by a name of its own", "give each once")
    return certificates


Certificates = Annotated[list[Certificate], AfterValidator(_each_once)]


def certificate_checks(certificates: Sequence[str], today: date) -> Iterator[Problem]:
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
            yield Problem(
                key,
                value,
                "is the certificate of a server and not of an authority: what else its issuer has signed, and this one "
                "when it is renewed, nobody would trust",
                "give the certificate of the authority that signed it, and of its root",
            )
        if certificate.not_valid_after_utc < now:
            yield Problem(
                key,
                value,
                f"expired on {certificate.not_valid_after_utc:%Y-%m-%d}: whatever it has signed is refused, and no "
                "node gets through the proxy",
                "give the certificate that replaces it",
            )
        elif certificate.not_valid_before_utc > datetime.combine(today, time.max, UTC):
            yield Problem(
                key,
                value,
                f"is not valid before {certificate.not_valid_before_utc:%Y-%m-%d}: until then whatever it has signed "
                "is refused, and no node gets through the proxy",
                "give the one that is valid now, too",
            )


def proxy_checks(valid: Mapping[str, Any], today: date) -> Iterator[Problem]:
    """What both clouds check of these two settings, beyond each by itself.

    Args:
        valid: Valid sections by the names of the settings' fields.
        today: The day for which certificates must be good.
    """
    yield from certificate_checks(valid.get("trusted_certificates") or [], today)
