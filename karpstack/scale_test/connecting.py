"""Connects to the cluster of a kubeconfig."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kubernetes import client

from karpstack.text.kubeconfig import settings_of

#: Seconds to connect, and between two parts of an answer.
TIMEOUTS: Final = (5, 30)


def connect(kubeconfig: Path | None = None, context: str | None = None) -> client.ApiClient:
    """Return a client of the cluster that a kubeconfig names; on this machine, the environment's proxy is not asked.

    Args:
        kubeconfig: The kubeconfig; None for the usual one.
        context: Its context; None for the current one.

    Raises:
        config.ConfigException: The kubeconfig, or the proxy that it or the environment names, cannot be used.
        OSError: It cannot be read.
    """
    return client.ApiClient(configuration=settings_of(kubeconfig, context))
