"""The cluster's objects as they are, saved as evidence of what a failed story left behind.

No Secret and no ConfigMap is read. What else may carry a secret is hidden: user data of node classes, values of
environment variables, and the annotation in which kubectl repeats an object.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client

from karpstack.text.files import write as write_file

from ..connecting import connect
from .following import BrokenError, Resource, pages
from .request import ask

HIDDEN = "(hidden)"
_TIMEOUTS = (5, 30)  # seconds to connect, and to answer
_REPEATED = "kubectl.kubernetes.io/last-applied-configuration"
# The pure one takes half a minute for thousands of pods.
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def kinds(namespace: str, node_class_kind: str, node_class_path: str) -> tuple[Resource, ...]:
    """What is saved: the workload of a namespace, all of Karpenter's, and the events about them.

    Args:
        namespace: The workload's.
        node_class_kind: The cloud's kind of node class.
        node_class_path: Its path in the API.
    """
    return (
        Resource("Deployment", f"/apis/apps/v1/namespaces/{namespace}/deployments"),
        Resource("StatefulSet", f"/apis/apps/v1/namespaces/{namespace}/statefulsets"),
        Resource("DaemonSet", f"/apis/apps/v1/namespaces/{namespace}/daemonsets"),
        Resource("Job", f"/apis/batch/v1/namespaces/{namespace}/jobs"),
        Resource("PodDisruptionBudget", f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"),
        Resource("PersistentVolumeClaim", f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"),
        Resource("Pod", f"/api/v1/namespaces/{namespace}/pods"),
        Resource("NodePool", "/apis/karpenter.sh/v1/nodepools"),
        Resource("NodeClaim", "/apis/karpenter.sh/v1/nodeclaims"),
        Resource("Node", "/api/v1/nodes"),
        Resource(node_class_kind, node_class_path),
        # Of the workload, of the controller's pods, and of what is in no namespace; other people's are none of ours.
        Resource("Event", f"/api/v1/namespaces/{namespace}/events"),
        Resource("Event", "/api/v1/namespaces/kube-system/events"),
        Resource("Event", "/api/v1/events", (("fieldSelector", "involvedObject.namespace="),)),
    )


def save(folder: Path, wanted: tuple[Resource, ...], kubeconfig: Path | None = None) -> list[str]:
    """Write `<kind>.yml` for each kind, a list of its objects; of a kind that the cluster does not know, none.

    Args:
        folder: Where to; it is made.
        wanted: What.
        kubeconfig: The kubeconfig to connect with; None for the usual one.

    Returns:
        What could not be read, with the reason. What could be is written in any case.
    """
    api = connect(kubeconfig)
    folder.mkdir(parents=True, exist_ok=True)
    missing: list[str] = []
    read: dict[str, list[dict[str, Any]]] = {}
    for position, resource in enumerate(wanted):
        try:
            objects = read.setdefault(resource.kind, []) + _read(api, resource)
        except BrokenError as error:
            if not error.status:  # nobody answers: the others need not be waited for
                return [*missing, f"{', '.join(dict.fromkeys(unread.kind for unread in wanted[position:]))}: {error}"]
            missing.append(f"{resource.kind}: {error.status} {error}")
            continue
        read[resource.kind] = objects
        text = yaml.dump([_shown(item) for item in objects], Dumper=_DUMPER, allow_unicode=True)
        write_file(folder / f"{resource.kind.lower()}.yml", text)
    return missing


def _read(api: client.ApiClient, resource: Resource) -> list[dict[str, Any]]:
    """All objects of a kind, page by page.

    Raises:
        BrokenError: There was no answer, or another one than the objects.
    """
    objects: list[dict[str, Any]] = []
    try:
        for page in pages(resource, partial(ask, api, timeouts=_TIMEOUTS)):
            objects += [{"apiVersion": page["apiVersion"], "kind": resource.kind, **item} for item in page["items"]]
    except BrokenError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
    return objects


def _shown(item: Mapping[str, Any]) -> dict[str, Any]:
    """An object without what nobody reads and without what may be secret."""
    metadata = {key: value for key, value in item["metadata"].items() if key != "managedFields"}
    if _REPEATED in (metadata.get("annotations") or {}):
        metadata["annotations"] = {**metadata["annotations"], _REPEATED: HIDDEN}
    hidden: dict[str, Any] = _without_secrets({**item, "metadata": metadata})
    return hidden


def _without_secrets(value: Any, key: str = "") -> Any:
    if key == "userData":
        return HIDDEN
    if isinstance(value, dict):
        return {name: _without_secrets(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        if key == "env":
            return [{**item, "value": HIDDEN} if isinstance(item, dict) and "value" in item else item for item in value]
        return [_without_secrets(inner) for inner in value]
    return value
