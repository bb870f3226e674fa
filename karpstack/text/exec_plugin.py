"""The `exec` plugin of a kubeconfig's user, run as kubectl runs it.

The Kubernetes client has its own way: it runs the plugin in the folder of the cluster's file, and hides what it asks of
a person where stdout is no terminal.
https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, Final

_REST: Final = 10.0
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

    def keys(self) -> dict[str, str]:
        """Return it as keys of a kubeconfig's user."""
        pem = {"client-certificate-data": self.certificate, "client-key-data": self.key}
        return {"token": self.token, **{key: _base64(text.encode()) for key, text in pem.items() if text}}


class RenewedLogin:
    """The login that a plugin gives. One that has ended, or was refused, is renewed, by one thread for all.

    Attributes:
        first: What the plugin gave at first.
    """

    def __init__(self, run: Callable[[], Login], rest: float = _REST) -> None:
        """Run the plugin once.

        Args:
            run: Runs it.
            rest: Seconds in which a plugin is not run again once a login was renewed, or could not be: a person may
                have to read its message each time.

        Raises:
            PluginError: It gives no login.
        """
        self._run, self._rest, self._lock = run, rest, Lock()
        self._why, self._rested = "", 0.0  # of the last failure, and when the rest is over
        self._refused = ""
        self.first = self._login = run()

    def token(self) -> str:
        """Return a token: a new one if the last has ended, or an API server has refused it, unless the plugin rests.

        Raises:
            PluginError: It could not be renewed.
        """
        with self._lock:
            token, end = self._login.token, self._login.end
            if self._refused == token or (end and end <= datetime.now(UTC)):
                if time.monotonic() >= self._rested:
                    self._renew()
                elif self._why:
                    raise PluginError(self._why)
            return self._login.token

    def refuse(self, token: str) -> None:
        """Take it that an API server refuses a token: not each plugin says when a login ends.

        It does not wait for a plugin that runs, because the time of a request would go by.
        """
        if token == self._login.token:
            self._refused = token

    def _renew(self) -> None:
        try:
            found = self._run()
            if not found.token:
                raise PluginError("it gave a token before, and now only a certificate")
            self._login, self._why, self._refused = found, "", ""
        except PluginError as error:
            self._why = str(error)
            raise
        finally:
            self._rested = time.monotonic() + self._rest


def run(plugin: Mapping[str, Any], cluster: Mapping[str, Any], folder: Path) -> Login:
    """Run a plugin, which may ask the person at the terminal, and write on stderr.

    Args:
        plugin: The `exec` of a kubeconfig's user.
        cluster: The kubeconfig's cluster. A plugin with `provideClusterInfo` gets a description of it.
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
    hint = f" ({plugin['installHint']})" if plugin.get("installHint") else ""
    # By this process's PATH: the plugin's own `env` may have another.
    if not (command := shutil.which(plugin["command"])):
        raise PluginError(f"{plugin['command']} cannot be started, because there is no such program{hint}")
    try:
        done = subprocess.run(
            [command, *(plugin.get("args") or ())],
            env={
                **os.environ,
                **{one["name"]: one.get("value") or "" for one in plugin.get("env") or ()},
                "KUBERNETES_EXEC_INFO": asked,
            },
            stdin=None if is_interactive else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            check=False,
        )
    except OSError as error:
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
    """The description of a cluster that a plugin gets. It has the content of the certificate file, not its path."""
    told = {key: cluster[key] for key in _OF_CLUSTER if cluster.get(key)}
    if authority := cluster.get("certificate-authority"):
        try:
            told.setdefault("certificate-authority-data", _base64((folder / authority).read_bytes()))
        except OSError as error:
            raise PluginError(f"the cluster's certificate-authority cannot be read: {error}") from error
    for extension in cluster.get("extensions") or ():
        if extension["name"] == _EXTENSION:
            told["config"] = extension["extension"]
    return told


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


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
    # Plugins in Go write their zero time for none.
    has_end = end is not None and end.year > 1
    return Login(token, certificate, key, end.replace(tzinfo=end.tzinfo or UTC) if end and has_end else None)
