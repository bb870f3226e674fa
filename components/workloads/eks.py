"""What a cluster that is there says of itself: its network, its nodes, and who else scales them. Nothing is changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..settings.existing_cluster import NETWORKS, VPC_CNI, Workloads
from . import running
from .asking import ask

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

_SYSTEM: Final = "kube-system"
_AGENT: Final = "eks-pod-identity-agent"
_KUBE_PROXY: Final = "kube-proxy"
_ROLE: Final = "eks.amazonaws.com/role-arn"
_DEFINITIONS: Final = ("nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "ec2nodeclasses.karpenter.k8s.aws")


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

    if not running.may(api, "*", "*", "*"):
        return Workloads(refusal="it knows who that is, and does not let them do everything in it")
    apps, core = AppsV1Api(api), CoreV1Api(api)
    daemons: list[Any] = apps.list_daemon_set_for_all_namespaces(_request_timeout=running.PATIENCE).items
    deployments: list[Any] = apps.list_deployment_for_all_namespaces(_request_timeout=running.PATIENCE).items
    nodes = [node for node in core.list_node(_request_timeout=running.PATIENCE).items if running.is_ready(node)]
    own = {daemon.metadata.name for daemon in daemons if running.is_of(stack, daemon)}
    names = {daemon.metadata.name for daemon in daemons} - own
    others = [one for one in deployments if not running.is_of(stack, one)]
    return Workloads(
        networks=sorted(NETWORKS.keys() & names),
        own_network="cilium" in own,
        kube_proxy=_KUBE_PROXY in names,
        agent=_AGENT in names,
        cni_role=VPC_CNI in names and _ROLE in _annotations(core, VPC_CNI),
        autoscalers=list(running.running(deployments, running.AUTOSCALER)),
        controllers=list(running.running(others, running.KARPENTER)),
        definitions=[name for name, of_release in running.definitions(api, _DEFINITIONS) if not of_release],
        ready=len(nodes),
        places=sum(map(running.takes_controller, nodes)),
    )


def _annotations(core: Any, service_account: str) -> dict[str, str]:
    accounts = core.list_namespaced_service_account(
        _SYSTEM, field_selector=f"metadata.name={service_account}", _request_timeout=running.PATIENCE
    ).items
    return next((account.metadata.annotations or {} for account in accounts), {})
