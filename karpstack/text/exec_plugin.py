"""The `exec` plugin of a kubeconfig's user, run as kubectl runs it.

The Kubernetes client has its own way: it runs the plugin in the folder of the cluster's file, and hides what it asks of
a person where stdout is no terminal.
https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

#: How long before its end a login is renewed: a request takes time, too.
_BEFORE: Final = timedelta(minutes=1)
_EXTENSION: Final = "client.authentication.k8s.io/exec"
_OF_CLUSTER: Final = (
    "server",
    "tls-server-name",
    "insecure-skip-tls-verify",
    "certificate-authority-data",
    "proxy-url",
)


class PluginError(Exception):
    """The plugin cannot be run, or gives no login; the text holds nothing that it wrote."""


@dataclass(frozen=True)
class Login:
    """What a plugin gave.

    Attributes:
        token: Empty where it gave only a certificate.
        certificate: In PEM; empty where it gave only a token.
        key: Of the certificate, in PEM.
        end: When it ends; None if the plugin does not say.
    """

    token: str
    certificate: str
    key: str
    end: datetime | None

    def is_ending(self, now: datetime) -> bool:
        """Whether it has to be renewed before a request."""
        return self.end is not None and self.end - _BEFORE <= now


def run(plugin: Mapping[str, Any], cluster: Mapping[str, Any], folder: Path) -> Login:
    """Run a plugin, which may ask the person at the terminal, and write on stderr.

    Args:
        plugin: The `exec` of a kubeconfig's user.
        cluster: The kubeconfig's cluster, which the plugin is told of if it wants that.
        folder: Of the file that has the cluster.

    Raises:
        PluginError: It cannot be run, or gives no login.
    """
    version = plugin["apiVersion"]
    is_interactive = _is_interactive(plugin.get("interactiveMode") or "IfAvailable")
    told: dict[str, Any] = {"interactive": is_interactive}
    if plugin.get("provideClusterInfo"):
        told["cluster"] = _told_of(cluster, folder)
    asked = json.dumps({"apiVersion": version, "kind": "ExecCredential", "spec": told})
    try:
        done = subprocess.run(
            [plugin["command"], *(plugin.get("args") or ())],
            env={
                **os.environ,
                **{one["name"]: one["value"] for one in plugin.get("env") or ()},
                "KUBERNETES_EXEC_INFO": asked,
            },
            stdin=None if is_interactive else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            check=False,
        )
    except OSError as error:
        hint = f" ({plugin['installHint']})" if plugin.get("installHint") else ""
        raise PluginError(f"it cannot be started: {error}{hint}") from error
    if done.returncode:
        raise PluginError(f"it ended with {done.returncode}, and its own message, if it has one, is above")
    return _login(done.stdout, version)


def _is_interactive(mode: str) -> bool:
    is_terminal = sys.stdin is not None and sys.stdin.isatty()
    if mode == "Always" and not is_terminal:
        raise PluginError("its interactiveMode is Always, and there is no terminal on stdin")
    return is_terminal and mode != "Never"


def _told_of(cluster: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """A cluster as plugins are told of it; one with a file of certificates as one that has them in it."""
    told = {key: cluster[key] for key in _OF_CLUSTER if cluster.get(key)}
    if authority := cluster.get("certificate-authority"):
        told.setdefault("certificate-authority-data", base64.b64encode((folder / authority).read_bytes()).decode())
    for extension in cluster.get("extensions") or ():
        if extension["name"] == _EXTENSION:
            told["config"] = extension["extension"]
    return told


def _login(written: bytes, version: str) -> Login:
    try:
        answer = json.loads(written)
        kind, given = (answer["kind"], answer["apiVersion"]), answer["status"]
        token, certificate, key = (
            str(given.get(name) or "") for name in ("token", "clientCertificateData", "clientKeyData")
        )
        end = datetime.fromisoformat(given["expirationTimestamp"]) if given.get("expirationTimestamp") else None
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        # Without the error's own text, which may hold the token.
        raise PluginError("what it wrote is no ExecCredential in JSON with a status (it is not shown)") from None
    if kind != ("ExecCredential", version):
        raise PluginError(f"it wrote no ExecCredential of {version}, which the kubeconfig's apiVersion asks for")
    if bool(certificate) != bool(key):
        raise PluginError("it gives a certificate without a key, or a key without a certificate")
    if not (token or certificate):
        raise PluginError("it gives neither a token nor a certificate")
    return Login(token, certificate, key, end.replace(tzinfo=end.tzinfo or UTC) if end else None)
