"""What an interrupted scale test has left on a rehearsed cluster: removed before the stack is destroyed.

Pulumi does not know of it, and Karpenter keeps a node class until the last NodeClaim that uses it is gone, so that
destroying would wait for what nobody removes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from urllib3.exceptions import HTTPError

#: The label of all that a scale test makes (playbooks/README.md).
LABEL = "app.kubernetes.io/part-of=karpstack-scale-test"

_POOLS = {"group": "karpenter.sh", "version": "v1", "plural": "nodepools"}
_TIMEOUT = 120.0
_SECONDS_BETWEEN_LOOKS = 0.5
_ANSWER_SECONDS = 10.0


def remove(kubeconfig: Path, check: Callable[[], None]) -> list[str]:
    """Remove namespaces and NodePools of scale tests and wait until the nodes of those are gone, two minutes at most.

    Args:
        kubeconfig: The administrator's; without such a file there is no cluster, and nothing to do.
        check: Raises when the cluster is gone for good.

    Returns:
        What there was, for example `NodePool drift`; nothing where the cluster does not answer, which Pulumi will tell.
    """
    if not kubeconfig.is_file():
        return []
    from kubernetes import client, config  # half a second, which most commands need not wait

    try:
        with config.new_client_from_config(str(kubeconfig)) as connection:
            return _remove(client.CoreV1Api(connection), client.CustomObjectsApi(connection), check)
    except (client.ApiException, HTTPError):
        return []


def _remove(core: Any, custom: Any, check: Callable[[], None]) -> list[str]:
    from kubernetes.client import ApiException

    options = {"label_selector": LABEL, "_request_timeout": _ANSWER_SECONDS}

    def pools() -> list[str]:
        try:
            found = custom.list_cluster_custom_object(**_POOLS, **options)["items"]
        except ApiException as error:
            if error.status != 404:  # there are no NodePools before Karpenter's definitions
                raise
            return []
        return [f"NodePool {pool['metadata']['name']}" for pool in found]

    # The namespaces go first and without waiting: pods and nodes go at the same time then.
    names = [namespace.metadata.name for namespace in core.list_namespace(**options).items]
    for name in names:
        core.delete_namespace(name, _request_timeout=_ANSWER_SECONDS)
    found = pools()
    if found:
        custom.delete_collection_cluster_custom_object(**_POOLS, **options, propagation_policy="Foreground")
    deadline = time.monotonic() + _TIMEOUT
    while found and pools() and time.monotonic() < deadline:
        check()
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    return [*(f"Namespace {name}" for name in names), *found]
