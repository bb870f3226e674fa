"""Check that the cluster answers and belongs to the stack: for another one, all other checks would be wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from karpstack.text.proxies import is_loopback

from ..finding import Finding, NotAskedError, UnknowableError, finding
from .cluster import VERSION, Cluster, Gone
from .subject import NODE_POOLS, Subject

_EXPORT = "`pulumi stack output kubeconfig --show-secrets > kubeconfig`"


def refuse_other_cluster(cluster: Cluster, outputs: Mapping[str, Any]) -> None:
    """Refuse a cluster that is not the stack's.

    On AWS a cluster has one address. On Azure it has several, so that `reached` only warns.

    Raises:
        UnknowableError: It is another one.
    """
    endpoint = str(outputs.get("clusterEndpoint") or "")
    if outputs.get("cloud") == "aws" and endpoint and cluster.host != _host(endpoint):
        raise UnknowableError(
            f"kubeconfig: its server is {cluster.server}, and the stack's clusterEndpoint is {endpoint}, so another "
            f"cluster would be asked; export KUBECONFIG, as {_EXPORT} writes it, or through a tunnel set its "
            f"tls-server-name to {_host(endpoint)}"
        )


def host(outputs: Mapping[str, Any]) -> str:
    """Where the stack says that its cluster is; empty if it does not."""
    return _host(str(outputs.get("clusterEndpoint") or ""))


def check_access(subject: Subject) -> Iterator[Finding]:
    """A cluster that does not answer; on Azure, one at another address than the stack's."""
    call = f"GET {VERSION}"
    if isinstance(subject.cluster, Gone):
        yield finding("cluster-gone", "pulumi stack export")
        return
    try:
        subject.cluster.greet()
    except NotAskedError as error:
        yield finding("cluster-not-reached", call, error=error)
    endpoint = str(subject.outputs.get("clusterEndpoint") or "")
    asked = subject.cluster.host
    if subject.cloud != "azure" or not endpoint or asked == _host(endpoint):
        return
    # In a rehearsal both are on this machine: the subscription, and the cluster whose address it made up.
    if is_loopback(f"//{asked}") and subject.azure is not None and subject.azure.is_local:
        return
    yield finding("kubeconfig-of-another-server", call, asked=asked, endpoint=endpoint)


def rights(subject: Subject) -> Iterator[Finding]:
    """NodePools that the user of the kubeconfig may not delete: `pulumi destroy` gives nobody a role."""
    if isinstance(subject.cluster, Gone) or not subject.own("nodePools") or subject.cluster.may_delete(NODE_POOLS):
        return
    on_azure = subject.cloud == "azure"
    yield finding(
        "user-may-not-delete-on-aks" if on_azure else "user-may-not-delete-on-eks", "POST selfsubjectaccessreviews"
    )


def _host(url: str) -> str:
    return (urlsplit(url).hostname or "").lower()
