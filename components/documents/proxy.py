"""What programs are told of a proxy: variables of their environment, and what never goes through it.

Names of variables and what `NO_PROXY` may hold are those of Go's golang.org/x/net/http/httpproxy, which Karpenter,
containerd and the kubelet use; curl's and Python's differ in wildcards, which is why there are none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

#: Where pods have the certificates.
CERTIFICATES_PATH: Final = "/etc/karpstack/certificates"
_VOLUME: Final = "trusted-certificates"

#: What is inside the machine or the cluster on any cloud: the host itself, the metadata service, and Services, which
#: are called by their names as well.
ALWAYS_DIRECT: Final = ("localhost", "127.0.0.1", "169.254.169.254", ".svc", ".cluster.local")

#: What answers pods with credentials on EKS; EKS's user guide, "Learn how EKS Pod Identity grants pods access to AWS
#: services", asks for it.
POD_IDENTITY_AGENT: Final = ("169.254.170.23",)
#: What the names of machines on AWS end with.
NODES: Final = (".internal",)


def direct(own: Sequence[str], *more: str) -> list[str]:
    """Entries of `NO_PROXY`, each once: the user's first, then what is always direct, then what the cloud needs."""
    return list(dict.fromkeys([*own, *ALWAYS_DIRECT, *more]))


def variables(*, http: str | None, https: str | None, no_proxy: Sequence[str]) -> Mapping[str, str]:
    """Variables of an environment.

    Args:
        http: Proxy for http://, None for none.
        https: The same for https://.
        no_proxy: What `direct` says.
    """
    said = {"HTTP_PROXY": http, "HTTPS_PROXY": https, "NO_PROXY": ",".join(no_proxy)}
    return {name: value for name, value in said.items() if value}


@dataclass(frozen=True, kw_only=True)
class Egress:
    """How programs on nodes and in pods get out of the network.

    Attributes:
        variables: Of their environment, as `variables` says.
        certificates: Of authorities that they trust beside the public ones, in PEM.
        mirrors: What nodes ask first for images of a registry: `{"docker.io": "mirror.example.com/hub"}`.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    certificates: Sequence[str] = ()
    mirrors: Mapping[str, str] = field(default_factory=dict)

    @property
    def for_nodes(self) -> bool:
        """Whether there is anything to tell a node."""
        return bool(self.variables or self.certificates or self.mirrors)

    @property
    def config_map(self) -> str:
        """Name of the ConfigMap of the certificates.

        Another one for other certificates: programs read them when they start, and pods are made again with the name.
        """
        digest = hashlib.sha256("".join(self.certificates).encode()).hexdigest()
        return f"karpstack-trusted-certificates-{digest[:8]}"

    @property
    def config_map_data(self) -> dict[str, str]:
        """Its content: a file of each certificate."""
        return {f"{fingerprint(pem)}.pem": pem for pem in self.certificates}

    @property
    def pod_variables(self) -> dict[str, str]:
        """Variables of a program in a pod, written in Go.

        Go reads the folder beside the file of public authorities that the image has (crypto/x509, root_unix.go), so
        that these are trusted as before.
        """
        return {**self.variables, **({"SSL_CERT_DIR": CERTIFICATES_PATH} if self.certificates else {})}

    @property
    def volumes(self) -> list[dict[str, Any]]:
        """Volumes of a pod: the certificates, where there are any."""
        return [{"name": _VOLUME, "configMap": {"name": self.config_map}}] if self.certificates else []

    @property
    def volume_mounts(self) -> list[dict[str, Any]]:
        """Where its containers have them."""
        return [{"name": _VOLUME, "mountPath": CERTIFICATES_PATH, "readOnly": True}] if self.certificates else []


#: Where nothing is said of it: programs get out as they are.
NO_EGRESS: Final = Egress()


def entries(values: Mapping[str, str]) -> list[dict[str, str]]:
    """Variables as the spec of a container has them."""
    return [{"name": name, "value": value} for name, value in values.items()]


def fingerprint(pem: str) -> str:
    """A short name of a certificate, the same wherever it is given."""
    return hashlib.sha256(pem.encode()).hexdigest()[:12]
