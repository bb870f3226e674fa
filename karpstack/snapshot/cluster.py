"""Reads a cluster's objects for a snapshot: lists, page by page, and nothing but lists. No Secret, no ConfigMap."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

import urllib3
from kubernetes import client

from karpstack.karpenter import clock
from karpstack.scale_test.connecting import connect
from karpstack.text import answers
from karpstack.text.kubeconfig import prepare
from karpstack.text.shown import cut, visible

from .api_nodes import NODE_POOL
from .from_api import snapshot_of
from .left_out import OF_KIND, Ledger
from .model import Snapshot
from .problems import SnapshotError, finding

_PAGE: Final = 500
_TIMEOUTS: Final = (5, 60)  # seconds to connect, and to answer
_REASON: Final = 300  # characters of an answer that refuses
_OPTIONAL: Final = "/apis/karpenter."  # every API server has all other kinds


class Collection(NamedTuple):
    """A list of the API.

    Attributes:
        kind: Kind of its objects.
        path: Where it is.
        needed: Whether there is no snapshot without it.
    """

    kind: str
    path: str
    needed: bool = False


COLLECTIONS: Final = (
    Collection("Node", "/api/v1/nodes", needed=True),
    Collection("Pod", "/api/v1/pods", needed=True),
    Collection("ReplicaSet", "/apis/apps/v1/replicasets"),
    Collection("Deployment", "/apis/apps/v1/deployments"),
    Collection("StatefulSet", "/apis/apps/v1/statefulsets"),
    Collection("DaemonSet", "/apis/apps/v1/daemonsets"),
    Collection("Job", "/apis/batch/v1/jobs"),
    Collection("PodDisruptionBudget", "/apis/policy/v1/poddisruptionbudgets"),
    Collection("PriorityClass", "/apis/scheduling.k8s.io/v1/priorityclasses"),
    Collection("Namespace", "/api/v1/namespaces"),
    Collection("PersistentVolumeClaim", "/api/v1/persistentvolumeclaims"),
    Collection("PersistentVolume", "/api/v1/persistentvolumes"),
    Collection("NodePool", "/apis/karpenter.sh/v1/nodepools"),
    Collection("NodeOverlay", "/apis/karpenter.sh/v1alpha1/nodeoverlays"),
    Collection("NodeClaim", "/apis/karpenter.sh/v1/nodeclaims"),
    Collection("EC2NodeClass", "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"),
    Collection("AKSNodeClass", "/apis/karpenter.azure.com/v1beta1/aksnodeclasses"),
)


class ClusterError(SnapshotError):
    """The cluster does not answer, or refuses what there is no snapshot without; the text says what to do."""


def take(kubeconfig: Path | None = None, context: str | None = None) -> Snapshot:
    """The snapshot of a cluster, which is asked for lists and for nothing else.

    Args:
        kubeconfig: The kubeconfig; None for the usual one.
        context: Its context; None for its current one.

    Raises:
        ClusterError: There is no cluster, or it refuses.
        SnapshotError: It has more pods than any cluster holds.
    """
    ledger = Ledger()
    return snapshot_of(read(ledger, kubeconfig, context), clock.utcnow().replace(microsecond=0), "cluster", ledger)


def read(ledger: Ledger, kubeconfig: Path | None = None, context: str | None = None) -> Iterator[dict[str, Any]]:
    """The objects of a cluster, each with its kind.

    Args:
        ledger: Gets the kinds that could not be read.
        kubeconfig: The kubeconfig; None for the usual one.
        context: Its context; None for its current one.

    Raises:
        ClusterError: There is no cluster, or it refuses.
    """
    try:
        api = connect(kubeconfig, context)
    # The client has no error of its own for a kubeconfig that is YAML and no kubeconfig.
    except Exception as error:
        raise ClusterError.of(finding("snapshot-no-cluster", error=visible(error))) from error
    allowance = answers.Allowance()
    has_karpenters_nodes = False
    for collection in COLLECTIONS:
        try:
            for item in _objects(api, collection, allowance):
                labels = item["metadata"].get("labels") or ()
                has_karpenters_nodes |= collection.kind == "Node" and NODE_POOL in labels
                yield item
        except _RefusedError as refused:
            if refused.status == HTTPStatus.NOT_FOUND and collection.path.startswith(_OPTIONAL):
                if collection.kind == "NodePool" and has_karpenters_nodes:
                    ledger.add(
                        f"{OF_KIND}NodePool", "nodes are Karpenter's, but there is no karpenter.sh/v1: before 1.0?"
                    )
                continue  # the cluster has no Karpenter, or another one
            if collection.needed:
                raise ClusterError.of(
                    finding(
                        "snapshot-list-refused",
                        key=f"GET {collection.path}",
                        status=refused.status,
                        reason=refused,
                        kind=collection.kind,
                    )
                ) from refused
            ledger.add(f"{OF_KIND}{collection.kind}", f"the cluster refused the list ({refused.status})")


class _RefusedError(Exception):
    def __init__(self, reason: str, status: int) -> None:
        super().__init__(reason)
        self.status = status


def _objects(api: client.ApiClient, collection: Collection, allowance: answers.Allowance) -> Iterator[dict[str, Any]]:
    query = {"limit": str(_PAGE)}
    for _ in range(answers.PAGES):
        page = _page(api, collection, query, allowance)
        for item in page["items"]:
            item["metadata"].pop("managedFields", None)  # half of the memory
            yield {**item, "apiVersion": page["apiVersion"], "kind": collection.kind}
        more = page["metadata"].get("continue")
        if not more:
            return
        query["continue"] = more
    raise _unusable(collection, f"there are more than {answers.PAGES:,} pages")


def _page(
    api: client.ApiClient, collection: Collection, query: dict[str, str], allowance: answers.Allowance
) -> dict[str, Any]:
    try:
        ask = prepare(api, "GET", collection.path, _TIMEOUTS, query=list(query.items()))
        answer, content = answers.read(ask, attrgetter("response"), allowance=allowance)
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise ClusterError.of(
            finding("snapshot-no-answer", key=f"GET {collection.path}", error=visible(error))
        ) from error
    except answers.AnswerError as error:
        raise _unusable(collection, error) from error
    if answer.status >= HTTPStatus.BAD_REQUEST and "continue" in query:
        if more := _go_on(content):
            return {"items": [], "metadata": {"continue": more}}
        raise _unusable(collection, f"the list ended before its last page, with {answer.status}")
    if answer.status == HTTPStatus.NOT_FOUND and collection.needed:
        raise _unusable(collection, "404 is no answer to it; the address may be that of another server, or of a proxy")
    if answer.status >= HTTPStatus.BAD_REQUEST:
        reason = cut(visible(content.decode(errors="replace")), _REASON)
        if answer.status == HTTPStatus.UNAUTHORIZED:
            raise ClusterError.of(finding("snapshot-login-refused", key=f"GET {collection.path}", reason=reason))
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR or answer.status == HTTPStatus.TOO_MANY_REQUESTS:
            raise _unusable(collection, f"{answer.status} {reason}")
        raise _RefusedError(reason, answer.status)
    if answer.status != HTTPStatus.OK:
        raise _unusable(collection, f"{answer.status} is no answer to it; a proxy or a login page may be between")
    try:
        page = answers.parse(content)
        listed = list(answers.items(page, "items"))
    except answers.AnswerError as error:
        raise _unusable(collection, error) from error
    is_list = page.get("kind") == f"{collection.kind}List" and "apiVersion" in page
    if not is_list or not all(isinstance(one.get("metadata"), dict) for one in (page, *listed)):
        raise _unusable(collection, "what it has is no list of Kubernetes")
    return page


def _go_on(content: bytes) -> str:
    """Where a list goes on that took so long that its pages have expired: the API server says it in its refusal."""
    try:
        status = answers.parse(content)
    except answers.AnswerError:
        return ""
    metadata = status.get("metadata")
    if status.get("code") != HTTPStatus.GONE or not isinstance(metadata, dict):
        return ""
    return str(metadata.get("continue") or "")


def _unusable(collection: Collection, why: object) -> ClusterError:
    return ClusterError.of(finding("snapshot-half-answer", key=f"GET {collection.path}", error=visible(why)))
