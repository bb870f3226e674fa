"""Connects to the cluster of a kubeconfig."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kubernetes import client, config

from karpstack.text.proxies import ProxyError, proxy_of_cluster
from karpstack.text.retries import bounded

_AGAIN: Final = bounded(3)


def connect(kubeconfig: Path | None = None, context: str | None = None) -> client.ApiClient:
    """Return a client of the cluster that a kubeconfig names; on this machine, the environment's proxy is not asked.

    Args:
        kubeconfig: The kubeconfig; None for the usual one.
        context: Its context; None for the current one.

    Raises:
        config.ConfigException: The kubeconfig, or the proxy that it or the environment names, cannot be used.
        OSError: It cannot be read.
    """
    settings = client.Configuration()
    settings.retries = _AGAIN
    config.load_kube_config(
        config_file=str(kubeconfig) if kubeconfig else None, context=context, client_configuration=settings
    )
    try:
        settings.proxy = proxy_of_cluster(str(settings.host), settings.proxy)
    except ProxyError as error:
        raise config.ConfigException(str(error)) from error
    return client.ApiClient(configuration=settings)
