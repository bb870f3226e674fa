"""Keys and certificates of one control plane, and the kubeconfigs that use them.

Everything is made again for each control plane and lies in its folder, readable by the owner alone.
"""

from __future__ import annotations

import base64
import datetime
import ipaddress
import secrets
from dataclasses import dataclass
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from karpstack.karpenter import clock

_LIFETIME = datetime.timedelta(days=30)


@dataclass(frozen=True)
class Certificates:
    """The files of one control plane.

    Attributes:
        authority: Certificate authority, PEM.
        serving: The API server's certificate, PEM.
        serving_key: Its key.
        service_account_key: RSA key that signs service account tokens, as a cloud's OIDC issuer does.
        tokens: kube-apiserver's token file.
        administrator_token: The administrator's bearer token.
    """

    authority: Path
    serving: Path
    serving_key: Path
    service_account_key: Path
    tokens: Path
    administrator_token: str

    @classmethod
    def create(cls, folder: Path, service_ip: str, token: str = "") -> Certificates:
        """Make them all.

        Args:
            service_ip: Address of the service `kubernetes`, which the serving certificate names too.
            token: The administrator's, where somebody may know it already.
        """
        authority_key = ec.generate_private_key(ec.SECP256R1())
        authority_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
        authority = (
            builder(authority_name, authority_name, authority_key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(sign=True), critical=True)
            .sign(authority_key, hashes.SHA256())
        )
        serving_key = ec.generate_private_key(ec.SECP256R1())
        service = "kubernetes.default.svc.cluster.local"
        names = [x509.DNSName(name) for name in ("localhost", service, service.removesuffix(".cluster.local"))]
        addresses = [x509.IPAddress(ipaddress.ip_address(address)) for address in ("127.0.0.1", service_ip)]
        serving = (
            builder(
                x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")]),
                authority_name,
                serving_key.public_key(),
            )
            .add_extension(x509.SubjectAlternativeName([*names, *addresses]), critical=False)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(_usage(sign=False), critical=True)
            .sign(authority_key, hashes.SHA256())
        )
        token = token or secrets.token_urlsafe(32)
        return cls(
            _write(folder / "ca.crt", authority.public_bytes(serialization.Encoding.PEM)),
            _write(folder / "serving.crt", serving.public_bytes(serialization.Encoding.PEM)),
            _write(folder / "serving.key", _pem(serving_key)),
            _write(folder / "service-account.key", _pem(rsa.generate_private_key(65537, 2048))),
            _write(folder / "tokens.csv", f"{token},administrator,administrator,system:masters\n".encode()),
            token,
        )


def write_kubeconfig(
    path: Path, cluster: str, endpoint: str, authority: bytes, *, token: str = "", token_file: Path | None = None
) -> Path:
    """Write a kubeconfig that holds a token, or that names the file of one."""
    user = {"token": token} if token_file is None else {"tokenFile": str(token_file)}
    return _write(
        path,
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": cluster,
                "clusters": [
                    {
                        "name": cluster,
                        "cluster": {
                            "server": endpoint,
                            "certificate-authority-data": base64.b64encode(authority).decode(),
                        },
                    }
                ],
                "users": [{"name": cluster, "user": user}],
                "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": cluster}}],
            }
        ).encode(),
    )


def builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, lifetime: datetime.timedelta = _LIFETIME
) -> x509.CertificateBuilder:
    """What every certificate has, good from now on."""
    now = clock.utcnow()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + lifetime)
    )


def _usage(*, sign: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not sign,
        key_cert_sign=sign,
        crl_sign=sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def _write(path: Path, data: bytes) -> Path:
    path.touch(mode=0o600)
    path.write_bytes(data)
    return path
