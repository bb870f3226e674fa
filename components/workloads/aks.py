"""What a cluster that is there says of itself: who scales it, and who may change it. Nothing is changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..settings.existing_aks_cluster import Workloads
from . import running
from .asking import ask

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

_DEFINITIONS: Final = ("nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "aksnodeclasses.karpenter.azure.com")
#: What is created in the cluster, (API group, resource). Each by its name: what Azure RBAC makes of a question for
#: everything is not documented.
_OF_NODE_POOLS: Final = (("karpenter.sh", "nodepools"), ("karpenter.azure.com", "aksnodeclasses"))
_OF_THE_CONTROLLER: Final = (
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("apps", "deployments"),
    ("", "secrets"),
)


def look(kubeconfig: str, stack: str, *, controller: bool) -> Workloads:
    """Ask a cluster.

    Args:
        kubeconfig: As JSON or YAML.
        stack: Name of the environment, which knows by it what it has installed itself.
        controller: Whether the stack brings a controller of its own.
    """
    from kubernetes.client import ApiException
    from kubernetes.config import ConfigException
    from urllib3.exceptions import HTTPError

    try:
        return ask(kubeconfig, lambda api: _look(api, stack, controller))
    except ApiException as error:
        return Workloads(refusal=f"{error.status} {error.reason}")
    except (HTTPError, OSError, ConfigException) as error:
        return Workloads(refusal=str(error))


def _look(api: ApiClient, stack: str, controller: bool) -> Workloads:
    from kubernetes.client import AppsV1Api, CoreV1Api

    for group, resource in (*_OF_NODE_POOLS, *(_OF_THE_CONTROLLER if controller else ())):
        if not running.may(api, "create", group, resource):
            return Workloads(refusal=f"it knows who that is, and does not let them create {resource}")
    deployments: list[Any] = AppsV1Api(api).list_deployment_for_all_namespaces(_request_timeout=running.PATIENCE).items
    nodes = CoreV1Api(api).list_node(_request_timeout=running.PATIENCE).items
    others = [one for one in deployments if not running.is_of(stack, one)]
    found = list(running.definitions(api, _DEFINITIONS))
    return Workloads(
        autoscalers=list(running.running(deployments, running.AUTOSCALER)),
        controllers=list(running.running(others, running.KARPENTER)),
        own_definitions=[name for name, of_release in found if of_release],
        foreign_definitions=[name for name, of_release in found if not of_release],
        places=sum(running.is_ready(node) and running.takes_controller(node) for node in nodes),
    )
