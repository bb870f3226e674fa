"""What a cluster that is there says of itself: its network, its nodes, and who else scales them. Nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from ..documents.charts import SYSTEM_TAINT_KEY
from ..kubernetes import ask
from ..naming import KARPENTER_NAMESPACE, STACK_LABEL
from ..settings.existing_cluster import NETWORKS, VPC_CNI, Workloads

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

_PATIENCE: Final = 30.0
_SYSTEM: Final = "kube-system"
_AGENT: Final = "eks-pod-identity-agent"
_KUBE_PROXY: Final = "kube-proxy"
_AUTOSCALER: Final = "cluster-autoscaler"
_KARPENTER: Final = "karpenter"
_ROLE: Final = "eks.amazonaws.com/role-arn"
_DEFINITIONS: Final = ("nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "ec2nodeclasses.karpenter.k8s.aws")
#: How Helm marks what it has made for the release of Karpenter's CRDs.
_OF_THE_RELEASE: Final = {
    "meta.helm.sh/release-name": "karpenter-crd",
    "meta.helm.sh/release-namespace": KARPENTER_NAMESPACE,
}
#: By which Karpenter's controller keeps off nodes that it has made.
_OF_KARPENTER: Final = "karpenter.sh/nodepool"


def look(kubeconfig: str, stack: str) -> Workloads:
    """Ask a cluster.

    Args:
        kubeconfig: As JSON.
        stack: Name of the environment, which knows by it what it has installed itself.
    """
    from kubernetes.client import ApiException
    from kubernetes.config import ConfigException
    from urllib3.exceptions import HTTPError

    try:
        return ask(kubeconfig, lambda api: _look(api, stack))
    except ApiException as error:
        return Workloads(refusal=f"{error.status} {error.reason}")
    except (HTTPError, OSError, ConfigException) as error:
        return Workloads(refusal=str(error))


def _look(api: ApiClient, stack: str) -> Workloads:
    from kubernetes.client import AppsV1Api, CoreV1Api

    if not _administers(api):
        return Workloads(refusal="it knows who that is, and does not let them do everything in it")
    apps, core = AppsV1Api(api), CoreV1Api(api)
    daemons: list[Any] = apps.list_daemon_set_for_all_namespaces(_request_timeout=_PATIENCE).items
    deployments: list[Any] = apps.list_deployment_for_all_namespaces(_request_timeout=_PATIENCE).items
    nodes = [node for node in core.list_node(_request_timeout=_PATIENCE).items if _is_ready(node)]
    own = {daemon.metadata.name for daemon in daemons if _is_of(stack, daemon)}
    names = {daemon.metadata.name for daemon in daemons} - own
    return Workloads(
        networks=sorted(NETWORKS.keys() & names),
        own_network="cilium" in own,
        kube_proxy=_KUBE_PROXY in names,
        agent=_AGENT in names,
        cni_role=VPC_CNI in names and _ROLE in _annotations(core, VPC_CNI),
        autoscalers=list(_running(deployments, _AUTOSCALER)),
        controllers=list(_running([one for one in deployments if not _is_of(stack, one)], _KARPENTER)),
        definitions=list(_foreign_definitions(api)),
        ready=len(nodes),
        places=sum(map(_takes_controller, nodes)),
    )


def _administers(api: ApiClient) -> bool:
    from kubernetes.client import (
        AuthorizationV1Api,
        V1ResourceAttributes,
        V1SelfSubjectAccessReview,
        V1SelfSubjectAccessReviewSpec,
    )

    everything = V1ResourceAttributes(verb="*", group="*", resource="*")
    review = V1SelfSubjectAccessReview(spec=V1SelfSubjectAccessReviewSpec(resource_attributes=everything))
    answer = AuthorizationV1Api(api).create_self_subject_access_review(review, _request_timeout=_PATIENCE)
    return bool(answer.status and answer.status.allowed)


def _annotations(core: Any, service_account: str) -> dict[str, str]:
    accounts = core.list_namespaced_service_account(
        _SYSTEM, field_selector=f"metadata.name={service_account}", _request_timeout=_PATIENCE
    ).items
    return next((account.metadata.annotations or {} for account in accounts), {})


def _running(deployments: Sequence[Any], name: str) -> Iterator[str]:
    """Deployments of a program that have replicas, whatever chart or manifest they come from."""
    for one in deployments:
        containers = one.spec.template.spec.containers
        # `.../cluster-autoscaler:v1.36.0`, `.../karpenter/controller@sha256:...`
        images = {part for each in containers for part in each.image.partition("@")[0].partition(":")[0].split("/")}
        labels = one.metadata.labels or {}
        is_meant = name in images or labels.get("app.kubernetes.io/name", "").endswith(name)
        if is_meant and one.spec.replicas != 0:
            yield f"{one.metadata.namespace}/{one.metadata.name}"


def _foreign_definitions(api: ApiClient) -> Iterator[str]:
    """CRDs of Karpenter that Helm would not take over."""
    from kubernetes.client import ApiextensionsV1Api

    definitions: Any = ApiextensionsV1Api(api)
    for name in _DEFINITIONS:
        for found in definitions.list_custom_resource_definition(
            field_selector=f"metadata.name={name}", _request_timeout=_PATIENCE
        ).items:
            if not _OF_THE_RELEASE.items() <= (found.metadata.annotations or {}).items():
                yield name


def _is_of(stack: str, item: Any) -> bool:
    return bool((item.metadata.labels or {}).get(STACK_LABEL) == stack)


def _is_ready(node: Any) -> bool:
    return any(one.type == "Ready" and one.status == "True" for one in node.status.conditions or ())


def _takes_controller(node: Any) -> bool:
    """Whether Karpenter's controller, as its chart has it, can be scheduled there."""
    labels = node.metadata.labels or {}
    keys = {taint.key for taint in node.spec.taints or () if taint.effect != "PreferNoSchedule"}
    return (
        not node.spec.unschedulable
        and labels.get("kubernetes.io/os", "linux") == "linux"
        and _OF_KARPENTER not in labels
        and keys <= {SYSTEM_TAINT_KEY}
    )
