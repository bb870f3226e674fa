"""Stand-in for pulumi-kubernetes: objects of every kind, patches and Helm releases, against the rehearsal's own
control plane.

Charts, kustomizations and YAML files as Pulumi resources of their own are not rehearsed.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from karpstack.rehearsal.attachment.package import Configuration, Provider
from karpstack.rehearsal.attachment.resource import Properties, RefusedError
from karpstack.rehearsal.cluster.provider.connection import Connection, active_cluster
from karpstack.rehearsal.cluster.provider.objects import KubernetesObject, kubernetes_object, object_kind
from karpstack.rehearsal.cluster.provider.patches import kubernetes_patch, patched_kind
from karpstack.rehearsal.cluster.provider.release import Release

if TYPE_CHECKING:
    from karpstack.rehearsal.cluster.charts import Charts
    from karpstack.rehearsal.cluster.control_plane import Clusters

PACKAGE: Final = "kubernetes"
VERSION: Final = "4.34.2"

_SETTINGS: Final = frozenset(
    {
        "cluster",
        "clusterIdentifier",
        "context",
        "deleteUnreachable",
        "enableServerSideApply",
        "kubeconfig",
        "kubeClientSettings",
        "namespace",
        "suppressDeprecationWarnings",
        "suppressHelmHookWarnings",
    }
)
_CLUSTER_SETTINGS: Final = ("kubeconfig", "context", "cluster")


def is_known(token: str) -> bool:
    """Return whether the type is supported; a preview does not ask the provider before there is a cluster."""
    return token == Release.token or bool(object_kind(token) or patched_kind(token))


def configuration(clusters: Clusters, charts: Charts) -> Configuration:
    """What `ProviderServer` needs to serve the package."""

    def configure(settings: Properties, cancelled: threading.Event) -> Provider:
        if str(settings.get("enableServerSideApply", "true")).lower() != "true":
            raise RefusedError("the rehearsal knows server-side apply only; remove enableServerSideApply=false")
        connection = Connection(settings, clusters, cancelled)

        def other(token: str) -> KubernetesObject:
            found = kubernetes_object(token, connection) or kubernetes_patch(token, connection)
            if found is None:
                raise RefusedError(
                    f"the rehearsal has no stand-in for {token}, so this resource cannot be rehearsed; "
                    f"it knows {Release.token} and single objects of every kind that the API server has, and patches"
                )
            return found

        return Provider([Release(connection, charts)], {}, other)

    return Configuration(_SETTINGS, configure, replaces)


def replaces(old: Properties, new: Properties) -> list[str]:
    """The settings whose change means another cluster, by the real provider's rule.

    With `clusterIdentifier` in both that alone decides. Otherwise a setting that is unknown yet counts as another
    cluster, and so does another entry for the active cluster in the kubeconfig.
    """
    identifiers = old.get("clusterIdentifier"), new.get("clusterIdentifier")
    if all(identifiers):
        return [] if identifiers[0] == identifiers[1] else ["clusterIdentifier"]
    for name in _CLUSTER_SETTINGS:
        if name in new and new[name] is not None and not isinstance(new[name], str):
            return [name]
    before, after = active_cluster(old), active_cluster(new)
    if before is None or after is None or before == after:
        return []
    return [name for name in _CLUSTER_SETTINGS if old.get(name) != new.get(name)]
