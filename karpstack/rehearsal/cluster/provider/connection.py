"""From a kubeconfig to the running control plane that it names, or to the error that a user would get.

Requests are sent with administrator's rights, so a token must be the administrator's. Of an exec plugin only the target
is checked, because the plugin (`aws eks get-token`) would need the real cloud.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import ssl
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import yaml

from karpstack.rehearsal.attachment.resource import Properties, RefusedError
from karpstack.rehearsal.cluster.provider.api import Api

if TYPE_CHECKING:
    from karpstack.rehearsal.cluster.control_plane import Cluster, Clusters

_EXEC_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
#: Where client-go finds certificates.
_CERTIFICATES: Final = ("client-certificate", "client-certificate-data")
#: The exec plugins of the clouds that are rehearsed.
_AKS_PLUGIN: Final = "kubelogin"
_PLUGINS: Final = ("aws", "aws-iam-authenticator", _AKS_PLUGIN)
#: Options by which exec plugins name the cluster: `aws eks get-token` and `aws-iam-authenticator token`.
_CLUSTER_OPTIONS: Final = ("--cluster-name", "--cluster-id", "-i")
_CERTIFICATE: Final = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


class UnreachableError(RefusedError):
    """The provider has no working connection; the text is the reason that the real one gives."""


@dataclass(frozen=True)
class Target:
    """What a kubeconfig's current context says."""

    server: str
    cluster: Mapping[str, Any]
    user: Mapping[str, Any]
    namespace: str


class Connection:
    """One provider instance's way to its cluster.

    Raises:
        RefusedError: There is no kubeconfig.
    """

    def __init__(self, settings: Properties, clusters: Clusters, cancelled: threading.Event) -> None:
        if not settings.get("kubeconfig"):
            raise RefusedError(
                "the provider has no kubeconfig, so it would take the one of whoever runs it, whichever cluster that "
                "names; pass kubeconfig=... to kubernetes.Provider and the provider to the resource"
            )
        self._settings = settings
        self._clusters = clusters
        self._cancelled = cancelled

    @property
    def deletes_unreachable(self) -> bool:
        """Whether objects of a cluster that is gone count as deleted (the setting `deleteUnreachable`)."""
        return str(self._settings.get("deleteUnreachable")).lower() == "true"

    @property
    def namespace(self) -> str:
        """Namespace of objects that name none."""
        try:
            default = target(self._settings).namespace
        except UnreachableError:
            default = "default"
        return str(self._settings.get("namespace") or default)

    def cluster(self) -> Cluster:
        """The cluster that the kubeconfig reaches now.

        Raises:
            UnreachableError: With the reason.
        """
        found = target(self._settings)
        cluster = self._clusters.by_endpoint(found.server)
        request = f'unable to load schema information from the API server: Get "{found.server}/openapi/v2?timeout=32s"'
        if cluster is None:
            address = urlsplit(found.server)
            raise UnreachableError(
                f"{request}: dial tcp {address.hostname}:{address.port or 443}: connect: connection refused"
            )
        if not found.cluster.get("insecure-skip-tls-verify"):
            _verify(found.cluster, cluster.certificate_authority, request)
        if found.user.get("exec") is None:
            _authenticate(found.user, cluster.token, request)
        else:
            _check_plugin(found.user["exec"], cluster, request)
        if not cluster.knows_deployer:
            raise UnreachableError(
                f"{request}: the server has asked for the client to provide credentials (the cluster does not know "
                "yet who made it; wait until it answers before its kubeconfig is used)"
            )
        return cluster

    def api(self) -> Api:
        """The API server of that cluster.

        Raises:
            UnreachableError: With the reason.
        """
        return Api(self.cluster().objects, self._cancelled)


def target(settings: Mapping[str, Any]) -> Target:
    """Read the kubeconfig in `settings` (its text, or the path of a file) at its current context.

    Raises:
        UnreachableError: In the words of the real provider.
    """
    config = _parse(str(settings["kubeconfig"]))
    name = settings.get("context") or config.get("current-context")
    context = _entry(config, "contexts", "context", name)
    cluster = _entry(config, "clusters", "cluster", settings.get("cluster") or context.get("cluster"))
    user = _entry(config, "users", "user", context.get("user"))
    if not cluster.get("server"):
        raise _unloadable("invalid configuration: the current cluster has no server")
    return Target(str(cluster["server"]), cluster, user, str(context.get("namespace") or "default"))


def active_cluster(settings: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The cluster entry in force, None when it cannot be told."""
    try:
        return target(settings).cluster if isinstance(settings.get("kubeconfig"), str) else None
    except UnreachableError:
        return None


def _parse(text: str) -> Mapping[str, Any]:
    try:
        if "\n" not in text and not text.lstrip().startswith("{"):
            text = Path(text).expanduser().read_text()
        config = yaml.load(text, yaml.CSafeLoader)
    except (OSError, yaml.YAMLError) as error:
        raise UnreachableError(f"failed to parse kubeconfig data in `kubernetes:config:kubeconfig`- {error}") from error
    if not isinstance(config, dict):
        raise UnreachableError(
            "failed to parse kubeconfig data in `kubernetes:config:kubeconfig`- "
            f"it is a {type(config).__name__}, not a map"
        )
    return config


def _entry(config: Mapping[str, Any], group: str, kind: str, name: Any) -> Mapping[str, Any]:
    for entry in config.get(group) or []:
        if entry.get("name") == name:
            return entry.get(kind) or {}
    raise _unloadable(f"{kind} {name!r} does not exist" if name else f"the kubeconfig names no {kind}")


def _unloadable(reason: str) -> UnreachableError:
    return UnreachableError(f"unable to load Kubernetes client configuration from kubeconfig file: {reason}")


def _verify(cluster: Mapping[str, Any], authority: bytes, request: str) -> None:
    try:
        if cluster.get("certificate-authority-data"):
            bundle = base64.b64decode(cluster["certificate-authority-data"], validate=True).decode()
        else:
            bundle = Path(cluster.get("certificate-authority") or "/nonexistent").read_text()
    except (binascii.Error, UnicodeDecodeError, OSError):
        bundle = ""
    trusted = {ssl.PEM_cert_to_DER_cert(text) for text in _CERTIFICATE.findall(bundle)}
    if not trusted & {ssl.PEM_cert_to_DER_cert(text) for text in _CERTIFICATE.findall(authority.decode())}:
        raise UnreachableError(
            f"{request}: tls: failed to verify certificate: x509: certificate signed by unknown authority"
        )


def _authenticate(user: Mapping[str, Any], administrators: str, request: str) -> None:
    unauthorized = f"{request}: the server has asked for the client to provide credentials"
    token = str(user.get("token") or "")
    if user.get("tokenFile"):
        try:
            token = Path(str(user["tokenFile"])).read_text().strip()
        except (OSError, ValueError) as error:
            raise UnreachableError(f"{unauthorized} (the kubeconfig's tokenFile cannot be read: {error})") from error
    if not token:
        held = "a client certificate, and this cluster trusts none" if any(map(user.get, _CERTIFICATES)) else "none"
        raise UnreachableError(f"{unauthorized} (the kubeconfig's user has {held})")
    if not hmac.compare_digest(token.encode(), administrators.encode()):
        raise UnreachableError(
            f"{unauthorized} (the kubeconfig's token is not the one of this cluster's administrator, with whose rights "
            "the rehearsal's provider acts; take the kubeconfig from the stack's cluster)"
        )


def _check_plugin(plugin: Mapping[str, Any], cluster: Cluster, request: str) -> None:
    version = plugin.get("apiVersion")
    if version not in _EXEC_VERSIONS:
        raise UnreachableError(f"{request}: exec plugin: invalid apiVersion {version!r}")
    if version == _EXEC_VERSIONS[0] and not plugin.get("interactiveMode"):
        raise UnreachableError(
            f"{request}: interactiveMode must be specified for {plugin.get('command')} to use exec "
            "authentication plugin"
        )
    program = Path(str(plugin.get("command"))).name
    if program not in _PLUGINS:
        raise UnreachableError(
            f"{request}: getting credentials: exec: the rehearsal runs no plugins and stands in for "
            f"{', '.join(_PLUGINS)} only, not for {program!r}"
        )
    arguments = [str(argument) for argument in plugin.get("args") or []]
    unauthorized = f"{request}: the server has asked for the client to provide credentials"
    named = _option(arguments, _CLUSTER_OPTIONS)
    # kubelogin's get-token names a server application, not a cluster.
    if named != cluster.name and program != _AKS_PLUGIN:
        raise UnreachableError(
            f"{unauthorized} (the exec plugin's token is for the cluster {named!r}, this is {cluster.name!r})"
        )
    for option, wanted in cluster.deployer.items():
        if (given := _option(arguments, (option,))) != wanted:
            raise UnreachableError(
                f"{unauthorized} (the cluster knows who made it, with {option} {wanted}, and the exec plugin asks for "
                f"a token with {f'{option} {given}' if given else f'no {option}'})"
            )


def _option(arguments: Sequence[str], names: Sequence[str]) -> str:
    """The value of the first of some options in an exec plugin's arguments; empty when there is none."""
    for position, argument in enumerate(arguments):
        option, _, value = argument.partition("=")
        if option in names:
            return value or (arguments[position + 1] if position + 1 < len(arguments) else "")
    return ""
