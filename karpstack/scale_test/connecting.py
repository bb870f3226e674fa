"""Connects to the cluster of a kubeconfig."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from kubernetes import client
from kubernetes.config import ConfigException

from karpstack.text.kubeconfig import settings_of

#: Seconds to connect, and between two parts of an answer.
TIMEOUTS: Final = (5, 30)
#: Of a playbook that runs: the context and the server with which it began. Each of its tasks is a process of its own,
#: and somebody may choose another context meanwhile.
CONTEXT: Final = "KARPSTACK_CONTEXT"
SERVER: Final = "KARPSTACK_SERVER"


def connect(kubeconfig: Path | None = None, context: str | None = None) -> client.ApiClient:
    """Return a client of the cluster that a kubeconfig names; on this machine, the environment's proxy is not asked.

    Args:
        kubeconfig: The kubeconfig; None for the usual one.
        context: Its context; None for the current one, or for that with which a playbook began.

    Raises:
        ConfigException: The kubeconfig, or the proxy that it or the environment names, cannot be used; or its context
            leads to another server than when the playbook began.
        OSError: It cannot be read.
    """
    begun = os.environ if kubeconfig is None and context is None else {}
    settings = settings_of(kubeconfig, context or begun.get(CONTEXT) or None)
    if (server := begun.get(SERVER)) and server != str(settings.host):
        raise ConfigException(
            f"the kubeconfig's context {begun.get(CONTEXT)} leads to {settings.host} now, and led to {server} when the "
            "run began, so the run stops; run it again"
        )
    return client.ApiClient(configuration=settings)
