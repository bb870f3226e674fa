"""How the cluster of a kubeconfig is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kubernetes import client, config

from .proxies import ProxyError, proxy_of_cluster
from .retries import bounded

_AGAIN: Final = bounded(3)


def settings_of(kubeconfig: Path | None = None, context: str | None = None) -> client.Configuration:
    """Return the settings of a client; on this machine, the environment's proxy is not asked.

    Args:
        kubeconfig: The kubeconfig; None for the usual one.
        context: Its context; None for the current one.

    Raises:
        config.ConfigException: The kubeconfig, its token, or the proxy that it or the environment names, cannot be
            used; no error shows a secret.
        OSError: It cannot be read.
    """
    settings = client.Configuration()
    settings.retries = _AGAIN
    config.load_kube_config(
        config_file=str(kubeconfig) if kubeconfig else None, context=context, client_configuration=settings
    )
    if not all(str(value).isascii() and str(value).isprintable() for value in settings.api_key.values()):
        # The client's own error has the token in it.
        raise config.ConfigException(
            "the token of the kubeconfig's user has a line break, or another character that no request can hold (the "
            "token is not shown), so the cluster cannot be asked; write it on one line, without quotes"
        )
    try:
        settings.proxy = proxy_of_cluster(str(settings.host), settings.proxy)
    except ProxyError as error:
        raise config.ConfigException(str(error)) from error
    return settings
