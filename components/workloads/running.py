"""What runs in a cluster that is there, and what whoever asks may do in it, on either cloud. Nothing is changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from ..documents.charts import SYSTEM_TAINT_KEY
from ..naming import KARPENTER_NAMESPACE, STACK_LABEL
from ..settings.workloads import Workloads
from .api_client import query

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

#: Seconds that one request may take.
PATIENCE: Final = 30.0
AUTOSCALER: Final = "cluster-autoscaler"
KARPENTER: Final = "karpenter"
_DEFINITIONS: Final = ("nodepools.karpenter.sh", "nodeclaims.karpenter.sh")
#: How Helm marks what it has made for the release of Karpenter's CRDs.
_OF_THE_RELEASE: Final = {
    "meta.helm.sh/release-name": "karpenter-crd",
    "meta.helm.sh/release-namespace": KARPENTER_NAMESPACE,
}
#: By which Karpenter's controller keeps off nodes that it has made.
_OF_KARPENTER: Final = "karpenter.sh/nodepool"


def workloads_or_refusal(kubeconfig: str, question: Callable[[ApiClient], Workloads]) -> Workloads:
    """Return what a cluster answers; a refusal where it does not."""
    from kubernetes.client import ApiException
    from kubernetes.config import ConfigException
    from urllib3.exceptions import HTTPError

    try:
        return query(kubeconfig, question)
    except ApiException as error:
        return Workloads(refusal=f"{error.status} {error.reason}")
    except (HTTPError, OSError, ConfigException) as error:
        return Workloads(refusal=str(error))


def scaled_by(api: ApiClient, stack: str, kind: str) -> Workloads:
    """Return who scales a cluster, whose CRDs it has, and where a controller can run.

    Args:
        api: The cluster's.
        stack: Name of the environment, which knows by it what it has installed itself.
        kind: Name of the cloud's CRD of node classes.
    """
    from kubernetes.client import AppsV1Api, CoreV1Api

    deployments: list[Any] = AppsV1Api(api).list_deployment_for_all_namespaces(_request_timeout=PATIENCE).items
    foreign = [one for one in deployments if not is_of_stack(stack, one)]
    nodes = [node for node in CoreV1Api(api).list_node(_request_timeout=PATIENCE).items if is_ready(node)]
    found = list(definitions(api, (*_DEFINITIONS, kind)))
    return Workloads(
        autoscalers=list(running(api.sanitize_for_serialization(deployments), AUTOSCALER)),
        controllers=list(running(api.sanitize_for_serialization(foreign), KARPENTER)),
        own_definitions=[name for name, of_release in found if of_release],
        foreign_definitions=[name for name, of_release in found if not of_release],
        ready=len(nodes),
        places=sum(map(can_run_controller, nodes)),
    )


def may(api: ApiClient, verb: str, group: str, resource: str) -> bool:
    """Whether whoever asks may do something everywhere in the cluster; `*` means everything."""
    from kubernetes.client import (
        AuthorizationV1Api,
        V1ResourceAttributes,
        V1SelfSubjectAccessReview,
        V1SelfSubjectAccessReviewSpec,
    )

    attributes = V1ResourceAttributes(verb=verb, group=group, resource=resource)
    review = V1SelfSubjectAccessReview(spec=V1SelfSubjectAccessReviewSpec(resource_attributes=attributes))
    answer = AuthorizationV1Api(api).create_self_subject_access_review(review, _request_timeout=PATIENCE)
    return bool(answer.status and answer.status.allowed)


def running(deployments: Iterable[Mapping[str, Any]], name: str) -> Iterator[str]:
    """Deployments of a program that have replicas, with their namespaces, whatever chart or manifest they are of."""
    for one in deployments:
        spec, metadata = one["spec"], one["metadata"]
        # `host:5000/.../cluster-autoscaler:v1.36.0`, `.../karpenter/controller@sha256:...`
        images = [each["image"].partition("@")[0].split("/") for each in spec["template"]["spec"]["containers"]]
        parts = {part.partition(":")[0] for image in images for part in image}
        is_meant = name in parts or (metadata.get("labels") or {}).get("app.kubernetes.io/name", "").endswith(name)
        if is_meant and spec.get("replicas") != 0:
            yield f"{metadata['namespace']}/{metadata['name']}"


def definitions(api: ApiClient, names: Collection[str]) -> Iterator[tuple[str, bool]]:
    """Each of some CRDs that is there, and whether Helm has made it for the release of Karpenter's CRDs."""
    from kubernetes.client import ApiextensionsV1Api

    client: Any = ApiextensionsV1Api(api)
    for name in names:
        for found in client.list_custom_resource_definition(
            field_selector=f"metadata.name={name}", _request_timeout=PATIENCE
        ).items:
            yield name, _OF_THE_RELEASE.items() <= (found.metadata.annotations or {}).items()


def is_of_stack(stack: str, item: Any) -> bool:
    """Whether a stack has installed it; `stack` is the name of its environment."""
    return bool((item.metadata.labels or {}).get(STACK_LABEL) == stack)


def is_ready(node: Any) -> bool:
    """Whether a node is."""
    return any(one.type == "Ready" and one.status == "True" for one in node.status.conditions or ())


def can_run_controller(node: Any) -> bool:
    """Whether Karpenter's controller, as its chart has it, can be scheduled there."""
    labels = node.metadata.labels or {}
    keys = {taint.key for taint in node.spec.taints or () if taint.effect != "PreferNoSchedule"}
    return (
        not node.spec.unschedulable
        and labels.get("kubernetes.io/os", "linux") == "linux"
        and _OF_KARPENTER not in labels
        and keys <= {SYSTEM_TAINT_KEY}
    )
