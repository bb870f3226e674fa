"""What a cluster that is there says of itself: its network, its nodes, and who else scales them. Nothing is changed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ..settings.existing_cluster import NETWORKS, VPC_CNI
from ..settings.workloads import Workloads
from . import running

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

_SYSTEM: Final = "kube-system"
_AGENT: Final = "eks-pod-identity-agent"
_KUBE_PROXY: Final = "kube-proxy"
_ROLE: Final = "eks.amazonaws.com/role-arn"


def read_workloads(kubeconfig: str, stack: str) -> Workloads:
    """Read the workloads of a cluster.

    Args:
        kubeconfig: As JSON.
        stack: Name of the environment, which knows by it what it has installed itself.
    """
    return running.workloads_or_refusal(kubeconfig, lambda api: _find_workloads(api, stack))


def _find_workloads(api: ApiClient, stack: str) -> Workloads:
    from kubernetes.client import AppsV1Api, CoreV1Api

    if not running.may(api, "*", "*", "*"):
        return Workloads(refusal="it knows who that is, and does not let them do everything in it")
    daemons: list[Any] = AppsV1Api(api).list_daemon_set_for_all_namespaces(_request_timeout=running.PATIENCE).items
    own = {daemon.metadata.name for daemon in daemons if running.is_of_stack(stack, daemon)}
    names = {daemon.metadata.name for daemon in daemons} - own
    return replace(
        running.scaled_by(api, stack, "ec2nodeclasses.karpenter.k8s.aws"),
        networks=sorted(NETWORKS.keys() & names),
        own_network="cilium" in own,
        kube_proxy=_KUBE_PROXY in names,
        agent=_AGENT in names,
        cni_role=VPC_CNI in names and _ROLE in _annotations(CoreV1Api(api), VPC_CNI),
    )


def _annotations(core: Any, service_account: str) -> dict[str, str]:
    accounts = core.list_namespaced_service_account(
        _SYSTEM, field_selector=f"metadata.name={service_account}", _request_timeout=running.PATIENCE
    ).items
    return next((account.metadata.annotations or {} for account in accounts), {})
