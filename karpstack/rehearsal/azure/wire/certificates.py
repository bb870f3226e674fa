"""A certificate authority of the rehearsal's own, and one certificate for the hosts that the proxy answers for.

Both are made again at each start and are good for a week; the authority's key is never written down.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from karpstack.rehearsal.cluster.certificates import builder

_LIFE = timedelta(days=7)


def create(folder: Path, hosts: Sequence[str]) -> tuple[Path, ssl.SSLContext]:
    """Make authority and certificate.

    Args:
        folder: An existing private folder; `ca.pem` and `server.pem` (with its key) are put there.
        hosts: Names in the certificate.

    Returns:
        Path of the authority's certificate, and a server context with the other.
    """
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "rehearsal")])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0])])
    authority = (
        builder(issuer, issuer, authority_key.public_key(), _LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    certificate = (
        builder(subject, issuer, key.public_key(), _LIFE)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    ca, server = folder / "ca.pem", folder / "server.pem"
    ca.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    server.touch(mode=0o600)
    server.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server)
    return ca, context
